package filter

import "strata/pkg/dtype"

// Conversions by element type.
var (
	fromStored = map[dtype.Type]func(dst []float32, src []byte){
		dtype.Uint8: from[uint8], dtype.Int8: from[int8], dtype.Uint16: from[uint16], dtype.Int16: from[int16], dtype.Uint32: from[uint32],
		dtype.Int32: from[int32], dtype.Uint64: from[uint64], dtype.Int64: from[int64], dtype.Float32: from[float32], dtype.Float64: from[float64],
	}
	toStored = map[dtype.Type]func(dst []byte, src []float32){
		dtype.Uint8: to[uint8], dtype.Int8: to[int8], dtype.Uint16: to[uint16], dtype.Int16: to[int16], dtype.Uint32: to[uint32],
		dtype.Int32: to[int32], dtype.Uint64: to[uint64], dtype.Int64: to[int64], dtype.Float32: to[float32], dtype.Float64: to[float64],
	}
)

func from[T dtype.Element](dst []float32, src []byte) { ToFloat32(dst, dtype.Slice[T](src)) }
func to[T dtype.Element](dst []byte, src []float32)   { FromFloat32(dtype.Slice[T](dst), src) }

// FromStored is [ToFloat32] of the bytes of elements.
func FromStored(t dtype.Type, dst []float32, src []byte) { fromStored[t](dst, src) }

// ToStored is [FromFloat32] into the bytes of elements.
func ToStored(t dtype.Type, dst []byte, src []float32) { toStored[t](dst, src) }

// NonFiniteStored is [CountNonFinite] of the bytes of elements. Integers have none.
func NonFiniteStored(t dtype.Type, v []byte) int64 {
	switch t {
	case dtype.Float32:
		return CountNonFinite(dtype.Slice[float32](v))
	case dtype.Float64:
		return CountNonFinite(dtype.Slice[float64](v))
	}
	return 0
}

// ZeroNonFiniteStored replaces NaN and infinite elements by 0, in the bytes of elements.
func ZeroNonFiniteStored(t dtype.Type, v []byte) {
	switch t {
	case dtype.Float32:
		zeroNonFinite(dtype.Slice[float32](v))
	case dtype.Float64:
		zeroNonFinite(dtype.Slice[float64](v))
	}
}

func zeroNonFinite[F float32 | float64](v []F) {
	if CountNonFinite(v) == 0 {
		return
	}
	for i, f := range v {
		if f-f != 0 {
			v[i] = 0
		}
	}
}
