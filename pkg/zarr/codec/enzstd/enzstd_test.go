package enzstd

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"strata/pkg/zarr/codec/unzstd"
)

// A reader decodes by two decoders that know nothing of the encoder.
type reader struct {
	klauspost *zstd.Decoder
	own       unzstd.Decoder
}

func newReader(t testing.TB) *reader {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return &reader{klauspost: d}
}

// check reports a frame that does not decode to want, or does not say how long that is.
func (r *reader) check(frame, want []byte, checksum bool) error {
	got, err := r.klauspost.DecodeAll(frame, nil)
	if err != nil || !bytes.Equal(got, want) {
		return fmt.Errorf("klauspost's decoder: %d bytes, want %d, equal %v: %w", len(got), len(want), bytes.Equal(got, want), err)
	}
	var h zstd.Header
	if err := h.Decode(frame); err != nil || !h.HasFCS || h.FrameContentSize != uint64(len(want)) || h.HasCheckSum != checksum {
		return fmt.Errorf("header %+v: %w", h, err)
	}
	if checksum {
		return nil // unzstd leaves it to others
	}
	out := make([]byte, len(want))
	if n, err := r.own.Decode(out, frame); err != nil || n != len(want) || !bytes.Equal(out, want) {
		return fmt.Errorf("unzstd: %d bytes, want %d: %w", n, len(want), err)
	}
	return nil
}

// kinds returns n bytes of each kind of content that some part of the encoder is for.
func contents(n int) map[string][]byte {
	r := rand.New(rand.NewPCG(uint64(n), 4))
	m := map[string][]byte{}
	for _, k := range []string{"zero", "random", "few", "words", "wide words", "text", "mixed", "run", "skewed", "copies"} {
		m[k] = make([]byte, n)
	}
	table := make([]byte, 8<<10)
	for i := range table {
		table[i] = byte(r.Uint32())
	}
	word := func(b []byte, i, size, of int) {
		k := size * r.IntN(of)
		copy(b[i:], table[k:k+size])
	}
	for i := range n {
		m["random"][i] = byte(r.Uint32())
		m["few"][i] = byte(r.IntN(3))
		m["text"][i] = "the cat sat on a mat. "[(i+i/97)%22]
		m["skewed"][i] = byte(min(r.ExpFloat64()*2, 255))
		if i%4 == 0 {
			word(m["words"], i, 4, 1000)
		}
		if i%8 == 0 {
			word(m["wide words"], i, 8, 1000)
		}
		m["run"][i] = 9
		m["mixed"][i] = m[[]string{"random", "words", "zero", "text", "few"}[i>>15%5]][i]
		m["copies"][i] = m["random"][i%max(1, n/3)]
	}
	if n > 3 {
		m["run"][n-2] = 1
	}
	return m
}

// TestRoundTrip: lengths around those at which something changes, at all levels.
func TestRoundTrip(t *testing.T) {
	r := newReader(t)
	var e Encoder // one for all: it must forget
	lengths := []int{0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 255, 256, 257, 1023, 1024, 4 << 10, 16<<10 - 1, 16<<10 + 1, 65791, 65792, 65793,
		blockMax - 1, blockMax, blockMax + 1, 2*blockMax + 5, 400_001}
	if !testing.Short() {
		lengths = append(lengths, 3<<20+17)
	}
	for _, n := range lengths {
		for name, src := range contents(n) {
			for _, level := range []int{-131072, -7, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 22} {
				if n > 1<<20 && level != 1 && level != 3 && level != 9 {
					continue
				}
				checksum := level == 3 && n%2 == 1
				frame := e.Encode(nil, src, level, checksum)
				if err := r.check(frame, src, checksum); err != nil {
					t.Fatalf("%s, %d bytes, level %d: %v", name, n, level, err)
				}
				if most := n + 3*(n/blockMax+1) + 14 + 4; len(frame) > most {
					t.Errorf("%s, %d bytes, level %d: %d bytes, at most %d are needed", name, n, level, len(frame), most)
				}
				if again := new(Encoder).Encode(nil, src, level, checksum); !bytes.Equal(again, frame) {
					t.Fatalf("%s, %d bytes, level %d: the frame depends on those before it", name, n, level)
				}
			}
		}
	}
}

