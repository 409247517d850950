//go:build !noasm

package filter

import (
	"golang.org/x/sys/cpu"

	"strata/pkg/dtype"
)

// useAVX2 is a variable so that the tests can compare both ways.
var useAVX2 = cpu.X86.HasAVX2

//go:noescape
func addPlanesF32AVX2(acc *float64, src *float32, n, planes, stride int) (nonFinite int64)

//go:noescape
func addPlanesU16AVX2(acc *float64, src *uint16, n, planes, stride int)

//go:noescape
func addPlanesI16AVX2(acc *float64, src *int16, n, planes, stride int)

//go:noescape
func addPlanesU8AVX2(acc *float64, src *uint8, n, planes, stride int)

// planesAtOnce is the number of planes that one call walks through side by side: few enough that the
// processor prefetches each (with 200 of them, a volume in memory is summed at a third of the speed), enough
// that the accumulators' traffic does not count.
const planesAtOnce = 4

// addPlanesVector sums the leading multiple of 16 elements of each plane and returns their number.
func addPlanesVector[T dtype.Element](acc []float64, src []T, planes, stride int) (done int, nonFinite int64) {
	n := len(acc) &^ 15
	if !useAVX2 || n == 0 {
		return 0, 0
	}
	for p := 0; p < planes; p += planesAtOnce {
		k := min(planesAtOnce, planes-p)
		switch v := any(src[p*stride:]).(type) {
		case []float32:
			nonFinite += addPlanesF32AVX2(&acc[0], &v[0], n, k, 4*stride)
		case []uint16:
			addPlanesU16AVX2(&acc[0], &v[0], n, k, 2*stride)
		case []int16:
			addPlanesI16AVX2(&acc[0], &v[0], n, k, 2*stride)
		case []uint8:
			addPlanesU8AVX2(&acc[0], &v[0], n, k, stride)
		default:
			return 0, 0
		}
	}
	return n, nonFinite
}
