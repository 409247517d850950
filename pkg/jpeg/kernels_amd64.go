//go:build !noasm

package jpeg

import "golang.org/x/sys/cpu"

var (
	haveAVX2 = cpu.X86.HasAVX2
	haveBMI2 = cpu.X86.HasBMI1 && cpu.X86.HasBMI2
)

// blockBMI2 is blockScalar with BMI1 and BMI2.
//
//go:noescape
func blockBMI2(w *window, c *coefficients, dc, ac *huffman, pred *int32) int

// idct2AVX2 is idctScalar for two blocks.
//
//go:noescape
func idct2AVX2(a *byte, strideA int, b *byte, strideB int, c *[2]coefficients, quantA, quantB *[64]uint16)

// fdct2AVX2 is fdct and quantize for two blocks side by side.
//
//go:noescape
func fdct2AVX2(c *int16, samples *byte, stride int, d *divisors)

// columnsAVX2 adds three times one row to another; n is a multiple of 16.
//
//go:noescape
func columnsAVX2(sums *int16, near, far *byte, n int)

// spreadAVX2 makes 2n samples of n sums and of those beside them; n is a multiple of 16.
//
//go:noescape
func spreadAVX2(dst *byte, sums *int16, n int, first, second uint16)

// rgbAVX2 converts n pixels, a multiple of 32; masks are thirds.
//
//go:noescape
func rgbAVX2(dst, y, cb, cr *byte, n int, masks *masks)

// interleaveAVX2 puts together n pixels, a multiple of 32; masks are thirds.
//
//go:noescape
func interleaveAVX2(dst, a, b, c *byte, n int, masks *masks)
