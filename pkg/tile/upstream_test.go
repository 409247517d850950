package tile

import (
	"fmt"
	"slices"
	"testing"
)

// The tests of this file repeat those of FastLoader's own suite.

// views collects all views of a loader by index.
func views(t *testing.T, l *Loader[int32]) map[string]*View[int32] {
	t.Helper()
	out := map[string]*View[int32]{}
	for v, err := range l.AllViews(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		c := &View[int32]{Geometry: v.Geometry, lv: v.lv, buf: &buffer[int32]{data: slices.Clone(v.Data())}}
		c.left.Store(1)
		out[fmt.Sprint(v.Index)] = c
		v.Release()
	}
	return out
}

func TestBasicRequest(t *testing.T) {
	src := newNumbers([]int{9, 9, 9}, []int{1, 1, 1}, func(p []int) int32 { return int32(100*p[0] + 10*p[1] + p[2]) })
	n := 0
	for _, v := range views(t, mustNew(t, src, LoaderThreads(2), ViewsAvailable(4))) {
		n++
		if want := int32(100*v.Index[0] + 10*v.Index[1] + v.Index[2]); len(v.Data()) != 1 || v.Data()[0] != want {
			t.Errorf("view %v: %v", v.Index, v.Data())
		}
	}
	if n != 729 {
		t.Errorf("%d views", n)
	}
}

func TestConstantFillingOfCorners(t *testing.T) {
	pixel := func(p []int) int32 { return int32(25*p[0] + 5*p[1] + p[2] + 1) }
	src := newNumbers([]int{5, 5, 5}, []int{2, 2, 2}, pixel)
	for r := range 4 {
		l := mustNew(t, src, Radius(r), Ordered(), BorderConstant[int32](42))
		all := views(t, l)
		for corner := range 8 {
			index := []int{corner >> 2 * 2, corner >> 1 & 1 * 2, corner & 1 * 2}
			v := all[fmt.Sprint(index)]
			side := 2 + 2*r
			for i, got := range v.Data() {
				p := []int{index[0]*2 - r + i/side/side, index[1]*2 - r + i/side%side, index[2]*2 - r + i%side}
				want := int32(42)
				if min(p[0], p[1], p[2]) >= 0 && max(p[0], p[1], p[2]) < 5 {
					want = pixel(p)
				}
				if got != want {
					t.Fatalf("radius %d, view %v, pixel %v: %d, want %d", r, index, p, got, want)
				}
			}
		}
	}
}

// TestChannels: the last axis is the colour, which the radius applies to as well.
func TestChannels(t *testing.T) {
	for c := 1; c <= 3; c++ {
		pixel := func(p []int) int32 { return int32(1000*p[0] + 100*p[1] + 10*p[2] + p[3] + 1) }
		src := newNumbers([]int{5, 5, 5, c}, []int{2, 2, 2, c}, pixel)
		l := mustNew(t, src, LoaderThreads(2), ViewsAvailable(2))
		if !slices.Equal(l.Shape(0), src.Size) || !slices.Equal(l.TileShape(0), src.Tile) || !slices.Equal(l.ViewShape(0), src.Tile) {
			t.Errorf("shape %v, tiles %v, views %v", l.Shape(0), l.TileShape(0), l.ViewShape(0))
		}
		for _, v := range views(t, l) {
			if !slices.Equal(v.Data(), expect(src, src.Tile, []int{0, 0, 0, 0}, v.Index, Zero, 0)) {
				t.Errorf("%d channels: view %v is wrong", c, v.Index)
			}
		}
		src = newNumbers([]int{9, 5, 3, c}, []int{6, 4, 2, c}, pixel)
		for r := range 4 {
			l := mustNew(t, src, Radius(r), BorderConstant[int32](0))
			for _, v := range views(t, l) {
				if !slices.Equal(v.Data(), expect(src, src.Tile, []int{r, r, r, r}, v.Index, Zero, 0)) {
					t.Errorf("%d channels, radius %d: view %v is wrong", c, r, v.Index)
				}
			}
		}
	}
}

// TestAdaptiveEqualsPlain: logical tiles over stored tiles show what tiles of
// the logical size would.
func TestAdaptiveEqualsPlain(t *testing.T) {
	pixel := func(p []int) int32 {
		v := int32(1)
		for _, x := range p {
			v = v*11 + int32(x)
		}
		return v
	}
	for axes := 1; axes <= 3; axes++ {
		for _, size := range []int{2, 5, 9} {
			for _, logical := range []int{1, 2} {
				for _, stored := range []int{1, 2} {
					for r := range 3 {
						F, L, T := slices.Repeat([]int{size}, axes), slices.Repeat([]int{logical}, axes), slices.Repeat([]int{stored}, axes)
						a, err := NewAdaptive[int32](newNumbers(F, T, pixel), [][]int{L}, Radius(r))
						if err != nil {
							t.Fatal(err)
						}
						p := mustNew(t, newNumbers(F, L, pixel), Radius(r))
						if !slices.Equal(a.Grid(0), p.Grid(0)) {
							t.Fatalf("grids %v and %v", a.Grid(0), p.Grid(0))
						}
						got, want := views(t, a), views(t, p)
						if len(got) != len(want) {
							t.Fatalf("%d views, want %d", len(got), len(want))
						}
						for k, w := range want {
							if !slices.Equal(got[k].Data(), w.Data()) {
								t.Errorf("image %v, tiles %v over %v, radius %d: view %s is wrong", F, L, T, r, k)
							}
						}
						a.Close()
					}
				}
			}
		}
	}
}

// TestAdaptiveReadsOnce: stored tiles are read once while their cache holds them.
func TestAdaptiveReadsOnce(t *testing.T) {
	src := newNumbers([]int{12, 12}, []int{5, 5}, grid5)
	l, err := NewAdaptive[int32](src, [][]int{{3, 4}}, Radius(2), LogicalCacheBytes(1), LoaderThreads(2))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, v := range views(t, l) {
		if !slices.Equal(v.Data(), expect(src, []int{3, 4}, []int{2, 2}, v.Index, Zero, 0)) {
			t.Errorf("view %v is wrong", v.Index)
		}
	}
	if n := src.loads.Load(); n != 9 {
		t.Errorf("%d loads of 9 stored tiles", n)
	}
	if l.PeakMemory() > l.MaxMemory() {
		t.Errorf("%d bytes, promised %d", l.PeakMemory(), l.MaxMemory())
	}
}
