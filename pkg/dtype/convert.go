package dtype

import (
	"fmt"
	"math"
)

// Each calls f with every element of b as a float64, which is exact except for 64-bit integers beyond 2⁵³.
// Bool is 0 or 1. For complex numbers it does not call f.
func Each(b []byte, t Type, f func(float64)) {
	switch t {
	case Bool, Uint8:
		each(Slice[uint8](b), f)
	case Int8:
		each(Slice[int8](b), f)
	case Int16:
		each(Slice[int16](b), f)
	case Int32:
		each(Slice[int32](b), f)
	case Int64:
		each(Slice[int64](b), f)
	case Uint16:
		each(Slice[uint16](b), f)
	case Uint32:
		each(Slice[uint32](b), f)
	case Uint64:
		each(Slice[uint64](b), f)
	case Float16:
		for _, h := range Slice[uint16](b) {
			f(float64(Float16Value(h)))
		}
	case Float32:
		each(Slice[float32](b), f)
	case Float64:
		each(Slice[float64](b), f)
	}
}

func each[T Element](s []T, f func(float64)) {
	for _, v := range s {
		f(float64(v))
	}
}

// Convert converts the elements of src, of type from, to type to in dst. Out-of-range values are clamped,
// fractions are rounded to the nearest integer, ties to even, and NaN becomes 0 in an integer. Types are
// integers, float16, float32 and float64. dst must have room for all elements of src.
func Convert(dst []byte, to Type, src []byte, from Type) error {
	n := 0
	if from.Size() > 0 {
		n = len(src) / from.Size()
	}
	numeric := func(t Type) bool { return t.IsInteger() || t.IsFloat() }
	if !numeric(from) || !numeric(to) {
		return fmt.Errorf("elements of type %v cannot be made %v", from, to)
	}
	if len(dst) < n*to.Size() {
		return fmt.Errorf("%d bytes for %d elements of type %v", len(dst), n, to)
	}
	dst = dst[:n*to.Size()]
	switch to {
	case Int8:
		convertTo(Slice[int8](dst), src, from)
	case Int16:
		convertTo(Slice[int16](dst), src, from)
	case Int32:
		convertTo(Slice[int32](dst), src, from)
	case Int64:
		convertTo(Slice[int64](dst), src, from)
	case Uint8:
		convertTo(Slice[uint8](dst), src, from)
	case Uint16:
		convertTo(Slice[uint16](dst), src, from)
	case Uint32:
		convertTo(Slice[uint32](dst), src, from)
	case Uint64:
		convertTo(Slice[uint64](dst), src, from)
	case Float32:
		convertTo(Slice[float32](dst), src, from)
	case Float64:
		convertTo(Slice[float64](dst), src, from)
	case Float16:
		v := make([]float32, n)
		convertTo(v, src, from)
		out := Slice[uint16](dst)
		for i, f := range v {
			out[i] = Float16Bits(f)
		}
	}
	return nil
}

func convertTo[T Element](to []T, src []byte, from Type) {
	if from == Float16 {
		v := make([]float32, len(to))
		for i, h := range Slice[uint16](src) {
			v[i] = Float16Value(h)
		}
		ConvertSlice(to, Bytes(v), Float32)
		return
	}
	ConvertSlice(to, src, from)
}

// ConvertSlice converts like [Convert] into a slice, for integers, float32 and float64. src and to may share
// memory if no element of to lies behind the element of src that it is converted from.
func ConvertSlice[T Element](to []T, src []byte, from Type) {
	switch from {
	case Int8:
		fromSigned(to, Slice[int8](src))
	case Int16:
		fromSigned(to, Slice[int16](src))
	case Int32:
		fromSigned(to, Slice[int32](src))
	case Int64:
		fromSigned(to, Slice[int64](src))
	case Uint8:
		fromUnsigned(to, Slice[uint8](src))
	case Uint16:
		fromUnsigned(to, Slice[uint16](src))
	case Uint32:
		fromUnsigned(to, Slice[uint32](src))
	case Uint64:
		fromUnsigned(to, Slice[uint64](src))
	case Float32:
		fromFloat(to, Slice[float32](src))
	case Float64:
		fromFloat(to, Slice[float64](src))
	}
}

// The loops below read an element before the place where it lay is written:
// both slices share memory.

func fromSigned[T Element, S int8 | int16 | int32 | int64](to []T, from []S) {
	t := Of[T]()
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

func fromUnsigned[T Element, S uint8 | uint16 | uint32 | uint64](to []T, from []S) {
	t := Of[T]()
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

func fromFloat[T Element, S float32 | float64](to []T, from []S) {
	t := Of[T]()
	switch {
	case t.IsFloat():
		for i, v := range from {
			to[i] = T(v)
		}
	case t >= Uint8 && t <= Uint64:
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

// signedRange returns the part of int64 that an integer type can hold.
func signedRange(t Type) (lo, hi int64) {
	switch t {
	case Int8:
		return math.MinInt8, math.MaxInt8
	case Int16:
		return math.MinInt16, math.MaxInt16
	case Int32:
		return math.MinInt32, math.MaxInt32
	case Uint8:
		return 0, math.MaxUint8
	case Uint16:
		return 0, math.MaxUint16
	case Uint32:
		return 0, math.MaxUint32
	case Uint64:
		return 0, math.MaxInt64
	}
	return math.MinInt64, math.MaxInt64
}

// unsignedMax returns the largest value of an integer type.
func unsignedMax(t Type) uint64 {
	if t == Uint64 {
		return math.MaxUint64
	}
	_, hi := signedRange(t)
	return uint64(hi)
}
