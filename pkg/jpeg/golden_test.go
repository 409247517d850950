package jpeg

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// golden is a stream of testdata and what libjpeg-turbo makes of it.
type golden struct {
	Name        string
	Shape       []int
	Stored, RGB string // SHA-256 of the pixels
	data        []byte
}

func (g *golden) config(c Color) Config {
	return Config{Width: g.Shape[1], Height: g.Shape[0], Components: append(g.Shape, 1)[2], Color: c}
}

func goldens(t testing.TB) []golden {
	t.Helper()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []golden
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if list[i].data, err = os.ReadFile(filepath.Join("testdata", list[i].Name+".jpg")); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// TestGolden: the pixels are libjpeg-turbo's, bit by bit.
func TestGolden(t *testing.T) {
	var d Decoder
	for _, g := range goldens(t) {
		for color, want := range []string{AsStored: g.Stored, ToRGB: g.RGB} {
			c := g.config(Color(color))
			dst := make([]byte, c.Width*c.Height*c.Components)
			rows, err := d.Decode(context.Background(), dst, nil, g.data, c)
			if err != nil {
				t.Errorf("%s, colour %d: %v", g.Name, color, err)
			} else if rows != c.Height {
				t.Errorf("%s, colour %d: %d rows of %d", g.Name, color, rows, c.Height)
			} else if sum(dst) != want {
				t.Errorf("%s, colour %d: other pixels than libjpeg-turbo's", g.Name, color)
			}
		}
	}
}
