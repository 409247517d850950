package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"strata/pkg/dtype"
)

func TestParseV2Refuses(t *testing.T) {
	for _, c := range []struct{ object, message string }{
		{`"zstd"`, "must be a JSON object"},
		{`null`, "must be a JSON object"},
		{`{}`, `"id" must be`},
		{`{"id": 3}`, `"id" must be`},
		{`{"id": "nobody"}`, "known: adler32, astype, bitround, blosc"},
		{`{"id": "blosc", "cname": "lzo"}`, `"cname" is "lzo" (must be blosclz, lz4`},
		{`{"id": "blosc", "cname": "snappy"}`, `snappy, which is not supported`},
		{`{"id": "quantize", "digits": "NaN", "dtype": "<f4"}`, `"digits" is "NaN"`},
		{`{"id": "fixedscaleoffset", "offset": 0, "scale": "NaN", "dtype": "<f4"}`, `"scale" is "NaN"`},
		{`{"id": "fixedscaleoffset", "offset": 1e999, "scale": 1, "dtype": "<f4"}`, `"offset" is 1e999`},
		{`{"id": "fixedscaleoffset", "offset": 0, "scale": -0.0, "dtype": "<f4"}`, `"scale" is 0`},
		{`{"id": "crc32", "location": "middle"}`, `"location" is "middle" (must be start, end)`},
		{`{"id": "delta"}`, `"dtype" is missing`},
		{`{"id": "delta", "dtype": "<i3"}`, `"dtype": unknown data type "<i3"`},
		{`{"id": "delta", "dtype": "|b1"}`, "must be integers or floating-point"},
		{`{"id": "delta", "dtype": "<c8"}`, "must be integers or floating-point"},
		{`{"id": "fixedscaleoffset", "offset": 0, "scale": 0, "dtype": "<f4"}`, `"scale" is 0`},
		{`{"id": "fixedscaleoffset", "offset": 0, "dtype": "<f4"}`, `"scale" is missing (must be a number)`},
		{`{"id": "quantize", "digits": 2, "dtype": "<i4"}`, "must be floating-point"},
		{`{"id": "quantize", "dtype": "<f4"}`, `"digits" is missing`},
		{`{"id": "bitround"}`, `"keepbits" is missing`},
		{`{"id": "bitround", "keepbits": 24}`, `float32 has 23`},
		{`{"id": "packbits"}`, `must be bool`},
		{`{"id": "astype", "encode_dtype": "<f4"}`, `"decode_dtype" is missing`},
		{`{"id": "astype", "encode_dtype": "<c8", "decode_dtype": "<f4"}`, "must be booleans"},
		{`{"id": "lzma", "format": 3}`, `"filters" is missing`},
		{`{"id": "lzma", "format": 3, "filters": [{"id": 4}]}`, `id 4 is not supported`},
		{`{"id": "lzma", "format": 3, "filters": [{"id": 3, "dist": 0}, {"id": 33}]}`, `distance 0`},
		{`{"id": "lzma", "filters": 3}`, `"filters" is 3`},
	} {
		_, err := ParseV2(json.RawMessage(c.object), dtype.Float32)
		if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v, want %q", c.object, err, c.message)
		}
	}
	if _, err := ParseV2(json.RawMessage(`{"id": "nobody"}`), dtype.Int8); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown codec: %v", err)
	}
	long := `{"id": "lzma", "format": "` + strings.Repeat("\\n", 1000) + `"}`
	if _, err := ParseV2(json.RawMessage(long), dtype.Int8); err == nil || len(err.Error()) > 300 || strings.Contains(err.Error(), "\n") {
		t.Errorf("a long value is shown as: %v", err)
	}
}

func TestParseV3Refuses(t *testing.T) {
	for _, c := range []struct{ name, configuration, message string }{
		{"nobody", "", "known: blosc, crc32c, gzip, zstd, cast_value, scale_offset, and as"},
		{"numcodecs.nobody", "", "unknown codec"},
		{"lz4", "", "unknown codec"}, // only with the prefix
		{"zstd", `[]`, "configuration: must be a JSON object"},
		{"blosc", `{"shuffle": 1}`, `"shuffle" is 1 (must be noshuffle, shuffle, bitshuffle)`},
	} {
		_, err := ParseV3(c.name, json.RawMessage(c.configuration), dtype.Float32)
		if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s %s: %v, want %q", c.name, c.configuration, err, c.message)
		}
	}
}

