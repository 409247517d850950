package meta

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/zarr/internal/number"
)

// parseFill reads the fill value of an array.
func (md *Array) parseFill(field string, raw json.RawMessage) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	if md.NumpyType != "" && !(md.Format == 2 && IsNull(raw)) {
		return parseNumpyFill(field, raw, md.DType, md.NumpyType)
	}
	return ParseFill(field, raw, md.DType, md.Format)
}

// encodeFill inverts parseFill.
func (md *Array) encodeFill() (json.RawMessage, error) {
	if md.NumpyType != "" {
		return encodeNumpyFill(md.Fill, md.DType, md.NumpyType)
	}
	return EncodeFill(md.Fill, md.DType, md.Format), nil
}

// ParseFill parses a fill value into the bytes of one element in native order. It accepts what writers produce beyond
// the specification: numbers in strings, as old Java writers have them, whole numbers in every form, and 0 and 1 for
// booleans; for format 2, null means 0.
func ParseFill(field string, raw json.RawMessage, t dtype.Type, format int) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	out := make([]byte, t.Size())
	if format == 2 && IsNull(raw) {
		return out, nil
	}
	wrong := func(want string) error {
		return FieldError(field, "is %s, must be %s for data type %s", Shorten(raw), want, t)
	}
	switch {
	case t == dtype.Bool:
		switch n, ok := number.Int(unquoted(raw)); {
		case string(unquoted(raw)) == "true", ok && n == 1:
			out[0] = 1
		case string(unquoted(raw)) == "false", ok && n == 0:
		default:
			return nil, wrong("true or false")
		}
	case t.IsInteger():
		s, _ := number.Text(unquoted(raw)) // "" is no integer either
		size := 8 * t.Size()
		if t >= dtype.Uint8 {
			u, err := strconv.ParseUint(s, 10, size)
			if err != nil {
				return nil, wrong(fmt.Sprintf("an integer from 0 to 2^%d-1", size))
			}
			putUint(out, u)
		} else {
			i, err := strconv.ParseInt(s, 10, size)
			if err != nil {
				return nil, wrong(fmt.Sprintf("an integer from -2^%d to 2^%d-1", size-1, size-1))
			}
			putUint(out, uint64(i))
		}
	case t.IsFloat():
		if !parseFloat(out, raw) {
			return nil, wrong(fmt.Sprintf(`a number, "NaN", "Infinity", "-Infinity" or "0x" and %d hexadecimal digits`, 2*len(out)))
		}
	case t.IsComplex():
		parts, ok := ParseList(raw)
		half := len(out) / 2
		if ok && len(parts) == 2 && parseFloat(out[:half], parts[0]) && parseFloat(out[half:], parts[1]) {
			return out, nil
		}
		if format == 2 && parseFloat(out[:half], raw) {
			return out, nil // numpy makes a complex number of a real one
		}
		return nil, wrong("a list of two numbers")
	}
	return out, nil
}

// unquoted returns the text of a JSON string that contains no escapes, and any other value unchanged.
func unquoted(raw json.RawMessage) json.RawMessage {
	if n := len(raw); n >= 2 && raw[0] == '"' && raw[n-1] == '"' {
		return raw[1 : n-1]
	}
	return raw
}

// parseFloat reads a float of len(out) bytes.
func parseFloat(out []byte, raw json.RawMessage) bool {
	s := string(raw)
	if strings.HasPrefix(s, `"`) {
		s = strings.Trim(s, `"`)
		switch s {
		case "NaN":
			putFloat(out, canonicalNaN())
			return true
		case "Infinity":
			putFloat(out, math.Inf(1))
			return true
		case "-Infinity":
			putFloat(out, math.Inf(-1))
			return true
		}
		if digits, ok := strings.CutPrefix(s, "0x"); ok {
			u, err := strconv.ParseUint(digits, 16, 8*len(out))
			if err != nil || len(digits) != 2*len(out) {
				return false
			}
			putUint(out, u)
			return true
		}
		raw = json.RawMessage(s)
		if !json.Valid(raw) {
			return false
		}
	}
	if KindOf(raw) != "a number" {
		return false
	}
	bits := 64
	if len(out) == 4 {
		bits = 32 // rounded once, not by way of float64
	}
	v, err := strconv.ParseFloat(s, bits)
	if err != nil {
		return false
	}
	if len(out) == 2 && math.Abs(v) >= 65520 {
		return false
	}
	putFloat(out, v)
	return true
}

func putFloat(out []byte, v float64) {
	switch len(out) {
	case 2:
		putUint(out, uint64(dtype.Float16Bits(toOdd(v))))
	case 4:
		putUint(out, uint64(math.Float32bits(float32(v))))
	default:
		putUint(out, math.Float64bits(v))
	}
}

// toOdd rounds v to a float32 that, when rounded further to float16, gives the same result as rounding v directly. A
// value between two float32 becomes the one with an odd mantissa.
func toOdd(v float64) float32 {
	f := float32(v)
	if float64(f) == v || v != v {
		return f
	}
	b := math.Float32bits(f)
	if math.Abs(float64(f)) > math.Abs(v) {
		b-- // towards zero
	}
	return math.Float32frombits(b | 1)
}

