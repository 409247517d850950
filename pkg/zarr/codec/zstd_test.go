package codec

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"

	"strata/pkg/zarr/codec/enzstd"
)

// noisy is n bytes of elements of 4 bytes: constant, random, and of few values,
// one after the other, as 12-bit noise in floats is; every 300 KiB there is a
// stretch of zeros.
func noisy(n int) []byte {
	r := rand.New(rand.NewPCG(8, 9))
	b := make([]byte, n)
	for i := range b {
		if i%(300<<10) > 290<<10 {
			continue
		}
		switch i % 4 {
		case 1:
			b[i] = byte(r.Uint32()) & 0xf0
		case 2:
			b[i] = byte(r.Uint32())
		case 3:
			b[i] = "DEEE"[r.IntN(4)]
		}
	}
	return b
}

// The frames that are put together here are read by other decoders, too, and
// say how much they hold.
func TestOwnFrames(t *testing.T) {
	other, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	s := NewScratch()
	for _, n := range []int{4096, 5000, 1 << 17, 1<<17 + 1, 1<<19 - 3, 1 << 20} {
		for kind, src := range map[string][]byte{"noise": noisy(n), "zero": make([]byte, n), "smooth": sample(n, 4, 1)} {
			for _, level := range []int{-1, 1, 3} {
				c := Zstd(level, false)
				encoded, err := c.Encode(s, nil, src)
				if err != nil {
					t.Fatal(err)
				}
				if _, hi := c.EncodedSize(n); len(encoded) > hi || level > 0 && len(encoded) > n {
					t.Errorf("%s: %d bytes became %d", kind, n, len(encoded))
				}
				if got, err := other.DecodeAll(encoded, nil); err != nil || !bytes.Equal(got, src) {
					t.Errorf("%s, %d bytes, level %d: the other decoder: %v", kind, n, level, err)
				}
				if got, err := decodeGuarded(t, c, s, n, encoded); err != nil || !bytes.Equal(got, src) {
					t.Errorf("%s, %d bytes, level %d: %v", kind, n, level, err)
				}
				var h zstd.Header
				if err := h.Decode(encoded); err != nil || !h.HasFCS || h.FrameContentSize != uint64(n) {
					t.Errorf("%s, %d bytes: the header says %+v, %v", kind, n, h, err)
				}
			}
		}
	}
}

// Planes get what suits them: a run for constants, frequencies for noise of few
// values, nothing for random bytes, matches for repetitions.
func TestPlanes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	random, few, repeated := make([]byte, 1<<16), make([]byte, 1<<16), make([]byte, 1<<16)
	for i := range random {
		random[i], few[i] = byte(r.Uint32()), byte(r.IntN(5))
		repeated[i] = random[i%1000]
	}
	var z zstdScratch
	for _, c := range []struct {
		name        string
		plane       []byte
		least, most int // length of the frame; none where the plane is better stored
	}{
		{"constant", bytes.Repeat([]byte{7}, 1<<16), 11, 11},
		{"random", random, 0, 0},
		{"few", few, 1 << 14, 1 << 16 * 3 / 8},
		{"repeated", repeated, 1000, 2000},
	} {
		var trend enzstd.Trend
		for i := range 20 {
			got := z.encoder().EncodeLike(&trend, nil, c.plane, 1, false)
			if len(got) >= len(c.plane) {
				got = nil // Blosc stores it then
			}
			if len(got) < c.least || len(got) > c.most {
				t.Errorf("%s, time %d: %d bytes, want %d to %d", c.name, i, len(got), c.least, c.most)
			}
			if len(got) > 0 {
				back := make([]byte, len(c.plane))
				if n, err := NewScratch().decodeZstd(back, got, len(back)); err != nil || !bytes.Equal(back[:n], c.plane) {
					t.Errorf("%s, time %d: %v", c.name, i, err)
				}
			}
		}
	}
}

// The beginning of a chunk is decoded whatever follows it, with a checksum only
// if all is right; a frame that is too short is an error.
func TestZstdPrefix(t *testing.T) {
	want := make([]byte, 300_000)
	for i := range want {
		want[i] = byte(i * i >> 7)
	}
	s := NewScratch()
	for _, checksum := range []bool{false, true} {
		z := Zstd(3, checksum)
		frame, err := z.Encode(s, nil, want)
		if err != nil {
			t.Fatal(err)
		}
		p, ok := Chain{z}.Prefix()
		if !ok {
			t.Fatal("zstd does not decode prefixes")
		}
		got := make([]byte, len(want))
		for _, n := range []int{1, 131_073, len(want)} {
			clear(got)
			if err := p.DecodePrefix(s, got, frame, n); err != nil || !bytes.Equal(got[:n], want[:n]) {
				t.Errorf("checksum %v: first %d bytes: %v", checksum, n, err)
			}
		}
		if err := p.DecodePrefix(s, make([]byte, len(want)+1), frame, len(want)+1); err == nil {
			t.Errorf("checksum %v: more bytes than there are", checksum)
		}
		frame[len(frame)-1] ^= 1
		if err := p.DecodePrefix(s, got, frame, 10); (err != nil) != checksum {
			t.Errorf("checksum %v: damaged end: %v", checksum, err)
		}
	}
	if _, ok := (Chain{Zstd(3, false), CRC32C()}).Prefix(); ok {
		t.Error("a chain of two codecs decodes prefixes")
	}
}
