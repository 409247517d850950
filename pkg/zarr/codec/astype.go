package codec

import (
	"encoding/json"

	"strata/pkg/dtype"
)

// asType is numcodecs' filter that stores elements as another type.
type asType struct{ sized }

func parseAsType(c *config, elem dtype.Type) Codec {
	f := &asType{sized{encoded: c.elements("encode_dtype", layout{}), decoded: c.elements("decode_dtype", c.ifV3(elem))}}
	castable := func(l layout) bool { return l.real() || l.Type == dtype.Bool }
	if c.err == nil && (!castable(f.decoded) || !castable(f.encoded)) {
		c.fail("from %s to %s (must be booleans, integers or floating-point numbers)", f.decoded.Type, f.encoded.Type)
	}
	return f
}

func (f *asType) Name() string { return "astype" }

func (f *asType) MetadataV2() (json.RawMessage, error) { return metadataV2("astype", f.fields()) }

func (f *asType) MetadataV3() (json.RawMessage, error) {
	return metadataV3(prefixV3+"astype", f.fields())
}

func (f *asType) fields() map[string]any {
	return map[string]any{"encode_dtype": f.encoded.str(), "decode_dtype": f.decoded.str()}
}

func (f *asType) Decode(s *Scratch, dst, src []byte) (int, error) {
	n, err := f.decodeInto(dst, src)
	if err != nil {
		return 0, err
	}
	for i := range n {
		if err := s.pause(i); err != nil {
			return 0, err
		}
		convert(dst[i*f.decoded.Size():], f.decoded, src[i*f.encoded.Size():], f.encoded)
	}
	return n * f.decoded.Size(), nil
}

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
