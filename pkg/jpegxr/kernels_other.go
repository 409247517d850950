//go:build !amd64 || noasm

package jpegxr

const haveAVX2 = false

func inverseAVX2(*int32, int, int) {}

func overlapAVX2(_, _, _, _ *int32, _, _ int) {}
