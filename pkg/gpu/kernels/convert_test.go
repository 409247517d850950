//go:build !nocuda

package kernels

import (
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
	want := make([]T, len(v))
	filter.FromFloat32(want, v)
	dst := b.alloc(len(dtype.Bytes(want)))
	b.check(FromFloat32(b.stream, dst, upload(b, v), dtype.Of[T](), int64(len(v))))
	equal(t, "converted", download[T](b, dst), want)
}
