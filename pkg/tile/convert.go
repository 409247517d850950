package tile

import (
	"fmt"
	"math"

	"strata/pkg/dtype"
)

// convertible explains which source types become which pixels.
func convertible(from dtype.Type) error {
	if from.IsInteger() || from == dtype.Float32 || from == dtype.Float64 {
		return nil
	}
	return fmt.Errorf("pixels of type %s cannot be made into numbers (known: int8 … uint64, float32, float64)", from)
}

// tileBytes is the memory in which n pixels are loaded and converted.
func tileBytes[T dtype.Element](from dtype.Type, n int) int {
	return n * max(from.Size(), sizeOf[T]())
}

// loadArea is where in a buffer of tileBytes the pixels of a source are to be
// loaded so that convert can work in place: at its end when pixels grow.
func loadArea[T dtype.Element](from dtype.Type, buf []byte, n int) []byte {
	off := n * max(0, sizeOf[T]()-from.Size())
	return buf[off : off+n*from.Size()]
}

// convert makes the n pixels that lie in loadArea into n elements at the start
// of the buffer. Values that T cannot hold become its nearest one; fractions
// are rounded to the nearest integer, ties to even; NaN becomes 0 in an integer.
func convert[T dtype.Element](from dtype.Type, buf []byte, n int) []T {
	to := dtype.Slice[T](buf)[:n]
	if from == dtype.Of[T]() {
		return to
	}
	area := loadArea[T](from, buf, n)
	switch from {
	case dtype.Int8:
		fromSigned(to, dtype.Slice[int8](area))
	case dtype.Int16:
		fromSigned(to, dtype.Slice[int16](area))
	case dtype.Int32:
		fromSigned(to, dtype.Slice[int32](area))
	case dtype.Int64:
		fromSigned(to, dtype.Slice[int64](area))
	case dtype.Uint8:
		fromUnsigned(to, dtype.Slice[uint8](area))
	case dtype.Uint16:
		fromUnsigned(to, dtype.Slice[uint16](area))
	case dtype.Uint32:
		fromUnsigned(to, dtype.Slice[uint32](area))
	case dtype.Uint64:
		fromUnsigned(to, dtype.Slice[uint64](area))
	case dtype.Float32:
		fromFloat(to, dtype.Slice[float32](area))
	case dtype.Float64:
		fromFloat(to, dtype.Slice[float64](area))
	}
	return to
}

// The loops below read an element before the place where it lay is written:
// both slices share memory.

func fromSigned[T dtype.Element, S int8 | int16 | int32 | int64](to []T, from []S) {
	t := dtype.Of[T]()
	if t.IsFloat() {
		for i, v := range from {
			to[i] = T(v)
		}
		return
	}
	lo, hi := signedRange(t)
	for i, v := range from {
		to[i] = T(min(max(int64(v), lo), hi))
	}
}

func fromUnsigned[T dtype.Element, S uint8 | uint16 | uint32 | uint64](to []T, from []S) {
	t := dtype.Of[T]()
	if t.IsFloat() {
		for i, v := range from {
			to[i] = T(v)
		}
		return
	}
	hi := unsignedMax(t)
	for i, v := range from {
		to[i] = T(min(uint64(v), hi))
	}
}

func fromFloat[T dtype.Element, S float32 | float64](to []T, from []S) {
	t := dtype.Of[T]()
	switch {
	case t.IsFloat():
		for i, v := range from {
			to[i] = T(v)
		}
	case t >= dtype.Uint8 && t <= dtype.Uint64:
		top := unsignedMax(t)
		limit := float64(top) // 2^64 for uint64: the first value too large
		for i, v := range from {
			f := math.RoundToEven(float64(v))
			switch {
			case f >= limit:
				to[i] = T(top)
			case f > 0:
				to[i] = T(uint64(f))
			default: // NaN as well
				to[i] = 0
			}
		}
	default:
		lo, hi := signedRange(t)
		bottom, top := float64(lo), float64(hi) // 2^63 for int64
		for i, v := range from {
			f := math.RoundToEven(float64(v))
			switch {
			case f >= top:
				to[i] = T(hi)
			case f <= bottom:
				to[i] = T(lo)
			case f == f:
				to[i] = T(int64(f))
			default:
				to[i] = 0
			}
		}
	}
}

// signedRange is the part of int64 that an integer type can hold.
func signedRange(t dtype.Type) (lo, hi int64) {
	switch t {
	case dtype.Int8:
		return math.MinInt8, math.MaxInt8
	case dtype.Int16:
		return math.MinInt16, math.MaxInt16
	case dtype.Int32:
		return math.MinInt32, math.MaxInt32
	case dtype.Uint8:
		return 0, math.MaxUint8
	case dtype.Uint16:
		return 0, math.MaxUint16
	case dtype.Uint32:
		return 0, math.MaxUint32
	case dtype.Uint64:
		return 0, math.MaxInt64
	}
	return math.MinInt64, math.MaxInt64
}

// unsignedMax is the largest value of an integer type.
func unsignedMax(t dtype.Type) uint64 {
	if t == dtype.Uint64 {
		return math.MaxUint64
	}
	_, hi := signedRange(t)
	return uint64(hi)
}
