// Package dtype names the element types of arrays and views, and turns byte slices into slices of numbers
// without copying them.
//
// A [Type] is the type of elements in a file; an [Element] is a Go type that holds one. Complex numbers and
// half floats have a Type, but readers return them as raw bytes, since no stage computes with them.
package dtype

import (
	"fmt"
	"math"
	"strings"
	"unsafe"
)

// Type is the data type of one array element: its kind in the low byte and, for kinds of variable length, the
// length above it.
type Type uint32

// The element types of Zarr v2 and v3 that this module reads and writes.
const (
	Invalid Type = iota
	Bool
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float16
	Float32
	Float64
	Complex64
	Complex128
)

// Kinds of types that [FixedBytes] and [FixedText] make.
const (
	fixedBytes Type = 0xf0 + iota
	fixedText
)

// MaxFixed is the largest size of an element of any type, in bytes.
const MaxFixed = 1<<24 - 1

// FixedBytes returns the type of uninterpreted elements of n bytes, 1 to [MaxFixed].
func FixedBytes(n int) Type { return fixedBytes | Type(n)<<8 }

// FixedText returns the type of elements of n code points, of four bytes each.
func FixedText(n int) Type { return fixedText | Type(4*n)<<8 }

// IsFixedBytes reports whether [FixedBytes] made the type.
func (t Type) IsFixedBytes() bool { return t&0xff == fixedBytes }

// IsFixedText reports whether [FixedText] made the type.
func (t Type) IsFixedText() bool { return t&0xff == fixedText }

// IsNumber reports whether the type is a real number: an integer or a float.
func (t Type) IsNumber() bool { return t.IsInteger() || t.IsFloat() }

var names = [...]string{
	Invalid: "invalid", Bool: "bool",
	Int8: "int8", Int16: "int16", Int32: "int32", Int64: "int64",
	Uint8: "uint8", Uint16: "uint16", Uint32: "uint32", Uint64: "uint64",
	Float16: "float16", Float32: "float32", Float64: "float64",
	Complex64: "complex64", Complex128: "complex128",
}

var sizes = [...]int{
	Bool: 1, Int8: 1, Int16: 2, Int32: 4, Int64: 8,
	Uint8: 1, Uint16: 2, Uint32: 4, Uint64: 8,
	Float16: 2, Float32: 4, Float64: 8, Complex64: 8, Complex128: 16,
}

// numpy kind and size, as in a Zarr v2 typestr without its byte order.
var typestrs = [...]string{
	Bool: "b1", Int8: "i1", Int16: "i2", Int32: "i4", Int64: "i8",
	Uint8: "u1", Uint16: "u2", Uint32: "u4", Uint64: "u8",
	Float16: "f2", Float32: "f4", Float64: "f8", Complex64: "c8", Complex128: "c16",
}

// String returns the type's Zarr v3 name, such as "uint16", or "bytes[10]" and "text[16]".
func (t Type) String() string {
	switch {
	case int(t) < len(names):
		return names[t]
	case t.IsFixedBytes():
		return fmt.Sprintf("bytes[%d]", t.Size())
	case t.IsFixedText():
		return fmt.Sprintf("text[%d]", t.Size()/4)
	}
	return fmt.Sprintf("dtype(%d)", uint32(t))
}

// Size returns the number of bytes of one element.
func (t Type) Size() int {
	if int(t) < len(sizes) {
		return sizes[t]
	}
	return int(t >> 8)
}

// Typestr returns the numpy array-interface type string of native little-endian data, such as "<u2" or "|u1".
func (t Type) Typestr() string {
	switch {
	case t.IsFixedBytes():
		return fmt.Sprintf("|V%d", t.Size())
	case t.IsFixedText():
		return fmt.Sprintf("<U%d", t.Size()/4)
	}
	if t == Invalid || int(t) >= len(typestrs) {
		return ""
	}
	if t.Size() == 1 {
		return "|" + typestrs[t]
	}
	return "<" + typestrs[t]
}

// IsInteger reports whether the type is a signed or unsigned integer.
func (t Type) IsInteger() bool { return t >= Int8 && t <= Uint64 }

// IsFloat reports whether the type is a real floating-point number.
func (t Type) IsFloat() bool { return t >= Float16 && t <= Float64 }

// IsComplex reports whether an element has a real and an imaginary part.
func (t Type) IsComplex() bool { return t == Complex64 || t == Complex128 }

// SwapSize returns the length of the units whose bytes are swapped to change the byte order: half an element
// for complex numbers, a code point of text, a single byte of bytes, and otherwise the element.
func (t Type) SwapSize() int {
	switch {
	case t.IsComplex():
		return t.Size() / 2
	case t.IsFixedBytes():
		return 1
	case t.IsFixedText():
		return 4
	}
	return t.Size()
}

// Parse returns the type of a Zarr v3 data type name.
func Parse(name string) (Type, error) {
	for t := Bool; int(t) < len(names); t++ {
		if names[t] == name {
			return t, nil
		}
	}
	return Invalid, fmt.Errorf("unknown data type %q (known: %s)", name, strings.Join(names[1:], ", "))
}

// MarshalText returns the type's Zarr v3 name, so that it stands as such in JSON.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText parses a name that [Parse] knows.
func (t *Type) UnmarshalText(text []byte) (err error) {
	*t, err = Parse(string(text))
	return err
}

// ParseTypestr returns the type of a numpy type string such as ">f4", and
// whether its bytes are stored most significant first.
func ParseTypestr(s string) (t Type, bigEndian bool, err error) {
	if len(s) < 3 {
		return Invalid, false, fmt.Errorf("unknown data type %q (a byte order, a kind and a size, such as \"<f4\")", s)
	}
	order, rest := s[0], s[1:]
	for t := Bool; int(t) < len(typestrs); t++ {
		if typestrs[t] != rest {
			continue
		}
		switch {
		case order == '<', order == '|' && t.Size() == 1:
			return t, false, nil
		case order == '>':
			return t, t.Size() > 1, nil
		}
		return Invalid, false, fmt.Errorf("data type %q: byte order %q (must be '<' or '>')", s, order)
	}
	return Invalid, false, fmt.Errorf("unknown data type %q", s)
}

// Element lists the Go types of array elements for computing.
type Element interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// Of returns the Type with elements of type T.
func Of[T Element]() Type {
	var v T
	switch any(v).(type) {
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case float32:
		return Float32
	}
	return Float64
}

// Bytes returns the memory of s as bytes in native byte order.
func Bytes[T Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// Slice returns the memory of b as elements in native byte order, without an incomplete last element. b must
// be aligned for T, as every buffer of package mem and every make([]byte, n) of at least 8 bytes is.
func Slice[T Element](b []byte) []T {
	var v T
	n := len(b) / int(unsafe.Sizeof(v))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// Float16Value converts the bits of an IEEE 754 binary16 number.
func Float16Value(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp, frac := uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch {
	case exp == 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case exp != 0:
		return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
	}
	v := float32(frac) * (1.0 / (1 << 24))
	return math.Float32frombits(sign | math.Float32bits(v))
}

// Float16Bits rounds v to the nearest IEEE 754 binary16 number, ties to even.
func Float16Bits(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000: // NaN: keep the top of the payload, and keep it a NaN
		return sign | 0x7e00 | uint16(b>>13)&0x3ff
	case b >= 0x477ff000: // rounds to infinity
		return sign | 0x7c00
	case b < 0x38800000: // subnormal or zero: adding 0.5 puts the bits in place, rounded
		f := math.Float32frombits(b) + 0.5
		return sign | uint16(math.Float32bits(f)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}
