package tile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"strata/pkg/dtype"
)

// boxed is a source that loads boxes of tiles and counts how often it loaded
// each pixel.
type boxed struct {
	*numbers
	parts  bool
	mu     sync.Mutex
	pixels map[string]int
	whole  int
}

func newBoxed(size, tile []int, parts bool, pixel func([]int) int32) *boxed {
	return &boxed{numbers: newNumbers(size, tile, pixel), parts: parts, pixels: map[string]int{}}
}

func (s *boxed) Parts(int) bool { return s.parts }

func (s *boxed) LoadTile(ctx context.Context, level int, index []int, dst []byte) error {
	s.mu.Lock()
	s.whole++
	s.mu.Unlock()
	return s.numbers.LoadTile(ctx, level, index, dst)
}

func (s *boxed) LoadBox(ctx context.Context, level int, index, start, shape []int, dst []byte, strides []int) error {
	whole := make([]int32, product(s.Tile))
	if err := s.numbers.LoadTile(ctx, level, index, dtype.Bytes(whole)); err != nil {
		return err
	}
	out, from := dtype.Slice[int32](dst), stridesOf(s.Tile)
	at, zero := make([]int, len(shape)), make([]int, len(shape))
	s.mu.Lock()
	defer s.mu.Unlock()
	for more := true; more; more = next(at, zero, shape) {
		i, o := 0, 0
		pos := make([]int, len(shape))
		for a := range at {
			i += (start[a] + at[a]) * from[a]
			o += at[a] * strides[a] / 4
			pos[a] = index[a]*s.Tile[a] + start[a] + at[a]
		}
		out[o] = whole[i]
		s.pixels[fmt.Sprint(pos)]++
	}
	return nil
}

// smallInPlace lets small tiles be cached as large ones are.
func smallInPlace() Option { return func(c *config) { c.smallBytes = 0 } }

// roomy is a random image of few tiles whose halos are narrow enough for ends.
func roomy(rng *rand.Rand, axes int) (size, tile, radii []int) {
	most := []int{60, 24, 16, 10}[axes-1]
	size, tile, radii = make([]int, axes), make([]int, axes), make([]int, axes)
	for a := range axes {
		tile[a] = 1 + rng.IntN(most)
		size[a] = 1 + rng.IntN(most*2)
		radii[a] = tile[a] / (4 + rng.IntN(20))
	}
	if k := rng.IntN(axes); axes > 2 { // the ends of few axes are not too much
		for a := range axes {
			if a != k {
				radii[a] = min(radii[a], tile[a]/(8*axes))
			}
		}
	}
	return size, tile, radii
}

func TestViewsOfTilesInPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	modes := []BorderMode{Zero, Replicate, Mirror, Reflect, Wrap}
	inPlace := 0
	for round := range 300 {
		axes := 1 + round%4
		size, tile, radii := roomy(rng, axes)
		if axes > 1 && round%5 == 0 {
			tile[0], radii[0] = 1, 0
		}
		mode := modes[rng.IntN(len(modes))]
		pixel := func(pos []int) int32 {
			v := int32(1)
			for _, p := range pos {
				v = v*61 + int32(p)
			}
			return v
		}
		numbers := newNumbers(size, tile, pixel)
		var src Source = numbers
		if kind := rng.IntN(3); kind > 0 {
			src = newBoxed(size, tile, kind == 1, pixel)
		}
		traversals := []Traversal{Naive, Snake, Hilbert, reverse}
		opts := []Option{Radii(radii...), Border(mode), smallInPlace(), Checked(), Traverse(traversals[rng.IntN(4)]),
			CacheBytes(int64(1 + rng.IntN(6*product(tile)*4))), LoaderThreads(1 + rng.IntN(3)), ViewsAvailable(1 + rng.IntN(4))}
		if rng.IntN(3) == 0 {
			opts = append(opts, Inline())
		}
		l, err := New[int32](src, opts...)
		if err != nil {
			t.Fatal(err)
		}
		if l.levels[0].inPlace {
			inPlace++
		}
		seen := 0
		for v, err := range l.AllViews(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if want := expect(numbers, tile, radii, v.Index, mode, 0); !slices.Equal(v.Data(), want) {
				t.Fatalf("round %d: image %v, tiles %v, radii %v, mode %d: view %v\n got %v\nwant %v",
					round, size, tile, radii, mode, v.Index, v.Data(), want)
			}
			for i := range v.Data() { // pixels of a view are the caller's
				v.Data()[i] = -1
			}
			v.Release()
			seen++
		}
		if seen != product(l.Grid(0)) {
			t.Errorf("round %d: %d views of %v", round, seen, l.Grid(0))
		}
		if l.PeakMemory() > l.MaxMemory() {
			t.Errorf("round %d: %d bytes, promised %d", round, l.PeakMemory(), l.MaxMemory())
		}
		l.Close()
	}
	if inPlace < 100 {
		t.Errorf("only %d rounds of 300 with tiles in place", inPlace)
	}
}

