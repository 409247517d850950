package stack

import (
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/machine/volume"
	"strata/pkg/zarr/codec"
)

// stackChunk is the default shape of the output's chunks. It has few planes, since whole planes wait in memory.
var stackChunk = []int{8, 256, 256}

// image returns the canvas with the specification of the output.
func (p *stackPlan) image(layout oct.Layout, res *oct.Resources) (*volume.Canvas, error) {
	first := p.slices[0]
	shape := []int{p.depth, p.canvas[0], p.canvas[1]}
	levels := ngff.AnalysisLevels(shape, first.voxel[:], p.opt.PyramidResolutions, p.opt.MakeIsotropic)
	if len(levels) == 0 {
		res.Warnf("no voxel size of the pyramid is as coarse as that of the slices, %v µm: the volume is kept as it is, without a pyramid", slices.Min(first.voxel[:]))
	}
	levels = levels[:min(len(levels), layout.Levels+1)]
	if layout.Format == 0 {
		layout.Format = first.image.Levels[0].Array.Format()
	}
	chunks := layout.Chunks
	if chunks == nil {
		chunks = stackChunk
	}
	if err := layout.Check(chunks); err != nil {
		return nil, err
	}
	spec := ngff.ImageSpec{
		Format: layout.Format, Name: "stack", Shape: shape, Chunks: chunks, Shard: layout.Shard, DType: dtype.Float32,
		Scale: first.image.Levels[0].Scale, Workers: res.Workers, Meter: res.Meter, Omero: first.image.Omero.WithoutWindows(),
	}
	for d, axis := range first.image.Axes {
		axis.Unit = first.image.Unit[d]
		spec.Axes = append(spec.Axes, axis)
	}
	var err error
	if spec.Codecs, err = codec.FromFlag(layout.CodecFlag(), spec.DType, spec.Format); err != nil {
		return nil, err
	}
	return &volume.Canvas{Image: spec, Levels: levels}, nil
}
