package tile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"strata/pkg/dtype"
)

// parted is a source that loads parts of tiles and counts how often it loaded
// each plane.
type parted struct {
	*numbers
	mu     sync.Mutex
	planes map[string]int
	whole  int
}

func newParted(size, tile []int, pixel func([]int) int32) *parted {
	return &parted{numbers: newNumbers(size, tile, pixel), planes: map[string]int{}}
}

func (s *parted) Parts(int) bool { return true }

func (s *parted) LoadTile(ctx context.Context, level int, index []int, dst []byte) error {
	s.mu.Lock()
	s.whole++
	s.mu.Unlock()
	return s.numbers.LoadTile(ctx, level, index, dst)
}

func (s *parted) LoadPart(ctx context.Context, level int, index []int, first, n int, dst []byte) error {
	axis := 0
	for axis < len(s.Tile)-1 && s.Tile[axis] == 1 {
		axis++
	}
	s.mu.Lock()
	for k := first; k < first+n; k++ {
		s.planes[fmt.Sprint(index, k)]++
	}
	s.mu.Unlock()
	whole := make([]int32, product(s.Tile))
	if err := s.numbers.LoadTile(ctx, level, index, dtype.Bytes(whole)); err != nil {
		return err
	}
	plane := len(whole) / s.Tile[axis]
	if len(dst) != n*plane*4 {
		return fmt.Errorf("%d bytes for %d planes of %d pixels", len(dst), n, plane)
	}
	copy(dst, dtype.Bytes(whole[first*plane:(first+n)*plane]))
	return nil
}

// smallParts makes small tiles be cut as large ones are.
func smallParts(part int) Option {
	return func(c *config) { c.partBytes, c.wholeBytes = part, 0 }
}

func TestPartsOfATile(t *testing.T) {
	src := newParted([]int{1}, []int{1}, nil)
	for _, c := range []struct {
		tile, radii []int
		part        int
		want        parts
	}{
		{[]int{16, 2}, []int{0, 3}, 1 << 20, parts{0, []int{0, 16}, false}},
		{[]int{16, 2}, []int{0, 3}, 64, parts{0, []int{0, 8, 16}, false}},
		{[]int{16, 2}, []int{3, 0}, 1 << 20, parts{0, []int{0, 3, 13, 16}, true}},
		{[]int{16, 2}, []int{3, 0}, 40, parts{0, []int{0, 3, 8, 13, 16}, true}},
		{[]int{16, 2}, []int{4, 0}, 1, parts{0, []int{0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16}, true}},
		{[]int{16, 2}, []int{5, 0}, 1 << 20, parts{0, []int{0, 16}, false}}, // ends of half a tile save nothing
		{[]int{1, 16}, []int{5, 1}, 1 << 20, parts{1, []int{0, 1, 15, 16}, true}},
		{[]int{1, 1}, []int{1, 1}, 1, parts{1, []int{0, 1}, false}},
	} {
		cfg := &config{partBytes: c.part}
		got := newParts(src, cfg, 0, c.tile, c.radii)
		if got.axis != c.want.axis || got.ends != c.want.ends || !slices.Equal(got.bound, c.want.bound) {
			t.Errorf("tile %v, radii %v, parts of %d: %v, want %v", c.tile, c.radii, c.part, got, c.want)
		}
		cfg.wholeBytes = 1 << 20
		if got := newParts(src, cfg, 0, c.tile, c.radii); len(got.bound) != 2 {
			t.Errorf("a small tile is cut: %v", got)
		}
		if got := newParts(src.numbers, &config{}, 0, c.tile, c.radii); len(got.bound) != 2 {
			t.Errorf("tiles of a source without parts are cut: %v", got)
		}
	}
}

func TestViewsFromParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	modes := []BorderMode{Zero, Replicate, Mirror, Reflect, Wrap}
	for round := range 150 {
		axes := 1 + round%4
		size, tile, radii := make([]int, axes), make([]int, axes), make([]int, axes)
		most := []int{60, 20, 9, 5}[axes-1]
		for a := range axes {
			size[a], tile[a], radii[a] = 1+rng.IntN(most), 1+rng.IntN(most), rng.IntN(1+most/3)
		}
		if axes > 1 && round%3 == 0 {
			tile[0] = 1
		}
		mode := modes[rng.IntN(len(modes))]
		src := newParted(size, tile, func(pos []int) int32 {
			v := int32(1)
			for _, p := range pos {
				v = v*61 + int32(p)
			}
			return v
		})
		l, err := New[int32](src, Radii(radii...), Border(mode), smallParts(1+rng.IntN(200)), Checked(),
			CacheBytes(int64(1+rng.IntN(3000))), LoaderThreads(1+rng.IntN(3)), ViewsAvailable(1+rng.IntN(3)))
		if err != nil {
			t.Fatal(err)
		}
		for v, err := range l.AllViews(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if want := expect(src.numbers, tile, radii, v.Index, mode, 0); !slices.Equal(v.Data(), want) {
				t.Fatalf("round %d: image %v, tiles %v, parts %v, radii %v, mode %d: view %v\n got %v\nwant %v",
					round, size, tile, l.levels[0].parts, radii, mode, v.Index, v.Data(), want)
			}
			v.Release()
		}
		if l.PeakMemory() > l.MaxMemory() {
			t.Errorf("round %d: %d bytes, promised %d", round, l.PeakMemory(), l.MaxMemory())
		}
		l.Close()
	}
}

// TestPartsAreReadOnce: a cache of a few tiles reads the interior of every tile
// once, and its ends once for each row of views that shows them.
func TestPartsAreReadOnce(t *testing.T) {
	src := newParted([]int{64, 96}, []int{16, 16}, grid5)
	// inner parts of 12 planes are 768 bytes, ends of 2 planes 128: three
	// quarters of the cache are for the former
	l, err := New[int32](src, Radius(2), smallParts(1<<20), CacheBytes(8*768))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if in, ends := l.levels[0].cache.capacity, l.levels[0].ends.capacity; in != 6 || ends != 12 {
		t.Fatalf("%d inner parts and %d ends", in, ends)
	}
	for v, err := range l.AllViews(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		v.Release()
	}
	inner, twice := 0, 0
	for plane, n := range src.planes {
		var y, x, k int
		if _, err := fmt.Sscanf(plane, "[%d %d] %d", &y, &x, &k); err != nil {
			t.Fatal(err)
		}
		if k >= 2 && k < 14 {
			if inner++; n != 1 {
				t.Errorf("plane %d of tile [%d %d] was read %d times", k, y, x, n)
			}
		} else if n > 2 {
			twice++
		}
	}
	if inner != 24*12 || twice > 0 || src.whole > 0 {
		t.Errorf("%d inner planes, %d planes at ends read more than twice, %d whole tiles", inner, twice, src.whole)
	}
	// one view reads its own tile and what it shows of the neighbours
	src = newParted([]int{64, 96}, []int{16, 16}, grid5)
	if l, err = New[int32](src, Radii(2, 0), smallParts(1<<20)); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	v, err := l.View(t.Context(), 0, []int{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	v.Release()
	if len(src.planes) != 16+2+2 {
		t.Errorf("%d planes were read for a view of 20", len(src.planes))
	}
}

// TestFaultInAPart: the error names the tile.
func TestFaultInAPart(t *testing.T) {
	src := newParted([]int{64, 64}, []int{16, 16}, grid5)
	src.fault = func(index []int) error {
		if slices.Equal(index, []int{0, 1}) {
			return fmt.Errorf("broken")
		}
		return nil
	}
	l := mustNew(t, src, Radius(2), smallParts(1<<20), LoaderThreads(2), ViewsAvailable(2))
	failed := 0
	for v, err := range l.AllViews(t.Context(), 0) {
		if err != nil {
			failed++
			if e, ok := err.(*Error); !ok || !slices.Equal(e.Tile, []int{0, 1}) {
				t.Errorf("%v does not name the tile", err)
			}
			continue
		}
		v.Release()
	}
	if failed != 6 {
		t.Errorf("%d views failed, want 6", failed)
	}
}
