package filter

import (
	"math"
	"slices"
	"testing"
)

func TestBinned(t *testing.T) {
	const ny, nx = 7, 11
	src := make([]float32, ny*nx)
	for i := range src {
		src[i] = float32(i * i % 97)
	}
	src[2*nx+3] = float32(math.NaN())
	for _, bin := range [][2]int{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 2}, {2, 3}, {7, 11}} {
		h, w := ny/bin[0], nx/bin[1]
		var want []float32
		for y := range h {
			for x := range w {
				sum := 0.0
				for r := range bin[0] {
					for c := range bin[1] {
						sum += float64(src[(y*bin[0]+r)*nx+x*bin[1]+c])
					}
				}
				want = append(want, float32(sum/float64(bin[0]*bin[1])))
			}
		}
		if h*w == ny*nx {
			want = src
		}
		for _, dst := range [][]float32{nil, make([]float32, 2), make([]float32, 3*ny*nx)} {
			got := Binned(dst, src, ny, nx, bin)
			if !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-4 || a != a && b != b }) {
				t.Errorf("%v: %v, want %v", bin, got, want)
			}
		}
	}
}

func TestPositivePercentile(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		v    []float32
		want float32
	}{{nil, 0}, {[]float32{0, -1, nan, inf, -inf}, 0}, {[]float32{nan, 4, 0, 2, inf, 6, -8}, 4}} {
		if got := PositivePercentile(c.v, make([]float32, len(c.v)), 50); got != c.want {
			t.Errorf("%v: %v, want %v", c.v, got, c.want)
		}
	}
}
