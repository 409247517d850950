// Package shuffle reorders the bytes or the bits of fixed-size elements, the way c-blosc 1 does before it compresses a
// block.
//
// Neighbouring samples of an image differ mostly in their low bits. Written element after element, the bytes that
// hardly change lie between bytes that change all the time, and a byte-wise compressor finds no repetition. The byte
// shuffle puts byte 0 of every element first, then byte 1 of every element and so on:
//
//	elements   a0 a1 | b0 b1 | c0 c1      (typesize 2)
//	shuffled   a0 b0 c0 | a1 b1 c1
//
// The bit shuffle goes one step further: row r of the result, r = 0 … 8·typesize-1, holds bit r%8 of byte r/8 of every
// element, eight elements to a byte, the first of them in the lowest bit.
//
// What happens to data that does not divide evenly follows c-blosc 1 (format version 2), not Blosc2:
//   - bytes after the last whole element are copied unchanged;
//   - the bit shuffle needs a multiple of 8 whole elements; with any other number the buffer is copied
//     unchanged.
//
// On amd64 with AVX2, element sizes 2, 3, 4 and 8 (byte shuffle) and up to 32 (bit shuffle) run in assembly; everything
// else, and every program built with the tag noasm, takes the scalar loops, which give the same bytes. No function
// allocates.
package shuffle

// Shuffle writes src to dst with its bytes in byte-major order: dst[j·n+i] = src[i·typesize+j] for the n =
// len(src)/typesize whole elements. Bytes after the last whole element are copied. A typesize below 2 makes it a copy.
// dst must hold at least len(src) bytes, otherwise Shuffle panics, and must not overlap src.
func Shuffle(dst, src []byte, typesize int) { shuffle(dst, src, typesize, haveAVX2) }

// Unshuffle undoes [Shuffle]: dst[i·typesize+j] = src[j·n+i]. The same rules hold for the arguments.
func Unshuffle(dst, src []byte, typesize int) { unshuffle(dst, src, typesize, haveAVX2) }

// Split shuffles n elements like [Shuffle] into rows that begin stride bytes apart, dst[j·stride+i] =
// src[i·typesize+j], as for turning interleaved samples into planes. typesize is at least 1.
func Split(dst, src []byte, typesize, n, stride int) { split(dst, src, typesize, n, stride, haveAVX2) }

// Join undoes [Split]: dst[i·typesize+j] = src[j·stride+i].
func Join(dst, src []byte, typesize, n, stride int) { join(dst, src, typesize, n, stride, haveAVX2) }

// BitShuffle writes src to dst in bit-major order, see the package comment. When the number of whole elements is not a
// multiple of 8, or typesize is below 1, it copies. dst must hold at least len(src) bytes, otherwise BitShuffle panics,
// and must not overlap src.
func BitShuffle(dst, src []byte, typesize int) { bitShuffle(dst, src, typesize, haveAVX2) }

// BitUnshuffle undoes [BitShuffle]. The same rules hold for the arguments.
func BitUnshuffle(dst, src []byte, typesize int) { bitUnshuffle(dst, src, typesize, haveAVX2) }

func shuffle(dst, src []byte, typesize int, fast bool) { bytewise(dst, src, typesize, fast, split) }

func unshuffle(dst, src []byte, typesize int, fast bool) { bytewise(dst, src, typesize, fast, join) }

// bytewise moves the bytes of the whole elements and copies those after them.
func bytewise(dst, src []byte, typesize int, fast bool, move func(dst, src []byte, typesize, n, stride int, fast bool)) {
	dst = dst[:len(src)]
	if typesize < 2 {
		copy(dst, src)
		return
	}
	n := len(src) / typesize
	move(dst, src, typesize, n, n, fast)
	copy(dst[n*typesize:], src[n*typesize:])
}

func split(dst, src []byte, typesize, n, stride int, fast bool) {
	if n == 0 {
		return
	}
	dst, src = dst[:(typesize-1)*stride+n], src[:n*typesize]
	done := 0
	if fast {
		done = shuffleAVX2(dst, src, typesize, n, stride)
	}
	shuffleScalar(dst, src, typesize, n, stride, done)
}

func join(dst, src []byte, typesize, n, stride int, fast bool) {
	if n == 0 {
		return
	}
	dst, src = dst[:n*typesize], src[:(typesize-1)*stride+n]
	done := 0
	if fast {
		done = unshuffleAVX2(dst, src, typesize, n, stride)
	}
	unshuffleScalar(dst, src, typesize, n, stride, done)
}

func bitShuffle(dst, src []byte, typesize int, fast bool) {
	bitwise(dst, src, typesize, fast, bitShuffleAVX2, bitShuffleScalar)
}

func bitUnshuffle(dst, src []byte, typesize int, fast bool) {
	bitwise(dst, src, typesize, fast, bitUnshuffleAVX2, bitUnshuffleScalar)
}

// bitwise moves the bits of the whole elements, the first of them with the assembly, and copies the bytes after them.
func bitwise(dst, src []byte, typesize int, fast bool, assembly func(dst, src []byte, ts, n int) int, scalar func(dst, src []byte, ts, n, first int)) {
	dst = dst[:len(src)]
	if typesize < 1 || len(src)/typesize%8 != 0 {
		copy(dst, src)
		return
	}
	n := len(src) / typesize
	done := 0
	if fast {
		done = assembly(dst, src, typesize, n)
	}
	scalar(dst, src, typesize, n, done)
	copy(dst[n*typesize:], src[n*typesize:])
}
