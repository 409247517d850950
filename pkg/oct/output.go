package oct

import (
	"context"
	"slices"

	"strata/pkg/ngff"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// movedBy is the translation of an image that begins so many voxels behind the origin of
// another; nil where that has none, and it begins there as well.
func movedBy(t ngff.Transform, voxels []int) []float64 {
	if t.Translation == nil && !slices.ContainsFunc(voxels, func(n int) bool { return n != 0 }) {
		return nil
	}
	out := make([]float64, len(t.Scale))
	copy(out, t.Translation)
	for d, n := range voxels {
		out[d] += float64(float64(n) * t.Scale[d]) // rounded: the same number on every machine
	}
	return out
}

// create starts an output image. The spec has the stage's own format, chunks and
// budget, which the layout overrides; piece is what the stage writes at a time,
// which the chunks must divide. The stage's workers write in parallel, so the
// writer starts none of its own.
func create(ctx context.Context, out store.Writer, layout Layout, spec ngff.ImageSpec, piece []int, res Resources) (*ngff.Writer, error) {
	if layout.Format == 0 {
		layout.Format = spec.Format
	}
	if err := layout.check(piece); err != nil {
		return nil, err
	}
	if layout.Chunks != nil {
		spec.Chunks = layout.Chunks
	}
	spec.Format, spec.Shard, spec.Levels = layout.Format, layout.Shard, layout.Levels
	spec.Workers, spec.Meter = 1, res.Meter
	var err error
	if spec.Codecs, err = codec.FromFlag(layout.codec(), spec.DType, spec.Format); err != nil {
		return nil, err
	}
	w, err := ngff.Create(ctx, out, "", spec)
	if err != nil {
		return nil, err
	}
	for _, warning := range w.Warnings() {
		res.warn("%s", warning)
	}
	return w, nil
}
