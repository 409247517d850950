//go:build !noasm

package enzstd

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

var haveBMI2 = cpu.X86.HasBMI2

//go:noescape
func encodeStreamBMI2(dst, src *byte, n int, codes *[256]huffCode) int

// encodeStream is encodeStreamScalar, faster.
func encodeStream(dst, src []byte, codes *[256]huffCode, fast bool) int {
	if !fast || len(dst) < len(src)*huffMaxBits/8+16 {
		return encodeStreamScalar(dst, src, codes)
	}
	return encodeStreamBMI2(unsafe.SliceData(dst), unsafe.SliceData(src), len(src), codes)
}
