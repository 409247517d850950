package stack

import (
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/volume"
)

// image returns the canvas with the specification of the output.
func (p *stackPlan) image(layout oct.Layout, res *oct.Resources) (*volume.Canvas, error) {
	first := p.slices[0]
	spec := ngff.ImageSpec{
		Format: first.image.Levels[0].Array.Format(), Name: "stack", Shape: []int{p.depth, p.canvas[0], p.canvas[1]}, Chunks: oct.AnalysisChunk,
		DType: dtype.Float32, Axes: oct.ImageAxes(first.image), Scale: first.image.Levels[0].Scale, Omero: first.image.Omero.WithoutWindows(),
	}
	if um := p.opt.ZSpacingUM; um > 0 {
		spec.Scale = slices.Clone(spec.Scale)
		spec.Scale[0] *= um / first.image.VoxelSize[0]
	}
	levels, err := p.opt.Analysis.Apply(&spec, first.voxel, "the slices", layout, res)
	if err != nil {
		return nil, err
	}
	return &volume.Canvas{Image: spec, Levels: levels}, nil
}
