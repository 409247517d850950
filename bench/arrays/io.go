package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/tile/zarrsource"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// io is what a stage cannot do without: it reads and decodes the level 0 of the
// images at path (comma-separated) so many times, and encodes and writes all
// levels of another image, a finished output of that stage, whose numbers it has
// in memory before the clock starts. It computes nothing.
func (b *bench) io(ctx context.Context, like string, times int) error {
	var img *output
	err := b.outside(func() (err error) {
		img, err = loadOutput(ctx, like)
		return err
	})
	if err != nil {
		return err
	}
	defer img.free()
	if err := b.outside(func() error { return os.RemoveAll(b.out) }); err != nil {
		return err
	}
	for range times {
		for path := range strings.SplitSeq(b.path, ",") {
			if err := b.readAll(ctx, path); err != nil {
				return err
			}
		}
	}
	for k := range img.levels {
		if err := b.writeLevel(ctx, fmt.Sprintf("%s/%d", b.out, k), &img.levels[k]); err != nil {
			return err
		}
	}
	b.bytes = 0 // input and output differ in size: seconds are what counts
	return b.outside(func() error { return os.RemoveAll(b.out) })
}

// readAll reads the level 0 of an image in the pieces in which stages read.
func (b *bench) readAll(ctx context.Context, path string) error {
	img, err := ngff.Open(ctx, store.Folder(path), "")
	if err != nil {
		return err
	}
	a := img.Levels[0].Array.With(zarr.Workers(1))
	defer a.Close()
	src, err := zarrsource.New(a, zarrsource.PieceBytes(b.piece))
	if err != nil {
		return err
	}
	return b.columns(ctx, src, a.Shape())
}

// output is an image in memory.
type output struct{ levels []level }

type level struct {
	spec   zarr.Spec
	chunks []zarr.Region
	data   [][]byte // of each chunk, dense
}

func loadOutput(ctx context.Context, path string) (*output, error) {
	if path == "" { // the stage writes next to nothing
		return &output{}, nil
	}
	img, err := ngff.Open(ctx, store.Folder(path), "")
	if err != nil {
		return nil, err
	}
	out := &output{}
	for _, l := range img.Levels {
		a := l.Array
		lev := level{spec: zarr.Spec{Format: a.Format(), Shape: a.Shape(), Chunks: a.Chunks(), Shard: a.Shard(), DType: a.DType(), Codecs: a.Codecs()}}
		unit := a.Chunks()
		if s := a.Shard(); s != nil {
			unit = s
		}
		for r := range boxes(a.Shape(), unit) {
			buf, err := mem.Alloc(a.DType().Size() * volume(r.Shape))
			if err != nil {
				return nil, err
			}
			lev.chunks, lev.data = append(lev.chunks, r), append(lev.data, buf)
			if err := a.Read(ctx, r, buf); err != nil {
				return nil, err
			}
		}
		out.levels = append(out.levels, lev)
	}
	return out, nil
}

func (o *output) free() {
	for _, l := range o.levels {
		for _, b := range l.data {
			mem.Free(b)
		}
	}
}

// boxes cuts a shape into pieces of the given size, cut off at the far edges.
func boxes(shape, unit []int) func(yield func(zarr.Region) bool) {
	return func(yield func(zarr.Region) bool) {
		at := make([]int, len(shape))
		for {
			r := zarr.Region{Start: append([]int(nil), at...), Shape: make([]int, len(shape))}
			for d := range at {
				r.Shape[d] = min(unit[d], shape[d]-at[d])
			}
			if !yield(r) {
				return
			}
			d := len(at) - 1
			for ; d >= 0; d-- {
				if at[d] += unit[d]; at[d] < shape[d] {
					break
				}
				at[d] = 0
			}
			if d < 0 {
				return
			}
		}
	}
}

// writeLevel stores one level of an output.
func (b *bench) writeLevel(ctx context.Context, path string, l *level) error {
	a, err := zarr.CreateArray(ctx, store.Folder(path), "", l.spec, zarr.Workers(1))
	if err != nil {
		return err
	}
	defer a.Close()
	return b.workers(len(l.chunks), 0, func(i int, _ []byte) (int, error) {
		return len(l.data[i]), a.Write(ctx, l.chunks[i], l.data[i])
	})
}
