package codec

import (
	"fmt"

	"strata/pkg/dtype"
)

// bitRound is numcodecs' lossy filter that keeps the first bits of the mantissa
// and makes the others zero.
type bitRound struct {
	described
	sized
	keep int
}

func parseBitRound(c *config, elem dtype.Type) Codec {
	f := &bitRound{sized: sized{layout{Type: elem}, layout{Type: elem}}, keep: c.integer("keepbits", 0, 1<<20, -1)}
	f.described = described{"bitround", map[string]any{"keepbits": f.keep}}
	if f.keep < 0 {
		c.fail("\"keepbits\" is missing (must be a number of bits)")
	}
	if most := f.mantissa(); c.err == nil && most == 0 {
		c.fail("elements are %s (must be floating-point numbers)", elem)
	} else if f.keep > most {
		c.fail("\"keepbits\" is %d (%s has %d)", f.keep, elem, most)
	}
	return f
}

// mantissa returns the number of mantissa bits of the element type, 0 for integers.
func (f *bitRound) mantissa() int {
	switch f.decoded.Type {
	case dtype.Float16:
		return 10
	case dtype.Float32:
		return 23
	case dtype.Float64:
		return 52
	}
	return 0
}

// Decode copies: rounded numbers are numbers.
func (f *bitRound) Decode(_ *Scratch, dst, src []byte) (int, error) {
	if _, err := f.decodeInto(dst, src); err != nil {
		return 0, err
	}
	return copy(dst, src), nil
}

// Encode rounds half to even; it takes little-endian elements.
func (f *bitRound) Encode(_ *Scratch, dst, src []byte) ([]byte, error) {
	dst, n, err := f.encodeInto(dst, src)
	if err != nil {
		return nil, fmt.Errorf("bitround: %w", err)
	}
	drop, size := f.mantissa()-f.keep, f.decoded.Size()
	if drop == 0 {
		copy(dst, src)
		return dst, nil
	}
	// the bits of the number as an integer of its size
	bits := layout{Type: map[int]dtype.Type{2: dtype.Int16, 4: dtype.Int32, 8: dtype.Int64}[size]}
	for i := range n {
		b := bits.integer(src[i*size:])
		b += b>>drop&1 + 1<<(drop-1) - 1
		bits.putInteger(dst[i*size:], b&(-1<<drop))
	}
	return dst, nil
}
