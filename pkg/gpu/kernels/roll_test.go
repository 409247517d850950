//go:build !nocuda

package kernels

import (
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
)

func TestRoll(t *testing.T) {
	each(t, roll[uint8], roll[int8], roll[uint16], roll[int16], roll[uint32], roll[int32], roll[uint64], roll[int64], roll[float32], roll[float64])
}

func roll[T dtype.Element](t *testing.T) {
	b := open(t)
	for _, planes := range []int{1, 2, 19} {
		const ny, nx, pitch = 5, 300, 310
		v := sample[T](planes * ny * nx)
		shift := sample[float32](ny * pitch)
		for i := range shift {
			if shift[i]-shift[i] != 0 {
				shift[i] = -1e9
			} else if i%3 == 0 {
				shift[i] /= 100
			}
		}
		src, by := upload(b, v), upload(b, shift)
		dst := b.alloc(len(dtype.Bytes(v)))
		bad := upload(b, []uint64{5})
		b.check(Roll(b.stream, dst, src, bad, dtype.Of[T](), planes, ny, nx, by, pitch))
		want := 5 + uint64(filter.Roll(&filter.RollWorkspace{}, v, planes, ny, nx, shift, pitch))
		equal(t, "rolled", download[T](b, dst), v)
		equal(t, "voxels that are no numbers", download[uint64](b, bad), []uint64{want})
	}
}
