package jpegxr

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// golden is a file and what the library makes of it.
type golden struct {
	Name, Format string
	Shape        []int
	Sum          string // SHA-256 of the pixels
	Data         []byte
}

// goldens returns the tiles of the CZI corpus and the images that TestModes makes.
func goldens(t testing.TB) (list []golden) {
	t.Helper()
	for _, name := range []string{"testdata/czi.json", "testdata/modes.json"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var some []golden
		if err := json.Unmarshal(data, &some); err != nil {
			t.Fatal(err)
		}
		list = append(list, some...)
	}
	return list
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// TestGolden: the pixels are the library's, bit by bit.
func TestGolden(t *testing.T) {
	var d Decoder
	for _, g := range goldens(t) {
		h, err := ReadHeader(g.Data)
		if err != nil {
			t.Errorf("%s: %v", g.Name, err)
			continue
		}
		if h.Height != g.Shape[0] || h.Width != g.Shape[1] || h.Format.String() != g.Format {
			t.Errorf("%s: %+v, want %v of %s", g.Name, h, g.Shape, g.Format)
		}
		stride := h.Width * h.Format.Size()
		dst := make([]byte, h.Height*stride)
		if err := d.Decode(context.Background(), dst, stride, g.Data); err != nil {
			t.Errorf("%s: %v", g.Name, err)
		} else if sum(dst) != g.Sum {
			t.Errorf("%s: other pixels than the library's", g.Name)
		}
	}
}
