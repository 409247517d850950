package dtype

import (
	"encoding/binary"
	"math/bits"
)

// SwapBytes writes src to dst with the bytes of each unit of 2, 4 or 8 bytes reversed; units of 1 byte are
// copied. dst is at least as long as src and either is src or does not overlap it. Bytes behind the last
// whole unit are left out. [Type.SwapSize] returns the unit of a type.
func SwapBytes(dst, src []byte, unit int) {
	dst = dst[:len(src)]
	switch unit {
	case 1:
		copy(dst, src)
	case 2:
		const even = 0x00ff00ff00ff00ff
		for ; len(src) >= 16; dst, src = dst[16:], src[16:] {
			v, w := binary.LittleEndian.Uint64(src), binary.LittleEndian.Uint64(src[8:])
			binary.LittleEndian.PutUint64(dst, v>>8&even|v&even<<8)
			binary.LittleEndian.PutUint64(dst[8:], w>>8&even|w&even<<8)
		}
		for ; len(src) >= 2; dst, src = dst[2:], src[2:] {
			dst[0], dst[1] = src[1], src[0]
		}
	case 4:
		for ; len(src) >= 8; dst, src = dst[8:], src[8:] {
			binary.LittleEndian.PutUint64(dst, bits.RotateLeft64(binary.BigEndian.Uint64(src), 32))
		}
		if len(src) >= 4 {
			binary.LittleEndian.PutUint32(dst, binary.BigEndian.Uint32(src))
		}
	case 8:
		for ; len(src) >= 8; dst, src = dst[8:], src[8:] {
			binary.LittleEndian.PutUint64(dst, binary.BigEndian.Uint64(src))
		}
	}
}
