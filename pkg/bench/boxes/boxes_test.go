package boxes

import (
	"slices"
	"testing"
)

func TestSplit(t *testing.T) {
	got := Split([]int{3, 5}, []int{2, 4})
	want := [][4]int{{0, 0, 2, 4}, {0, 4, 2, 1}, {2, 0, 1, 4}, {2, 4, 1, 1}}
	if len(got) != len(want) {
		t.Fatal(got)
	}
	for i, w := range want {
		if r := got[i]; [4]int{r.Start[0], r.Start[1], r.Shape[0], r.Shape[1]} != w {
			t.Errorf("box %d is %v, want %v", i, r, w)
		}
	}
}

// What other programs find as docs/bench-zarr.md says.
func TestPlaces(t *testing.T) {
	list := Random([]int{512, 512, 40}, 64, 2, 1)
	if !slices.Equal(list[0].Start, []int{404, 104, 0}) || !slices.Equal(list[0].Shape, []int{64, 64, 40}) {
		t.Errorf("the first box is %v", list[0])
	}
	slabs := Slabs([]int{1, 2, 10})
	for d, at := range []int{0, 1, 6} {
		if slabs[d].Start[d] != at || slabs[d].Shape[d] != 1 {
			t.Errorf("plane %d is %v", d, slabs[d])
		}
	}
}
