//go:build unix && !noasm

package unzstd

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/huff0"
	"golang.org/x/sys/unix"
)

// The loops in Go, which other machines run, do the same.
func TestWithoutAssembly(t *testing.T) {
	if !haveLoop {
		t.Skip("no BMI2: this is what all tests do here")
	}
	haveLoop = false
	defer func() { haveLoop = true }()
	t.Run("decode", TestDecode)
	t.Run("damage", TestDamage)
}

// fenced returns n bytes that end, or begin, where memory does: the loops cannot touch what lies beyond without a
// fault.
func fenced(t testing.TB, n int, atEnd bool) []byte {
	t.Helper()
	page := unix.Getpagesize()
	size := (n + page - 1) / page * page
	b, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	for _, edge := range [][]byte{b[:page], b[page+size:]} {
		if err := unix.Mprotect(edge, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	if atEnd {
		return b[page+size-n : page+size : page+size]
	}
	return b[page : page+n : page+n]
}

const (
	fuzzRoom     = 6000 // bytes of output
	fuzzBits     = 3000 // bytes of bits
	fuzzLiterals = 2000
)

// sequencesCase is a state of decoding with random tables, and its buffers.
type sequencesCase struct {
	s                  sequencer
	logs               [3]uint
	dst, src, literals []byte
}

// set makes a state out of numbers: with tables that seed chooses, some literals, n bytes of output, and room for
// others.
func (c *sequencesCase) set(seed uint64, bits []byte, literals, n, room, count int) {
	r := rand.New(rand.NewPCG(seed, 1))
	var d Decoder
	for i := range codes {
		counts, log := randomCounts(r, i)
		d.build(i, counts, log)
		c.logs[i] = log
	}
	c.s = d.sequencer
	src := c.src[len(c.src)-len(bits):]
	copy(src, bits)
	c.dst, c.literals = c.dst[len(c.dst)-room:], c.literals[len(c.literals)-literals-literalsSlack:]
	for i := range c.literals {
		c.literals[i] = byte(i)
	}
	for i := range c.dst {
		c.dst[i] = byte(i >> 2)
	}
	s := &c.s
	s.src, s.dst, s.literals = &src[0], &c.dst[0], &c.literals[0]
	c.src = src
	s.size, s.n, s.end, s.count = literals, n, room, count
	s.repeats = [3]int{1 + r.IntN(40), 1 + r.IntN(40), 1 + r.IntN(400)}
	s.floor, s.position = 64, 8*len(bits)-1
	for i, log := range c.logs {
		s.states[i] = uint64(r.IntN(1 << log))
	}
}

// randomCounts returns counts of the symbols of code i that fill a table.
func randomCounts(r *rand.Rand, i int) (counts []int16, log uint) {
	c := &codes[i]
	log = 5 + uint(r.IntN(int(c.maxLog-4)))
	counts = make([]int16, len(c.base))
	used := 1 + r.IntN(len(counts))
	if r.IntN(2) == 0 {
		used = min(used, 6+2*i)
	}
	for left := 1 << log; left > 0; {
		s := r.IntN(used)
		switch n := min(left, 1+r.IntN(1<<log/4)); {
		case counts[s] == 0 && r.IntN(8) == 0:
			counts[s] = -1
			left--
		case counts[s] >= 0:
			counts[s] += int16(n)
			left -= n
		default:
			used = min(used+1, len(counts)) // all may be -1
			if s == len(counts)-1 {
				clear(counts)
				left = 1 << log
			}
		}
	}
	return counts, log
}

// The loop in assembly and the one in Go leave the same state and the same bytes behind at every stop, and touch
// nothing else.
func FuzzSequenceLoop(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 24 {
		bits := make([]byte, 20+r.IntN(fuzzBits-20))
		for k := range bits {
			bits[k] = byte(r.Uint32())
			if i%3 == 0 {
				bits[k] &= byte(r.Uint32())
			}
		}
		f.Add(r.Uint64(), bits, r.IntN(fuzzLiterals), r.IntN(1000), 1000+r.IntN(5000), 1+r.IntN(3000))
	}
	var dst, src, literals [2][]byte
	for i := range 2 {
		dst[i], src[i], literals[i] = fenced(f, fuzzRoom, true), fenced(f, fuzzBits, true), fenced(f, fuzzLiterals+literalsSlack, true)
	}
	f.Fuzz(func(t *testing.T, seed uint64, bits []byte, lits, n, room, count int) {
		if !haveLoop {
			t.Skip("no BMI2: there is no other loop")
		}
		if len(bits) < 16 || len(bits) > fuzzBits {
			return
		}
		lits, count = min(max(lits, 0), fuzzLiterals), min(max(count, 1), 1<<17)
		room = min(max(room, 1), fuzzRoom)
		n = min(max(n, 0), room)
		var a, b sequencesCase
		for i, c := range []*sequencesCase{&a, &b} {
			c.dst, c.src, c.literals = dst[i], src[i], literals[i]
			c.set(seed, bits, lits, n, room, count)
		}
		for stop := 0; a.s.count > 0; stop++ {
			how := sequenceLoop(&a.s)
			if plain := b.s.loop(b.dst, b.src, b.literals); plain != how {
				t.Fatalf("stop %d: %d, in Go %d", stop, how, plain)
			}
			same(t, stop, how, &a, &b)
			if how == done && a.s.count > 1 {
				t.Fatalf("stop %d: done with %d left", stop, a.s.count)
			}
			if how != execute && !(a.s.next(a.src) && b.s.next(b.src)) {
				return
			}
			if a.s.execute(a.dst, a.literals, 0) != nil {
				return
			}
			if err := b.s.execute(b.dst, b.literals, 0); err != nil {
				t.Fatal(err)
			}
			a.s.count--
			b.s.count--
		}
	})
}

// same fails if the two states or what they have decoded differ.
func same(t *testing.T, stop, how int, a, b *sequencesCase) {
	t.Helper()
	x, y := &a.s, &b.s
	if x.position != y.position || x.states != y.states || x.count != y.count || x.n != y.n || x.lit != y.lit || x.repeats != y.repeats {
		t.Fatalf("stop %d (%d): position %d, states %v, count %d, n %d, lit %d, repeats %v; in Go %d, %v, %d, %d, %d, %v", stop, how,
			x.position, x.states, x.count, x.n, x.lit, x.repeats, y.position, y.states, y.count, y.n, y.lit, y.repeats)
	}
	if how == execute && (x.run != y.run || x.length != y.length || x.offset != y.offset) {
		t.Fatalf("stop %d: sequence %d, %d, %d; in Go %d, %d, %d", stop, x.run, x.length, x.offset, y.run, y.length, y.offset)
	}
	if !bytes.Equal(a.dst[:x.n], b.dst[:y.n]) {
		t.Fatalf("stop %d (%d): other bytes", stop, how)
	}
}

// Literals decode to the same with both loops, and to what klauspost's decoder says if it accepts them; nothing before
// the streams but the margin, and nothing behind them, is touched.
func FuzzHuffman(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, b := range inputs(3000, 2) {
		for _, n := range []int{3000, 400, 97} {
			var s huff0.Scratch
			s.Reuse = huff0.ReusePolicyNone
			if data, _, err := huff0.Compress4X(b[:n], &s); err == nil {
				f.Add(data, n, 4)
				bad := bytes.Clone(data)
				bad[r.IntN(len(bad))]++
				f.Add(bad, n, 4)
			}
			if data, _, err := huff0.Compress1X(b[:n], &s); err == nil {
				f.Add(data, n, 1)
			}
		}
	}
	front, back := fenced(f, 1<<15, false), fenced(f, 1<<15, true)
	out := fenced(f, 1<<14, true)
	var d Decoder
	f.Fuzz(func(t *testing.T, data []byte, n, streams int) {
		if !haveLoop {
			t.Skip("no BMI2: there is no other loop")
		}
		n = min(max(n, 0), 1<<14)
		if streams != 1 {
			streams = 4
		}
		if len(data)+streamsMargin > len(back) {
			return
		}
		var got [2][]byte
		var errs [2]string
		for i := range 2 {
			src := front[:streamsMargin+len(data)]
			if i == 1 {
				src = back[len(back)-len(src):]
			}
			copy(src[streamsMargin:], data)
			haveLoop = i == 0
			at, err := d.readHuffman(src, streamsMargin)
			if err == "" {
				o := out[len(out)-n:]
				if err = d.huffman.decode(o, src, at, streams); err == "" {
					got[i] = bytes.Clone(o)
				}
			}
			errs[i] = err
			haveLoop = true
		}
		if errs[0] != errs[1] || !bytes.Equal(got[0], got[1]) {
			t.Fatalf("in assembly %d bytes, %q; in Go %d, %q", len(got[0]), errs[0], len(got[1]), errs[1])
		}
		if errs[0] != "" || n == 0 {
			return
		}
		table, rest, err := huff0.ReadTable(data, nil)
		if err != nil {
			return
		}
		var want []byte
		if streams == 4 {
			want, err = table.Decoder().Decompress4X(make([]byte, 0, n), rest)
		} else {
			want, err = table.Decoder().Decompress1X(make([]byte, 0, n), rest)
		}
		if err == nil && !bytes.Equal(want, got[0]) {
			t.Fatal("klauspost's decoder has other bytes")
		}
	})
}