// TestInPlace: which tiles lie in their cache as views show them.
func TestInPlace(t *testing.T) {
	for _, c := range []struct {
		tile, radii []int
		small       int
		want        bool
	}{
		{[]int{64, 64}, []int{8, 8}, 0, true},
		{[]int{64, 64}, []int{8, 9}, 0, false}, // ends of more than half a tile
		{[]int{64, 64}, []int{0, 16}, 0, true},
		{[]int{64, 64}, []int{0, 0}, 0, false}, // straight into the view
		{[]int{64, 64}, []int{1, 1}, 64 * 64 * 4, false},
		{[]int{64, 64}, []int{1, 1}, 64*64*4 - 1, true},
		{[]int{1, 64}, []int{1, 1}, 0, false}, // three tiles high
	} {
		src := newNumbers([]int{100, 100}, c.tile, grid5)
		l := mustNew(t, src, Radii(c.radii...), func(x *config) { x.smallBytes = c.small })
		if got := l.levels[0].inPlace; got != c.want {
			t.Errorf("tile %v, radii %v, small ones of %d bytes: in place %v", c.tile, c.radii, c.small, got)
		}
	}
	if l := mustNew(t, newNumbers([]int{1000, 1000}, []int{256, 256}, grid5), Radius(1)); l.levels[0].inPlace {
		t.Error("tiles of 256 KiB are in place")
	}
	if l := mustNew(t, newNumbers([]int{1000, 1000}, []int{257, 256}, grid5), Radius(1)); !l.levels[0].inPlace {
		t.Error("tiles of more than 256 KiB are not in place")
	}
}

// TestTilesInPlaceAreReadOnce: a cache of a few tiles reads every tile once; ends
// that are planes of the file are read once more, for the row of views before.
func TestTilesInPlaceAreReadOnce(t *testing.T) {
	for _, c := range []struct {
		traversal Traversal
		threads   int
	}{{Naive, 1}, {Naive, 2}, {Snake, 1}} {
		src := newBoxed([]int{128, 192}, []int{32, 32}, true, grid5)
		// half of the image
		l := mustNew(t, src, Radius(2), smallInPlace(), CacheBytes(2*128*192), Traverse(c.traversal), LoaderThreads(c.threads), ViewsAvailable(c.threads+1))
		for v, err := range l.AllViews(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			v.Release()
		}
		again := 0
		for y := range 128 {
			for x := range 192 {
				n := src.pixels[fmt.Sprint([]int{y, x})]
				if y%32 < 2 && n == 2 {
					again++
				} else if n != 1 {
					t.Fatalf("%+v: pixel %d, %d was read %d times", c, y, x, n)
				}
			}
		}
		if again > 3*2*192 {
			t.Errorf("%+v: %d pixels were read twice", c, again)
		}
	}
	// tiles that can only be loaded whole: a row of them and a few must fit
	src := newNumbers([]int{128, 192}, []int{32, 32}, grid5)
	l := mustNew(t, src, Radius(2), smallInPlace(), CacheBytes(13*36*36*4*3/2))
	for v, err := range l.AllViews(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		v.Release()
	}
	if n := src.loads.Load(); n != 24 {
		t.Errorf("%d loads of 24 tiles", n)
	}
}

