package kernels

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"strata/pkg/gpu"
)

// Gather queues the making of a volume dst of shape out (z, y, x) from a box of src, and of
// fill, the bytes of an element, which stands behind the box. The box begins with src; its
// rows lie row elements apart, its planes plane elements.
func Gather(s *gpu.Stream, dst, src gpu.Span, out, box [3]int, plane, row int64, fill []byte) error {
	size := int64(len(fill))
	switch size {
	case 1, 2, 4, 8, 16:
	default:
		return fmt.Errorf("elements of %d bytes: want 1, 2, 4, 8 or 16", size)
	}
	for d := range out {
		if box[d] < 0 || box[d] > out[d] {
			return fmt.Errorf("a box of %v in a volume of %v", box, out)
		}
	}
	if out[0] == 0 || out[1] == 0 || out[2] == 0 {
		return nil
	}
	// 16 bytes at a time where rows divide into these
	whole := func(n int64) bool { return n*size%16 == 0 }
	if size < 16 && whole(int64(out[2])) && whole(int64(box[2])) && whole(plane) && whole(row) &&
		src.Address()%16 == 0 && dst.Address()%16 == 0 {
		n := 16 / size
		fill = bytes.Repeat(fill, int(n))
		out[2], box[2], plane, row, size = out[2]/int(n), box[2]/int(n), plane/n, row/n, 16
	}
	var value [16]byte
	copy(value[:], fill)
	k, err := get(s.Device(), "gather", "gather_"+strconv.FormatInt(size, 10))
	if err != nil {
		return err
	}
	grid, block := threads(out[0], out[1], out[2])
	s.Launch(k, grid, block, src, dst, int32(out[0]), int32(out[1]), int32(out[2]), int32(box[0]), int32(box[1]), int32(box[2]),
		plane, row, binary.LittleEndian.Uint64(value[:]), binary.LittleEndian.Uint64(value[8:]))
	return nil
}
