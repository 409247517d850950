package czi_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"strata/pkg/czi"
	"strata/pkg/dtype"
	"strata/pkg/work"
	"strata/pkg/zarr/store"
	"strata/tests/tiffcorpus"
)

// scan writes a mosaic of 64 tiles of 1024 × 1024 pixels of camera noise on a slope, and opens it.
func scan(b *testing.B, c czi.Compression) *czi.File {
	b.Helper()
	dir := b.TempDir()
	out, err := os.Create(filepath.Join(dir, "scan.czi"))
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	w, err := czi.NewWriter(out, czi.Spec{Compression: c})
	if err != nil {
		b.Fatal(err)
	}
	err = w.Add(b.Context(), 4, 64, func(i int, t *czi.Tile) error {
		t.M, t.X, t.Y, t.Width, t.Height, t.Pixels = i, i%8*960, i/8*960, 1024, 1024, czi.Gray16
		t.Grow(2 << 20)
		r := rand.New(rand.NewPCG(uint64(i), 1))
		for k := range dtype.Slice[uint16](t.Data) {
			dtype.Slice[uint16](t.Data)[k] = uint16(1000 + k/1024 + int(r.Uint32()&63))
		}
		return nil
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	o, err := store.Folder(dir).Open(b.Context(), "scan.czi")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { o.Close() })
	f, err := czi.Open(b.Context(), o, "scan.czi")
	if err != nil {
		b.Fatal(err)
	}
	return f
}

func BenchmarkTiles(b *testing.B) {
	for _, c := range []czi.Compression{czi.None, czi.Zstd1} {
		f := scan(b, c)
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d", c, workers), func(b *testing.B) {
				b.SetBytes(64 << 21)
				tiles := make([][]byte, workers)
				for i := range tiles {
					tiles[i] = make([]byte, 2<<20)
				}
				for b.Loop() {
					err := work.Each(b.Context(), workers, f.Len(), func(worker, i int) error { return f.ReadSubBlock(b.Context(), i, tiles[worker]) })
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkMosaic(b *testing.B) {
	for _, c := range []czi.Compression{czi.None, czi.Zstd1} {
		f := scan(b, c)
		r := czi.Region{Plane: f.Plane(0, 0, 0), Rect: f.Bounds(0)}
		dst := make([]byte, 2*r.Rect.Dx()*r.Rect.Dy())
		for _, r.Workers = range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d", c, r.Workers), func(b *testing.B) {
				b.SetBytes(int64(len(dst)))
				for b.Loop() {
					if err := f.ReadRegion(b.Context(), r, dst); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range []int32{400, 1_000_000} {
		src := tiffcorpus.Memory(many(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := czi.Open(context.Background(), src, "many.czi"); err != nil {
					b.Fatal(err)
				}
			}
		})
		f, err := czi.Open(context.Background(), src, "many.czi")
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%d/index", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				if f, err = czi.Open(context.Background(), src, "many.czi"); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				f.Tiles(0, f.Plane(0, 0, 0), 1, f.Bounds(0).Inset(1000))
			}
		})
	}
}
