package zarrsource_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/tile"
	"strata/pkg/tile/zarrsource"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// array writes an array whose elements are their C-order numbers, modulo 60000.
func array(t *testing.T, st store.Writer, path string, spec zarr.Spec) (*zarr.Array, []uint16) {
	t.Helper()
	ctx := context.Background()
	spec.DType = dtype.Uint16
	if spec.Format == 0 {
		spec.Format = 3
	}
	a, err := zarr.CreateArray(ctx, st, path, spec)
	if err != nil {
		t.Fatal(err)
	}
	n := 1
	for _, s := range spec.Shape {
		n *= s
	}
	v := make([]uint16, n)
	for i := range v {
		v[i] = uint16(i % 60000)
	}
	if err := zarr.WriteSlice(ctx, a, a.Bounds(), v); err != nil {
		t.Fatal(err)
	}
	return a, v
}

func codecs(t *testing.T, flag string) []codec.Codec {
	t.Helper()
	c, err := codec.FromFlag(flag, dtype.Uint16, 3)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestViewsOfArrays(t *testing.T) {
	shape := []int{7, 20, 33}
	for name, c := range map[string]struct {
		spec zarr.Spec
		opts []zarrsource.Option
		tile []int
	}{
		"raw":               {zarr.Spec{Chunks: []int{7, 8, 16}}, nil, []int{7, 8, 16}},
		"raw pieces":        {zarr.Spec{Chunks: []int{7, 8, 16}}, []zarrsource.Option{zarrsource.PieceBytes(2 * 2 * 8 * 16)}, []int{2, 8, 16}},
		"raw rows":          {zarr.Spec{Chunks: []int{7, 8, 16}}, []zarrsource.Option{zarrsource.PieceBytes(100)}, []int{1, 2, 16}},
		"raw elements":      {zarr.Spec{Chunks: []int{7, 8, 16}}, []zarrsource.Option{zarrsource.PieceBytes(1)}, []int{1, 1, 1}},
		"even pieces":       {zarr.Spec{Chunks: []int{7, 8, 16}}, []zarrsource.Option{zarrsource.PieceBytes(6 * 2 * 8 * 16)}, []int{4, 8, 16}},
		"pieces of chunks":  {zarr.Spec{Chunks: []int{6, 8, 16}}, []zarrsource.Option{zarrsource.PieceBytes(5 * 2 * 8 * 16)}, []int{3, 8, 16}},
		"chunk beyond":      {zarr.Spec{Chunks: []int{16, 32, 16}}, nil, []int{7, 20, 16}},
		"big endian pieces": {zarr.Spec{Chunks: []int{7, 8, 16}, BigEndian: true}, []zarrsource.Option{zarrsource.PieceBytes(600)}, []int{2, 8, 16}},
		"Fortran order":     {zarr.Spec{Chunks: []int{7, 8, 16}, Order: 'F'}, []zarrsource.Option{zarrsource.PieceBytes(100)}, []int{7, 8, 16}},
		"zstd":              {zarr.Spec{Chunks: []int{4, 8, 16}, Codecs: codecs(t, "zstd:1")}, []zarrsource.Option{zarrsource.PieceBytes(100)}, []int{4, 8, 16}},
		"shards": {zarr.Spec{Chunks: []int{4, 8, 8}, Shard: []int{8, 16, 16}, Codecs: codecs(t, "zstd:1")}, nil,
			[]int{4, 8, 8}},
		"chosen tiles": {zarr.Spec{Chunks: []int{4, 8, 16}}, []zarrsource.Option{zarrsource.Tile(3, 11, 13)}, []int{3, 11, 13}},
	} {
		t.Run(name, func(t *testing.T) {
			st := store.Folder(t.TempDir())
			c.spec.Shape = shape
			a, pixels := array(t, st, "", c.spec)
			m := new(meter.Meter)
			src, err := zarrsource.New(a, append(c.opts, zarrsource.Meter(m))...)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(src.TileShape(0), c.tile) || !slices.Equal(src.Shape(0), shape) || src.Levels() != 1 ||
				src.DType() != dtype.Uint16 || src.DownScale(0) != 1 || len(src.DimensionNames()) != 3 || src.ScratchBytes() <= 0 {
				t.Errorf("tiles %v (want %v) of %v, %d levels, %s, scratch %d", src.TileShape(0), c.tile, src.Shape(0), src.Levels(), src.DType(), src.ScratchBytes())
			}
			for _, r := range []int{0, 1, 5} {
				if r > 1 && name == "raw elements" {
					continue // thousands of views of a thousand pixels
				}
				check(t, src, shape, r, func(p []int) float32 { return float32(pixels[(p[0]*shape[1]+p[1])*shape[2]+p[2]]) })
			}
			if m.BytesRead() == 0 {
				t.Error("the meter counted nothing")
			}
		})
	}
}

// TestHalosOfLargeRawChunks: chunks that are long enough to be read in parts.
func TestHalosOfLargeRawChunks(t *testing.T) {
	shape := []int{1, 700, 610}
	for _, bigEndian := range []bool{false, true} {
		a, pixels := array(t, store.Folder(t.TempDir()), "", zarr.Spec{Shape: shape, Chunks: []int{1, 500, 300}, BigEndian: bigEndian})
		m := new(meter.Meter)
		src, err := zarrsource.New(a, zarrsource.Meter(m))
		if err != nil {
			t.Fatal(err)
		}
		if !src.Parts(0) {
			t.Fatal("raw chunks cannot be read in parts")
		}
		l, err := tile.New[float32](src, tile.Radii(0, 9, 9), tile.Border(tile.Mirror), tile.LoaderThreads(2), tile.ViewsAvailable(3))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		mirror := func(p, n int) int {
			if p < 0 {
				p = -p
			}
			if p >= n {
				p = 2*n - 2 - p
			}
			return p
		}
		for v, err := range l.AllViews(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			// the image and, at the top and the bottom, nine rows of border
			for y := range v.Front[1] + v.ViewReal[1] + 9*v.Index[1] {
				for x := range v.Front[2] + v.ViewReal[2] {
					py, px := mirror(v.Index[1]*500-9+y, 700), mirror(v.Index[2]*300-9+x, 610)
					if got, want := v.Data()[y*318+x], float32(pixels[py*610+px]); got != want {
						t.Fatalf("view %v, position %d, %d: %v, want %v", v.Index, y, x, got, want)
					}
				}
			}
			v.Release()
		}
		// one view reads no more than its rows of three chunks
		before := m.BytesRead()
		l2, err := tile.New[uint16](src, tile.Radii(0, 9, 0))
		if err != nil {
			t.Fatal(err)
		}
		defer l2.Close()
		v, err := l2.View(t.Context(), 0, []int{0, 0, 1})
		if err != nil {
			t.Fatal(err)
		}
		v.Release()
		if n := m.BytesRead() - before; n != 509*300*2 {
			t.Errorf("%d bytes were read for a view of %d", n, 509*300*2)
		}
	}
}

// check compares all views, zero outside the image, with what pixel says.
func check(t *testing.T, src tile.Source, shape []int, r int, pixel func([]int) float32) {
	t.Helper()
	l, err := tile.New[float32](src, tile.Radius(r), tile.LoaderThreads(2), tile.ViewsAvailable(3))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	side, n := src.TileShape(0), 0
	for v, err := range l.AllViews(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for z := range v.ViewShape[0] {
			for y := range v.ViewShape[1] {
				for x := range v.ViewShape[2] {
					p := []int{v.Index[0]*side[0] - r + z, v.Index[1]*side[1] - r + y, v.Index[2]*side[2] - r + x}
					want := float32(0)
					if min(p[0], p[1], p[2]) >= 0 && p[0] < shape[0] && p[1] < shape[1] && p[2] < shape[2] {
						want = pixel(p)
					}
					if v.Data()[i] != want {
						t.Fatalf("radius %d, view %v, pixel %v: %v, want %v", r, v.Index, p, v.Data()[i], want)
					}
					i++
				}
			}
		}
		n++
		v.Release()
	}
	want := 1
	for _, g := range l.Grid(0) {
		want *= g
	}
	if n != want {
		t.Errorf("%d views, want %d", n, want)
	}
}

// TestColumns reads like a stage: workers share a loader, each takes one chunk
// column after the other and reads its pieces in increasing z.
func TestColumns(t *testing.T) {
	shape := []int{30, 20, 33}
	a, pixels := array(t, store.Folder(t.TempDir()), "", zarr.Spec{Shape: shape, Chunks: []int{30, 8, 16}})
	src, err := zarrsource.New(a, zarrsource.PieceBytes(4*2*8*16))
	if err != nil {
		t.Fatal(err)
	}
	const workers = 3
	l, err := tile.New[float64](src, tile.Inline(), tile.ViewsAvailable(workers), tile.Border(tile.Undefined))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	grid := l.Grid(0)
	sums := make([]float64, shape[1]*shape[2])
	columns := make(chan [2]int, grid[1]*grid[2])
	for y := range grid[1] {
		for x := range grid[2] {
			columns <- [2]int{y, x}
		}
	}
	close(columns)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for c := range columns {
				for z := range grid[0] {
					v, err := l.View(t.Context(), 0, []int{z, c[0], c[1]})
					if err != nil {
						t.Error(err)
						return
					}
					s := v.Strides()
					for k := range v.TileReal[0] {
						for y := range v.TileReal[1] {
							for x := range v.TileReal[2] {
								sums[(c[0]*8+y)*shape[2]+c[1]*16+x] += v.Data()[k*s[0]+y*s[1]+x]
							}
						}
					}
					v.Release()
				}
			}
		})
	}
	wg.Wait()
	for i, got := range sums {
		want := 0.0
		for z := range shape[0] {
			want += float64(pixels[z*len(sums)+i])
		}
		if got != want {
			t.Fatalf("column %d: sum %v, want %v", i, got, want)
		}
	}
	view := l.ViewShape(0)
	if most := int64(workers) * int64(max(view[0]*view[1]*view[2]*8, 4096)) * 17 / 16; l.PeakMemory() > most {
		t.Errorf("%d bytes for %d workers, want at most %d: nothing needs a cache", l.PeakMemory(), workers, most)
	}
}

