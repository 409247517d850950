package inflate

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// bitWriter writes numbers lowest bit first, and code words highest bit first, as DEFLATE packs them.
type bitWriter struct {
	b       []byte
	n       int
	notLast bool // what block writes is not the final block
}

// block begins a block of a type.
func (w *bitWriter) block(kind int) *bitWriter {
	if w.notLast {
		return w.bits(0, 1).bits(kind, 2)
	}
	return w.bits(1, 1).bits(kind, 2)
}

// stored begins a stored block: padding bits, LEN, NLEN.
func (w *bitWriter) stored(padding, n, not int) *bitWriter {
	w.block(0)
	for w.n%8 != 0 {
		w.bits(padding, 1)
	}
	return w.bits(n, 16).bits(not, 16)
}

func (w *bitWriter) bits(v, n int) *bitWriter {
	for i := range n {
		if w.n%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[w.n/8] |= byte(v>>i&1) << (w.n % 8)
		w.n++
	}
	return w
}

func (w *bitWriter) word(v, n int) *bitWriter {
	for i := n - 1; i >= 0; i-- {
		w.bits(v>>i, 1)
	}
	return w
}

// fixedLit writes a literal or length symbol of the fixed code, RFC 1951, 3.2.6.
func (w *bitWriter) fixedLit(s int) *bitWriter {
	switch {
	case s < 144:
		return w.word(0x30+s, 8)
	case s < 256:
		return w.word(0x190+s-144, 9)
	case s < 280:
		return w.word(s-256, 7)
	}
	return w.word(0xc0+s-280, 8)
}

func (w *bitWriter) bytes(b ...byte) *bitWriter {
	for _, c := range b {
		w.bits(int(c), 8)
	}
	return w
}

// dynamic begins a final dynamic block whose code lengths are written with a code of 4 bits for each of the lengths 0 …
// 15.
func (w *bitWriter) dynamic(lit, dist []int) *bitWriter {
	w.block(2).bits(len(lit)-257, 5).bits(len(dist)-1, 5).bits(15, 4)
	for _, s := range lenOrder {
		if s < 16 {
			w.bits(4, 3)
		} else {
			w.bits(0, 3)
		}
	}
	for _, l := range append(append([]int{}, lit...), dist...) {
		w.word(l, 4)
	}
	return w
}

// lens returns n code lengths, 0 but for those given.
func lens(n int, of map[int]int) []int {
	l := make([]int, n)
	for s, k := range of {
		l[s] = k
	}
	return l
}

type handMadeCase struct {
	name  string
	write func(w *bitWriter)
	data  string
	is    error
	fault string
}

func (c handMadeCase) stream() []byte {
	var w bitWriter
	c.write(&w)
	return w.b
}

// inside returns the stream behind a block of 600 bytes and before one of 300, or before junk, so that the fast loop
// comes upon it.
func (c handMadeCase) inside() (s []byte, data string) {
	w := bitWriter{notLast: true}
	w.block(1)
	for range 600 {
		w.fixedLit('x')
	}
	w.fixedLit(256)
	c.write(&w)
	w.notLast = false
	w.stored(0, 300, 0xffff-300).bytes(bytes.Repeat([]byte{'z'}, 300)...)
	return w.b, strings.Repeat("x", 600) + c.data + strings.Repeat("z", 300)
}

