package codec

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"

	"strata/pkg/dtype"
)

// seeds adds the chunks of the corpus, good and hostile, and of numcodecs that
// went through the codec of that name alone.
func seeds(f *testing.F, name string) {
	f.Helper()
	for _, archive := range []string{"v2.zip", "v3.zip", "neg.zip"} {
		files := corpusFiles(f, archive)
		for _, c := range append(chunksV2(f, files, name, nil), chunksV3(f, files, name, nil)...) {
			if len(c.chain) == 1 && c.chain[0].Name() == name && len(c.data) < 8<<10 {
				f.Add(c.data, c.size)
			}
		}
	}
	for _, g := range readGolden(f).Codecs {
		if strings.Contains(string(g.Config), `"`+name+`"`) {
			f.Add(unbase64(f, g.Encoded), len(unbase64(f, g.Decoded)))
		}
	}
}

// fuzz decodes with c: no panic, no write outside of the output, and what
// decodes is the same when it is decoded again into dirty memory, and is plausible.
func fuzz(f *testing.F, c Codec) {
	s := NewScratch()
	seeds(f, c.Name())
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		n = min(max(n, 0), 1<<16)
		got, err := decodeGuarded(t, c, s, n, data)
		if c.Name() == "blosc" && err == nil {
			data = data[:signed(data[12:])] // else there is something behind the container
		}
		if p := (Chain{c}).Plausible(data, n); p != nil && err == nil && n > 0 && len(got) == n {
			t.Fatalf("it decodes, but: %v", p)
		}
		if err != nil {
			return
		}
		dirty := bytes.Repeat([]byte{0xee}, n)
		k, err := c.Decode(s, dirty, data)
		if err != nil || !bytes.Equal(dirty[:k], got) {
			t.Fatalf("decodes to other bytes the second time: %v", err)
		}
	})
}

func parsed(f *testing.F, object string) Codec {
	f.Helper()
	c, err := ParseV2(json.RawMessage(object), dtype.Float32)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

func FuzzBlosc(f *testing.F) { fuzz(f, parsed(f, `{"id": "blosc"}`)) }
func FuzzZstd(f *testing.F)  { fuzz(f, Zstd(1, false)) }
func FuzzLZ4(f *testing.F)   { fuzz(f, LZ4(1)) }
func FuzzGzip(f *testing.F)  { fuzz(f, Gzip(1)) }
func FuzzZlib(f *testing.F)  { fuzz(f, Zlib(1)) }
func FuzzBZ2(f *testing.F)   { fuzz(f, parsed(f, `{"id": "bz2"}`)) }
func FuzzLZMA(f *testing.F)  { fuzz(f, parsed(f, `{"id": "lzma", "format": 0}`)) }
func FuzzLZMARaw(f *testing.F) {
	fuzz(f, parsed(f, `{"id": "lzma", "format": 3, "filters": [{"id": 3, "dist": 4}, {"id": 33}]}`))
}

func FuzzCastValue(f *testing.F) {
	f.Add([]byte{0, 0, 0xc0, 0x7f, 0, 0, 0, 0x4f, 0, 0, 0, 0xcf, 0, 0, 0x80, 0xff}, 8)
	c, err := ParseFilterV3("cast_value", json.RawMessage(`{"data_type": "float32", "out_of_range": "wrap", "scalar_map": {"decode": [["NaN", 3]]}}`), dtype.Int16)
	if err != nil {
		f.Fatal(err)
	}
	fuzz(f, c)
}

// FuzzLZ4Long compares the decoder of long blocks with the other one.
func FuzzLZ4Long(f *testing.F) {
	f.Add([]byte("\x50abcde"), 5)
	f.Add([]byte{}, 127)
	f.Add([]byte("\x1fa\x01\x00\x80\x10b"), 150)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		n = min(max(n, 1), 1<<16)
		buf := append(make([]byte, n), guard...)
		got, err := decodeLZ4(t.Context(), buf[:n], data)
		if string(buf[n:]) != guard || err == nil && (got < 0 || got > n) {
			t.Fatalf("%d of %d bytes", got, n)
		}
		want := make([]byte, n)
		k, wantErr := lz4.UncompressBlock(data, want)
		if err == nil && wantErr == nil && (k != got || !bytes.Equal(want[:k], buf[:got])) {
			t.Fatalf("%d bytes, the other decoder has %d, or others", got, k)
		}
		if err != nil && wantErr == nil && len(data) > 0 { // what that one takes, and more: C readers do
			t.Fatalf("%v, the other decoder has %d bytes", err, k)
		}
		if err != nil || wantErr == nil || len(data) >= 1<<10 {
			return
		}
		last := false
		for at := range data { // one of them is the last token, which may have the length of a match
			other := bytes.Clone(data)
			other[at] &= 0xf0
			k, e := lz4.UncompressBlock(other, want)
			last = last || e == nil && bytes.Equal(want[:k], buf[:got])
		}
		if !last {
			t.Fatalf("%d bytes, the other decoder says %v", got, wantErr)
		}
	})
}

