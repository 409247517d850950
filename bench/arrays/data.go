package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// generate makes in dir plain.f32, 12-bit noise without any container, from
// which other programs make the arrays, and the tiles of the loader, tiles.zarr.
// The same shape gives the same bytes.
func generate(ctx context.Context, dir string, shape []int) error {
	if len(shape) != 3 {
		return fmt.Errorf("shape %v: want three numbers", shape)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	noise, err := mem.Alloc(4 * volume(shape))
	if err != nil {
		return err
	}
	defer mem.Free(noise)
	fillNoise(dtype.Slice[float32](noise))
	if err := os.WriteFile(filepath.Join(dir, "plain.f32"), noise, 0o666); err != nil {
		return err
	}
	side := 16 * 1024
	if len(noise) < 1<<30 {
		side = 2 * 1024
	}
	spec := zarr.Spec{Shape: []int{side, side}, Chunks: []int{1024, 1024}, DType: dtype.Uint16}
	tiles, err := mem.Alloc(2 * side * side)
	if err != nil {
		return err
	}
	defer mem.Free(tiles)
	pixels := dtype.Slice[uint16](tiles)
	for i := range pixels {
		pixels[i] = uint16(i * 31)
	}
	return makeArray(ctx, filepath.Join(dir, "tiles.zarr"), spec, tiles)
}

func makeArray(ctx context.Context, path string, spec zarr.Spec, data []byte) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	a, err := zarr.CreateArray(ctx, store.Folder(path), "", spec)
	if err != nil {
		return err
	}
	defer a.Close()
	return a.Write(ctx, a.Bounds(), data)
}

func fillNoise(v []float32) {
	rng := rand.New(rand.NewPCG(7, 1))
	for i := 0; i < len(v); i += 5 {
		w := rng.Uint64()
		for k := i; k < min(i+5, len(v)); k++ {
			v[k] = float32(w & 4095)
			w >>= 12
		}
	}
}

func parseInts(text string) ([]int, error) {
	var v []int
	for s := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, fmt.Errorf("%q: want numbers, comma-separated", text)
		}
		v = append(v, n)
	}
	return v, nil
}

// touch takes so many MiB of memory in huge pages and gives them back: the
// kernel has to move other pages out of the way for that, which would otherwise
// be part of the measurement of whoever comes next.
func touch(mib string) error {
	n, err := strconv.Atoi(mib)
	if err != nil {
		return err
	}
	b, err := mem.Alloc(n << 20)
	if err != nil {
		return err
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	mem.Free(b)
	return nil
}
