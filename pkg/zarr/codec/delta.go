package codec

import (
	"strata/pkg/dtype"
)

// deltaCodec is numcodecs' delta filter: the first element, then the difference
// of each to the one before it.
type deltaCodec struct {
	described
	sized
}

func parseDelta(c *config, elem dtype.Type) Codec {
	decoded := c.elements("dtype", c.ifV3(elem))
	f := &deltaCodec{sized: sized{decoded, c.elements("astype", decoded)}}
	if c.err == nil && (!f.decoded.real() || !f.encoded.real()) {
		c.fail("from %s to %s (must be integers or floating-point numbers)", f.decoded.Type, f.encoded.Type)
	}
	f.described = described{"delta", map[string]any{"dtype": f.decoded.str(), "astype": f.encoded.str()}}
	return f
}

// Decode sums up in the decoded type: integers wrap around, floats round once
// per step.
func (f *deltaCodec) Decode(s *Scratch, dst, src []byte) (int, error) {
	n, err := f.decodeInto(dst, src)
	if err != nil {
		return 0, err
	}
	es, ds := f.encoded.Size(), f.decoded.Size()
	if f.decoded.IsFloat() {
		var sum float64
		for i := range n {
			if err := s.pause(i); err != nil {
				return 0, err
			}
			sum = f.decoded.round(sum + f.decoded.round(f.encoded.number(src[i*es:])))
			f.decoded.putFloat(dst[i*ds:], sum)
		}
		return n * ds, nil
	}
	var sum int64
	var one [8]byte
	for i := range n {
		if err := s.pause(i); err != nil {
			return 0, err
		}
		if f.encoded.IsInteger() {
			sum += f.encoded.integer(src[i*es:])
		} else {
			convert(one[:], f.decoded, src[i*es:], f.encoded)
			sum += f.decoded.integer(one[:])
		}
		f.decoded.putInteger(dst[i*ds:], sum)
	}
	return n * ds, nil
}

func (f *deltaCodec) Encode(_ *Scratch, dst, src []byte) ([]byte, error) {
	dst, n, err := f.encodeInto(dst, src)
	if err != nil {
		return nil, err
	}
	es, ds := f.encoded.Size(), f.decoded.Size()
	if f.decoded.IsFloat() {
		var last float64
		for i := range n {
			v := f.decoded.float(src[i*ds:])
			f.encoded.putNumber(dst[i*es:], f.decoded.round(v-last))
			last = v
		}
		return dst, nil
	}
	// differences wrap around in the decoded type before they are cast
	var last int64
	var diff [8]byte
	for i := range n {
		v := f.decoded.integer(src[i*ds:])
		f.decoded.putInteger(diff[:], v-last)
		convert(dst[i*es:], f.encoded, diff[:], f.decoded)
		last = v
	}
	return dst, nil
}
