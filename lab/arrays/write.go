package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// source reads the numbers of the file b.path, outside the measurement, and
// clears the way for the output.
func (b *bench) source(shape []int) (buf []byte, err error) {
	if b.out == "" || len(shape) != 3 || len(b.chunks) != 3 {
		return nil, fmt.Errorf("write needs -shape, -chunks and -out")
	}
	err = b.outside(func() error {
		if !strings.Contains(b.out, "://") {
			if err := os.RemoveAll(b.out); err != nil {
				return err
			}
		}
		f, err := os.Open(b.path)
		if err != nil {
			return err
		}
		defer f.Close()
		b.bytes = int64(4 * volume(shape))
		if buf, err = mem.Alloc(int(b.bytes)); err != nil {
			return err
		}
		_, err = f.ReadAt(buf, 0)
		return err
	})
	return buf, err
}

// write stores an array from memory.
func (b *bench) write(ctx context.Context, shape []int) error {
	buf, err := b.source(shape)
	if err != nil {
		return err
	}
	defer mem.Free(buf)
	chain, err := codec.FromFlag(b.codec, dtype.Float32, 3)
	if err != nil {
		return err
	}
	st, commit, err := begin(ctx, b.out)
	if err != nil {
		return err
	}
	a, err := zarr.CreateArray(ctx, st, "", zarr.Spec{Shape: shape, Chunks: b.chunks, Shard: b.shard,
		DType: dtype.Float32, Codecs: chain}, zarr.Workers(b.threads))
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.Write(ctx, a.Bounds(), buf); err != nil {
		return err
	}
	return commit(ctx)
}

// begin starts an output in a folder or, at an s3:// address, in a bucket.
func begin(ctx context.Context, path string) (st store.Writer, commit func(context.Context) error, err error) {
	if !strings.HasPrefix(path, "s3://") {
		return store.Folder(path), func(context.Context) error { return nil }, nil
	}
	s, err := store.S3(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	u, err := s.Begin(ctx, "lab/arrays", false)
	if err != nil {
		return nil, nil, err
	}
	return u, u.Commit, nil
}

// clear removes an array from a bucket.
func (b *bench) clear(ctx context.Context) error {
	s, err := store.S3(ctx, b.path)
	if err != nil {
		return err
	}
	u, err := s.Begin(ctx, "lab/arrays", true)
	if err != nil {
		return err
	}
	return u.Commit(ctx) // of nothing
}

// ome stores an image from memory, tile by tile.
func (b *bench) ome(ctx context.Context, shape []int, levels int) error {
	buf, err := b.source(shape)
	if err != nil {
		return err
	}
	defer mem.Free(buf)
	chain, err := codec.FromFlag(b.codec, dtype.Float32, 3)
	if err != nil {
		return err
	}
	c := b.chunks
	w, err := ngff.Create(ctx, store.Folder(b.out), "", ngff.ImageSpec{Shape: shape, Chunks: c, DType: dtype.Float32,
		Codecs: chain, Levels: levels, Workers: 1, Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{2, 2, 2}})
	if err != nil {
		return err
	}
	// the file is taken as a row of tiles: the numbers are noise
	var starts, sizes [][]int
	for s := range ngff.TileOrder(shape, c, ngff.SpaceAxes("zyx", "micrometer")) {
		n := make([]int, 3)
		for d := range n {
			n[d] = min(c[d], shape[d]-s[d])
		}
		starts, sizes = append(starts, s), append(sizes, n)
	}
	tile := 4 * volume(c)
	err = b.workers(len(starts), 0, func(i int, _ []byte) (int, error) {
		n := 4 * volume(sizes[i])
		return n, w.WriteTile(ctx, starts[i], sizes[i], buf[i*tile:][:n])
	})
	if err != nil {
		return err
	}
	return w.Close(ctx)
}
