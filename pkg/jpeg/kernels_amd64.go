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

// columnsAVX2 adds three times one row to another; n is a multiple of 16.
//
//go:noescape
func columnsAVX2(sums *int16, near, far *byte, n int)

// spreadAVX2 makes 2n samples of n sums and of those beside them; n is a multiple of 16.
//
//go:noescape
func spreadAVX2(dst *byte, sums *int16, n int, first, second uint16)

// rgbAVX2 converts n pixels, a multiple of 32.
//
//go:noescape
func rgbAVX2(dst, y, cb, cr *byte, n int)

// interleaveAVX2 puts together n pixels, a multiple of 32.
//
//go:noescape
func interleaveAVX2(dst, a, b, c *byte, n int)

// thirds has masks for VPSHUFB: bytes 16p … 16p+15 of 16 pixels of 3 components take what they have of component c from it by
// mask 3p+c, the same in both lanes.
var thirds = func() (m [9][32]byte) {
	for i := range m {
		for j := range m[i] {
			m[i][j] = 0x80 // a zero
			if at := 16*(i/3) + j%16; at%3 == i%3 {
				m[i][j] = byte(at / 3)
			}
		}
	}
	return m
}()
