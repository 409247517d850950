package tile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// The model knows nothing of tiles: the pixel of a view at position k is the
// image's at index·T - r + k, and beyond the image what the border says.

// walk finds the pixel of an axis of n pixels that position p shows by walking
// there from pixel 0 step by step.
func walk(mode BorderMode, p, n int) int {
	at, direction := 0, 1
	if p < 0 {
		direction = -1
	}
	for range max(p, -p) {
		to := at + direction
		if to >= 0 && to < n {
			at = to
			continue
		}
		switch mode {
		case Wrap:
			at = n - 1 - at
		case Mirror: // turn round: the next pixel is the one before this
			if direction = -direction; n > 1 {
				at += direction
			}
		case Reflect: // stay for one step, then go back
			direction = -direction
		case Replicate:
		}
	}
	return at
}

func TestWalkIsWhatTheModesAreDocumentedAs(t *testing.T) {
	for mode, want := range map[BorderMode]string{
		Replicate: "aaaabcdddd", Mirror: "dcbabcdcba", Reflect: "cbaabcddcb", Wrap: "bcdabcdabc",
	} {
		got := ""
		for p := -3; p < 7; p++ {
			got += string("abcd"[walk(mode, p, 4)])
		}
		// mirror's picture above shows four pixels and three on each side
		if got != want {
			t.Errorf("mode %d: %s, want %s", mode, got, want)
		}
	}
}

// expect is the view that the model makes.
func expect(src *numbers, tile, radii, index []int, mode BorderMode, value int32) []int32 {
	n := len(tile)
	shape, k, zero := make([]int, n), make([]int, n), make([]int, n)
	for a := range n {
		shape[a] = tile[a] + 2*radii[a]
	}
	var out []int32
	p := make([]int, n)
	for more := true; more; more = next(k, zero, shape) {
		inside := true
		for a := range n {
			p[a] = index[a]*tile[a] - radii[a] + k[a]
			if p[a] < 0 || p[a] >= src.Size[a] {
				inside = false
				p[a] = walk(mode, p[a], src.Size[a])
			}
		}
		switch {
		case inside || mode != Zero:
			out = append(out, src.pixel(p))
		default:
			out = append(out, value)
		}
	}
	return out
}

func TestViewsAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	modes := []BorderMode{Zero, Replicate, Mirror, Reflect, Wrap}
	for round := range 250 {
		axes := 1 + round%5
		size, tile, radii := make([]int, axes), make([]int, axes), make([]int, axes)
		most := []int{40, 14, 8, 5, 4}[axes-1]
		for a := range axes {
			size[a] = 1 + rng.IntN(most)
			tile[a] = 1 + rng.IntN(most)
			radii[a] = rng.IntN(most)
			if rng.IntN(3) == 0 {
				radii[a] = 0
			}
		}
		if round%7 == 0 {
			clear(radii)
		}
		mode := modes[rng.IntN(len(modes))]
		value := int32(0)
		border := Border(mode)
		if mode == Zero && rng.IntN(2) == 0 {
			value = -5
			border = BorderConstant(value)
		}
		src := newNumbers(size, tile, func(pos []int) int32 {
			v := int32(1)
			for a, p := range pos {
				v = v*int32(size[a]+1) + int32(p)
			}
			return v
		})
		opts := []Option{Radii(radii...), border, CacheBytes(int64(1 + rng.IntN(4*product(tile)*4))),
			LoaderThreads(1 + rng.IntN(3)), ViewsAvailable(1 + rng.IntN(4)), CopyThreads(1 + rng.IntN(2)), Checked()}
		ordered := rng.IntN(2) == 0
		if ordered {
			opts = append(opts, Ordered())
		}
		if rng.IntN(3) == 0 {
			opts = append(opts, Inline())
		}
		logical := tile
		var l *Loader[int32]
		var err error
		if rng.IntN(3) == 0 {
			logical = make([]int, axes)
			for a := range axes {
				logical[a] = 1 + rng.IntN(most)
			}
			l, err = NewAdaptive[int32](src, [][]int{logical}, append(opts, LogicalCacheBytes(int64(1+rng.IntN(1000))))...)
		} else {
			l, err = New[int32](src, opts...)
		}
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("round %d: image %v, tiles %v of %v, radii %v, mode %d", round, size, logical, tile, radii, mode)
		var seen [][]int
		for v, err := range l.AllViews(t.Context(), 0) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if want := expect(src, logical, radii, v.Index, mode, value); !slices.Equal(v.Data(), want) {
				t.Fatalf("%s: view %v\n got %v\nwant %v", name, v.Index, v.Data(), want)
			}
			seen = append(seen, v.Index)
			if err := v.Release(); err != nil {
				t.Fatal(err)
			}
		}
		want := Naive(l.Grid(0))
		if !ordered {
			slices.SortFunc(seen, slices.Compare)
		}
		if !slices.EqualFunc(seen, want, slices.Equal) {
			t.Fatalf("%s: views %v, want %v", name, seen, want)
		}
		if l.PeakMemory() > l.MaxMemory() {
			t.Errorf("%s: %d bytes, promised %d", name, l.PeakMemory(), l.MaxMemory())
		}
		l.Close()
	}
}

