//go:build !nocuda

package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/filter"
)

func TestSampler(t *testing.T) {
	b := open(t)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, shape := range [][]int{{40}, {9, 14}, {5, 6, 7}, {1, 6}, {3, 1, 4}, {2, 0}} {
		n := 1
		for _, k := range shape {
			n *= k
		}
		v := sample[float32](n)
		image := b.alloc(16)
		if n > 0 {
			image = upload(b, v)
		}
		for _, border := range []filter.Border{filter.BorderConstant, filter.BorderNearest} {
			const fill = -3
			on, err := NewSampler(image, shape, border, fill)
			b.check(err)
			cpu := filter.NewSampler(v, shape, border, fill)

			const points = 500
			at := make([]float64, points*len(shape))
			for i := range at {
				n := float64(shape[i/points])
				switch i % 5 {
				case 0:
					at[i] = math.Floor(rng.Float64() * n)
				case 1:
					at[i] = []float64{0, n - 1, n, -1, -1e-300, math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}[rng.IntN(9)]
				default:
					at[i] = rng.Float64()*(n+1) - 1
				}
			}
			want := make([]float32, points)
			filter.MapCoordinates(want, cpu, at)
			dst := b.alloc(4 * points)
			b.check(MapCoordinates(b.stream, dst, on, upload(b, at), points))
			equal(t, fmt.Sprint("points of ", shape), download[float32](b, dst), want)

			for _, grid := range [][]int{{33}, {8, 40}, {3, 4, 70}} {
				matrix, offset := make([][]float64, len(shape)), make([]float64, len(shape))
				total := 1
				for _, k := range grid {
					total *= k
				}
				for d := range matrix {
					offset[d] = rng.NormFloat64()
					for range grid {
						matrix[d] = append(matrix[d], rng.NormFloat64()/2)
					}
				}
				want := make([]float32, total)
				filter.Affine(want, grid, cpu, matrix, offset)
				dst := b.alloc(4 * total)
				b.check(Affine(b.stream, dst, grid, on, matrix, offset))
				equal(t, fmt.Sprint(grid, " of ", shape), download[float32](b, dst), want)
			}
		}
	}
	if _, err := NewSampler(b.alloc(16), []int{1, 1, 1, 1}, filter.BorderNearest, 0); err == nil {
		t.Error("an image of four axes was taken")
	}
	on, err := NewSampler(b.alloc(16), []int{2, 2}, filter.BorderNearest, 0)
	b.check(err)
	if err := Affine(b.stream, b.alloc(16), []int{4}, on, [][]float64{{1}}, []float64{0}); err == nil {
		t.Error("an affine map of one row into two axes was taken")
	}
}
