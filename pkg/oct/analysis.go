package oct

import (
	"slices"

	"strata/pkg/ngff"
)

// Analysis describes the pyramid of a volume for analysis: its levels have the physical voxel sizes that an atlas or a script asks for
// (stages specification, "Analysis pyramid").
type Analysis struct {
	PyramidResolutions []float64 // voxel sizes of the levels, in µm
	MakeIsotropic      bool      // the same size along all axes; otherwise voxels keep their proportions
}

// DefaultAnalysis returns the pyramid of the workflow.
func DefaultAnalysis() Analysis { return Analysis{[]float64{10, 25, 50, 100}, true} }

// AnalysisChunk is the default shape of chunks. It has few planes, since whole planes wait in memory.
var AnalysisChunk = []int{8, 256, 256}

// Apply completes spec, the specification of a volume (z, y, x) of float32 with its Shape, Format and Chunks as the input has them, by the
// layout, and returns the shapes of the levels for [ngff.CreatePlanes]. voxel is the size of the volume's voxels in µm, and what names in
// a warning what they are the voxels of.
func (a Analysis) Apply(spec *ngff.ImageSpec, voxel [3]float64, what string, layout Layout, res *Resources) ([][]int, error) {
	levels := ngff.AnalysisLevels(spec.Shape, voxel[:], a.PyramidResolutions, a.MakeIsotropic)
	if len(levels) == 0 {
		res.Warnf("no voxel size of the pyramid is as coarse as that of %s, %v µm: the volume is kept as it is, without a pyramid", what, slices.Min(voxel[:]))
	}
	levels = levels[:min(len(levels), layout.Levels+1)]
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
	spec.Codecs, err = layout.Codecs(spec.DType, spec.Format)
	return levels, err
}
