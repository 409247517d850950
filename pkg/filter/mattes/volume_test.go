package mattes

import (
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/filter"
)

// Shrinking is a Gaussian along each axis, with the outermost voxels continued, of which every n-th value stays.
func TestShrink(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	one := func(n int, f func(i int) error) error {
		for i := range n {
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range []struct {
		shape [3]int
		n     int
		sigma float64
	}{{[3]int{9, 17, 33}, 2, 1.5}, {[3]int{5, 40, 36}, 8, 4}, {[3]int{12, 7, 20}, 1, 0.8}, {[3]int{3, 1, 2}, 2, 2}} {
		v := &Volume{Shape: c.shape, Spacing: Vec{1, 1, 1}, Voxels: make([]float32, c.shape[0]*c.shape[1]*c.shape[2])}
		for i := range v.Voxels {
			v.Voxels[i] = rng.Float32()
		}
		got, err := v.shrink(c.n, c.sigma, one)
		if err != nil {
			t.Fatal(err)
		}
		taps := filter.GaussianKernel(c.sigma, 0)
		var steps [3]int
		for d, n := range c.shape {
			if steps[d] = c.n; n < 4*c.n {
				steps[d] = 1
			}
			if got.Shape[d] != n/steps[d] {
				t.Fatalf("%v by %d: shape %v", c.shape, c.n, got.Shape)
			}
		}
		for range 40 {
			var at [3]int
			for d, n := range got.Shape {
				at[d] = rng.IntN(n)
			}
			var sum func(d, place int) float64
			sum = func(d, place int) (s float64) {
				if d == 3 {
					return float64(v.Voxels[place])
				}
				for k, w := range taps {
					i := at[d]*steps[d] + steps[d]/2 + k - len(taps)/2
					s += w * sum(d+1, place*c.shape[d]+min(max(i, 0), c.shape[d]-1))
				}
				return s
			}
			want := sum(0, 0)
			if have := float64(got.Voxels[(at[0]*got.Shape[1]+at[1])*got.Shape[2]+at[2]]); math.Abs(have-want) > 1e-5 {
				t.Fatalf("%v by %d: voxel %v is %v, want %v", c.shape, c.n, at, have, want)
			}
		}
	}
}
