package tilecodec

import (
	"bytes"
	"context"
	"testing"
)

func TestPackBits(t *testing.T) {
	// the example of TIFF 6.0, section 9, is Apple's
	stored := []byte{0xfe, 0xaa, 0x02, 0x80, 0x00, 0x2a, 0xfd, 0xaa, 0x03, 0x80, 0x00, 0x2a, 0x22, 0xf7, 0xaa}
	want := []byte("\xaa\xaa\xaa\x80\x00\x2a\xaa\xaa\xaa\xaa\x80\x00\x2a\x22\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa")
	dst := make([]byte, len(want))
	if n, err := decodePackBits(context.Background(), dst, stored); err != nil || n != len(want) || !bytes.Equal(dst, want) {
		t.Errorf("% x, %d, %v", dst, n, err)
	}
	if got := appendPackBits(nil, want, len(want)); !bytes.Equal(got, stored) {
		t.Errorf("encoded to % x", got)
	}
	if n, _ := decodePackBits(context.Background(), dst, []byte{0x80, 0x80, 0x00, 7, 0x80}); n != 1 || dst[0] != 7 {
		t.Errorf("-128: %d bytes, % x", n, dst[:n])
	}
	for _, row := range []int{1, 7, 128, 129, 1000} {
		for name, data := range patterns(5000) {
			stored := appendPackBits(nil, data, row)
			if most := packBitsBound(len(data), row); len(stored) > most {
				t.Errorf("%s, rows of %d: %d bytes, the bound is %d", name, row, len(stored), most)
			}
			for _, room := range []int{len(data), len(data) - 1, 100, len(data) + 10} {
				dst := bytes.Repeat([]byte{0xa5}, room+1)
				n, err := decodePackBits(context.Background(), dst[:room], stored)
				if err != nil || !bytes.Equal(dst[:n], data[:min(room, len(data))]) || dst[room] != 0xa5 {
					t.Errorf("%s, rows of %d, room for %d: %d bytes, %v", name, row, room, n, err)
				}
			}
		}
	}
}

func FuzzPackBits(f *testing.F) {
	for _, data := range patterns(300) {
		f.Add(appendPackBits(nil, data, 100), uint16(300))
	}
	f.Fuzz(func(t *testing.T, src []byte, n uint16) {
		dst := make([]byte, int(n)+1)
		dst[n] = 0xa5
		k, err := decodePackBits(context.Background(), dst[:n], src)
		if k > int(n) || dst[n] != 0xa5 || err != nil {
			t.Fatalf("%d bytes of %d, %v", k, n, err)
		}
		again := make([]byte, k)
		if m, err := decodePackBits(context.Background(), again, appendPackBits(nil, dst[:k], 77)); err != nil || m != k || !bytes.Equal(again, dst[:k]) {
			t.Fatalf("%d bytes come back as %d, %v", k, m, err)
		}
	})
}

// packBitsBound returns the number of bytes that n bytes, in rows of row bytes, become at most.
func packBitsBound(n, row int) int { return n + (row/128+1)*(n/max(row, 1)+1) }
