package codec

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// Sums of numcodecs 0.16, of the data and behind it.
func TestFletcher32(t *testing.T) {
	long := make([]byte, 0, 2305)
	for range 9 {
		for i := range 256 {
			long = append(long, byte(i))
		}
	}
	s := new(Scratch)
	for _, c := range []struct {
		data []byte
		sum  string
	}{
		{[]byte("a"), "00610061"}, {[]byte("ab"), "62616261"}, {[]byte("abc"), "62c4c525"}, {make([]byte, 1000), "00000000"},
		{append(long, 'x'), "3e3ae2b6"}, {bytes.Repeat([]byte{0xff}, 2000), "ffffffff"}, {bytes.Repeat([]byte{0, 1}, 721), "d102bcf8"},
	} {
		enc, err := Fletcher32().Encode(s, nil, c.data)
		if err != nil || fmt.Sprintf("%x", enc[len(c.data):]) != c.sum {
			t.Errorf("%d bytes: %x, %v, want %s", len(c.data), enc[len(c.data):], err, c.sum)
		}
		dst := make([]byte, len(c.data))
		if n, err := Fletcher32().Decode(s, dst, enc); n != len(dst) || err != nil || !bytes.Equal(dst, c.data) {
			t.Errorf("%d bytes: decoded %d, %v", len(c.data), n, err)
		}
		enc[len(enc)/2] ^= 4
		if _, err := Fletcher32().Decode(s, dst, enc); err == nil || !strings.Contains(err.Error(), "checksum") {
			t.Errorf("%d bytes, one bit wrong: %v", len(c.data), err)
		}
	}
	if _, err := Fletcher32().Decode(s, nil, []byte{1, 2, 3}); err == nil {
		t.Error("three bytes were taken for a checksum")
	}
}
