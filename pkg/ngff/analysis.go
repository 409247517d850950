package ngff

import (
	"math"
	"slices"
)

// mostVoxels bounds the axes of levels: wrong voxel sizes make longer ones, which no memory holds either.
const mostVoxels = 1 << 40

// AnalysisLevels returns the shapes of the levels of a pyramid for analysis: of voxel sizes that an atlas or a script
// asks for, not of powers of two (stages specification, "OME-Zarr output and pyramids"). shape and voxel are those of
// the base; targets are voxel sizes in the same unit, in any order. Targets finer than the finest axis of the base are
// left out. Isotropic levels have the target along every axis; others keep the base's proportions, with the target
// along its finest axis. An axis of n voxels has max(1, ⌊n/factor + 1e-9⌋) of them. If no target is left there are no
// levels, and the base is kept.
func AnalysisLevels(shape []int, voxel, targets []float64, isotropic bool) [][]int {
	finest := slices.Min(voxel)
	sorted := slices.Compact(slices.Sorted(slices.Values(targets)))
	var out [][]int
	for _, t := range sorted {
		if t < finest*(1-1e-9) { // 10 µm kept in millimetres need not be 10
			continue
		}
		var level []int
		for d, n := range shape {
			f := t / finest
			if isotropic {
				f = t / voxel[d]
			}
			level = append(level, max(1, int(math.Floor(min(float64(n)/f+1e-9, mostVoxels)))))
		}
		out = append(out, level)
	}
	return out
}
