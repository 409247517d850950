//go:build !noasm

package jpegxr

import "golang.org/x/sys/cpu"

var haveAVX2 = cpu.X86.HasAVX2

// inverseAVX2 is inverseScalar; n is a multiple of 8.
//
//go:noescape
func inverseAVX2(v *int32, stride, n int)

// overlapAVX2 is overlapScalar; n is a multiple of 8.
//
//go:noescape
func overlapAVX2(topLeft, topRight, bottomLeft, bottomRight *int32, stride, n int)

// gray8AVX2 makes bytes of the four values of n blocks, a multiple of 8: an offset is added, and they are shifted and
// clamped.
//
//go:noescape
func gray8AVX2(dst *byte, a, b, c, d *int32, n int, offset int32, down, up int)

// gray16AVX2 makes samples of 16 bits.
//
//go:noescape
func gray16AVX2(dst *byte, a, b, c, d *int32, n int, offset int32, down, up int)

// line4AVX2 puts the four values of n blocks, a multiple of 8, in one line.
//
//go:noescape
func line4AVX2(dst, a, b, c, d *int32, n int)

// bgr24AVX2 makes n pixels, a multiple of 8, and writes 4 bytes more.
//
//go:noescape
func bgr24AVX2(dst *byte, y, u, v *int32, n int, offset int32, down, up int)

// bgr48AVX2 makes n pixels of 16 bits, a multiple of 8, and writes 4 bytes more.
//
//go:noescape
func bgr48AVX2(dst *byte, y, u, v *int32, n int, offset int32, down, up int)
