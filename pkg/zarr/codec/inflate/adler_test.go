package inflate

import (
	"bytes"
	"hash/adler32"
	"testing"
)

func TestAdler(t *testing.T) {
	full := bytes.Repeat([]byte{0xff}, 1<<20)
	mixed := sample("random", 1<<20)
	sizes := []int{5551, 5552, 5553, 11104, 1<<18 - 1, 1 << 18, 1<<18 + 1, 1<<19 + 33, 1 << 20}
	for n := range 200 {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		for i, p := range [][]byte{full[:n], mixed[:n], mixed[len(mixed)-n:]} {
			if got, want := adler(p), adler32.Checksum(p); got != want {
				t.Errorf("%d bytes of sample %d: %08x, it should be %08x", n, i, got, want)
			}
		}
	}
}