// TestOneViewReadsItsEnds: of the neighbours above and below only the ends are read.
func TestOneViewReadsItsEnds(t *testing.T) {
	src := newBoxed([]int{64, 96}, []int{16, 16}, true, grid5)
	l := mustNew(t, src, Radii(2, 0), smallInPlace())
	v, err := l.View(t.Context(), 0, []int{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	v.Release()
	if len(src.pixels) != (16+2+2)*16 || src.whole > 0 {
		t.Errorf("%d pixels and %d whole tiles were read for a view of %d", len(src.pixels), src.whole, 20*16)
	}
}

// TestFaultOfAnEnd: the error names the tile, and views that do not show it come.
func TestFaultOfAnEnd(t *testing.T) {
	for _, parts := range []bool{false, true} {
		for _, threads := range []int{1, 3} {
			src := newBoxed([]int{64, 64}, []int{16, 16}, parts, grid5)
			src.fault = func(index []int) error {
				if slices.Equal(index, []int{0, 1}) {
					return fmt.Errorf("broken")
				}
				return nil
			}
			l := mustNew(t, src, Radius(2), smallInPlace(), CacheBytes(1), LoaderThreads(threads), ViewsAvailable(threads))
			failed, whole := 0, 0
			for v, err := range l.AllViews(t.Context(), 0) {
				if err != nil {
					failed++
					if e, ok := err.(*Error); !ok || !slices.Equal(e.Tile, []int{0, 1}) {
						t.Errorf("%v does not name the tile", err)
					}
					continue
				}
				if want := expect(src.numbers, src.Tile, []int{2, 2}, v.Index, Zero, 0); !slices.Equal(v.Data(), want) {
					t.Errorf("view %v is wrong", v.Index)
				}
				whole++
				v.Release()
			}
			if failed != 6 || whole != 10 {
				t.Errorf("%d views failed and %d came, want 6 and 10", failed, whole)
			}
		}
	}
}

// TestManyReadersOfTilesInPlace runs streams and single views, of which several are
// of the same tile at once.
func TestManyReadersOfTilesInPlace(t *testing.T) {
	src := newNumbers([]int{70, 90}, []int{16, 16}, func(p []int) int32 { return int32(p[0]*100 + p[1]) })
	l := mustNew(t, src, Radius(2), smallInPlace(), Border(Mirror), CacheBytes(3*20*20*4), ViewsAvailable(4), LoaderThreads(2), Checked())
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for range 3 {
				if k < 2 {
					for v, err := range l.AllViews(t.Context(), 0) {
						if err != nil {
							t.Error(err)
							return
						}
						checkMirrored(t, src, v)
					}
					continue
				}
				for _, index := range Naive(l.Grid(0)) {
					v, err := l.View(t.Context(), 0, index)
					if err != nil {
						t.Error(err)
						return
					}
					checkMirrored(t, src, v)
				}
			}
		})
	}
	wg.Wait()
	if l.PeakMemory() > l.MaxMemory() {
		t.Errorf("%d bytes, promised %d", l.PeakMemory(), l.MaxMemory())
	}
}

func checkMirrored(t *testing.T, src *numbers, v *View[int32]) {
	if want := expect(src, src.Tile, []int{2, 2}, v.Index, Mirror, 0); !slices.Equal(v.Data(), want) {
		t.Errorf("view %v is wrong", v.Index)
	}
	clear(v.Data())
	v.Release()
}

// TestPanicOfASource: it is the view's error, and the loader goes on.
func TestPanicOfASource(t *testing.T) {
	for _, radius := range []int{2, 9} { // in place, and not
		src := newNumbers([]int{48, 48}, []int{16, 16}, grid5)
		broken := true
		src.fault = func(index []int) error {
			if broken {
				panic("out of bounds")
			}
			return nil
		}
		l := mustNew(t, src, Radius(radius), smallInPlace())
		for range 2 {
			if v, err := l.View(t.Context(), 0, []int{1, 1}); err == nil || !strings.Contains(err.Error(), "out of bounds") {
				t.Fatalf("radius %d: %v, %v", radius, v, err)
			}
		}
		broken = false
		v, err := l.View(t.Context(), 0, []int{1, 1})
		if err != nil {
			t.Fatal(err)
		}
		v.Release()
	}
}
