//go:build !amd64 || noasm

package enzstd

const haveBMI2 = false

func encodeStream(dst, src []byte, codes *[256]huffCode, _ bool) int {
	return encodeStreamScalar(dst, src, codes)
}
