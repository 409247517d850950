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
