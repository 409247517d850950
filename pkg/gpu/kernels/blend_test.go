//go:build !nocuda

package kernels

import (
	"math"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
)

func TestBlend(t *testing.T) {
	t.Run("float32", blending[float32])
	t.Run("float64", blending[float64])
}

func blending[F float32 | float64](t *testing.T) {
	b := open(t)
	const n, planes = 700, 3
	acc, v, alpha := sample[F](planes*n), sample[F](planes*n + 1)[1:], sample[float32](n)
	for i := range alpha {
		switch i % 7 {
		case 0:
			alpha[i] = 1
		case 1:
			alpha[i] = 0
		case 2:
			v[i] = acc[i]
			fallthrough
		default:
			alpha[i] = float32(i) / n
		}
	}
	for i := 300; i < 360; i++ { // all pairs of numbers that are none
		odd := []F{1, F(math.NaN()), F(math.Inf(1)), F(math.Inf(-1))}
		acc[i], v[i] = odd[i%4], odd[i/4%4]
	}
	kind := dtype.Of[F]()
	dst, w := upload(b, acc), upload(b, v)
	b.check(Blend(b.stream, dst, w, upload(b, alpha), kind, planes, n))
	between := b.alloc(len(dtype.Bytes(acc)))
	b.check(Between(b.stream, between, dst, w, kind, 0.3, planes*n))
	for z := range planes {
		filter.Blend(acc[z*n:][:n], v[z*n:][:n], alpha)
	}
	equal(t, "blended", download[F](b, dst), acc)
	want := make([]F, len(acc))
	filter.Between(want, acc, v, F(0.3))
	equal(t, "between", download[F](b, between), want)
	b.check(Between(b.stream, dst, w, dst, kind, -0.2, planes*n))
	filter.Between(acc, v, acc, F(-0.2))
	equal(t, "between in place", download[F](b, dst), acc)
}

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
