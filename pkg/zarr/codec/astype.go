package codec

import (
	"encoding/json"

	"strata/pkg/dtype"
)

// asType is numcodecs' filter that stores elements as another type.
type asType struct {
	described
	sized
}

func parseAsType(c *config, elem dtype.Type) Codec {
	f := &asType{sized: sized{encoded: c.elements("encode_dtype", layout{}), decoded: c.elements("decode_dtype", c.ifV3(elem))}}
	castable := func(l layout) bool { return l.real() || l.Type == dtype.Bool }
	if c.err == nil && (!castable(f.decoded) || !castable(f.encoded)) {
		c.fail("from %s to %s (must be booleans, integers or floating-point numbers)", f.decoded.Type, f.encoded.Type)
	}
	f.described = described{"astype", map[string]any{"encode_dtype": f.encoded.str(), "decode_dtype": f.decoded.str()}}
	return f
}

func (f *asType) Decode(s *Scratch, dst, src []byte) (int, error) { return f.convert(s, dst, src) }

func (f *asType) Encode(_ *Scratch, dst, src []byte) ([]byte, error) {
	dst, n, err := f.encodeInto(dst, src)
	if err != nil {
		return nil, err
	}
	for i := range n {
		convert(dst[i*f.encoded.Size():], f.encoded, src[i*f.decoded.Size():], f.decoded)
	}
	return dst, nil
}

// bigEndian puts the most significant byte of each element first, as "bytes" does behind filters.
type bigEndian struct{ asType }

// BigEndian returns a codec that stores elements of a type with the most significant byte first. No metadata express
// it.
func BigEndian(elem dtype.Type) Codec {
	return &bigEndian{asType{described{name: "bytes"}, sized{layout{Type: elem}, layout{Type: elem, big: true}}}}
}

func (b *bigEndian) MetadataV2() (json.RawMessage, error) { return nil, ErrFormat }
func (b *bigEndian) MetadataV3() (json.RawMessage, error) { return nil, ErrFormat }