// FuzzBloscLZ decodes bare streams.
func FuzzBloscLZ(f *testing.F) {
	f.Add([]byte("\x04abcde\xe0\xff\x10\x04"), 300)
	f.Add([]byte{0x1f}, 32)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		n = min(max(n, 0), 1<<16)
		buf := append(make([]byte, n), guard...)
		got, err := decodeBloscLZ(t.Context(), buf[:n], data)
		if string(buf[n:]) != guard || err == nil && (got < 0 || got > n) {
			t.Fatalf("%d of %d bytes", got, n)
		}
	})
}

// FuzzChain reads the filters and the compressor of a .zarray and decodes with them: no panic,
// no write outside of the output, and no more memory between the codecs than Between says.
func FuzzChain(f *testing.F) {
	for _, g := range readGolden(f).Codecs {
		f.Add("["+string(g.Config)+"]", string(g.Config), uint8(dtype.Float32), unbase64(f, g.Encoded), len(unbase64(f, g.Decoded)))
	}
	f.Add(`[{"id": "astype", "decode_dtype": "|u1", "encode_dtype": "<f8"}, {"id": "astype", "decode_dtype": "|u1", "encode_dtype": "<f8"}]`,
		`{"id": "zstd"}`, uint8(dtype.Uint8), []byte{0}, 64)
	f.Add(`[{"id": "packbits"}, {"id": "crc32"}, {"id": "gzip"}]`, `{"id": "bz2"}`, uint8(dtype.Bool), []byte{0}, 64)
	f.Fuzz(func(t *testing.T, filters, compressor string, elem uint8, data []byte, n int) {
		var list []json.RawMessage
		if json.Unmarshal([]byte(filters), &list) != nil {
			return
		}
		chain, err := ParseChainV2(list, json.RawMessage(compressor), dtype.Type(elem%uint8(dtype.Complex128))+1)
		if err != nil {
			return
		}
		n = min(max(n, 0), 1<<14)
		most := chain.Between(1, n)
		if lo, hi := chain.EncodedSize(n); lo < 0 || hi < lo || most[0] < 0 || most[1] < 0 {
			t.Fatalf("encoded size %d to %d, %v between", lo, hi, most)
		}
		if most[0] > 1<<20 || most[1] > 1<<20 {
			return // whoever decodes asks before that
		}
		s := NewScratch()
		buf := append(make([]byte, n), guard...)
		_ = chain.Decode(s, buf[:n:n], data)
		if string(buf[n:]) != guard {
			t.Fatal("written outside of the output")
		}
		for i, b := range s.chain {
			if cap(b) > most[i] {
				t.Fatalf("buffer %d has %d bytes, not %d", i, cap(b), most[i])
			}
		}
	})
}

// FuzzMetadata reads codecs from metadata; what is accepted decodes and encodes
// without a panic, and its own metadata is accepted.
func FuzzMetadata(f *testing.F) {
	for _, g := range readGolden(f).Codecs {
		f.Add(string(g.Config), uint8(dtype.Float32), unbase64(f, g.Encoded))
	}
	for _, g := range readGolden(f).V3 {
		f.Add(`{"id": "`+strings.TrimPrefix(g.Codec.Name, prefixV3)+`", `+strings.TrimPrefix(string(g.Codec.Configuration), "{"), uint8(dtype.Int32), []byte("0123456789abcdef"))
	}
	s := NewScratch()
	f.Fuzz(func(t *testing.T, object string, elem uint8, data []byte) {
		ty := dtype.Type(elem%uint8(dtype.Complex128)) + 1
		c, err := ParseV2(json.RawMessage(object), ty)
		if err != nil {
			if strings.ContainsRune(err.Error(), '\n') {
				t.Fatalf("message of several lines: %q", err)
			}
			return
		}
		data = data[:min(len(data), 1<<12)]
		if lo, hi := c.EncodedSize(len(data)); lo < 0 || hi < lo {
			t.Fatalf("encoded size %d to %d", lo, hi)
		}
		_, _ = decodeGuarded(t, c, s, 1<<12, data)
		if len(data) < 256 {
			_, _ = c.Encode(s, nil, data)
		}
		meta, err := c.MetadataV2()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseV2(meta, ty); err != nil {
			t.Fatalf("%s became %s: %v", object, meta, err)
		}
		if _, err := c.MetadataV3(); err != nil {
			t.Fatal(err)
		}
	})
}