func TestPyramid(t *testing.T) {
	st := store.Memory()
	a, _ := array(t, st, "0", zarr.Spec{Shape: []int{8, 8}, Chunks: []int{4, 4}, DimensionNames: []string{"y", ""}})
	b, half := array(t, st, "1", zarr.Spec{Shape: []int{4, 4}, Chunks: []int{2, 2}})
	src, err := zarrsource.NewPyramid([]*zarr.Array{a, b}, []float64{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	if src.Levels() != 2 || src.DownScale(1) != 2 || fmt.Sprint(src.DimensionNames()) != "[y axis1]" {
		t.Errorf("%d levels, factor %v, axes %v", src.Levels(), src.DownScale(1), src.DimensionNames())
	}
	l, err := tile.New[uint16](src)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	v, err := l.View(t.Context(), 1, []int{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v.Data(), []uint16{half[10], half[11], half[14], half[15]}) {
		t.Errorf("pixels %v", v.Data())
	}
	v.Release()
}

func TestErrors(t *testing.T) {
	st := store.Memory()
	a, _ := array(t, st, "a", zarr.Spec{Shape: []int{8, 8}, Chunks: []int{4, 4}})
	b, _ := array(t, st, "b", zarr.Spec{Shape: []int{8}, Chunks: []int{4}})
	one := func(o ...zarrsource.Option) error { _, err := zarrsource.New(a, o...); return err }
	for name, err := range map[string]error{
		"pieces": one(zarrsource.PieceBytes(-1)), "tile": one(zarrsource.Tile(2)), "names": one(zarrsource.Names("x")),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := zarrsource.NewPyramid(nil, nil); err == nil {
		t.Error("no arrays: accepted")
	}
	if _, err := zarrsource.NewPyramid([]*zarr.Array{a}, nil); err == nil {
		t.Error("no factors: accepted")
	}
	if _, err := zarrsource.NewPyramid([]*zarr.Array{a, b}, []float64{1, 2}); err == nil {
		t.Error("levels of different rank: accepted")
	}
	if err := one(zarrsource.Names("y", "x")); err != nil {
		t.Error(err)
	}
}

// TestBrokenChunk: the error names the chunk's file and the tile, the other
// tiles come.
func TestBrokenChunk(t *testing.T) {
	ctx := context.Background()
	st := store.Memory()
	a, _ := array(t, st, "", zarr.Spec{Shape: []int{8, 8}, Chunks: []int{4, 4}, Codecs: codecs(t, "zstd:1")})
	key := a.ChunkKey([]int{1, 0})
	if err := st.Put(ctx, key, []byte("this is not zstd")); err != nil {
		t.Fatal(err)
	}
	src, err := zarrsource.New(a)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tile.New[uint16](src)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	failed, whole := 0, 0
	for v, err := range l.AllViews(ctx, 0) {
		if err == nil {
			whole++
			v.Release()
			continue
		}
		failed++
		var fe *zarr.FormatError
		var te *tile.Error
		if !errors.As(err, &fe) || !errors.As(err, &te) || !strings.Contains(err.Error(), key) || !slices.Equal(te.Tile, []int{1, 0}) {
			t.Errorf("%v (should name %s and tile [1 0])", err, key)
		}
	}
	if failed != 1 || whole != 3 {
		t.Errorf("%d views failed, %d came", failed, whole)
	}
}
