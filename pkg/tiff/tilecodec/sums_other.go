//go:build !amd64 || noasm

package tilecodec

var useAVX2 = false

func sumsVector(dst, src []byte, size int, masks *sumMasks) int { return 0 }