// turned asks for the border with copies of its own: above the image
// stand its first lines, turned round on the first and the last axis.
type turned struct{ fills *int }

func (turned) Copies(g Geometry) []Copy {
	if g.Front[0] == 0 {
		return nil
	}
	n := len(g.Image)
	c := Copy{From: make([]int, n), Shape: make([]int, n), To: make([]int, n), Reversed: make([]bool, n)}
	for a := range n {
		c.Shape[a] = min(g.Image[a], g.ViewShape[a])
	}
	c.Shape[0] = min(g.Front[0], g.Image[0])
	c.Reversed[0], c.Reversed[n-1] = true, true
	return []Copy{c}
}

func (b turned) Fill(v *View[int32]) { *b.fills++ }

func TestCopiesOfTheCallersBorder(t *testing.T) {
	src := newNumbers([]int{5, 7}, []int{2, 3}, grid5)
	fills := 0
	l, err := New[int32](src, Radius(2), Inline(), BorderCustom[int32](turned{&fills}))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	v, err := l.View(t.Context(), 0, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	// first target line = last source line, each back to front
	want := [][]int32{{17, 16, 15, 14, 13, 12, 11}, {7, 6, 5, 4, 3, 2, 1}}
	for y, row := range want {
		if got := v.Data()[y*7 : y*7+7]; !slices.Equal(got, row) {
			t.Errorf("line %d: %v, want %v", y, got, row)
		}
	}
	if got := v.Data()[2*7 : 2*7+6]; !slices.Equal(got, []int32{2, 3, 4, 5, 6, 7}) {
		t.Errorf("first line of the image: %v", got)
	}
	if fills != 1 {
		t.Errorf("Fill was called %d times for one view", fills)
	}
	// the copy needs 3 tiles of the first row, which the view needs anyway: 6 in all
	if n := src.loads.Load(); n != 6 {
		t.Errorf("%d tiles were loaded, want 6", n)
	}
}

type badCopies struct{ c Copy }

func (b badCopies) Copies(Geometry) []Copy { return []Copy{b.c} }
func (badCopies) Fill(*View[int32])        {}

func TestWrongCopiesAreErrors(t *testing.T) {
	for _, c := range []Copy{
		{From: []int{0}, Shape: []int{1, 1}, To: []int{0, 0}},
		{From: []int{4, 0}, Shape: []int{2, 1}, To: []int{0, 0}},
		{From: []int{-1, 0}, Shape: []int{1, 1}, To: []int{0, 0}},
		{From: []int{0, 0}, Shape: []int{1, 1}, To: []int{4, 0}},
		{From: []int{0, 0}, Shape: []int{1, -1}, To: []int{0, 0}},
		{From: []int{0, 0}, Shape: []int{1, 1}, To: []int{0, 0}, Reversed: []bool{true}},
	} {
		src := newNumbers([]int{5, 5}, []int{2, 2}, grid5)
		for _, opt := range []Option{Inline(), LoaderThreads(2)} {
			l, err := New[int32](src, Radius(1), opt, BorderCustom[int32](badCopies{c}))
			if err != nil {
				t.Fatal(err)
			}
			failed, whole := 0, 0
			for v, err := range l.AllViews(t.Context(), 0) {
				if err != nil {
					failed++
					continue
				}
				whole++
				v.Release()
			}
			if failed != 8 || whole != 1 { // the middle view has no border
				t.Errorf("%+v: %d views failed and %d came, want 8 and 1", c, failed, whole)
			}
			l.Close()
		}
	}
}

// TestManyReadersOfOneLoader runs streams and single views side by side on one
// small cache.
func TestManyReadersOfOneLoader(t *testing.T) {
	src := newNumbers([]int{23, 31}, []int{4, 5}, func(p []int) int32 { return int32(p[0]*100 + p[1]) })
	l, err := New[int32](src, Radius(3), Border(Mirror), CacheBytes(6*80), ViewsAvailable(3), LoaderThreads(2), Checked())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	check := func(v *View[int32]) {
		if want := expect(src, src.Tile, []int{3, 3}, v.Index, Mirror, 0); !slices.Equal(v.Data(), want) {
			t.Errorf("view %v is wrong", v.Index)
		}
	}
	var wg sync.WaitGroup
	for k := range 3 {
		wg.Go(func() {
			n := 0
			for v, err := range l.AllViews(t.Context(), 0) {
				if err != nil {
					t.Error(err)
					return
				}
				check(v)
				v.Release()
				if n++; k == 2 && n == 10 {
					return // leaves early
				}
			}
			if n != product(l.Grid(0)) {
				t.Errorf("%d views", n)
			}
		})
		wg.Go(func() {
			var v *View[int32]
			for _, index := range Hilbert(l.Grid(0)) {
				var err error
				if v == nil {
					v, err = l.View(t.Context(), 0, index)
				} else if k == 0 { // keep the memory
					err = l.Reload(t.Context(), v, index)
				} else {
					v.Release()
					v, err = l.View(t.Context(), 0, index)
				}
				if err != nil {
					t.Error(err)
					return
				}
				check(v)
			}
			v.Release()
		})
	}
	wg.Wait()
	if l.PeakMemory() > l.MaxMemory() {
		t.Errorf("%d bytes, promised %d", l.PeakMemory(), l.MaxMemory())
	}
}
