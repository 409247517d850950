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

// roll has planes that begin at multiples of four elements and others, depths of which shared memory holds cache lines,
// parts of them and nothing, blocks with fewer columns, memory that begins elsewhere, and A-lines that begin at planes
// near each other and anywhere.
func roll[T dtype.Element](t *testing.T) {
	b := open(t)
	for _, c := range []struct{ planes, nx, skip int }{
		{1, 300, 0}, {1, 3, 0}, {2, 4, 0}, {3, 301, 0}, {19, 300, 0}, {19, 301, 0}, {19, 3, 0}, {19, 300, 1}, {330, 30, 0}, {330, 7, 2},
		{700, 12, 0}, {1300, 4, 0}, {2600, 3, 0}, {5130, 4, 0},
	} {
		for _, smooth := range []bool{true, false} {
			const ny, pitch = 5, 310
			planes, nx := c.planes, c.nx
			v := sample[T](planes*ny*nx + c.skip)
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
			v = v[c.skip:]
			size := int64(len(dtype.Bytes(v)))
			dst := b.alloc(int(size))
			bad := upload(b, []uint64{5})
			b.check(Roll(b.stream, dst, src.From(src.Bytes()-size, size), bad, dtype.Of[T](), planes, ny, nx, by, pitch))
			want := 5 + uint64(filter.Roll(&filter.RollWorkspace{}, v, planes, ny, nx, 0, ny, shift, pitch))
			equal(t, fmt.Sprintf("%v, smoothly %v", c, smooth), download[T](b, dst), v)
			equal(t, "voxels that are no numbers", download[uint64](b, bad), []uint64{want})
		}
	}
}
