package tilecodec

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	xlzw "golang.org/x/image/tiff/lzw"
)

// patterns are data whose strings are short, long, and completed by their own code.
func patterns(n int) map[string][]byte {
	r := rand.New(rand.NewPCG(5, uint64(n)))
	p := map[string][]byte{"zeros": make([]byte, n), "noise": make([]byte, n), "few": make([]byte, n), "period 3": make([]byte, n), "runs": make([]byte, n),
		"islands": make([]byte, n)}
	for i := range n {
		p["noise"][i] = byte(r.Uint32())
		if i > n/2 && i%90 == 0 { // in a sea of zeros, whose strings are long and known then
			p["islands"][i] = byte(r.Uint32())
		}
		p["few"][i] = byte(r.Uint32() & r.Uint32() & 7)
		p["period 3"][i] = byte(i % 3)
		if i > 0 {
			p["runs"][i] = p["runs"][i-1]
			if r.IntN(40) == 0 {
				p["runs"][i] = byte(r.Uint32())
			}
		}
	}
	return p
}

// What the encoder makes is read by another decoder, and by this one whatever the room: exactly, with one byte less,
// and with more.
func TestLZW(t *testing.T) {
	var e lzwEncoder
	var d lzwDecoder
	for _, n := range []int{0, 1, 2, 15, 16, 17, 253, 254, 255, 256, 257, 3836, 3837, 3838, 3839, 270_000} {
		for name, data := range patterns(n) {
			stored := e.encode(nil, data)
			if most := lzwBound(n); len(stored) > most {
				t.Errorf("%s, %d: %d bytes, the bound is %d", name, n, len(stored), most)
			}
			if got, err := io.ReadAll(xlzw.NewReader(bytes.NewReader(stored), xlzw.MSB, 8)); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s, %d: x/image reads %d bytes, %v", name, n, len(got), err)
			}
			for _, room := range []int{n, max(n-1, 0), n / 2, n + 100} {
				dst := make([]byte, room+1)
				dst[room] = 0xa5
				k, err := d.decode(context.Background(), dst[:room], stored)
				if want := data[:min(room, n)]; err != nil || !bytes.Equal(dst[:k], want) || dst[room] != 0xa5 {
					t.Errorf("%s, %d of %d: %d bytes, %v", name, room, n, k, err)
				}
			}
		}
	}
}

// Wherever the room ends, nothing is written behind it, by long strings least of all.
func TestLZWRoom(t *testing.T) {
	const n, behind = 9000, 8192
	var d lzwDecoder
	for name, data := range patterns(n) {
		stored := new(lzwEncoder).encode(nil, data)
		dst := make([]byte, n+behind)
		for room := n; room > n-400; room -= 3 {
			for i := range dst[room:] {
				dst[room+i] = 0xa5
			}
			k, err := d.decode(context.Background(), dst[:room], stored)
			if err != nil || k != room || !bytes.Equal(dst[:room], data[:room]) {
				t.Fatalf("%s, room for %d: %d bytes, %v", name, room, k, err)
			}
			if bytes.Count(dst[room:], []byte{0xa5}) != len(dst)-room {
				t.Fatalf("%s, room for %d: bytes behind it", name, room)
			}
		}
	}
}

// oldLZW stores data as libtiff did before TIFF 6.0: from the lowest bit on, with wider codes one code later.
func oldLZW(data []byte) (out []byte) {
	var word, count uint
	codes := map[string]uint{}
	width, next := uint(lzwMinWidth), uint(lzwFirst)
	put := func(code uint) {
		word |= code << count
		for count += width; count >= 8; count -= 8 {
			out = append(out, byte(word))
			word >>= 8
		}
	}
	code := func(s string) uint {
		if len(s) == 1 {
			return uint(s[0])
		}
		return codes[s]
	}
	put(lzwClear)
	s := ""
	for _, b := range data {
		if longer := s + string([]byte{b}); s == "" || len(longer) > 1 && codes[longer] != 0 {
			s = longer
			continue
		}
		put(code(s))
		codes[s+string([]byte{b})] = next
		s = string([]byte{b})
		if next++; next > 1<<width {
			width++
		}
		if next == lzwCodes-1 {
			put(lzwClear)
			clear(codes)
			width, next = lzwMinWidth, lzwFirst
		}
	}
	if s != "" {
		put(code(s))
		if next++; next > 1<<width {
			width++
		}
	}
	put(lzwEnd)
	return append(out, byte(word))
}

func TestOldLZW(t *testing.T) {
	var d lzwDecoder
	for name, data := range patterns(20_000) {
		stored := oldLZW(data)
		if stored[0] != 0 || stored[1]&1 == 0 {
			t.Fatalf("%s: begins % x", name, stored[:2])
		}
		dst := make([]byte, len(data))
		if n, err := d.decode(context.Background(), dst, stored); err != nil || n != len(data) || !bytes.Equal(dst, data) {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
}

func TestLZWErrors(t *testing.T) {
	codes := func(width uint, codes ...uint) (out []byte) {
		word, count := uint64(0), uint(0)
		for _, c := range codes {
			word = word<<width | uint64(c)
			for count += width; count >= 8; count -= 8 {
				out = append(out, byte(word>>(count-8)))
			}
		}
		return append(out, byte(word<<(8-count)))
	}
	for _, c := range []struct {
		name   string
		stored []byte
		want   string // of the output, or of the error
	}{
		{"no end", codes(9, lzwClear, 'a', 'b'), "ab"},
		{"no clear", codes(9, 'a', 'b', lzwEnd), "ab"},
		{"clear twice", codes(9, lzwClear, lzwClear, 'a', lzwClear, 'b', lzwEnd, 'c'), "ab"},
		{"own code", codes(9, lzwClear, 'a', 258, 259, lzwEnd), "aaaaaa"},
		{"nothing", nil, ""},
		{"string after a clear", codes(9, lzwClear, 300, lzwEnd), "LZW: code 300 before its string is known, byte 1 of 4"},
		{"unknown string", codes(9, lzwClear, 'a', 'b', 511, lzwEnd), "LZW: code 511 before its string is known, byte 3 of 6"},
	} {
		var d lzwDecoder
		dst := make([]byte, 100)
		n, err := d.decode(context.Background(), dst, c.stored)
		got := string(dst[:n])
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The tables of a decoder that has read damaged data do no harm to what it reads next.
func FuzzLZW(f *testing.F) {
	var e lzwEncoder
	for _, data := range patterns(700) {
		f.Add(e.encode(nil, data), uint16(700))
		f.Add(oldLZW(data), uint16(300))
	}
	var d lzwDecoder
	f.Fuzz(func(t *testing.T, src []byte, n uint16) {
		dst := make([]byte, int(n)+1)
		dst[n] = 0xa5
		k, err := d.decode(context.Background(), dst[:n], src)
		if k > int(n) || dst[n] != 0xa5 || err != nil && !strings.HasPrefix(err.Error(), "LZW: ") {
			t.Fatalf("%d bytes of %d, %v", k, n, err)
		}
		again := make([]byte, k)
		stored := e.encode(nil, dst[:k])
		if m, err := d.decode(context.Background(), again, stored); err != nil || m != k || !bytes.Equal(again, dst[:k]) {
			t.Fatalf("%d bytes come back as %d, %v", k, m, err)
		}
	})
}
