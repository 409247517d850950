//go:build !nocuda

package kernels

import (
	"math"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
)

func TestPlace(t *testing.T) {
	each(t, placing[uint8], placing[int8], placing[uint16], placing[int16], placing[uint32], placing[int32],
		placing[uint64], placing[int64], placing[float32], placing[float64])
}

func placing[T dtype.Element](t *testing.T) {
	b := open(t)
	const planes, ny, nx, ay, ax = 2, 5, 290, 8, 300 // to a box of larger planes
	v := sample[T](planes * ny * nx)
	oddNaNs(v)
	src, kind := upload(b, v), dtype.Of[T]()
	bad := b.alloc(8)
	b.stream.Zero(bad)
	var finite int64
	switch v := any(v).(type) {
	case []float32:
		finite = filter.CountNonFinite(v)
	case []float64:
		finite = filter.CountNonFinite(v)
	}
	for i, gain := range []float32{1, 1.3} {
		want := sample[float32](planes * ay * ax)
		to := upload(b, want)
		at := int64(4 * (2*ax + 7))
		count := bad
		if i == 1 {
			count = gpu.Span{}
		}
		b.check(Place(b.stream, Planes{to.From(at, to.Bytes()-at), ax, ay * ax}, src, kind, planes, ny, nx, gain, count))
		for z := range planes {
			for y := range ny {
				row := want[(z*ay+y+2)*ax+7:][:nx]
				filter.ToFloat32(row, v[(z*ny+y)*nx:][:nx])
				if gain != 1 {
					filter.Combine(row, row, 0, []float32{gain})
				}
			}
		}
		same(t, "placed", download[float32](b, to), want)
	}
	if got := download[uint64](b, bad)[0]; got != uint64(finite) {
		t.Errorf("%d elements are not finite, want %d", got, finite)
	}
}

// oddNaNs puts NaN of several bits into floats: quiet ones, which no copy changes.
func oddNaNs[T dtype.Element](v []T) {
	switch v := any(v).(type) {
	case []float32:
		for i, bits := range []uint32{0x7fc00000, 0xffc00000, 0x7fc12345, 0xffffffff} {
			v[60+i] = math.Float32frombits(bits)
		}
	case []float64:
		for i, bits := range []uint64{0x7ff8000000000000, 0xfff8000000000000, 0x7ff8123456789abc, 0xffffffffffffffff} {
			v[60+i] = math.Float64frombits(bits)
		}
	}
}

// same compares bit by bit, NaN included.
func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i, w := range want {
		if math.Float32bits(got[i]) != math.Float32bits(w) {
			t.Fatalf("%s: element %d is %v (%08x), the CPU has %v (%08x)", what, i, got[i], math.Float32bits(got[i]), w, math.Float32bits(w))
		}
	}
}

func TestBoxesOfPlanes(t *testing.T) {
	b := open(t)
	const planes, ny, nx, ay, ax = 5, 6, 270, 9, 283
	v := sample[float32](planes * ay * ax)
	v[3*ax+20] = math.Float32frombits(0xffc12345)
	dst := upload(b, v)
	box := func(i int) Planes { // from plane i on
		at := int64(4 * ((i*ay+2)*ax + 7))
		return Planes{dst.From(at, dst.Bytes()-at), ax, ay * ax}
	}
	acc := b.alloc(8 * ny * nx)
	b.check(SumPlanes(b.stream, acc, box(0), 2, ny, nx, true))
	b.check(SumPlanes(b.stream, acc, box(2), 3, ny, nx, false))
	b.check(Brighten(b.stream, box(1), 3, ny, nx, 0.7))
	want := make([]float64, ny*nx)
	for z := range planes {
		for y := range ny {
			row := v[(z*ay+y+2)*ax+7:][:nx]
			filter.AddPlanes(want[y*nx:][:nx], row)
			if z >= 1 && z < 4 {
				filter.Combine(row, row, 0, []float32{0.7})
			}
		}
	}
	equal(t, "sums", download[float64](b, acc), want)
	same(t, "brightened", download[float32](b, dst), v)
}

func TestAccumulate(t *testing.T) {
	b := open(t)
	const n = 777
	v, want := sample[float32](n), make([]float32, n)
	src, acc := upload(b, v), b.alloc(4*n)
	for i, w := range []float32{0.3, 0.7, -1e-3} {
		b.check(Accumulate(b.stream, acc, src, w, n, i == 0))
		if i == 0 {
			filter.Combine(want, v, 0, []float32{w})
		} else {
			filter.AddCombine(want, v, 0, []float32{w})
		}
	}
	equal(t, "sums", download[float32](b, acc), want)
}
