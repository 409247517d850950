package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"strata/pkg/dtype"
)

type golden struct {
	Codecs []struct {
		Config           json.RawMessage
		Dtype            string
		Decoded, Encoded string
		Original         string // what was encoded, if that does not come back exactly
	}
	V3 []struct {
		Dtype string
		Codec struct {
			Name          string
			Configuration json.RawMessage
		}
	}
}

// readGolden reads what testdata/make_golden.py wrote.
func readGolden(t testing.TB) golden {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func unbase64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Decoding gives numcodecs' values, encoding numcodecs' bytes (compressors need
// not make the same bytes).
func TestNumcodecs(t *testing.T) {
	s := NewScratch()
	for _, g := range readGolden(t).Codecs {
		elem, _, err := dtype.ParseTypestr(g.Dtype)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ParseV2(g.Config, elem)
		if err != nil {
			t.Errorf("%s: %v", g.Config, err)
			continue
		}
		decoded, encoded := unbase64(t, g.Decoded), unbase64(t, g.Encoded)
		got, err := decodeGuarded(t, c, s, len(decoded), encoded)
		if err != nil || !bytes.Equal(got, decoded) {
			t.Errorf("%s on %s: decodes to\n%x, want\n%x, %v", g.Config, g.Dtype, got, decoded, err)
			continue
		}
		if lo, hi := c.EncodedSize(len(decoded)); len(encoded) < lo || len(encoded) > hi {
			t.Errorf("%s: %d encoded bytes are outside of %d to %d", g.Config, len(encoded), lo, hi)
		}
		if _, err := decodeGuarded(t, c, s, len(decoded)-1, encoded); err == nil {
			t.Errorf("%s: decodes into one byte less", g.Config)
		}
		original := decoded
		if g.Original != "" {
			original = unbase64(t, g.Original)
		}
		again, err := c.Encode(s, nil, original)
		switch {
		case errors.Is(err, ErrReadOnly):
		case err != nil:
			t.Errorf("%s: encode: %v", g.Config, err)
		case compressors[c.Name()]:
			if got, err := decodeGuarded(t, c, s, len(decoded), again); err != nil || !bytes.Equal(got, decoded) {
				t.Errorf("%s: our own does not come back: %v", g.Config, err)
			}
		case !bytes.Equal(again, encoded):
			t.Errorf("%s on %s: encodes to\n%x, want\n%x", g.Config, g.Dtype, again, encoded)
		}
		// what we write to the metadata means the same
		meta, err := c.MetadataV2()
		if err != nil {
			t.Fatal(err)
		}
		same, err := ParseV2(meta, elem)
		if err != nil {
			t.Errorf("%s became %s: %v", g.Config, meta, err)
			continue
		}
		if got, err := decodeGuarded(t, same, s, len(decoded), encoded); err != nil || !bytes.Equal(got, decoded) {
			t.Errorf("%s became %s, which decodes to other values: %v", g.Config, meta, err)
		}
	}
}

// The v3 metadata that zarr-python writes is understood, and comes back the same.
func TestMetadataV3(t *testing.T) {
	for _, g := range readGolden(t).V3 {
		elem, err := dtype.Parse(g.Dtype)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ParseV3(g.Codec.Name, g.Codec.Configuration, elem)
		if err != nil {
			t.Errorf("%s %s: %v", g.Codec.Name, g.Codec.Configuration, err)
			continue
		}
		meta, err := c.MetadataV3()
		if err != nil {
			t.Errorf("%s: %v", g.Codec.Name, err)
			continue
		}
		var m struct {
			Name          string
			Configuration json.RawMessage
		}
		if err := json.Unmarshal(meta, &m); err != nil {
			t.Fatal(err)
		}
		if d, err := ParseV3(m.Name, m.Configuration, elem); err != nil || d.Name() != c.Name() {
			t.Errorf("%s: our own %s: %v", g.Codec.Name, meta, err)
		}
	}
}