// TestAppends: a frame goes behind what is there, in the same memory if that suffices, and in other memory otherwise.
func TestAppends(t *testing.T) {
	src := contents(300_000)["words"]
	var e Encoder
	want := e.Encode(nil, src, 3, false)
	for _, room := range []int{0, 10, len(want), len(src) + 4096, 1 << 20} {
		dst := append(make([]byte, 0, 3+room), "abc"...)
		got := e.Encode(dst, src, 3, false)
		if string(got[:3]) != "abc" || !bytes.Equal(got[3:], want) {
			t.Errorf("room for %d bytes: other bytes", room)
		}
		if room >= len(want) && &got[0] != &dst[0] {
			t.Errorf("room for %d bytes: other memory", room)
		}
	}
}

// TestScalar: assembly and Go write the same bits.
func TestScalar(t *testing.T) {
	if !haveBMI2 {
		t.Skip("no assembly here")
	}
	for name, src := range contents(blockMax) {
		var counts [256]uint32
		histogram(&counts, src)
		var table huffTable
		if symbols := bytes.Count(src, src[:1]); symbols == len(src) {
			continue
		}
		table.build(&counts)
		half := len(src) / 2
		var out [2][2][]byte
		for i, fast := range []bool{false, true} {
			var s [2]huffStream
			for k := range s {
				s[k] = huffStream{src: src[k*half : (k+1)*half], dst: make([]byte, streamBound(half)+streamSlack)}
			}
			s[0].encode(3, &table.codes) // not at a multiple of 8 bits
			s[0].src = s[0].src[1:]
			encodePair(&s[0], &s[1], half/4-1, &table.codes, fast)
			s[1].encode(4, &table.codes)
			for k := range s {
				out[i][k] = s[k].dst[:s[k].close()]
			}
		}
		if !bytes.Equal(out[0][0], out[1][0]) || !bytes.Equal(out[0][1], out[1][1]) {
			t.Errorf("%s: Huffman streams differ", name)
		}
		var e Encoder
		e.Encode(nil, src, 5, false)
		if len(e.seqs) < 10 || e.sequencer.used[offsets] == nil {
			continue
		}
		w := stateWriter{seqs: e.seqs, dst: make([]byte, blockMax), tables: e.sequencer.used}
		for k, table := range w.tables {
			w.states[k] = uint64(table.start(uint8(e.seqs[len(e.seqs)-1].length >> (8 * k))))
		}
		w.lengths()
		fast := w
		fast.dst = bytes.Clone(w.dst)
		w.write(false)
		fast.write(true)
		if w.at != fast.at || w.acc != fast.acc || w.states != fast.states || !bytes.Equal(w.dst[:w.at], fast.dst[:w.at]) {
			t.Errorf("%s: %d sequences differ", name, len(e.seqs))
		}
	}
}

// TestStatesWithoutRoom: the writer of states ends in front of the end of its memory.
func TestStatesWithoutRoom(t *testing.T) {
	var e Encoder
	e.Encode(nil, contents(blockMax)["words"], 3, false)
	for _, fast := range []bool{false, haveBMI2} {
		dst := make([]byte, 1000)
		w := stateWriter{seqs: e.seqs, dst: dst[:900], tables: e.sequencer.used}
		for k, table := range w.tables {
			w.states[k] = uint64(1) << table.log
		}
		w.write(fast)
		if len(w.seqs) == 0 || w.at > 900 || w.at < 900-2*stateSlack || !bytes.Equal(dst[900:], make([]byte, 100)) {
			t.Errorf("assembly %v: %d sequences left, %d bytes", fast, len(w.seqs), w.at)
		}
	}
}

// TestPositionsStartOver: tables hold positions of 31 bits. What is behind them starts over, also in the middle of a
// frame.
func TestPositionsStartOver(t *testing.T) {
	r := newReader(t)
	for _, level := range []int{1, 3, 5, 9} {
		for name, src := range contents(700_000) {
			var e Encoder
			e.Encode(nil, src[:300_000], level, false)
			e.begin(len(src), level)
			e.base = 1<<31 - 1 - 300_000
			if err := r.check(e.Encode(nil, src, level, false), src, false); err != nil {
				t.Errorf("level %d, %s: %v", level, name, err)
			}
		}
	}
}

// TestWindow: decoders have to remember what is used, not what a level could use.
func TestWindow(t *testing.T) {
	for name, least := range map[string]uint64{"random": 1 << 17, "copies": 1 << 20} {
		src := contents(3 << 20)[name]
		var h zstd.Header
		if err := h.Decode(new(Encoder).Encode(nil, src, 3, false)); err != nil || h.WindowSize != least {
			t.Errorf("%s: a window of %d bytes, want %d; %v", name, h.WindowSize, least, err)
		}
	}
}

