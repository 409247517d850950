//go:build !nocuda

package kernels

import (
	"testing"

	"strata/pkg/filter"
)

func TestMix(t *testing.T) {
	b := open(t)
	const planes, ny, nx, ay, ax = 4, 9, 301, 12, 320 // a box of larger planes
	for _, c := range []struct {
		dy, dx int
		gain   float32
	}{{0, 0, 1}, {0, 0, 1.3}, {2, -5, 0.7}, {-20, 400, 1.1}} {
		fixed, moving := sample[float32](planes*ay*ax), sample[float32](planes*ny*nx + 5)[5:]
		weights := filter.Hann(planes)
		to, from := upload(b, fixed), upload(b, moving)
		f := Planes{to.From(4*(2*ax+7), to.Bytes()-4*(2*ax+7)), ax, ay * ax}
		m := Planes{from, nx, ny * nx}
		counts := b.alloc(8 * planes)
		b.stream.Zero(counts)
		b.check(CountCommon(b.stream, counts, f, m, planes, ny, nx))
		b.check(Mix(b.stream, f, m, planes, ny, nx, upload(b, weights), c.gain, c.dy, c.dx))
		row := make([]float32, nx)
		each := func(do func(z int, fixed, plain, moved []float32)) {
			for z := range planes {
				for y := range ny {
					src := moving[(z*ny+min(max(y-c.dy, 0), ny-1))*nx:][:nx]
					for x := range row {
						row[x] = src[min(max(x-c.dx, 0), nx-1)]
					}
					do(z, fixed[(z*ay+y+2)*ax+7:][:nx], moving[(z*ny+y)*nx:][:nx], row)
				}
			}
		}
		common := make([]uint64, planes)
		each(func(z int, fixed, plain, moved []float32) {
			common[z] += uint64(filter.CountCommon(fixed, plain))
			filter.Mix(fixed, moved, weights[z], c.gain)
		})
		equal(t, "counts", download[uint64](b, counts), common)
		equal(t, "mixed", download[float32](b, to), fixed)
		b.check(Scale(b.stream, f, m, planes, ny, nx, c.gain, c.dy, c.dx))
		each(func(_ int, fixed, _, moved []float32) {
			for x, v := range moved {
				fixed[x] = v * c.gain
			}
		})
		equal(t, "scaled", download[float32](b, to), fixed)
	}
}
