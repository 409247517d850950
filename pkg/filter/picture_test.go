package filter

import (
	"math"
	"slices"
	"testing"
)

// Two pictures have in common what overlaps when one is displaced; parts that are small, or constant, do not correlate.
func TestPicture(t *testing.T) {
	fixed := Picture{V: []float32{1, 2, 3, 4, 5, 6, 7, 9, 8}, NY: 3, NX: 3}
	moving := Picture{V: []float32{5, 6, 0, 9, 8, 0}, NY: 2, NX: 3}
	a, b, h, w := fixed.Common(moving, [2]int{1, 1})
	if want := []float32{5, 6, 9, 8}; h != 2 || w != 2 || !slices.Equal(a, want) || !slices.Equal(b, want) {
		t.Errorf("%v and %v, %d × %d", a, b, h, w)
	}
	if got := fixed.CorrelationAt(moving, [2]int{1, 1}); math.Abs(got-1) > 1e-6 {
		t.Errorf("the same pixels correlate by %v", got)
	}
	for _, d := range [][2]int{{3, 0}, {0, -3}, {-2, 0}, {1 << 40, 1 << 40}, {-1 << 40, 0}} {
		if _, _, h, w := fixed.Common(moving, d); h*w != 0 || fixed.CorrelationAt(moving, d) != 0 {
			t.Errorf("displaced by %v: %d × %d pixels in common", d, h, w)
		}
	}
	if got := fixed.CorrelationAt(Picture{make([]float32, 9), 3, 3}, [2]int{}); got != 0 {
		t.Errorf("a constant picture correlates by %v", got)
	}
	wide := moving.Within(3, 4)
	for i, v := range wide {
		if y, x := i/4, i%4; y < 2 && x < 3 && v != moving.V[y*3+x] || (y == 2 || x == 3) && v == v {
			t.Errorf("pixel (%d, %d) on a larger canvas is %v", y, x, v)
		}
	}
}

func TestMovingAverage(t *testing.T) {
	raw := []float64{1, 2, 4, 8, 16}
	for w, want := range map[int][]float64{
		0: raw, 1: raw, 2: {1, 1.5, 3, 6, 16}, 3: {1, 7. / 3, 14. / 3, 28. / 3, 16},
		4: {1, 2, 15. / 4, 8, 16}, 5: {1, 2, 31. / 5, 8, 16}, 9: {1, 2, 31. / 5, 8, 16},
	} {
		for i, got := range MovingAverage(raw, w) {
			if math.Abs(got-want[i]) > 1e-12 {
				t.Errorf("window %d: value %d is %v, want %v", w, i, got, want[i])
			}
		}
	}
	if got := MovingAverage(nil, 3); len(got) != 0 {
		t.Errorf("nothing averaged is %v", got)
	}
}
