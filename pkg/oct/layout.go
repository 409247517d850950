package oct

import (
	"context"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// Layout describes how a stage stores its output. Zero values select the input's layout or the stage's default.
type Layout struct {
	Format int    // Zarr format 2 or 3; 0: the input's
	Codec  string // in the syntax of codec.FromFlag; "": blosc-zstd:1
	Chunks []int  // one number per axis of the output
	Shard  []int  // likewise; format 3 only
	Levels int    // number of pyramid levels below level 0
	Prefix string // of the names of the flags in messages: "aip_" for --aip_chunks
}

// CodecFlag returns the codec in the syntax of [codec.FromFlag], with the default filled in.
func (l *Layout) CodecFlag() string {
	if l.Codec == "" {
		return "blosc-zstd:1"
	}
	return l.Codec
}

// codecs returns the codecs of an output, or an error that wraps [ErrLayout] if its Zarr format does not have them.
func (l *Layout) codecs(elem dtype.Type, format int) (codec.Chain, error) {
	chain, err := codec.FromFlag(l.CodecFlag(), elem, format)
	if err != nil {
		return nil, LayoutErrorf("%w", err)
	}
	return chain, nil
}

// Check returns an error that wraps [ErrLayout] if the chunks do not divide piece, the shape that the stage writes
// at a time, or if the layout cannot be stored otherwise. The message names the flag.
func (l *Layout) Check(piece []int) error {
	flag := func(name string) string { return "--" + l.Prefix + name }
	bad := LayoutErrorf
	for d, n := range l.Chunks {
		if len(l.Chunks) != len(piece) {
			return bad("%s has %d axes, the output has %d", flag("chunks"), len(l.Chunks), len(piece))
		}
		if n < 1 || piece[d]%n != 0 {
			return bad("%s %v does not divide the output's tile %v", flag("chunks"), l.Chunks, piece)
		}
	}
	chunks := l.Chunks
	if chunks == nil {
		chunks = piece
	}
	for d, n := range l.Shard {
		if len(l.Shard) != len(piece) {
			return bad("%s has %d axes, the output has %d", flag("shard"), len(l.Shard), len(piece))
		}
		if n < 1 || n%chunks[d] != 0 {
			return bad("%s %v is not a multiple of the chunks %v", flag("shard"), l.Shard, chunks)
		}
	}
	if l.Shard != nil && l.Format == 2 {
		return bad("%s needs Zarr format 3: add --zarr_format 3", flag("shard"))
	}
	return nil
}

// VastBytes is the size in bytes above which an output much larger than its input is refused as a mistake.
const VastBytes = 1 << 40

// MovedBy returns the translation of an image that begins the given number of voxels after the origin of an image
// with transform t. It returns nil if t has no translation and all numbers are 0.
func MovedBy(t ngff.Transform, voxels []int) []float64 {
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

// Create starts an output image. The layout overrides the stage's format and chunks in spec, and sets its shards,
// levels and codecs; piece is the shape that the stage writes at a time, which the chunks must divide. The writer
// starts no workers of its own, because the stage's workers write in parallel.
func Create(ctx context.Context, out store.Writer, layout Layout, spec ngff.ImageSpec, piece []int, res Resources) (*ngff.Writer, error) {
	if err := layout.apply(&spec, piece); err != nil {
		return nil, err
	}
	spec.Workers, spec.Meter = 1, res.Meter
	w, err := ngff.Create(ctx, out, "", spec)
	if err != nil {
		return nil, err
	}
	for _, warning := range w.Warnings() {
		res.Warnf("%s", warning)
	}
	return w, nil
}

// Describe returns level 0 of the image that [Create] starts, with its metadata and without voxels.
func Describe(ctx context.Context, layout Layout, spec ngff.ImageSpec, piece []int) (*ngff.Image, error) {
	layout.Levels = 0
	if err := layout.apply(&spec, piece); err != nil {
		return nil, err
	}
	spec.Workers = 1
	return ngff.Describe(ctx, spec)
}

// apply puts the layout into the description of an image.
func (l Layout) apply(spec *ngff.ImageSpec, piece []int) (err error) {
	if l.Format == 0 {
		l.Format = spec.Format
	}
	if err := l.Check(piece); err != nil {
		return err
	}
	if l.Chunks != nil {
		spec.Chunks = l.Chunks
	}
	spec.Format, spec.Shard, spec.Levels = l.Format, l.Shard, l.Levels
	spec.Codecs, err = l.codecs(spec.DType, spec.Format)
	return err
}
