package codec

import (
	"fmt"
	"math"

	"strata/pkg/dtype"
)

// fixedScaleOffset is numcodecs' filter that stores (x − offset) × scale,
// rounded to the nearest integer.
type fixedScaleOffset struct {
	described
	sized
	offset, scale float64
}

func parseFixedScaleOffset(c *config, elem dtype.Type) Codec {
	decoded := c.elements("dtype", c.ifV3(elem))
	f := &fixedScaleOffset{sized: sized{decoded, c.elements("astype", decoded)}, offset: c.number("offset"), scale: c.number("scale")}
	if c.err == nil && (!f.decoded.real() || !f.encoded.real()) {
		c.fail("from %s to %s (must be integers or floating-point numbers)", f.decoded.Type, f.encoded.Type)
	}
	if f.scale == 0 {
		c.fail("\"scale\" is 0 (must be another number)")
	}
	f.described = described{"fixedscaleoffset", map[string]any{"offset": f.offset, "scale": f.scale, "dtype": f.decoded.str(), "astype": f.encoded.str()}}
	return f
}

// ifV3 returns the standard for an element type that only v3 metadata may leave out.
func (c *config) ifV3(elem dtype.Type) layout {
	if c.v3 {
		return layout{Type: elem}
	}
	return layout{}
}

// arithmetic returns the type that numpy computes in when elements of type l meet a Python number: their own
// if they are floats, else float64.
func arithmetic(l layout) layout {
	if l.IsFloat() {
		return layout{Type: l.Type}
	}
	return layout{Type: dtype.Float64}
}

// Decode computes x ÷ scale + offset, each step rounded to the type that numpy
// would use for it.
func (f *fixedScaleOffset) Decode(s *Scratch, dst, src []byte) (int, error) {
	n, err := f.decodeInto(dst, src)
	if err != nil {
		return 0, err
	}
	es, ds, in := f.encoded.Size(), f.decoded.Size(), arithmetic(f.encoded)
	scale, offset := in.round(f.scale), in.round(f.offset)
	for i := range n {
		if err := s.pause(i); err != nil {
			return 0, err
		}
		v := in.round(f.encoded.number(src[i*es:]) / scale)
		f.decoded.putNumber(dst[i*ds:], in.round(v+offset))
	}
	return n * ds, nil
}

// readOnly refuses a scale and an offset that the type cannot represent, since all numbers would become NaN.
func (f *fixedScaleOffset) readOnly() error {
	in := arithmetic(f.decoded)
	if math.IsInf(in.round(f.offset), 0) {
		return fmt.Errorf("\"offset\" is out of the range of %s: %w", in.Type, ErrReadOnly)
	}
	return scalable("scale", in.round(f.scale), in)
}

// scalable refuses a scale that became zero or infinite in the type that is computed in.
func scalable(field string, scale float64, in layout) error {
	if scale == 0 || math.IsInf(scale, 0) {
		return fmt.Errorf("%q is out of the range of %s: %w", field, in.Type, ErrReadOnly)
	}
	return nil
}

func (f *fixedScaleOffset) Encode(_ *Scratch, dst, src []byte) ([]byte, error) {
	if err := f.readOnly(); err != nil {
		return nil, err
	}
	dst, n, err := f.encodeInto(dst, src)
	if err != nil {
		return nil, err
	}
	es, ds, in := f.encoded.Size(), f.decoded.Size(), arithmetic(f.decoded)
	scale, offset := in.round(f.scale), in.round(f.offset)
	for i := range n {
		v := in.round(in.round(f.decoded.number(src[i*ds:])-offset) * scale)
		f.encoded.putNumber(dst[i*es:], math.RoundToEven(v))
	}
	return dst, nil
}
