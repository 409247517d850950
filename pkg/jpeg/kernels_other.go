//go:build !amd64 || noasm

package jpeg

const haveAVX2, haveBMI2 = false, false

func blockBMI2(*window, *coefficients, *huffman, *huffman, *int32) int { return badCode }

func idct2AVX2(*byte, int, *byte, int, *[2]coefficients, *[64]uint16, *[64]uint16) {}

func fdct2AVX2(*int16, *byte, int, *divisors) {}

func columnsAVX2(*int16, *byte, *byte, int) {}

func spreadAVX2(*byte, *int16, int, uint16, uint16) {}

func rgbAVX2(_, _, _, _ *byte, _ int, _ *masks) {}

func interleaveAVX2(_, _, _, _ *byte, _ int, _ *masks) {}
