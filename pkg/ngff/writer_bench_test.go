package ngff

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr/store"
)

// BenchmarkWriter stores 256 MiB of float32 (128 MiB of uint16, 64 MiB of uint8) as it comes
// from two workers, with and without a pyramid of 5 levels. What the second
// takes longer is the price of the pyramid.
func BenchmarkWriter(b *testing.B) {
	shape := []int{256, 512, 512}
	for _, c := range []struct {
		name   string
		t      dtype.Type
		codec  string
		chunks []int
		shape  []int
	}{
		{"float32/raw/64", dtype.Float32, "raw", []int{64, 64, 64}, shape},
		{"float32/raw/128", dtype.Float32, "raw", []int{128, 128, 128}, shape},
		{"float32/raw/odd", dtype.Float32, "raw", []int{64, 64, 64}, []int{255, 511, 511}},
		{"float32/blosc-zstd/128", dtype.Float32, "blosc-zstd:1", []int{128, 128, 128}, shape},
		{"uint16/raw/128", dtype.Uint16, "raw", []int{128, 128, 128}, shape},
		{"uint8/raw/128", dtype.Uint8, "raw", []int{128, 128, 128}, shape},
	} {
		for _, levels := range []int{0, 5} {
			b.Run(fmt.Sprintf("%s/levels=%d", c.name, levels), func(b *testing.B) {
				spec := ImageSpec{
					Format: 3, Shape: c.shape, Chunks: c.chunks, DType: c.t, Levels: levels, Workers: 1,
					Axes: SpaceAxes("zyx", "micrometer"), Scale: []float64{2, 2, 2}, Codecs: codecs(b, c.codec, c.t, 3),
				}
				benchWriter(b, spec, TileOrder(spec.Shape, spec.Chunks, spec.Axes))
			})
		}
	}
}

// BenchmarkWriterOrder: the same volume with 5 levels, tiles in the best order, row
// by row with memory for all that waits, and row by row with hardly any, so that
// nearly every chunk is made from stored data.
func BenchmarkWriterOrder(b *testing.B) {
	spec := ImageSpec{
		Format: 3, Shape: []int{256, 512, 512}, Chunks: []int{64, 64, 64}, DType: dtype.Float32, Levels: 5, Workers: 1,
		Axes: SpaceAxes("zyx", "micrometer"), Scale: []float64{2, 2, 2}, Codecs: codecs(b, "raw", dtype.Float32, 3),
	}
	raster := func(yield func([]int) bool) {
		for i := range 4 * 8 * 8 {
			if !yield([]int{i / 64 * 64, i / 8 % 8 * 64, i % 8 * 64}) {
				return
			}
		}
	}
	for _, c := range []struct {
		name   string
		order  iter.Seq[[]int]
		budget int64
	}{{"near/16MiB", TileOrder(spec.Shape, spec.Chunks, spec.Axes), 16 << 20}, {"raster/64MiB", raster, 64 << 20}, {"raster/4MiB", raster, 4 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			spec.Budget = c.budget
			benchWriter(b, spec, c.order)
		})
	}
}

// benchDir is a folder in memory where there is one, so that no disk is timed.
func benchDir(b *testing.B) string {
	if dir, err := os.MkdirTemp("/dev/shm", "strata-bench-"); err == nil {
		b.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	return b.TempDir()
}

func benchWriter(b *testing.B, spec ImageSpec, order iter.Seq[[]int]) {
	var starts [][]int
	for s := range order {
		starts = append(starts, s)
	}
	volume := padded(spec.Chunks, 1).volume()
	rng := rand.New(rand.NewPCG(1, 2))
	values := make([]float32, volume)
	small := make([]uint16, volume)
	for i := range values {
		values[i] = float32(rng.IntN(4096))
		small[i] = uint16(values[i])
	}
	tile := dtype.Bytes(values)
	if spec.DType != dtype.Float32 {
		tile = dtype.Bytes(small)
	}
	dir := benchDir(b)
	b.SetBytes(int64(padded(spec.Shape, 1).volume() * spec.DType.Size()))
	for i := 0; b.Loop(); i++ {
		name := filepath.Join(dir, fmt.Sprint(i))
		w, err := Create(context.Background(), store.Folder(name), "", spec)
		if err != nil {
			b.Fatal(err)
		}
		var next atomic.Int64
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for {
					i := int(next.Add(1)) - 1
					if i >= len(starts) {
						return
					}
					size := make([]int, 3)
					for d := range size {
						size[d] = min(spec.Chunks[d], spec.Shape[d]-starts[i][d])
					}
					n := padded(size, 1).volume() * spec.DType.Size()
					if err := w.WriteTile(context.Background(), starts[i], size, tile[:n]); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if err := w.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		b.ReportMetric(float64(w.Remade()), "remade")
		if w.pyramid.peak() > spec.Budget && spec.Budget > 0 {
			b.Errorf("peak %d of a budget of %d", w.pyramid.peak(), spec.Budget)
		}
		if err := os.RemoveAll(name); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
