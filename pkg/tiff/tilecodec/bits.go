package tilecodec

import (
	"encoding/binary"
	"math"
	"math/bits"

	"strata/pkg/dtype"
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

// unpackRow writes numbers of n bits, of which src has a row, the first in its highest bits, to dst: a byte each, if n
// is at most 8, else two in native byte order.
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

// widenRow writes numbers of three bytes, whose order is the file's as for libtiff (TIFFSwabArrayOfTriples), to dst as
// ones of four.
func widenRow(dst, src []byte, t dtype.Type, bigEndian bool) {
	for ; len(src) >= 3 && len(dst) >= 4; dst, src = dst[4:], src[3:] {
		v := uint32(src[0]) | uint32(src[1])<<8 | uint32(src[2])<<16
		if bigEndian {
			v = uint32(src[2]) | uint32(src[1])<<8 | uint32(src[0])<<16
		}
		switch t {
		case dtype.Int32:
			v = uint32(int32(v<<8) >> 8)
		case dtype.Float32:
			v = math.Float32bits(float24(v))
		}
		binary.NativeEndian.PutUint32(dst, v)
	}
}

// float24 returns a number of a sign, 7 bits of exponent (bias 63) and 16 of fraction (Adobe Photoshop TIFF Technical
// Notes 3).
func float24(v uint32) float32 {
	sign, exponent, fraction := v>>23, int(v>>16&0x7f), v&0xffff
	var x float64
	switch exponent {
	case 0:
		x = math.Ldexp(float64(fraction), -62-16)
	case 0x7f:
		return math.Float32frombits(sign<<31 | 0xff<<23 | fraction<<7)
	default:
		x = math.Ldexp(float64(fraction|1<<16), exponent-63-16)
	}
	if sign == 1 {
		x = -x
	}
	return float32(x)
}