// TestTrends: content that changes is noticed.
func TestTrends(t *testing.T) {
	c := contents(4 << 20)
	src := append(append(append([]byte{}, c["random"][:2<<20]...), c["words"][:2<<20]...), c["text"][:2<<20]...)
	if n := len(new(Encoder).Encode(nil, src, 3, false)); n > 35<<17 {
		t.Errorf("%d bytes: of 6 MiB, 2 can be halved and 2 be left out", n)
	}
	random := c["random"]
	src = append(append([]byte{}, random...), random[2<<20:3<<20]...) // noise, a MiB of which comes again
	if n := len(new(Encoder).Encode(nil, src, 9, false)); n > 5<<20-900<<10 {
		t.Errorf("%d bytes of 5 MiB, the last of which was there before", n)
	}
}

// TestReview: whatever share of a block repeats, a way to encode it is found: near the limit between two, too.
func TestReview(t *testing.T) {
	r := newReader(t)
	random := contents(blockMax)["random"]
	rng := rand.New(rand.NewPCG(3, 3))
	for share := range 64 {
		src := bytes.Clone(random)
		for i := 64; i < len(src)-64; i += 64 {
			if rng.IntN(200) < share {
				copy(src[i:i+10], src[rng.IntN(i-10):])
			}
		}
		for _, level := range []int{1, 3, 9} {
			if err := r.check(new(Encoder).Encode(nil, src, level, false), src, false); err != nil {
				t.Fatalf("%d of 200, level %d: %v", share, level, err)
			}
		}
	}
}

// TestLongCodes: where the best codes are longer than the format allows, those of the greatest length are chosen so
// that little is lost.
func TestLongCodes(t *testing.T) {
	var counts [256]uint32
	entropy := 0.0
	for i := range counts {
		counts[i] = 1000
		if i%2 == 0 {
			counts[i] = 1 + uint32(i)/8
		}
	}
	total := uint32(0)
	for _, c := range counts {
		total += c
	}
	for _, c := range counts {
		entropy += float64(c) * math.Log2(float64(total)/float64(c)) / 8
	}
	var table huffTable
	table.build(&counts)
	share := 0
	for _, l := range table.lengths {
		share += 1 << (huffMaxBits - l)
	}
	n, ok := table.size(&counts)
	if !ok || share != 1<<huffMaxBits || float64(n) > 1.015*entropy {
		t.Errorf("%d bytes, at least %.0f are needed; codes use %d of %d", n, entropy, share, 1<<huffMaxBits)
	}
}

// TestConcurrent: encoders share nothing.
func TestConcurrent(t *testing.T) {
	c := contents(400_000)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var e Encoder
			for name, src := range c {
				if !bytes.Equal(e.Encode(nil, src, 3, true), new(Encoder).Encode(nil, src, 3, true)) {
					t.Errorf("%s: other bytes", name)
				}
			}
		})
	}
	wg.Wait()
}

// TestNoAllocation: encoders that have been used allocate nothing.
func TestNoAllocation(t *testing.T) {
	var e Encoder
	c := contents(500_000)
	dst := make([]byte, 0, 1<<20)
	for _, level := range []int{-1, 1, 3, 9} {
		for _, src := range c {
			e.Encode(dst, src, level, true)
		}
		if n := testing.AllocsPerRun(3, func() {
			for _, src := range c {
				e.Encode(dst, src, level, true)
			}
		}); n > 0 {
			t.Errorf("level %d: %v allocations", level, n)
		}
	}
}

// FuzzEncode: whatever comes in comes out.
func FuzzEncode(f *testing.F) {
	for _, n := range []int{0, 1, 40, 3000, 40_000} {
		for _, src := range contents(n) {
			f.Add(src, 3, uint8(1))
		}
	}
	r := newReader(f)
	f.Fuzz(func(t *testing.T, src []byte, level int, times uint8) {
		level = max(-131072, min(level, 22))
		if n := int(times) * len(src); n <= 1<<20 {
			src = bytes.Repeat(src, int(times)) // far matches, several blocks
		}
		var e Encoder
		for _, l := range []int{level, 1, level} {
			if err := r.check(e.Encode(nil, src, l, false), src, false); err != nil {
				t.Fatalf("%d bytes, level %d: %v", len(src), l, err)
			}
		}
	})
}
