//go:build !amd64 || noasm

package jpegxr

const haveAVX2 = false

func inverseAVX2(*int32, int, int) {}

func overlapAVX2(_, _, _, _ *int32, _, _ int) {}

func gray8AVX2(_ *byte, _, _, _, _ *int32, _ int, _ int32, _, _ int) {}

func gray16AVX2(_ *byte, _, _, _, _ *int32, _ int, _ int32, _, _ int) {}

func line4AVX2(_, _, _, _, _ *int32, _ int) {}

func bgr24AVX2(_ *byte, _, _, _ *int32, _ int, _ int32, _, _ int) {}

func bgr48AVX2(_ *byte, _, _, _ *int32, _ int, _ int32, _, _ int) {}
