package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"strata/pkg/bench/boxes"
	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// generate writes to dir a file for each kind of data, NAME.f32, without a container, from which other programs
// make the arrays, and the loader's tiles, tiles.zarr. The same shape gives the same bytes.
func generate(ctx context.Context, dir string, shape []int) error {
	if len(shape) != 3 {
		return fmt.Errorf("shape %v: want three numbers", shape)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	voxels, err := mem.Alloc(4 * volume(shape))
	if err != nil {
		return err
	}
	defer mem.Free(voxels)
	for name, fill := range kinds {
		fill(dtype.Slice[float32](voxels), zarr.Region{Start: make([]int, 3), Shape: shape})
		if err := os.WriteFile(filepath.Join(dir, name+".f32"), voxels, 0o666); err != nil {
			return err
		}
	}
	side := 16 * 1024
	if len(voxels) < 1<<28 {
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

// kinds lists the kinds of data: fill generates the voxels of a region.
var kinds = map[string]func(v []float32, r zarr.Region){"structured": fillStructured, "noise": fillNoise}

// generator returns the random numbers of a region: the same for the same origin.
func generator(r zarr.Region) *rand.Rand {
	seed := uint64(7)
	for _, s := range r.Start {
		seed = seed<<20 + uint64(s)
	}
	return rand.New(rand.NewPCG(seed, 1))
}

// fillNoise generates 12-bit white noise, in which no codec finds structure.
func fillNoise(v []float32, r zarr.Region) {
	rng := generator(r)
	for i := 0; i < len(v); i += 5 {
		w := rng.Uint64()
		for k := i; k < min(i+5, len(v)); k++ {
			v[k] = float32(w & 4095)
			w >>= 12
		}
	}
}

// fillStructured simulates a 12-bit camera's image of a smooth scene: a mean that varies over y and x, plus
// Gaussian noise, rounded and scaled to 0…1.
func fillStructured(v []float32, r zarr.Region) {
	rng := generator(r)
	mean := make([]float64, r.Shape[1]*r.Shape[2])
	for i := range mean {
		y, x := float64(r.Start[1]+i/r.Shape[2]), float64(r.Start[2]+i%r.Shape[2])
		mean[i] = 1500 + 500*math.Sin(2*math.Pi*y/700)*math.Sin(2*math.Pi*x/900)
	}
	for i := range v {
		v[i] = float32(min(max(math.Round(mean[i%len(mean)]+300*rng.NormFloat64()), 0), 4095) / 4095)
	}
}

// mosaic writes a mosaic grid of one kind of data, with tiles as chunks; PATH is the kind.
func (b *bench) mosaic(ctx context.Context, shape string, args []string) error {
	fill := kinds[b.path]
	dims, err := parseInts(shape)
	if fill == nil || err != nil || len(dims) != 3 {
		return fmt.Errorf("mosaic %s %s: want structured or noise, and Z,Y,X", b.path, shape)
	}
	if err := b.flags().Parse(args); err != nil {
		return err
	}
	if b.out == "" || len(b.chunks) != 3 {
		return fmt.Errorf("mosaic needs -chunks and -out")
	}
	chain, err := codec.FromFlag(b.codec, dtype.Float32, 3)
	if err != nil {
		return err
	}
	axes := ngff.SpaceAxes("zyx", "micrometer")
	w, err := ngff.Create(ctx, store.Folder(b.out), "", ngff.ImageSpec{Shape: dims, Chunks: b.chunks, Shard: b.shard, DType: dtype.Float32,
		Codecs: chain, Workers: 1, Axes: axes, Scale: []float64{3.5, 2, 2}})
	if err != nil {
		return err
	}
	regions := boxes.Split(dims, b.chunks)
	err = b.workers(len(regions), 4*volume(b.chunks), func(i int, buf []byte) (int, error) {
		r := regions[i]
		buf = buf[:4*volume(r.Shape)]
		fill(dtype.Slice[float32](buf), r)
		return len(buf), w.WriteTile(ctx, r.Start, r.Shape, buf)
	})
	if err != nil {
		return err
	}
	return w.Close(ctx)
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

// touch allocates memory of the given size in MiB as huge pages and releases it. The kernel moves other pages out
// of the way for that, which would otherwise be part of the next measurement.
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
