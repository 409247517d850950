//go:build !nocuda

package kernels

import (
	"fmt"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/filter"
)

func TestRoll(t *testing.T) {
	each(t, roll[uint8], roll[int8], roll[uint16], roll[int16], roll[uint32], roll[int32], roll[uint64], roll[int64], roll[float32], roll[float64])
}

// roll has rows that begin at multiples of four elements and others, and A-lines that begin at planes near
// each other, which are rolled together, and anywhere.
func roll[T dtype.Element](t *testing.T) {
	b := open(t)
	for _, planes := range []int{1, 2, 3, 19} {
		for _, nx := range []int{300, 4, 301, 3} {
			for _, smooth := range []bool{true, false} {
				const ny, pitch = 5, 310
				v := sample[T](planes * ny * nx)
				shift := sample[float32](ny * pitch)
				for i := range shift {
					switch {
					case smooth:
						shift[i] = float32(i%pitch)*0.37 - float32(i/pitch)*7.3
					case shift[i]-shift[i] != 0:
						shift[i] = -1e9
					case i%3 == 0:
						shift[i] /= 100
					}
				}
				src, by := upload(b, v), upload(b, shift)
				dst := b.alloc(len(dtype.Bytes(v)))
				bad := upload(b, []uint64{5})
				b.check(Roll(b.stream, dst, src, bad, dtype.Of[T](), planes, ny, nx, by, pitch))
				want := 5 + uint64(filter.Roll(&filter.RollWorkspace{}, v, planes, ny, nx, 0, ny, shift, pitch))
				equal(t, fmt.Sprintf("%d planes of %d columns, smoothly %v", planes, nx, smooth), download[T](b, dst), v)
				equal(t, "voxels that are no numbers", download[uint64](b, bad), []uint64{want})
			}
		}
	}
}