// putUint stores the low bytes of u in native (little-endian) order.
func putUint(out []byte, u uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], u)
	copy(out, b[:])
}

// GetUint returns an element of 1, 2, 4 or 8 bytes as an unsigned integer.
func GetUint(b []byte) uint64 {
	var w [8]byte
	copy(w[:], b)
	return binary.LittleEndian.Uint64(w[:])
}

// EncodeFill inverts parseFill: it returns the shortest JSON that reads as the same bits.
func EncodeFill(fill []byte, t dtype.Type, format int) json.RawMessage {
	switch {
	case t == dtype.Bool:
		return strconv.AppendBool(nil, fill[0] != 0)
	case t.IsComplex():
		half := len(fill) / 2
		out := append([]byte{'['}, encodeFloat(fill[:half], format)...)
		out = append(append(out, ','), encodeFloat(fill[half:], format)...)
		return append(out, ']')
	case t.IsFloat():
		return encodeFloat(fill, format)
	case t >= dtype.Uint8:
		return strconv.AppendUint(nil, GetUint(fill), 10)
	}
	shift := 64 - 8*len(fill)
	return strconv.AppendInt(nil, int64(GetUint(fill))<<shift>>shift, 10)
}

func encodeFloat(b []byte, format int) json.RawMessage {
	var v float64
	var canonical [8]byte
	bits := 64
	switch len(b) {
	case 2:
		v, bits = float64(dtype.Float16Value(uint16(GetUint(b)))), 32
	case 4:
		v, bits = float64(math.Float32frombits(uint32(GetUint(b)))), 32
	default:
		v = math.Float64frombits(GetUint(b))
	}
	switch {
	case math.IsNaN(v):
		putFloat(canonical[:len(b)], canonicalNaN())
		if format == 3 && !bytes.Equal(canonical[:len(b)], b) {
			return fmt.Appendf(nil, `"0x%0*x"`, 2*len(b), GetUint(b))
		}
		return json.RawMessage(`"NaN"`) // v2 has no form for other NaNs
	case math.IsInf(v, 1):
		return json.RawMessage(`"Infinity"`)
	case math.IsInf(v, -1):
		return json.RawMessage(`"-Infinity"`)
	}
	out := strconv.AppendFloat(nil, v, 'g', -1, bits)
	if !bytes.ContainsAny(out, ".e") {
		out = append(out, ".0"...)
	}
	return out
}

// fillBytes converts a caller's fill value as the function fillBytes does, or as numpy types need it.
func (md *Array) fillBytes(fill any) ([]byte, error) {
	switch fill.(type) {
	case nil, []byte:
	default:
		if md.NumpyType == "" {
			break
		}
		raw, err := json.Marshal(fill)
		if err != nil {
			return nil, FieldError("fill value", "%w", err)
		}
		return parseNumpyFill("fill value", raw, md.DType, md.NumpyType)
	}
	return FillBytes(fill, md.DType, md.Format)
}

// FillBytes converts a caller's fill value to the bytes of one element: nil is 0, []byte the element's own
// bytes (only format 3 keeps NaN payloads); anything else is encoded as JSON, and floats may be NaN or
// infinite.
func FillBytes(fill any, t dtype.Type, format int) ([]byte, error) {
	const field = "fill value"
	var raw json.RawMessage
	float := func(v float64) json.RawMessage {
		if math.IsNaN(v) {
			return json.RawMessage(`"NaN"`) // its payload is an accident; []byte is for those who want one
		}
		b := make([]byte, 8)
		putFloat(b, v)
		return encodeFloat(b, 3)
	}
	switch v := fill.(type) {
	case nil:
		return make([]byte, t.Size()), nil
	case []byte:
		if len(v) != t.Size() {
			return nil, FieldError(field, "has %d bytes, an element of %s has %d", len(v), t, t.Size())
		}
		if format == 2 && !t.IsFixedBytes() && !t.IsFixedText() {
			return ParseFill(field, EncodeFill(v, t, 2), t, 2) // which has one NaN only
		}
		return bytes.Clone(v), nil
	case float64:
		raw = float(v)
		if t.IsInteger() && v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			raw = strconv.AppendInt(nil, int64(v), 10)
		}
	case float32:
		return FillBytes(float64(v), t, format)
	case complex128:
		raw = json.RawMessage(`[` + string(float(real(v))) + `,` + string(float(imag(v))) + `]`)
	case complex64:
		return FillBytes(complex128(v), t, format)
	default:
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return nil, FieldError(field, "%w", err)
		}
	}
	return ParseFill(field, raw, t, format)
}

// canonicalNaN returns the NaN that "NaN" denotes (v3 specification, "Fill value"): quiet and without
// payload. Go's own NaN differs.
func canonicalNaN() float64 { return math.Float64frombits(0x7ff8000000000000) }
