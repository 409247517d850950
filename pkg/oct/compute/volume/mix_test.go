package volume

import (
	"slices"
	"testing"

	"strata/pkg/oct"
	"strata/tests/octtest"
)

// One plane to blend: that of the two with more positive voxels, the slice's when
// they are equal.
func TestMixOfOnePlane(t *testing.T) {
	res := octtest.Small()
	mem := OpenHost(t.Context(), nil, &res)
	for _, c := range []struct{ fixed, moving, want []float32 }{
		{[]float32{1, 2, 0, -1}, []float32{3, 0, 4, 0}, []float32{6, 0, 8, 0}},
		{[]float32{1, 2, 3, 0}, []float32{3, 0, 4, 0}, []float32{1, 2, 3, 0}},
		{[]float32{1, 2, 0, 0}, []float32{3, 5, 4, -1}, []float32{6, 10, 8, -2}},
		{[]float32{0, 0, 0, -3}, []float32{0, 0, 0, 0}, []float32{0, 0, 0, 0}},
	} {
		got := slices.Clone(c.fixed)
		mem.Mix(&Mix{Part: oct.Rect(0, 1, 0, 4), Gains: []float32{2}}, 0, Planes(got, 1, 1, 4), Planes(c.moving, 1, 1, 4))
		if mem.Err() != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v and twice %v: %v, want %v", c.fixed, c.moving, got, c.want)
		}
	}
}
