//go:build !nocuda

package kernels

import (
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
)

func TestMean(t *testing.T) {
	each(t, mean[uint8], mean[int8], mean[uint16], mean[int16], mean[uint32], mean[int32], mean[uint64], mean[int64], mean[float32], mean[float64])
}

func mean[T dtype.Element](t *testing.T) {
	b := open(t)
	const n, nz, first = 777, 13, 5 // planes come in two pieces
	v := sample[T](n * nz)
	acc, want := make([]float64, n), make([]float32, n)
	bad := filter.AddPlanes(acc, v)
	filter.Mean(want, acc, nz)

	sums, dst, count := b.alloc(8*n), b.alloc(4*n), b.alloc(8)
	b.stream.Zero(count)
	kind := dtype.Of[T]()
	b.check(AddPlanes(b.stream, sums, upload(b, v[:first*n]), count, kind, first, n, true))
	b.check(AddPlanes(b.stream, sums, upload(b, v[first*n:]), count, kind, nz-first, n, false))
	b.check(Mean(b.stream, dst, sums, nz, n))
	equal(t, "mean", download[float32](b, dst), want)
	if got := download[uint64](b, count)[0]; got != uint64(bad) {
		t.Errorf("%d voxels are not finite, want %d", got, bad)
	}
	b.stream.Zero(count)
	b.check(CountNonFinite(b.stream, count, upload(b, v), kind, n*nz))
	if got := download[uint64](b, count)[0]; got != uint64(bad) {
		t.Errorf("%d elements are not finite, want %d", got, bad)
	}
}
