//go:build !nocuda

package kernels

import (
	"math"
	"testing"

	"strata/pkg/filter"
	"strata/pkg/gpu"
)

// What divides, clips and counts gives the bits of package filter, for what is not finite, too.
func TestCorrect(t *testing.T) {
	b := open(t)
	const nz, ny, nx, height, width, y, x = 3, 7, 301, 5, 13, 4, 11
	v := sample[float32](nz * ny * nx)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	v[3], v[9], v[20], v[33] = nan, inf, -inf, 0
	by, limits := []float64{1, 1.7, 3}, []float32{-3, 5, 0, 100, 7, nan}
	want := make([]float32, len(v))
	copy(want, v)
	for z := range by {
		filter.DividePlane(want[z*ny*nx:][:ny*nx], by[z])
	}
	on := upload(b, v)
	b.check(DividePlanes(b.stream, on, upload(b, by), nz, ny*nx))
	equal(t, "divided planes", download[float32](b, on), want)
	for z := range by {
		filter.ScalePlane(want[z*ny*nx:][:ny*nx], limits[2*z], limits[2*z+1], 1.3)
	}
	b.check(ScalePlanes(b.stream, on, upload(b, limits), 1.3, nz, ny*nx))
	equal(t, "scaled planes", download[float32](b, on), want)

	gain, dark := make([]float32, height*width), make([]float32, height*width)
	for i := range gain {
		gain[i], dark[i] = 0.5+float32(i%7)/5, float32(i%3)
	}
	for _, dark := range [][]float32{nil, dark} {
		for _, keep := range []bool{false, true} {
			f := filter.FlatField{Gain: gain, Dark: dark, Height: height, Width: width, Epsilon: 1e-6, Keep: keep}
			copy(want, v)
			c := f.Divide(want, ny, nx, y, x)
			on, counts, less := upload(b, v), b.alloc(24), gpu.Span{}
			if dark != nil {
				less = upload(b, dark)
			}
			b.stream.Zero(counts)
			b.check(DivideField(b.stream, on, counts, FlatField{upload(b, gain), less, height, width, 1e-6, keep}, nz, ny, nx, y, x))
			equal(t, "divided by a field", download[float32](b, on), want)
			if got := download[int64](b, counts); (filter.Census{Some: got[0], Above: got[1], NonFinite: got[2]}) != c {
				t.Errorf("counts %v, want %+v", got, c)
			}
		}
	}
}
