//go:build !nocuda

package kernels

import (
	"fmt"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
)

func TestMean(t *testing.T) {
	each(t, mean[uint8], mean[int8], mean[uint16], mean[int16], mean[uint32], mean[int32], mean[uint64], mean[int64], mean[float32], mean[float64])
}

func mean[T dtype.Element](t *testing.T) {
	b := open(t)
	kind := dtype.Of[T]()
	// whole accesses of a thread, some threads without, planes and memory that begin elsewhere, hardly anything; more
	// planes than 16 bits hold sums of bytes, and than 32 bits hold sums of 16
	const few = 13
	for _, c := range []struct{ n, skip, nz int }{
		{776, 0, few}, {8, 0, few}, {777, 0, few}, {776, 1, few}, {772, 0, few}, {776, 4, few}, {3, 0, few}, {1, 0, few}, {528, 0, 4200}, {1, 0, 131100},
	} {
		nz, first := c.nz, c.nz*2/5 // planes come in two pieces
		if nz > few && !small(kind) {
			continue
		}
		v := sample[T](c.n*nz + c.skip)
		if nz > few { // the greatest numbers
			b := dtype.Bytes(v)
			for i := range b {
				b[i] = 0xff
				if T(0)-1 < 0 {
					b[i] = 0x7f
				}
			}
		}
		acc, want := make([]float64, c.n), make([]float32, c.n)
		bad := filter.AddPlanes(acc, v[c.skip:])
		filter.Mean(want, acc, nz)

		sums, dst, count, src := b.alloc(8*c.n), b.alloc(4*c.n), b.alloc(8), upload(b, v)
		b.stream.Zero(count)
		part := func(from, to int) gpu.Span {
			size := kind.Size()
			return src.From(int64((c.skip+from*c.n)*size), int64((to-from)*c.n*size))
		}
		b.check(AddPlanes(b.stream, sums, part(0, first), count, kind, first, int64(c.n), true))
		b.check(AddPlanes(b.stream, sums, part(first, nz), count, kind, nz-first, int64(c.n), false))
		b.check(Mean(b.stream, dst, sums, nz, int64(c.n)))
		equal(t, fmt.Sprintf("sums of %v", c), download[float64](b, sums), acc)
		equal(t, fmt.Sprintf("mean of %v", c), download[float32](b, dst), want)
		if got := download[uint64](b, count)[0]; got != uint64(bad) {
			t.Errorf("%v: %d voxels are not finite, want %d", c, got, bad)
		}
		if c.skip > 0 {
			continue
		}
		b.stream.Zero(count)
		b.check(CountNonFinite(b.stream, count, src, kind, int64(c.n*nz)))
		if got := download[uint64](b, count)[0]; got != uint64(bad) {
			t.Errorf("%v: %d elements are not finite, want %d", c, got, bad)
		}
	}
}
