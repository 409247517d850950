package tile

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var traversals = []struct {
	name string
	f    Traversal
	// neighbours: consecutive tiles are neighbours in any grid
	neighbours bool
}{
	{"naive", Naive, false}, {"snake", Snake, true}, {"spiral", Spiral, true},
	{"hilbert", Hilbert, false}, {"diagonal", Diagonal, false}, {"zigzag", ZigZag, false},
}

func TestTraversalsArePermutations(t *testing.T) {
	grids := [][]int{{1}, {7}, {1, 1}, {3, 3}, {4, 4}, {1, 9}, {9, 1}, {5, 2}, {2, 6}, {2, 3, 4}, {1, 5, 1}, {3, 1, 2, 4}, {2, 2, 3, 1, 2}}
	for _, tr := range traversals {
		for _, grid := range grids {
			got := tr.f(grid)
			if tr.neighbours {
				for i := 1; i < len(got); i++ {
					if distance(got[i-1], got[i]) != 1 {
						t.Errorf("%s of %v: from %v to %v", tr.name, grid, got[i-1], got[i])
					}
				}
			}
			got = slices.Clone(got)
			slices.SortFunc(got, slices.Compare)
			if d := cmp.Diff(Naive(grid), got); d != "" {
				t.Errorf("%s of %v is not a permutation:\n%s", tr.name, grid, d)
			}
		}
	}
}

func distance(a, b []int) int {
	d := 0
	for i := range a {
		d += max(a[i]-b[i], b[i]-a[i])
	}
	return d
}

func TestTraversalsOfNineTiles(t *testing.T) {
	for name, want := range map[string]string{
		"naive":    "[[0 0] [0 1] [0 2] [1 0] [1 1] [1 2] [2 0] [2 1] [2 2]]",
		"snake":    "[[0 0] [0 1] [0 2] [1 2] [1 1] [1 0] [2 0] [2 1] [2 2]]",
		"spiral":   "[[0 0] [0 1] [0 2] [1 2] [2 2] [2 1] [2 0] [1 0] [1 1]]",
		"diagonal": "[[0 0] [0 1] [1 0] [0 2] [1 1] [2 0] [1 2] [2 1] [2 2]]",
		"zigzag":   "[[0 0] [0 1] [1 0] [2 0] [1 1] [0 2] [1 2] [2 1] [2 2]]",
	} {
		i := slices.IndexFunc(traversals, func(tr struct {
			name       string
			f          Traversal
			neighbours bool
		}) bool {
			return tr.name == name
		})
		if got := fmt.Sprint(traversals[i].f([]int{3, 3})); got != want {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
}

func TestHilbertCurveIsConnected(t *testing.T) {
	for _, grid := range [][]int{{2, 2}, {8, 8}, {4, 4, 4}, {2, 2, 2, 2}, {1, 16, 16}} {
		got := Hilbert(grid)
		for i := 1; i < len(got); i++ {
			if distance(got[i-1], got[i]) != 1 {
				t.Errorf("grid %v: from %v to %v", grid, got[i-1], got[i])
			}
		}
	}
	// long axes: the keys are longer than a machine word
	if got := Hilbert([]int{1 << 13, 1, 2, 2, 1, 2, 2}); len(got) != 1<<17 {
		t.Errorf("%d tiles", len(got))
	}
}

func TestRegionsAndWrongTraversals(t *testing.T) {
	src := newNumbers([]int{20, 30}, []int{4, 5}, grid5)
	l, err := New[int32](src, Radius(1), Region(0, []int{4, 9}, []int{5, 7}), Traverse(Snake))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var got [][]int
	for v, err := range l.AllViews(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v.Index)
		if want := expect(src, src.Tile, []int{1, 1}, v.Index, Zero, 0); !slices.Equal(v.Data(), want) {
			t.Errorf("view %v is not that of the whole image", v.Index)
		}
		v.Release()
	}
	if d := cmp.Diff([][]int{{1, 1}, {1, 2}, {1, 3}, {2, 3}, {2, 2}, {2, 1}}, got); d != "" {
		t.Errorf("tiles of the region (-want +got):\n%s", d)
	}
	for name, wrong := range map[string]Traversal{
		"outside":   func(grid []int) [][]int { return [][]int{{0, 0}, {grid[0], 0}} },
		"few axes":  func([]int) [][]int { return [][]int{{0}} },
		"below":     func([]int) [][]int { return [][]int{{0, -1}} },
		"in region": func([]int) [][]int { return [][]int{{3, 0}} },
	} {
		opts := []Option{Traverse(wrong)}
		if name == "in region" {
			opts = append(opts, Region(0, []int{0, 0}, []int{12, 1}))
		}
		l, err := New[int32](src, opts...)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for v, err := range l.AllViews(t.Context(), 0) {
			if n++; err == nil || v != nil {
				t.Errorf("%s: view %v, error %v", name, v, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d results", name, n)
		}
		l.Close()
	}
}
