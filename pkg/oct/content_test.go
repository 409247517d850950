package oct

import (
	"math"
	"sync"
	"testing"
)

func TestContent(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		blocks [][]float32
		want   string
	}{
		{nil, "all voxels are NaN or infinite"},
		{[][]float32{{nan, inf}, {nan}}, "all voxels are NaN or infinite"},
		{[][]float32{{0}, {float32(math.Copysign(0, -1)), 0}}, "all voxels are 0"},
		{[][]float32{{nan, -2.5}, {}, {-2.5, inf}}, "all voxels are -2.5"},
		{[][]float32{{1, nan, 2}}, ""},
		{[][]float32{{1}, {2}}, ""},
		{[][]float32{{1, 2}, {nan}}, ""},
	} {
		var content Content
		var group sync.WaitGroup
		for _, b := range c.blocks {
			group.Go(func() { content.Add(b) })
		}
		group.Wait()
		if got := content.Nothing(); got != c.want {
			t.Errorf("%v: %q, want %q", c.blocks, got, c.want)
		}
	}
}