func TestFromFlag(t *testing.T) {
	for _, c := range []struct{ flag, v2, v3 string }{
		{"raw", ``, ``},
		{"zstd", `{"id":"zstd","level":1}`, `{"configuration":{"checksum":false,"level":1},"name":"zstd"}`},
		{"zstd:-5", `{"id":"zstd","level":-5}`, `{"configuration":{"checksum":false,"level":-5},"name":"zstd"}`},
		{"lz4", `{"acceleration":1,"id":"lz4"}`, `{"configuration":{"acceleration":1},"name":"numcodecs.lz4"}`},
		{"gzip:9", `{"id":"gzip","level":9}`, `{"configuration":{"level":9},"name":"gzip"}`},
		{"blosc-zstd:1", `{"blocksize":0,"clevel":1,"cname":"zstd","id":"blosc","shuffle":1}`,
			`{"configuration":{"blocksize":0,"clevel":1,"cname":"zstd","shuffle":"shuffle","typesize":2},"name":"blosc"}`},
		{"blosc-lz4:5", `{"blocksize":0,"clevel":5,"cname":"lz4","id":"blosc","shuffle":1}`,
			`{"configuration":{"blocksize":0,"clevel":5,"cname":"lz4","shuffle":"shuffle","typesize":2},"name":"blosc"}`},
	} {
		chain, err := FromFlag(c.flag, dtype.Uint16, 3)
		if err != nil {
			t.Errorf("%s: %v", c.flag, err)
			continue
		}
		filters, compressor, err := chain.MetadataV2()
		if err != nil || len(filters) > 0 || string(compressor) != c.v2 {
			t.Errorf("%s: v2 %s %s, %v, want %s", c.flag, filters, compressor, err, c.v2)
		}
		v3 := ""
		for _, k := range chain {
			m, err := k.MetadataV3()
			if err != nil {
				t.Error(err)
			}
			v3 += string(m)
		}
		if v3 != c.v3 {
			t.Errorf("%s: v3 %s, want %s", c.flag, v3, c.v3)
		}
	}
	for _, c := range []struct{ flag, message string }{
		{"", "must be raw, zstd"}, {"zip", "must be raw, zstd"}, {"raw:1", "raw has no level"}, {"zstd:", "whole number"}, {"zstd:x", "whole number from"},
		{"gzip:10", "from 0 to 9"}, {"blosc-zstd:10", "from 0 to 9"}, {"blosc-snappy", "must be raw"}, {"lz4:0", "from 1"},
	} {
		if _, err := FromFlag(c.flag, dtype.Uint16, 3); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%q: %v, want %q", c.flag, err, c.message)
		}
	}
}

func TestBloscRefuses(t *testing.T) {
	for _, c := range []struct {
		cname                               string
		level, shuffle, typesize, blocksize int
		message                             string
	}{
		{"snappy", 1, 1, 4, 0, "snappy"}, {"lzo", 1, 1, 4, 0, "lzo"}, {"lz4", 10, 1, 4, 0, "level 10"}, {"lz4", 1, 3, 4, 0, "shuffle 3"},
		{"lz4", 1, 1, 0, 0, "element size 0"}, {"lz4", 1, 1, 256, 0, "element size 256"}, {"lz4", 1, 1, 4, -1, "block size -1"},
	} {
		if _, err := Blosc(c.cname, c.level, BloscShuffle(c.shuffle), c.typesize, c.blocksize); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Codecs that only exist to be read say so before anything is written.
func TestReadOnly(t *testing.T) {
	for _, object := range []string{`{"id": "bz2"}`, `{"id": "blosc", "cname": "blosclz"}`, `{"id": "lzma", "filters": [{"id": 33}]}`, `{"id": "lzma", "check": 7}`} {
		c, err := ParseV2(json.RawMessage(object), dtype.Float32)
		if err != nil {
			t.Fatal(err)
		}
		if err := (Chain{c}).ReadOnly(); !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v", object, err)
		}
		if _, err := c.Encode(NewScratch(), nil, make([]byte, 100)); !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: encode: %v", object, err)
		}
	}
	if err := (Chain{Zstd(1, false), LZMA()}).ReadOnly(); err != nil {
		t.Error(err)
	}
}

