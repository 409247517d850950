//go:build !noasm

package filter

import "strata/pkg/dtype"

//go:noescape
func fromU8AVX2(dst *float32, src *uint8, n int)

//go:noescape
func fromU16AVX2(dst *float32, src *uint16, n int)

//go:noescape
func fromI16AVX2(dst *float32, src *int16, n int)

//go:noescape
func toU8AVX2(dst *uint8, src *float32, n int)

//go:noescape
func toU16AVX2(dst *uint16, src *float32, n int)

//go:noescape
func toI16AVX2(dst *int16, src *float32, n int)

//go:noescape
func countNonFiniteAVX2(src *float32, n int) int64

//go:noescape
func belowAVX2(src *float32, n int, limit uint32) int

//go:noescape
func lnAVX2(v *float32, n int, polynomial *float32)

func toFloat32Vector[T dtype.Element](dst []float32, src []T) (done int) {
	n := len(src) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	switch v := any(src).(type) {
	case []uint8:
		fromU8AVX2(&dst[0], &v[0], n)
	case []uint16:
		fromU16AVX2(&dst[0], &v[0], n)
	case []int16:
		fromI16AVX2(&dst[0], &v[0], n)
	default:
		return 0
	}
	return n
}

func fromFloat32Vector[T dtype.Element](dst []T, src []float32) (done int) {
	n := min(len(dst), len(src)) &^ 31
	if !useAVX2 || n == 0 {
		return 0
	}
	switch v := any(dst).(type) {
	case []uint8:
		toU8AVX2(&v[0], &src[0], n)
	case []uint16:
		toU16AVX2(&v[0], &src[0], n)
	case []int16:
		toI16AVX2(&v[0], &src[0], n)
	default:
		return 0
	}
	return n
}

func countNonFiniteVector(v []float32) (done int, count int64) {
	// a counter of 32 bits per lane: no more than 2³¹ of them at a time
	for len(v)-done >= 8 && useAVX2 {
		n := min(len(v)-done, 1<<30) &^ 7
		count += countNonFiniteAVX2(&v[done], n)
		done += n
	}
	return done, count
}

// belowVector returns how many of the first values, in whole vectors, have magnitudes whose bits are less
// than limit, at most 2³¹.
func belowVector(v []float32, limit uint32) int {
	n := len(v) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	return belowAVX2(&v[0], n, limit)
}

func lnVector(v []float32) (done int) {
	n := len(v) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	lnAVX2(&v[0], n, &lnPolynomial[0])
	return n
}
