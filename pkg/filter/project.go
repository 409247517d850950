// Package filter holds the image operators of the stages as functions on slices: no files, no tiles, no
// goroutines.
//
// Operators that promise the same bits everywhere fix their order of operations and round every product
// before they add it. Their vector versions do the same operations in the same order as the scalar ones.
package filter

import (
	"fmt"
	"math"

	"strata/pkg/dtype"
)

// AddPlanes adds planes to a running sum: acc[i] += src[p·n+i] for p = 0, 1, … in this order, in float64,
// with n = len(acc). len(src) must be a multiple of n. It returns the number of NaN and infinite elements,
// which it adds like others. The sum is exact for integers up to 32 bits, and has the same bits on every
// machine and for every way to cut a volume along Z.
func AddPlanes[T dtype.Element](acc []float64, src []T) (nonFinite int64) {
	n := len(acc)
	if n == 0 {
		return 0
	}
	if len(src)%n != 0 {
		panic(fmt.Sprintf("filter: %d elements are no whole number of planes of %d", len(src), n))
	}
	return AddStrided(acc, src, len(src)/n, n)
}

// AddStrided is AddPlanes for a part of each plane: acc[i] += src[p·stride+i] for p = 0, 1, … planes−1.
func AddStrided[T dtype.Element](acc []float64, src []T, planes, stride int) (nonFinite int64) {
	if planes == 0 {
		return 0
	}
	done, nonFinite := addPlanesVector(acc, src, planes, stride)
	rest := acc[done:]
	if len(rest) == 0 {
		return nonFinite
	}
	for p := range planes {
		for i, v := range src[p*stride+done:][:len(rest)] {
			f := float64(v)
			if f-f != 0 {
				nonFinite++
			}
			rest[i] += f
		}
	}
	return nonFinite
}

// AddClipped adds planes, which begin stride values apart, to a running sum in increasing order: acc[i] +=
// min(src[p·stride+i], clip) in float64. It returns the number of NaN and infinite values, which make the sums useless.
func AddClipped(acc []float64, src []float32, planes, stride int, clip float32) (nonFinite int64) {
	done, nonFinite := addClippedVector(acc, src, planes, stride, clip)
	rest := acc[done:]
	if len(rest) == 0 {
		return nonFinite
	}
	for p := range planes {
		for i, v := range src[p*stride+done:][:len(rest)] {
			if v-v != 0 {
				nonFinite++
			}
			if v > clip {
				v = clip
			}
			rest[i] += float64(v)
		}
	}
	return nonFinite
}

// Sum returns the sum of values in float64: those at places 0, 4, 8 … first, then those at 1, 5, 9 …, which the
// processor adds up at the same time, and so on.
func Sum(v []float32) float64 {
	var sum [4]float64
	done := addFourVector(&sum, v)
	for i, f := range v[done:] {
		sum[i&3] += float64(f)
	}
	return sum[0] + sum[1] + sum[2] + sum[3]
}

// Mean divides sums over n planes: dst[i] = acc[i] / n, rounded once.
func Mean(dst []float32, acc []float64, n int) {
	d := float64(n)
	for i, v := range acc[:len(dst)] {
		dst[i] = float32(v / d)
	}
}

// ToUint16 maps lo…hi to 0…65535, rounding half to even. It clips values outside and turns NaN into 0. hi ≤
// lo (a constant image) gives 0 everywhere.
func ToUint16(dst []uint16, src []float32, lo, hi float64) {
	span := hi - lo
	for i, f := range src {
		v := float64(f)
		switch {
		case v != v || !(span > 0) || v <= lo:
			dst[i] = 0
		case v >= hi:
			dst[i] = math.MaxUint16
		default:
			dst[i] = uint16(math.RoundToEven((v - lo) / span * math.MaxUint16))
		}
	}
}