// Filters hand the type of their elements on, and sizes follow.
func TestChain(t *testing.T) {
	chain, err := ParseChainV2([]json.RawMessage{
		json.RawMessage(`{"id": "fixedscaleoffset", "dtype": "<f8", "astype": "<i2", "offset": 1, "scale": 10}`),
		json.RawMessage(`{"id": "delta", "dtype": "<i2", "astype": "<i4"}`),
		json.RawMessage(`{"id": "shuffle", "elementsize": 4}`),
	}, json.RawMessage(`{"id": "blosc"}`), dtype.Float64)
	if err != nil {
		t.Fatal(err)
	}
	if c := chain[3].(*bloscCodec); c.typesize != 4 {
		t.Errorf("Blosc gets elements of %d bytes", c.typesize)
	}
	if lo, hi := chain[:3].EncodedSize(800); lo != 400 || hi != 400 {
		t.Errorf("800 bytes become %d to %d", lo, hi)
	}
	filters, compressor, err := chain.MetadataV2()
	if err != nil || len(filters) != 3 || !strings.Contains(string(compressor), "blosc") {
		t.Errorf("%s, %s, %v", filters, compressor, err)
	}
	if filters, compressor, err = chain[:3].MetadataV2(); err != nil || len(filters) != 3 || compressor != nil {
		t.Errorf("without compressor: %s, %s, %v", filters, compressor, err)
	}
	s := NewScratch()
	for _, c := range []struct {
		chain Chain
		n     int
		want  string
	}{
		{nil, 5, "6 bytes, want 5"},
		{Chain{CRC32C()}, 1, "decodes to more bytes than expected (1)"},
		{Chain{CRC32C()}, 3, "decodes to 2 bytes, want 3"},
	} {
		data := []byte("abcdef")
		if c.chain != nil {
			if data, err = c.chain.Encode(s, nil, []byte("ab")); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.chain.Decode(s, make([]byte, c.n), data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if _, err := ParseChainV2([]json.RawMessage{json.RawMessage(`{"id": "nobody"}`)}, nil, dtype.Int8); err == nil || !strings.Contains(err.Error(), "filters[0]") {
		t.Errorf("unknown filter: %v", err)
	}
	if _, err := ParseChainV2(nil, json.RawMessage(`{"id": "nobody"}`), dtype.Int8); err == nil || !strings.Contains(err.Error(), "compressor: ") {
		t.Errorf("unknown compressor: %v", err)
	}
}

// What only an encoder needs never keeps a chunk from being decoded, however it is written. Encoded with such settings,
// it can be read.
func TestEncoderSettings(t *testing.T) {
	src := sample(4096, 4, 1)
	for _, object := range []string{
		`{"id":"gzip","level":-1}`, `{"id":"gzip","level":10}`, `{"id":"zlib","level":"best"}`, `{"id":"zstd","level":100}`, `{"id":"zstd","level":1.0}`,
		`{"id":"zstd","level":"max","checksum":1,"speed":{}}`, `{"id":"zstd","level":1e400}`, `{"id":"blosc","nthreads":4,"typesize":0,"clevel":1e1,"shuffle":"shuffle","blocksize":-1}`,
		`{"id":"shuffle","elementsize":0}`, `{"id":"shuffle","elementsize":-4}`, `{"id":"shuffle","elementsize":4.0}`, `{"id":"lz4","acceleration":null,"x":[]}`, `{"id":"bz2","level":0}`,
	} {
		c, err := ParseV2(json.RawMessage(object), dtype.Float32)
		if err != nil {
			t.Errorf("%s: %v", object, err)
			continue
		}
		if (Chain{c}).ReadOnly() != nil {
			continue
		}
		s := NewScratch()
		stored, err := c.Encode(s, nil, src)
		if err != nil {
			t.Errorf("%s: %v", object, err)
			continue
		}
		if got := make([]byte, len(src)); (Chain{c}).Decode(s, got, stored) != nil || !bytes.Equal(got, src) {
			t.Errorf("%s: other values", object)
		}
		if again, err := c.MetadataV2(); err != nil || strings.Contains(string(again), `"level":-1`) && strings.Contains(object, "gzip") {
			t.Errorf("%s: written as %s, %v", object, again, err)
		}
	}
}
