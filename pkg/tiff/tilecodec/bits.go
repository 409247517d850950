package tilecodec

import (
	"encoding/binary"
	"math/bits"
)

// reverseBits writes src to dst, of the same length, with the bits of each byte reversed.
func reverseBits(dst, src []byte) {
	for ; len(src) >= 8; dst, src = dst[8:], src[8:] {
		binary.BigEndian.PutUint64(dst, bits.Reverse64(binary.LittleEndian.Uint64(src)))
	}
	for i, b := range src {
		dst[i] = bits.Reverse8(b)
	}
}

// unpackRow writes numbers of n bits, of which src has a row, the first in its highest bits, to dst: a byte each, if n is at most 8, else
// two in native byte order.
func unpackRow(dst, src []byte, n int) {
	at, shift := 0, 64-n
	size := (n + 7) / 8
	for i := 0; i < len(dst); i += size {
		v := load57(src, at>>3) << (at & 7) >> shift
		if size == 1 {
			dst[i] = byte(v)
		} else {
			binary.LittleEndian.PutUint16(dst[i:], uint16(v))
		}
		at += n
	}
}

// load57 returns the 8 bytes of src from index i, the first one highest; bytes behind the end are 0.
func load57(src []byte, i int) uint64 {
	if i+8 <= len(src) {
		return binary.BigEndian.Uint64(src[i:])
	}
	var b [8]byte
	copy(b[:], src[i:])
	return binary.BigEndian.Uint64(b[:])
}
