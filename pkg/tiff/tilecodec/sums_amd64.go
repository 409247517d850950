//go:build !noasm

package tilecodec

import "golang.org/x/sys/cpu"

var useAVX2 = cpu.X86.HasAVX2

// The kernels make the running sums of n bytes, a multiple of 16; dst may be src. carry has the sums before the first
// element, by the place in their stride, repeated, and gets those at the end.

//go:noescape
func sums8(dst, src *byte, n int, masks *sumMasks, carry *[16]byte)

//go:noescape
func sums16(dst, src *byte, n int, masks *sumMasks, carry *[16]byte)

//go:noescape
func sums32(dst, src *byte, n int, masks *sumMasks, carry *[16]byte)

//go:noescape
func sums64(dst, src *byte, n int, masks *sumMasks, carry *[16]byte)

// sumsVector computes the sums at the front of a row and returns for how many bytes.
func sumsVector(dst, src []byte, size int, masks *sumMasks) int {
	n := len(src) &^ 15
	if !useAVX2 || n == 0 || !masks.fit {
		return 0
	}
	var carry [16]byte
	switch size {
	case 1:
		sums8(&dst[0], &src[0], n, masks, &carry)
	case 2:
		sums16(&dst[0], &src[0], n, masks, &carry)
	case 4:
		sums32(&dst[0], &src[0], n, masks, &carry)
	case 8:
		sums64(&dst[0], &src[0], n, masks, &carry)
	}
	return n
}
