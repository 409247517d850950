package codec

import (
	"encoding/binary"
	"fmt"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// layout describes how a filter's elements lie in memory.
type layout struct {
	dtype.Type
	big bool // most significant byte first
}

// str returns numpy's type string.
func (l layout) str() string {
	s := l.Typestr()
	if l.big && len(s) > 0 && l.Size() > 1 {
		s = ">" + s[1:]
	}
	return s
}

func (l layout) order() binary.ByteOrder {
	if l.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// real reports whether elements are single numbers that can be computed with.
func (l layout) real() bool { return l.IsInteger() || l.IsFloat() }

// count returns the number of elements in n bytes, which must be whole ones.
func (l layout) count(n int) (int, error) {
	if n%l.Size() != 0 {
		return 0, fmt.Errorf("%d bytes are not a multiple of the size of %s", n, l.Type)
	}
	return n / l.Size(), nil
}

// integer loads the integer (or bool) at the front of b; uint64 keeps its bits.
func (l layout) integer(b []byte) int64 {
	switch o := l.order(); l.Type {
	case dtype.Int8:
		return int64(int8(b[0]))
	case dtype.Int16:
		return int64(int16(o.Uint16(b)))
	case dtype.Uint16:
		return int64(o.Uint16(b))
	case dtype.Int32:
		return int64(int32(o.Uint32(b)))
	case dtype.Uint32:
		return int64(o.Uint32(b))
	case dtype.Int64, dtype.Uint64:
		return int64(o.Uint64(b))
	}
	return int64(b[0]) // uint8, bool
}

// putInteger stores the low bits of v, as a cast between integers does.
func (l layout) putInteger(b []byte, v int64) {
	switch o := l.order(); l.Size() {
	case 1:
		b[0] = byte(v)
	case 2:
		o.PutUint16(b, uint16(v))
	case 4:
		o.PutUint32(b, uint32(v))
	case 8:
		o.PutUint64(b, uint64(v))
	}
}

// float loads the floating-point number at the front of b, exactly.
func (l layout) float(b []byte) float64 {
	switch o := l.order(); l.Type {
	case dtype.Float16:
		return float64(dtype.Float16Value(o.Uint16(b)))
	case dtype.Float32:
		return float64(math.Float32frombits(o.Uint32(b)))
	default:
		return math.Float64frombits(o.Uint64(b))
	}
}

// putFloat stores v rounded to the nearest floating-point number of the type.
func (l layout) putFloat(b []byte, v float64) {
	switch o := l.order(); l.Type {
	case dtype.Float16:
		o.PutUint16(b, float16Bits(v))
	case dtype.Float32:
		o.PutUint32(b, math.Float32bits(float32(v)))
	default:
		o.PutUint64(b, math.Float64bits(v))
	}
}

// round rounds v to the precision of the floating-point type.
func (l layout) round(v float64) float64 {
	switch l.Type {
	case dtype.Float16:
		return float64(dtype.Float16Value(float16Bits(v)))
	case dtype.Float32:
		return float64(float32(v))
	}
	return v
}

// float16Bits rounds directly from float64: going through float32 would round twice, unless the last bit
// remembers what was cut off.
func float16Bits(v float64) uint16 {
	f := float32(v)
	if d := float64(f) - v; d != 0 && !math.IsInf(float64(f), 0) {
		bits := math.Float32bits(f)
		if d > 0 == (v > 0) {
			bits-- // towards zero
		}
		f = math.Float32frombits(bits | 1)
	}
	return dtype.Float16Bits(f)
}

// number loads any real element or bool as a float64.
func (l layout) number(b []byte) float64 {
	switch {
	case l.IsFloat():
		return l.float(b)
	case l.Type == dtype.Uint64:
		return float64(uint64(l.integer(b)))
	}
	return float64(l.integer(b))
}

// putNumber stores v: integers get it cut off, towards zero, as a cast in C does.
func (l layout) putNumber(b []byte, v float64) {
	switch {
	case l.IsFloat():
		l.putFloat(b, v)
	case l.Type == dtype.Uint64 && v >= 1<<63:
		l.putInteger(b, int64(uint64(v)))
	case l.Type == dtype.Bool:
		b[0] = 0
		if v != 0 {
			b[0] = 1
		}
	default:
		l.putInteger(b, int64(v))
	}
}

// convert casts one element of layout from at src to layout to at dst, as
// numpy's astype does.
func convert(dst []byte, to layout, src []byte, from layout) {
	switch {
	case from.IsFloat():
		to.putNumber(dst, from.float(src))
	case to.Type == dtype.Bool:
		dst[0] = 0
		if from.integer(src) != 0 {
			dst[0] = 1
		}
	case to.Type == dtype.Float32 || to.Type == dtype.Float16: // one rounding to float32, not two
		f := float32(from.integer(src))
		if from.Type == dtype.Uint64 {
			f = float32(uint64(from.integer(src)))
		}
		to.putFloat(dst, float64(f))
	case to.IsFloat():
		to.putFloat(dst, from.number(src))
	default:
		to.putInteger(dst, from.integer(src))
	}
}

// sized is the part of a filter that its two element types decide.
type sized struct{ decoded, encoded layout }

// Types returns the element types of both sides.
func (f sized) Types() (decoded, encoded dtype.Type) { return f.decoded.Type, f.encoded.Type }

// swapped reports whether elements of either side have their most significant byte first.
func (f sized) swapped() bool { return f.decoded.big || f.encoded.big }

// EncodedSize changes with the size of an element.
func (f sized) EncodedSize(n int) (lo, hi int) {
	n = mem.Product(n/f.decoded.Size(), f.encoded.Size())
	return n, n
}

// decodeInto checks the lengths for decoding src to dst.
func (f sized) decodeInto(dst, src []byte) (n int, err error) {
	if n, err = f.encoded.count(len(src)); err == nil && n > len(dst)/f.decoded.Size() {
		err = errTooLong(len(dst))
	}
	return n, err
}

// encodeInto returns room for the encoded form of src.
func (f sized) encodeInto(dst, src []byte) (out []byte, n int, err error) {
	if n, err = f.decoded.count(len(src)); err != nil {
		return nil, 0, err
	}
	return room(&dst, n*f.encoded.Size()), n, nil
}

// convert decodes src to dst by conversion of each element.
func (f sized) convert(s *Scratch, dst, src []byte) (int, error) {
	n, err := f.decodeInto(dst, src)
	if err != nil {
		return 0, err
	}
	for i := range n {
		if err := s.pause(i); err != nil {
			return 0, err
		}
		convert(dst[i*f.decoded.Size():], f.decoded, src[i*f.encoded.Size():], f.encoded)
	}
	return n * f.decoded.Size(), nil
}
