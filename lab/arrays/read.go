package main

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"strata/pkg/bench/boxes"
	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

func (b *bench) array(ctx context.Context) (*zarr.Array, error) {
	st, key, err := store.OpenURL(ctx, b.path)
	if err != nil {
		return nil, err
	}
	return zarr.OpenArray(ctx, st, key, zarr.Workers(b.threads))
}

func volume(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// full opens the array and reads everything into fresh memory, like an analysis script.
func (b *bench) full(ctx context.Context) error {
	a, err := b.array(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	buf, err := mem.Alloc(a.DType().Size() * volume(a.Shape()))
	if err != nil {
		return err
	}
	err = a.Read(ctx, a.Bounds(), buf)
	b.bytes, b.check = int64(len(buf)), 0
	b.sample(dtype.Slice[float32](buf), 65537)
	t := time.Now()
	mem.Free(buf)
	b.excluded += time.Since(t)
	return err
}

// random reads 40 boxes at seeded places into fresh memory. Seconds and bytes are totals.
func (b *bench) random(ctx context.Context) error {
	return b.boxes(ctx, func(shape []int) []zarr.Region { return boxes.Random(shape, b.edge, 40, 1) })
}

// slab reads one plane across each axis into fresh memory.
func (b *bench) slab(ctx context.Context) error { return b.boxes(ctx, boxes.Slabs) }

// boxes reads boxes of the array, one after another.
func (b *bench) boxes(ctx context.Context, of func(shape []int) []zarr.Region) error {
	a, err := b.array(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	b.bytes, b.check = 0, 0
	for _, r := range of(a.Shape()) {
		buf := make([]float32, volume(r.Shape))
		if err := zarr.ReadSlice(ctx, a, r, buf); err != nil {
			return err
		}
		b.bytes += int64(4 * len(buf))
		b.sample(buf, 4097)
	}
	return nil
}

// scaled does an operation n times and counts it as once.
func (b *bench) scaled(n int, do func() error) error {
	t := time.Now()
	for range n {
		if err := do(); err != nil {
			return err
		}
	}
	d := time.Since(t)
	b.excluded += d - d/time.Duration(n)
	return nil
}

// open opens the array a thousand times after the first; seconds are those of one time.
func (b *bench) open(ctx context.Context) error {
	const times = 1000
	st := store.Folder(b.path)
	first := true
	open := func() error {
		a, err := zarr.OpenArray(ctx, st, "")
		if err != nil {
			return err
		}
		if first {
			b.check, first = uint64(a.Shape()[0]), false
		}
		a.Close()
		return nil
	}
	if err := b.outside(open); err != nil {
		return err
	}
	return b.scaled(times, open)
}

// stream reads everything chunk by chunk into reused buffers, raw chunks in pieces of whole planes, like the
// stages.
func (b *bench) stream(ctx context.Context) error {
	a, err := b.array(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	a = a.With(zarr.Workers(1))
	shape, chunk := a.Shape(), a.Chunks()
	unit := slices.Clone(chunk)
	if len(a.Codecs()) == 0 && a.Shard() == nil {
		unit[0] = max(1, min(chunk[0], b.piece/(4*unit[1]*unit[2])))
		for chunk[0]%unit[0] != 0 {
			unit[0]--
		}
	}
	var regions []zarr.Region
	for z := 0; z < shape[0]; z += chunk[0] {
		for y := 0; y < shape[1]; y += unit[1] {
			for x := 0; x < shape[2]; x += unit[2] {
				for k := 0; k < chunk[0]; k += unit[0] {
					regions = append(regions, zarr.Region{Start: []int{z + k, y, x}, Shape: unit})
				}
			}
		}
	}
	per := chunk[0] / unit[0] // pieces of a chunk stay with one worker
	return b.workers(len(regions)/per, 4*volume(unit), func(i int, buf []byte) (int, error) {
		for _, r := range regions[i*per : (i+1)*per] {
			if err := a.Read(ctx, r, buf); err != nil {
				return 0, err
			}
		}
		return per * len(buf), nil
	})
}

// workers runs n jobs on the bench's threads, each with its own buffer, and counts the bytes that they return.
func (b *bench) workers(n, buffer int, do func(i int, buf []byte) (int, error)) error {
	var total atomic.Int64
	err := work.Share(context.Background(), b.threads, n, func(_ context.Context, _ int, jobs iter.Seq[int]) error {
		buf, err := mem.Alloc(buffer)
		if err != nil {
			return err
		}
		defer mem.Free(buf)
		for i := range jobs {
			got, err := do(i, buf)
			if err != nil {
				return err
			}
			total.Add(int64(got))
		}
		return nil
	})
	b.bytes = total.Load()
	return err
}
