package zarrsource_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/tile"
	"strata/pkg/tile/zarrsource"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// benchmarkGrid is the number of tiles per axis of the benchmarks' image.
const benchmarkGrid = 8

// rawImage is an image of raw 1024² uint16 tiles.
func rawImage(b *testing.B) *zarrsource.Source {
	ctx := context.Background()
	const size = benchmarkGrid * 1024
	a, err := zarr.CreateArray(ctx, store.Folder(b.TempDir()), "", zarr.Spec{
		Format: 3, Shape: []int{size, size}, Chunks: []int{1024, 1024}, DType: dtype.Uint16,
	})
	if err != nil {
		b.Fatal(err)
	}
	chunk := make([]uint16, 1024*1024)
	for y := range benchmarkGrid {
		for x := range benchmarkGrid {
			for i := range chunk {
				chunk[i] = uint16(i*31 + y*1000 + x)
			}
			if err := a.WriteChunk(ctx, []int{y, x}, dtype.Bytes(chunk)); err != nil {
				b.Fatal(err)
			}
		}
	}
	src, err := zarrsource.New(a)
	if err != nil {
		b.Fatal(err)
	}
	return src
}

// perTile reports the processor time that each tile took, which says more than
// the wall clock on a machine that does other things as well.
func perTile(b *testing.B) func() {
	start := processorTime()
	return func() {
		b.ReportMetric(float64((processorTime()-start).Nanoseconds())/1e3/float64(b.N)/(benchmarkGrid*benchmarkGrid), "cpu-µs/tile")
	}
}

func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTilesAlone is what views are compared with: two goroutines load all
// tiles into a buffer of their own.
func BenchmarkTilesAlone(b *testing.B) { benchmarkTiles(b, func(view, tile []byte) {}) }

// BenchmarkTilesCopied is what views with a halo cost where each pixel is copied
// once more: rows of a tile lie together in the file and apart in the view.
// BenchmarkViews lets the kernel put them there (preadv).
func BenchmarkTilesCopied(b *testing.B) {
	benchmarkTiles(b, func(view, tile []byte) {
		for y := range 1024 {
			copy(view[((y+32)*1088+32)*2:], tile[y*2048:y*2048+2048])
		}
	})
}

func benchmarkTiles(b *testing.B, use func(view, tile []byte)) {
	src := rawImage(b)
	order := tile.Naive([]int{benchmarkGrid, benchmarkGrid})
	b.SetBytes(int64(len(order)) * 2 << 20)
	var bufs, views [2][]byte
	for w := range bufs {
		for buf, n := range map[*[]byte]int{&bufs[w]: 2 << 20, &views[w]: 1088 * 1088 * 2} {
			var err error
			if *buf, err = mem.Alloc(n); err != nil {
				b.Fatal(err)
			}
			defer mem.Free(*buf)
		}
	}
	defer perTile(b)()
	for b.Loop() {
		var next atomic.Int64
		var wg sync.WaitGroup
		for w := range bufs {
			wg.Go(func() {
				for {
					i := int(next.Add(1)) - 1
					if i >= len(order) {
						return
					}
					if err := src.LoadTile(b.Context(), 0, order[i], bufs[w]); err != nil {
						b.Error(err)
						return
					}
					use(views[w], bufs[w])
				}
			})
		}
		wg.Wait()
	}
}

// BenchmarkViews streams all halo views with two loader threads. MB/s counts
// the bytes of the views.
func BenchmarkViews(b *testing.B) {
	src := rawImage(b)
	for _, r := range []int{0, 32} {
		b.Run(fmt.Sprintf("radius=%d", r), func(b *testing.B) {
			l, err := tile.New[uint16](src, tile.Radius(r), tile.ViewsAvailable(3),
				tile.LoaderThreads(2), tile.CacheBytes(8<<20))
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			side := int64(1024 + 2*r)
			b.SetBytes(benchmarkGrid * benchmarkGrid * side * side * 2)
			defer perTile(b)()
			for b.Loop() {
				for v, err := range l.AllViews(b.Context(), 0) {
					if err != nil {
						b.Fatal(err)
					}
					if err := v.Release(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