// Streams made bit by bit: data is what they decode to, or fault a part of the message and is the kind of error.
var handMade = []handMadeCase{
	{"empty input", func(w *bitWriter) {}, "", ErrTruncated, ""},
	{"block type 3", func(w *bitWriter) { w.block(3).bits(0, 99) }, "", ErrCorrupt, "byte 0, bit 3: block type 3"},
	{"stored", func(w *bitWriter) { w.stored(0, 0x2, 0xfffd).bytes('a', 'b') }, "ab", nil, ""},
	{"stored, padding not zero", func(w *bitWriter) { w.stored(1, 0x2, 0xfffd).bytes('a', 'b') }, "ab", nil, ""},
	{"stored, empty", func(w *bitWriter) { w.stored(0, 0x0, 0xffff) }, "", nil, ""},
	{"stored, no length", func(w *bitWriter) { w.block(0).bits(0, 5).bytes(0, 0, 0xff) }, "", ErrTruncated, ""},
	{"stored, wrong complement", func(w *bitWriter) { w.stored(0, 0x2, 0xfefd).bytes('a', 'b') }, "", ErrCorrupt, "0x0002"},
	{"stored, cut", func(w *bitWriter) { w.stored(0, 0x2, 0xfffd).bytes('a') }, "", ErrTruncated, ""},
	{"something follows", func(w *bitWriter) { w.stored(0, 0x0, 0xffff).bytes(0) }, "", ErrCorrupt, "1 bytes follow"},
	{"fixed", func(w *bitWriter) { w.block(1).fixedLit('a').fixedLit(200).fixedLit(256) }, "a\xc8", nil, ""},
	{"fixed, cut before the end", func(w *bitWriter) { w.block(1).fixedLit('a').fixedLit('b') }, "", ErrTruncated, ""},
	{"fixed, no length 286", func(w *bitWriter) { w.block(1).fixedLit(286).fixedLit(256) }, "", ErrCorrupt, "no such literal or length"},
	{"fixed, no length 287", func(w *bitWriter) { w.block(1).fixedLit(287).fixedLit(256) }, "", ErrCorrupt, "no such literal or length"},
	{"fixed, no distance 30", func(w *bitWriter) { w.block(1).fixedLit('a').fixedLit(257).word(30, 5).fixedLit(256) }, "", ErrCorrupt, "no such distance"},
	{"fixed, no distance 31", func(w *bitWriter) { w.block(1).fixedLit('a').fixedLit(257).word(31, 5).fixedLit(256) }, "", ErrCorrupt, "no such distance"},
	{"match", func(w *bitWriter) { w.block(1).fixedLit('a').fixedLit('b').fixedLit(258).word(1, 5).fixedLit(256) }, "ababab", nil, ""},
	{"match before the start", func(w *bitWriter) { w.block(1).fixedLit('a').fixedLit(257).word(1, 5).fixedLit(256) }, "", ErrCorrupt, "distance 2 with 1 bytes"},
	{"match at the start", func(w *bitWriter) { w.block(1).fixedLit(257).word(0, 5).fixedLit(256) }, "", ErrCorrupt, "distance 1 with 0 bytes"},
	{"length 258 both ways", func(w *bitWriter) {
		w.block(1).fixedLit('a').fixedLit(285).word(0, 5).fixedLit(284).bits(31, 5).word(0, 5).fixedLit(256)
	}, strings.Repeat("a", 517), nil, ""},
	{"most distant match", func(w *bitWriter) {
		long := w.notLast
		w.notLast = true
		w.stored(0, 0x8000, 0x7fff).bytes(bytes.Repeat([]byte("0123456789abcdef"), 2048)...)
		w.notLast = long
		w.block(1).fixedLit(257).word(29, 5).bits(0x1fff, 13).fixedLit(256)
	}, strings.Repeat("0123456789abcdef", 2048) + "012", nil, ""},
	{"too many literal codes", func(w *bitWriter) { w.block(2).bits(30, 5).bits(0, 5).bits(15, 4).bits(0, 200) }, "", ErrCorrupt, "287 literal"},
	{"too many distance codes", func(w *bitWriter) { w.block(2).bits(0, 5).bits(30, 5).bits(15, 4).bits(0, 200) }, "", ErrCorrupt, "31 distance"},
	{"cut within the code lengths", func(w *bitWriter) { w.block(2).bits(0, 14) }, "", ErrTruncated, ""},
	{"length code over-subscribed", func(w *bitWriter) { w.block(2).bits(0, 14).bits(1, 3).bits(1, 3).bits(1, 3).bits(0, 200) }, "", ErrCorrupt, "code lengths"},
	{"length code incomplete", func(w *bitWriter) { w.block(2).bits(0, 14).bits(1, 3).bits(0, 200) }, "", ErrCorrupt, "code lengths"},
	{"length code empty", func(w *bitWriter) { w.block(2).bits(0, 14).bits(0, 200) }, "", ErrCorrupt, "code lengths"},
	{"repeat at the start", func(w *bitWriter) { w.block(2).bits(0, 14).bits(1, 3).bits(1, 3).bits(0, 6).bits(0, 200) }, "", ErrCorrupt, "repeats the one before"},
	{"repeat beyond the end", func(w *bitWriter) { // symbols 17 and 18 of 1 bit: 2·138 lengths, then more than 258 in all
		w.block(2).bits(0, 14).bits(0, 3).bits(1, 3).bits(1, 3).bits(0, 3).bits(1, 1).bits(127, 7).bits(1, 1).bits(127, 7).bits(0, 99)
	}, "", ErrCorrupt, "more code lengths than the 258"},
	{"no end of block", func(w *bitWriter) { w.dynamic(lens(257, map[int]int{'a': 1, 'b': 1}), []int{1}).bits(0, 99) }, "", ErrCorrupt, "end of the block"},
	{"literal code over-subscribed", func(w *bitWriter) { w.dynamic(lens(257, map[int]int{'a': 1, 'b': 1, 256: 1}), []int{1}).bits(0, 99) }, "", ErrCorrupt, "literals and lengths"},
	{"literal code incomplete", func(w *bitWriter) { w.dynamic(lens(257, map[int]int{'a': 2, 'b': 2, 256: 2}), []int{1}).bits(0, 99) }, "", ErrCorrupt, "literals and lengths"},
	{"literal code of one word of 2 bits", func(w *bitWriter) { w.dynamic(lens(257, map[int]int{256: 2}), []int{1}).bits(0, 99) }, "", ErrCorrupt, "literals and lengths"},
	{"only the end of block", func(w *bitWriter) { w.dynamic(lens(257, map[int]int{256: 1}), []int{0}).bits(0, 1) }, "", nil, ""},
	{"only the end of block, the other bit", func(w *bitWriter) { w.dynamic(lens(257, map[int]int{256: 1}), []int{0}).bits(1, 1) }, "", ErrCorrupt, "no such literal"},
	{"distance code over-subscribed", func(w *bitWriter) { w.dynamic(lens(257, map[int]int{'a': 1, 256: 1}), []int{1, 1, 1}).bits(0, 99) }, "", ErrCorrupt, "code for distances"},
	{"distance code incomplete", func(w *bitWriter) { w.dynamic(lens(257, map[int]int{'a': 1, 256: 1}), []int{1, 2}).bits(0, 99) }, "", ErrCorrupt, "code for distances"},
	{"one distance of 2 bits", func(w *bitWriter) { w.dynamic(lens(257, map[int]int{'a': 1, 256: 1}), []int{2}).bits(0, 99) }, "", ErrCorrupt, "code for distances"},
	{"no distances, none used", func(w *bitWriter) { w.dynamic(lens(257, map[int]int{'a': 1, 256: 1}), []int{0}).bits(0, 1).bits(1, 1) }, "a", nil, ""},
	{"no distances, one used", func(w *bitWriter) {
		w.dynamic(lens(258, map[int]int{'a': 1, 256: 2, 257: 2}), []int{0}).bits(0, 1).word(3, 2).bits(0, 99)
	}, "", ErrCorrupt, "no such distance"},
	{"one distance, used", func(w *bitWriter) {
		w.dynamic(lens(258, map[int]int{'a': 1, 256: 2, 257: 2}), []int{1}).bits(0, 1).word(3, 2).bits(0, 1).word(2, 2)
	}, "aaaa", nil, ""},
	{"one distance, the other bit", func(w *bitWriter) {
		w.dynamic(lens(258, map[int]int{'a': 1, 256: 2, 257: 2}), []int{1}).bits(0, 1).word(3, 2).bits(1, 1).bits(0, 99)
	}, "", ErrCorrupt, "no such distance"},
	{"symbol 285 and distances of 15 bits", func(w *bitWriter) {
		l := lens(286, map[int]int{'a': 1, 256: 2, 285: 2})
		dist := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15}
		w.dynamic(l, dist).bits(0, 1).word(3, 2).word(0, 1).word(3, 2).word(0x7fff, 15).bits(0, 6).word(2, 2)
	}, strings.Repeat("a", 1+258+258), nil, ""},
	{"literals of 15 bits", func(w *bitWriter) {
		l := lens(257, map[int]int{0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 7: 8, 8: 9, 9: 10, 10: 11, 11: 12, 12: 13, 13: 14, 14: 15, 256: 15})
		w.dynamic(l, []int{0})
		for s := 14; s >= 0; s-- {
			n := min(s+1, 15)
			w.word(1<<n-2, n)
		}
		w.word(0x7fff, 15)
	}, "\x0e\x0d\x0c\x0b\x0a\x09\x08\x07\x06\x05\x04\x03\x02\x01\x00", nil, ""},
}

