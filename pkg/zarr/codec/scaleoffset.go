package codec

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"

	"strata/pkg/dtype"
)

// extension is the part of a codec of zarr-extensions that is read only.
type extension struct {
	name          string
	configuration map[string]json.RawMessage
}

// extension returns what the metadata said, before any field is taken.
func (c *config) extension() extension {
	return extension{c.name, maps.Clone(c.fields)}
}

func (e extension) Name() string                                    { return e.name }
func (e extension) readOnly() error                                 { return ErrReadOnly }
func (e extension) Encode(*Scratch, []byte, []byte) ([]byte, error) { return nil, ErrReadOnly }
func (e extension) MetadataV2() (json.RawMessage, error)            { return nil, ErrFormat }
func (e extension) MetadataV3() (json.RawMessage, error) {
	return json.Marshal(struct {
		Name          string                     `json:"name"`
		Configuration map[string]json.RawMessage `json:"configuration,omitempty"`
	}{e.name, e.configuration})
}

// scaleOffset is the codec scale_offset of zarr-extensions, which stores (x − offset) × scale in the arithmetic of the
// elements' type.
type scaleOffset struct {
	extension
	sized
	offset, scale scalar
}

func parseScaleOffset(c *config, elem dtype.Type) Codec {
	l := layout{Type: elem}
	f := &scaleOffset{extension: c.extension(), sized: sized{l, l}}
	if !l.real() {
		c.fail("elements are %s (must be integers or floating-point numbers)", elem)
		return f
	}
	f.offset, f.scale = c.scalar("offset", l, 0), c.scalar("scale", l, 1)
	if c.err == nil && (l.IsFloat() && f.scale.f == 0 || l.IsInteger() && f.scale.i == 0) {
		c.fail("\"scale\" is 0 (must be another number)")
	}
	return f
}

// Decode computes x ÷ scale + offset. Integers that are no multiple of the scale, or end outside the range of their
// type, are an error.
func (f *scaleOffset) Decode(s *Scratch, dst, src []byte) (int, error) {
	n, err := f.decodeInto(dst, src)
	if err != nil {
		return 0, err
	}
	l, size := f.decoded, f.decoded.Size()
	for i := range n {
		if err := s.pause(i); err != nil {
			return 0, err
		}
		x, ok := l.scalar(src[i*size:])
		if l.IsFloat() {
			x.f = l.round(x.f/f.scale.f) + f.offset.f
		} else if x.i, ok = unscale(x.i, f.scale.i, f.offset.i, ok); !ok || !l.fits(x.i) {
			return 0, fmt.Errorf("element %d divided by %d, plus %d, is no %s", i, f.scale.i, f.offset.i, l.Type)
		}
		l.put(dst[i*size:], x)
	}
	return n * size, nil
}

// unscale returns x ÷ scale + offset if that is an integer.
func unscale(x, scale, offset int64, ok bool) (int64, bool) {
	q := x / scale
	sum := q + offset
	overflow := (q^sum)&(offset^sum) < 0 || x == math.MinInt64 && scale == -1
	return sum, ok && x%scale == 0 && !overflow
}
