package codec

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"strata/pkg/dtype"
	"strata/tests/race"
)

// impatient is a context that ends when it has been looked at so often.
type impatient struct {
	context.Context
	looks, most int
}

func (c *impatient) Err() error {
	if c.looks++; c.looks > c.most {
		return context.Canceled
	}
	return nil
}

// Every codec whose decoding takes long looks whether it should go on, again and again, and
// ends with the context's error.
func TestDecodingEnds(t *testing.T) {
	race.Leave(t)
	const size = 24 << 20
	data := make([]byte, size)
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < size; i += 4 { // one long match would be decoded at once
		data[i] = byte(r.Uint32N(3))
	}
	for _, object := range []string{
		`{"id": "gzip"}`, `{"id": "zlib"}`, `{"id": "zstd"}`, `{"id": "zstd", "checksum": true}`, `{"id": "lzma"}`, `{"id": "lz4"}`,
		`{"id": "blosc", "cname": "zstd", "blocksize": 25165824, "shuffle": 0}`, `{"id": "blosc", "cname": "zlib", "blocksize": 25165824}`,
		`{"id": "blosc", "cname": "lz4"}`, `{"id": "blosc", "cname": "lz4", "blocksize": 25165824, "shuffle": 0}`,
		`{"id": "delta", "dtype": "<u2"}`, `{"id": "astype", "encode_dtype": "|u1", "decode_dtype": "<u2"}`,
		`{"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": "<u2"}`, `{"id": "packbits"}`,
	} {
		elem := dtype.Uint16
		src := data
		switch object {
		case `{"id": "packbits"}`:
			elem, src = dtype.Bool, make([]byte, size)
		case `{"id": "lzma"}`:
			src = make([]byte, size) // which its encoder is quicker with
		}
		c, err := ParseV2(json.RawMessage(object), elem)
		if err != nil {
			t.Fatal(err)
		}
		s := NewScratch()
		enc, err := c.Encode(s, nil, src)
		if err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		dst := make([]byte, size)
		all := &impatient{context.Background(), 0, 1 << 40}
		s.Bind(all)
		if n, err := c.Decode(s, dst, enc); err != nil || n != size {
			t.Fatalf("%s: %d bytes, %v", object, n, err)
		}
		if all.looks < size/(8<<20) {
			t.Errorf("%s: looked %d times while it decoded %d MiB", object, all.looks, size>>20)
		}
		s.Bind(&impatient{context.Background(), 0, all.looks / 2})
		if _, err := c.Decode(s, dst, enc); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v after the context's end", object, err)
		}
	}
}
