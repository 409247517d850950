package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"strata/pkg/dtype"
)

// Whatever number stands in a codec's configuration: it is refused, or chunks can be encoded and decoded, or
// the codec says that it only reads.
func TestParameters(t *testing.T) {
	fields := map[string][]string{
		"blosc": {"clevel", "shuffle", "typesize", "blocksize"}, "zstd": {"level"}, "gzip": {"level"}, "zlib": {"level"}, "lz4": {"acceleration"},
		"shuffle": {"elementsize"}, "bitround": {"keepbits"}, "quantize": {"digits"}, "fixedscaleoffset": {"offset", "scale"},
		"delta": {"dtype"}, "astype": {"encode_dtype"}, "lzma": {"preset", "check", "format"}, "bz2": {"level"},
	}
	rest := map[string]string{
		"quantize": `"dtype":"<f4","digits":2`, "fixedscaleoffset": `"dtype":"<f4","astype":"<i2","offset":0,"scale":1`, "astype": `"decode_dtype":"<f4","encode_dtype":"<f8"`, "delta": `"dtype":"<f4"`,
	}
	values := []string{"0", "-1", "1", "-0.0", "1e308", "1e-320", "3e38", "1e39", "300", "-300", "255", "256", "2147483647", "2147483648", "1e999", `"NaN"`, `"Infinity"`, "null", "[]", "{}", "true", `""`, `"<f2"`, `"|S4"`, `"<M8[ns]"`}
	data := make([]byte, 96)
	for i := range data {
		data[i] = byte(i * 37)
	}
	read := 0
	for id, names := range fields {
		for _, name := range names {
			for _, v := range values {
				object := fmt.Sprintf(`{"id":%q,%q:%s`, id, name, v)
				var others map[string]json.RawMessage
				if err := json.Unmarshal([]byte("{"+rest[id]+"}"), &others); err != nil {
					t.Fatal(err)
				}
				for k, other := range others {
					if k != name {
						object += fmt.Sprintf(`,%q:%s`, k, other)
					}
				}
				c, err := ParseV2(json.RawMessage(object+"}"), dtype.Float32)
				if err != nil {
					continue
				}
				s := new(Scratch)
				enc, err := c.Encode(s, nil, data)
				if readOnly := (Chain{c}).ReadOnly(); err != nil || readOnly != nil {
					if errors.Is(err, ErrReadOnly) != (readOnly != nil) && id != "shuffle" {
						t.Errorf("%s}: encode: %v, read-only: %v", object, err, readOnly)
					}
					continue
				}
				read++
				if err := (Chain{c}).Decode(s, make([]byte, len(data)), enc); err != nil {
					t.Errorf("%s}: %v", object, err)
				}
			}
		}
	}
	if read < 40 {
		t.Errorf("only %d settings were taken", read)
	}
}
