package codec

import (
	"encoding/json"
	"fmt"
	"math"

	"strata/pkg/dtype"
)

// castValue is the codec cast_value of zarr-extensions, which stores elements as numbers of another type. It is only
// decoded.
type castValue struct {
	extension
	sized
	rounding   string
	outOfRange string
	mapped     [][2]scalar // stored and decoded elements, which go first
}

func parseCastValue(c *config, elem dtype.Type) Codec {
	f := &castValue{extension: c.extension(), sized: sized{decoded: layout{Type: elem}}}
	f.encoded = c.elements("data_type", layout{})
	f.rounding = c.choice("rounding", "nearest-even", "nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away")
	f.outOfRange = c.choice("out_of_range", "", "clamp", "wrap")
	if c.err == nil && (!f.decoded.real() || !f.encoded.real()) {
		c.fail("from %s to %s (must be integers or floating-point numbers)", f.decoded.Type, f.encoded.Type)
	}
	if raw, ok := c.takeValue("scalar_map"); ok && c.err == nil {
		f.parseMap(c, raw)
	}
	return f
}

// parseMap reads the elements that are decoded by name.
func (f *castValue) parseMap(c *config, raw json.RawMessage) {
	var m struct {
		Decode [][2]json.RawMessage `json:"decode"`
	}
	if json.Unmarshal(raw, &m) != nil || len(m.Decode) > 1<<10 {
		c.fail("\"scalar_map\" is %s (must be an object, with a list of at most 1024 pairs as \"decode\")", abbreviate(raw))
		return
	}
	for _, pair := range m.Decode {
		from, ok := f.encoded.parseScalar(pair[0])
		to, fits := f.decoded.parseScalar(pair[1])
		if !ok || !fits {
			c.fail("\"scalar_map\": %s to %s (must be numbers of %s and %s)", abbreviate(pair[0]), abbreviate(pair[1]), f.encoded.Type, f.decoded.Type)
			return
		}
		f.mapped = append(f.mapped, [2]scalar{from, to})
	}
}

// Decode casts each element by the rules of the specification, in this order: a value in scalar_map; a value that the
// type represents; rounding, and the rule for values out of range. An element to which none applies is an error.
func (f *castValue) Decode(s *Scratch, dst, src []byte) (int, error) {
	n, err := f.decodeInto(dst, src)
	if err != nil {
		return 0, err
	}
	es, ds := f.encoded.Size(), f.decoded.Size()
	for i := range n {
		if err := s.pause(i); err != nil {
			return 0, err
		}
		x, ok := f.encoded.scalar(src[i*es:])
		if ok {
			x, ok = f.cast(x)
		}
		if !ok {
			return 0, fmt.Errorf("element %d, a %s, is no %s (rounding %s)", i, f.encoded.Type, f.decoded.Type, f.rounding)
		}
		f.decoded.put(dst[i*ds:], x)
	}
	return n * ds, nil
}

// cast returns the decoded value of a stored element; ok is false if no rule gives one.
func (f *castValue) cast(x scalar) (out scalar, ok bool) {
	for _, m := range f.mapped {
		if m[0] == x || m[0].f != m[0].f && x.f != x.f {
			return m[1], true
		}
	}
	switch from, to := f.encoded, f.decoded; {
	case to.IsFloat() && from.IsFloat():
		return f.toFloat(x.f)
	case to.IsFloat():
		v := float64(x.i)
		if v >= 1<<63 || int64(v) != x.i {
			return scalar{}, false // a float64 is not enough to round from
		}
		return f.toFloat(v)
	case from.IsFloat():
		return f.toInteger(x.f)
	}
	return f.inRange(x)
}

// toFloat rounds to the floating-point type; only to the nearest number, if the type does not hold v.
func (f *castValue) toFloat(v float64) (out scalar, ok bool) {
	out.f = f.decoded.round(v)
	switch {
	case out.f == v || v != v:
		return out, true
	case math.IsInf(out.f, 0):
		return out, f.outOfRange == "clamp"
	}
	return out, f.rounding == "nearest-even"
}

// toInteger rounds to an integer that the type holds, or brings it into its range.
func (f *castValue) toInteger(v float64) (out scalar, ok bool) {
	switch f.rounding {
	case "towards-zero":
		v = math.Trunc(v)
	case "towards-positive":
		v = math.Ceil(v)
	case "towards-negative":
		v = math.Floor(v)
	case "nearest-away":
		v = math.Round(v)
	default:
		v = math.RoundToEven(v)
	}
	if math.Abs(v) < 1<<63 {
		return f.inRange(scalar{i: int64(v)})
	}
	if f.outOfRange != "clamp" || v != v || math.IsInf(v, 0) {
		return scalar{}, false
	}
	least, most := f.decoded.limits()
	if v < 0 {
		return scalar{i: least}, true
	}
	return scalar{i: most}, f.decoded.Type != dtype.Uint64 // whose largest values no scalar holds
}

// inRange brings an integer into the range of the integer type.
func (f *castValue) inRange(x scalar) (out scalar, ok bool) {
	least, most := f.decoded.limits()
	switch {
	case f.decoded.fits(x.i):
		return x, true
	case f.outOfRange == "clamp":
		return scalar{i: min(max(x.i, least), most)}, true
	}
	return x, f.outOfRange == "wrap" // the low bits are what is stored
}
