//go:build amd64 && !noasm

package shuffle

import "golang.org/x/sys/cpu"

var haveAVX2 = cpu.X86.HasAVX2

// The kernels in avx2_amd64.s move n elements; rows (of shuffled bytes or bits) begin stride bytes apart, elements lie
// side by side. The byte kernels need n to be a multiple of 32. The bit kernels see one byte of every element: nb is
// the bytes in each of the 8 bit rows, a multiple of 32, and 8·nb the bytes on the other side.

//go:noescape
func shuffle2(dst, src *byte, stride, n int)

//go:noescape
func shuffle3(dst, src *byte, stride, n int)

//go:noescape
func shuffle4(dst, src *byte, stride, n int)

//go:noescape
func shuffle8(dst, src *byte, stride, n int)

//go:noescape
func unshuffle2(dst, src *byte, stride, n int)

//go:noescape
func unshuffle3(dst, src *byte, stride, n int)

//go:noescape
func unshuffle4(dst, src *byte, stride, n int)

//go:noescape
func unshuffle8(dst, src *byte, stride, n int)

//go:noescape
func bytesToBitRows(dst, src *byte, stride, nb int)

//go:noescape
func bitRowsToBytes(dst, src *byte, stride, nb int)

// shuffleAVX2 does the first elements of n, in rows that begin stride bytes apart, and returns how many.
func shuffleAVX2(dst, src []byte, ts, n, stride int) int {
	m := n &^ 31
	if m == 0 {
		return 0
	}
	switch ts {
	case 2:
		shuffle2(&dst[0], &src[0], stride, m)
	case 3:
		shuffle3(&dst[0], &src[0], stride, m)
	case 4:
		shuffle4(&dst[0], &src[0], stride, m)
	case 8:
		shuffle8(&dst[0], &src[0], stride, m)
	default:
		return 0
	}
	return m
}

// unshuffleAVX2 does the first elements of n, in rows that begin stride bytes apart, and returns how many.
func unshuffleAVX2(dst, src []byte, ts, n, stride int) int {
	m := n &^ 31
	if m == 0 {
		return 0
	}
	switch ts {
	case 2:
		unshuffle2(&dst[0], &src[0], stride, m)
	case 3:
		unshuffle3(&dst[0], &src[0], stride, m)
	case 4:
		unshuffle4(&dst[0], &src[0], stride, m)
	case 8:
		unshuffle8(&dst[0], &src[0], stride, m)
	default:
		return 0
	}
	return m
}

// pieceBytes bounds the byte-shuffled piece between the two steps of the bit shuffle. It stays in the L1 cache together
// with its source and destination, and is cheap to clear on the stack. The bit rows of a block are often a power of two
// apart and then fall into the same cache set; a piece of one byte plane reads 8 of them to the end of several lines
// before it turns to the next plane.
const pieceBytes = 8192

// bitPiece returns the number of elements per piece, a multiple of 256, or 0 when not even 256 fit.
func bitPiece(ts int) int { return pieceBytes / ts &^ 255 }

// bitShuffleAVX2 does the first elements of n and returns how many. A byte shuffle separates the bytes, then each byte
// plane is turned into 8 bit rows.
func bitShuffleAVX2(dst, src []byte, ts, n int) int {
	m, nb := n&^255, n/8
	if m == 0 || bitPiece(ts) == 0 {
		return 0
	}
	if ts == 1 {
		bytesToBitRows(&dst[0], &src[0], nb, m/8)
		return m
	}
	var tmp [pieceBytes]byte
	for first := 0; first < m; first += bitPiece(ts) {
		k := min(m-first, bitPiece(ts))
		in := src[first*ts : (first+k)*ts]
		shuffleScalar(tmp[:], in, ts, k, k, shuffleAVX2(tmp[:], in, ts, k, k))
		for j := range ts {
			bytesToBitRows(&dst[j*n+first/8], &tmp[j*k], nb, k/8)
		}
	}
	return m
}

// bitUnshuffleAVX2 does the first elements of n and returns how many.
func bitUnshuffleAVX2(dst, src []byte, ts, n int) int {
	m, nb := n&^255, n/8
	if m == 0 || bitPiece(ts) == 0 {
		return 0
	}
	if ts == 1 {
		bitRowsToBytes(&dst[0], &src[0], nb, m/8)
		return m
	}
	var tmp [pieceBytes]byte
	for first := 0; first < m; first += bitPiece(ts) {
		k := min(m-first, bitPiece(ts))
		for j := range ts {
			bitRowsToBytes(&tmp[j*k], &src[j*n+first/8], nb, k/8)
		}
		out := dst[first*ts : (first+k)*ts]
		unshuffleScalar(out, tmp[:], ts, k, k, unshuffleAVX2(out, tmp[:], ts, k, k))
	}
	return m
}
