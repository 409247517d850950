package oct

import (
	"slices"

	"strata/pkg/ngff"
)

// Analysis describes the pyramid of a volume for analysis: its levels have the physical voxel sizes that an atlas or a
// script asks for (stages specification, "Analysis pyramid").
type Analysis struct {
	PyramidResolutions []float64 // voxel sizes of the levels, in µm
	MakeIsotropic      bool      // the same size along all axes; otherwise voxels keep their proportions
	Native             bool      // level 0 has the voxels of the input, and each further level half as many along each axis; the two above do not count
}

// DefaultAnalysis returns the pyramid of the workflow.
func DefaultAnalysis() Analysis {
	return Analysis{PyramidResolutions: []float64{10, 25, 50, 100}, MakeIsotropic: true}
}

// AnalysisChunk is the default shape of chunks. It has few planes, since whole planes wait in memory.
var AnalysisChunk = []int{8, 256, 256}

// Check returns an error if the memory does not hold a plane of each level of a volume's pyramid and the weights that
// make them, as after wrong voxel sizes. It compares sizes and allocates nothing. shape and voxel (µm) are those of the
// volume, or of a part of it, and what names it in the message.
func (a Analysis) Check(shape []int, voxel [3]float64, what string, layout Layout, res *Resources) error {
	levels := a.levels(shape, voxel, layout)
	if len(levels) == 0 {
		return nil
	}
	if need := ngff.LeastPlanesBytes(shape, levels); need > res.Mem {
		return res.TooLittle(need, "%s: a pyramid of %v voxels from %v voxels of %v µm", what, levels[0], shape, voxel)
	}
	return nil
}

// levels returns the shapes of the levels of a volume's pyramid, as many as the layout wants at most.
func (a Analysis) levels(shape []int, voxel [3]float64, layout Layout) (levels [][]int) {
	if !a.Native {
		levels = ngff.AnalysisLevels(shape, voxel[:], a.PyramidResolutions, a.MakeIsotropic)
		return levels[:min(len(levels), layout.Levels+1)]
	}
	levels = [][]int{slices.Clone(shape)}
	for len(levels) <= layout.Levels && slices.Min(levels[len(levels)-1]) > 1 {
		half := slices.Clone(levels[len(levels)-1])
		for d := range half {
			half[d] /= 2
		}
		levels = append(levels, half)
	}
	return levels
}

// Apply completes spec, the specification of a volume (z, y, x) of float32 with its Shape, Format and Chunks as the
// input has them, by the layout, and returns the shapes of the levels for [ngff.CreatePlanes]. voxel is the size of the
// volume's voxels in µm, and what names the volume in warnings.
func (a Analysis) Apply(spec *ngff.ImageSpec, voxel [3]float64, what string, layout Layout, res *Resources) ([][]int, error) {
	if err := a.Check(spec.Shape, voxel, what, layout, res); err != nil {
		return nil, err
	}
	levels := a.levels(spec.Shape, voxel, layout)
	if len(levels) == 0 {
		res.Warnf("no voxel size of the pyramid is as coarse as that of %s, %.3g µm: the volume is kept as it is, without a pyramid", what, slices.Min(voxel[:]))
	}
	if a.Native && len(levels) < layout.Levels+1 {
		res.Warnf("a volume of %v voxels is halved %d times, not %d", spec.Shape, len(levels)-1, layout.Levels)
	}
	if layout.Format != 0 {
		spec.Format = layout.Format
	}
	layout.Format = spec.Format
	if layout.Chunks != nil {
		spec.Chunks = layout.Chunks
	}
	if err := layout.Check(spec.Chunks); err != nil {
		return nil, err
	}
	spec.Shard, spec.Workers, spec.Meter = layout.Shard, res.Workers, res.Meter
	var err error
	spec.Codecs, err = layout.codecs(spec.DType, spec.Format)
	return levels, err
}
