package codec

import (
	"math"

	"strata/pkg/dtype"
)

// quantizeCodec is numcodecs' lossy filter that rounds floating-point numbers to
// a number of decimal digits (to a power of two not greater than that).
type quantizeCodec struct {
	described
	sized
	digits int
}

func parseQuantize(c *config, elem dtype.Type) Codec {
	decoded := c.elements("dtype", c.ifV3(elem))
	f := &quantizeCodec{sized: sized{decoded, c.elements("astype", decoded)}, digits: c.integer("digits", -300, 300, math.MinInt)}
	if f.digits == math.MinInt {
		c.fail("\"digits\" is missing (must be a number of decimal digits)")
	}
	if c.err == nil && (!f.decoded.IsFloat() || !f.encoded.IsFloat()) {
		c.fail("from %s to %s (must be floating-point numbers)", f.decoded.Type, f.encoded.Type)
	}
	f.described = described{"quantize", map[string]any{"digits": f.digits, "dtype": f.decoded.str(), "astype": f.encoded.str()}}
	return f
}

// Decode only converts the type: rounding cannot be undone.
func (f *quantizeCodec) Decode(s *Scratch, dst, src []byte) (int, error) {
	return f.convert(s, dst, src)
}

// scale returns the power of two to whose multiples numbers are rounded.
func (f *quantizeCodec) scale() float64 {
	return arithmetic(f.decoded).round(math.Exp2(math.Ceil(float64(f.digits) * math.Log2(10))))
}

// readOnly refuses a number of digits that the type cannot represent, since all elements would become NaN.
func (f *quantizeCodec) readOnly() error { return scalable("digits", f.scale(), f.decoded) }

func (f *quantizeCodec) Encode(_ *Scratch, dst, src []byte) ([]byte, error) {
	dst, n, err := f.encodeInto(dst, src)
	if err != nil {
		return nil, err
	}
	if err := f.readOnly(); err != nil {
		return nil, err
	}
	in, scale := arithmetic(f.decoded), f.scale()
	for i := range n {
		v := in.round(scale * f.decoded.float(src[i*f.decoded.Size():]))
		f.encoded.putFloat(dst[i*f.encoded.Size():], in.round(math.RoundToEven(v)/scale))
	}
	return dst, nil
}
