package codec

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/zarr/internal/number"
)

// scalar is an element: i of an integer type, f of a floating-point one. Integers of 2^63 and more are not held.
type scalar struct {
	i int64
	f float64
}

// scalar loads the element at the front of b; ok is false if it is not held.
func (l layout) scalar(b []byte) (s scalar, ok bool) {
	if l.IsFloat() {
		return scalar{f: l.float(b)}, true
	}
	s.i = l.integer(b)
	return s, l.Type != dtype.Uint64 || s.i >= 0
}

// put stores s, which the type holds.
func (l layout) put(b []byte, s scalar) {
	if l.IsFloat() {
		l.putFloat(b, s.f)
	} else {
		l.putInteger(b, s.i)
	}
}

// limits returns the range of an integer type, as far as scalars hold it.
func (l layout) limits() (least, most int64) {
	bits := 8 * l.Size()
	if l.Type >= dtype.Uint8 {
		return 0, math.MaxInt64 >> max(0, 63-bits)
	}
	return math.MinInt64 >> (64 - bits), math.MaxInt64 >> (64 - bits)
}

// fits reports whether an integer type holds v.
func (l layout) fits(v int64) bool {
	least, most := l.limits()
	return least <= v && v <= most
}

// parseScalar reads an element as fill values of Zarr v3 are written.
func (l layout) parseScalar(raw json.RawMessage) (s scalar, ok bool) {
	if !l.IsFloat() {
		digits, _ := number.Text(raw)
		v, err := strconv.ParseInt(digits, 10, 64)
		return scalar{i: v}, err == nil && l.fits(v)
	}
	if json.Unmarshal(raw, &s.f) == nil && string(raw) != "null" {
		s.f = l.round(s.f)
		return s, true
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return s, false
	}
	switch text {
	case "NaN":
		return scalar{f: math.NaN()}, true
	case "Infinity", "+Infinity":
		return scalar{f: math.Inf(1)}, true
	case "-Infinity":
		return scalar{f: math.Inf(-1)}, true
	}
	digits, found := strings.CutPrefix(text, "0x")
	bits, err := strconv.ParseUint(digits, 16, 8*l.Size())
	if !found || err != nil || len(digits) != 2*l.Size() {
		return s, false
	}
	s.f = layout{Type: l.Type}.float(binary.LittleEndian.AppendUint64(nil, bits))
	return s, true
}

// scalar takes an element of a type; absent it is the standard.
func (c *config) scalar(field string, l layout, standard int64) scalar {
	v, ok := c.take(field)
	if !ok {
		return scalar{standard, float64(standard)}
	}
	s, ok := l.parseScalar(v)
	if !ok {
		c.fail("%q is %s (must be a number of %s)", field, abbreviate(v), l.Type)
	}
	return s
}