func TestHandMade(t *testing.T) {
	check := func(t *testing.T, s []byte, data string, is error, fault string) {
		t.Helper()
		got, err := guarded(t, Raw, 70_000, s)
		if !errors.Is(err, is) {
			t.Fatalf("%v, it should be: %v", err, is)
		}
		if is == nil && string(got) != data {
			t.Errorf("%q, it should be %q", got, data)
		}
		if is != nil && (!strings.Contains(err.Error(), fault) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q should be one line and say %q", err, fault)
		}
	}
	for _, c := range handMade {
		t.Run(c.name, func(t *testing.T) { check(t, c.stream(), c.data, c.is, c.fault) })
		if c.is == ErrTruncated || strings.HasPrefix(c.fault, "distance") || strings.Contains(c.fault, "follow") {
			continue // not so in the middle of a stream
		}
		t.Run(c.name+", inside", func(t *testing.T) {
			s, data := c.inside()
			check(t, s, data, c.is, c.fault[max(0, strings.LastIndex(c.fault, ": ")):])
		})
	}
}

// TestTooFar: the fast loop sees distances that are too far, too.
func TestTooFar(t *testing.T) {
	var w bitWriter
	w.block(1)
	for range 300 {
		w.fixedLit('x')
	}
	w.fixedLit(257).word(16, 5).bits(300-257+1, 7) // 257 … 384
	for range 300 {
		w.fixedLit('x')
	}
	w.fixedLit(256)
	_, err := guarded(t, Raw, 5000, w.b)
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "distance 301 with 300 bytes") {
		t.Error(err)
	}
}
