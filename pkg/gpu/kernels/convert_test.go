//go:build !nocuda

package kernels

import (
	"fmt"
	"math"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
)

func TestFromFloat32(t *testing.T) {
	each(t, fromFloat32[uint8], fromFloat32[int8], fromFloat32[uint16], fromFloat32[int16], fromFloat32[uint32], fromFloat32[int32],
		fromFloat32[uint64], fromFloat32[int64], fromFloat32[float32], fromFloat32[float64])
}

func fromFloat32[T dtype.Element](t *testing.T) {
	b := open(t)
	v := sample[float32](3000)
	for i, x := range []float32{0, 0.5, 1.5, 2.5, -0.5, -1.5, 127.5, 128, -128.5, -129, 254.5, 255.5, 256, 32767.5, -32768.5, 65535.5, 1 << 31, -1 << 31, 1 << 32, 1 << 63,
		-1 << 63, 1 << 24, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32} {
		v[100+i] = x
	}
	for i := 200; i < 1500; i++ {
		v[i] = float32(i%600-300) / 2
	}
	kind := dtype.Of[T]()
	src := upload(b, v)
	for _, c := range []struct{ skip, n int }{{0, 3000}, {0, 2999}, {1, 2998}, {0, 3}, {4, 1}, {8, 4}} {
		part := v[c.skip:][:c.n]
		want := make([]T, c.n)
		filter.FromFloat32(want, part)
		dst := b.alloc((c.skip + c.n) * kind.Size())
		to := dst.From(int64(c.skip*kind.Size()), int64(c.n*kind.Size()))
		b.check(FromFloat32(b.stream, to, src.From(int64(4*c.skip), int64(4*c.n)), kind, int64(c.n)))
		equal(t, fmt.Sprintf("%d converted behind %d", c.n, c.skip), download[T](b, to), want)
	}
}
