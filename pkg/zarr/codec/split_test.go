package codec

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"strata/pkg/dtype"
	"strata/pkg/work"
	"strata/tests/race"
)

// lowerSegments makes segments shorter for the time of a test.
func lowerSegments(t testing.TB, n int) {
	old := segmentLength
	segmentLength = n
	t.Cleanup(func() { segmentLength = old })
}

// helped returns a Scratch that finds so many idle hands.
func helped(hands int) *Scratch {
	s := NewScratch()
	s.Bind(work.WithHands(context.Background(), work.NewHands(hands, 0, 1<<30, nil)))
	return s
}

// various returns n bytes of several kinds.
func various(n int) map[string][]byte {
	r := rand.New(rand.NewPCG(5, uint64(n)))
	random, mixed := make([]byte, n), make([]byte, n)
	for i := range random {
		random[i] = byte(r.Uint32())
		mixed[i] = byte(i / 3)
		if i>>15&1 == 0 {
			mixed[i] = random[i]
		}
	}
	if race.Enabled() { // ten times as slow
		return map[string][]byte{"mixed": mixed}
	}
	return map[string][]byte{"random": random, "mixed": mixed, "noise": noisy(n), "zero": make([]byte, n), "smooth": sample(n, 4, 1)}
}

// together makes split wait, for the time of a test, until so many pieces are begun; what it returns says whether they
// were.
func together(t *testing.T, pieces int64) func() bool {
	var n atomic.Int64
	all := make(chan struct{})
	begun = func() {
		if n.Add(1) == pieces {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(20 * time.Second):
		}
	}
	t.Cleanup(func() { begun = nil })
	return func() bool { return n.Load() >= pieces }
}

// encodeBoth encodes src without hands and with many, which must make the same bytes, and decodes them again, both
// ways.
func encodeBoth(t *testing.T, name string, c Codec, src []byte) []byte {
	t.Helper()
	alone, many := NewScratch(), helped(15)
	want, err := c.Encode(alone, nil, src)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	_, hi := c.EncodedSize(len(src))
	if len(want) > hi {
		t.Errorf("%s: %d bytes, at most %d were expected", name, len(want), hi)
	}
	for range 2 {
		got, err := c.Encode(many, make([]byte, 0, hi), src)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s: %d bytes with hands, %d without: %v", name, len(got), len(want), err)
		}
	}
	for _, s := range []*Scratch{alone, many} {
		if back, err := decodeGuarded(t, c, s, len(src), want); err != nil || !bytes.Equal(back, src) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return want
}

// TestZstdSegments: long chunks are encoded in segments; whoever does it makes the same bytes, which others decode.
func TestZstdSegments(t *testing.T) {
	lowerSegments(t, zstdBlockMax)
	other, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, n := range []int{2 * zstdBlockMax, 2*zstdBlockMax + 1, 4 * zstdBlockMax, 7*zstdBlockMax - 1} {
		for kind, src := range various(n) {
			for _, c := range []Codec{Zstd(1, true), Zstd(3, false), Zstd(-3, true), Zstd(6, true)} {
				frame := encodeBoth(t, kind, c, src)
				if got, err := other.DecodeAll(frame, nil); err != nil || !bytes.Equal(got, src) {
					t.Errorf("%s, %d bytes: the other decoder: %v", kind, n, err)
				}
				if n == 2*zstdBlockMax { // not cut
					z := c.(*zstdCodec)
					if whole := NewScratch().zstd.encoder().Encode(nil, src, z.level, z.checksum); !bytes.Equal(whole, frame) {
						t.Errorf("%s, %d bytes: other bytes than those of one segment", kind, n)
					}
				}
			}
		}
	}
}

// TestPiecesAtHand: one long chunk has work for many.
func TestPiecesAtHand(t *testing.T) {
	lowerSegments(t, zstdBlockMax)
	src := noisy(26 * zstdBlockMax) // as many segments as 105 MB have
	for _, name := range []string{"zstd", "gzip", "blosc-lz4", "blosc-zlib", "blosc-zstd"} {
		c, err := FromFlag(name, dtype.Uint8, 3)
		if err != nil {
			t.Fatal(err)
		}
		s := helped(15)
		all := together(t, 10)
		stored, err := c.Encode(s, nil, src)
		if err != nil || !all() {
			t.Errorf("%s: fewer than 10 pieces at hand to encode; %v", name, err)
		}
		if name == "zstd" || name == "gzip" {
			continue // one frame
		}
		all = together(t, 10)
		if err := c.Decode(s, make([]byte, len(src)), stored); err != nil || !all() {
			t.Errorf("%s: fewer than 10 pieces at hand to decode; %v", name, err)
		}
	}
}

// TestHelpersForget: who has helped keeps no context, and the chunk's own Scratch keeps its.
func TestHelpersForget(t *testing.T) {
	lowerSegments(t, zstdBlockMax)
	ctx, cancel := context.WithCancel(work.WithHands(context.Background(), work.NewHands(3, 0, 1<<30, nil)))
	s := NewScratch()
	s.Bind(ctx)
	src := noisy(9 * zstdBlockMax)
	if _, err := Zstd(1, false).Encode(s, nil, src); err != nil {
		t.Fatal(err)
	}
	for range 2 * runtime.GOMAXPROCS(0) {
		if h := helpers.Get().(*Scratch); h.context() != context.Background() {
			t.Error("a helper's Scratch is bound to a chunk's context")
		}
	}
	cancel()
	if _, err := Zstd(1, false).Encode(s, nil, src); err == nil {
		t.Error("no error after the context's end")
	}
}

// TestZstdFrames: chunks of several frames are decoded alike, with idle hands or without, and damage is reported as
// before.
func TestZstdFrames(t *testing.T) {
	lowerSegments(t, 256<<10)
	const n = 12 * 100_000
	src := noisy(n)
	for _, checksum := range []bool{false, true} {
		var stored []byte
		for i := 0; i < n; i += n / 12 {
			frame, err := Zstd(3, checksum).Encode(NewScratch(), nil, src[i:i+n/12])
			if err != nil {
				t.Fatal(err)
			}
			stored = append(stored, frame...)
			if i == 0 { // a frame without content
				stored = append(stored, "\x50\x2a\x4d\x18\x03\x00\x00\x00abc"...)
			}
		}
		z, many := Zstd(3, false), helped(15)
		all := together(t, 10)
		got, err := decodeGuarded(t, z, many, n, stored)
		if err != nil || !bytes.Equal(got, src) || !all() {
			t.Errorf("checksum %v: %v, or fewer than 10 frames at hand", checksum, err)
		}
		begun = nil
		if _, err := z.Decode(many, make([]byte, n-1), stored); !errors.Is(err, ErrTooLong) {
			t.Errorf("checksum %v: %v in a byte less", checksum, err)
		}
		if k, err := z.Decode(many, make([]byte, n+1), stored); err != nil || k != n {
			t.Errorf("checksum %v: %d bytes, %v with a byte more", checksum, k, err)
		}
		stored[len(stored)/2] ^= 4
		_, want := z.Decode(NewScratch(), make([]byte, n), stored)
		_, err = z.Decode(many, make([]byte, n), stored)
		if (err == nil) != (want == nil) || err != nil && err.Error() != want.Error() || checksum && err == nil {
			t.Errorf("checksum %v: %v, want %v", checksum, err, want)
		}
	}
}
