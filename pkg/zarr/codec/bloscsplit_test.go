package codec

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"strata/pkg/work"
	"strata/tests/race"
)

// TestBloscGroups: long chunks are encoded and decoded in groups of blocks; whoever does it makes the same bytes, and
// but for Zstandard in planes the same as of one group.
func TestBloscGroups(t *testing.T) {
	const length = 64 << 10
	lowerSegments(t, length)
	for _, cname := range []string{"lz4", "lz4hc", "zlib", "zstd"} {
		for _, how := range []BloscShuffle{NoShuffle, ByteShuffle, BitShuffle} {
			for _, blocksize := range []int{0, 16 << 10, 75_000} {
				c, err := Blosc(cname, 3, how, 4, blocksize)
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range []int{2 * length, 7*length + 3} {
					for kind, src := range various(n) {
						name := kind + ", " + cname
						got := encodeBoth(t, name, c, src)
						segmentLength = n
						want, err := c.Encode(NewScratch(), nil, src)
						segmentLength = length
						if err != nil {
							t.Fatal(err)
						}
						same := n == 2*length || cname != "zstd" || how != ByteShuffle
						if same && !bytes.Equal(got, want) || len(got) > len(want)+len(want)/50+1000 {
							t.Errorf("%s, shuffle %d, blocks of %d, %d bytes: %d bytes in groups, %d as one", name, how, blocksize, n, len(got), len(want))
						}
					}
				}
			}
		}
	}
}

// TestBloscRanges: ranges are decoded alike, with idle hands or without; damage is an error.
func TestBloscRanges(t *testing.T) {
	lowerSegments(t, 128<<10)
	const n = 5<<19 + 5
	src := noisy(n)
	r := rand.New(rand.NewPCG(1, 6))
	for _, blocksize := range []int{0, 20_000, 100_000, BlockRoom + 1000} {
		c, err := Blosc("zstd", 1, ByteShuffle, 4, blocksize)
		if err != nil {
			t.Fatal(err)
		}
		s := helped(15)
		container, err := c.Encode(s, nil, src)
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			off := r.IntN(n)
			got := make([]byte, r.IntN(n-off+1))
			if err := c.(PartialDecoder).DecodeRange(s, got, container, off, n); err != nil || !bytes.Equal(got, src[off:off+len(got)]) {
				t.Fatalf("blocks of %d: %d bytes from %d: %v", blocksize, len(got), off, err)
			}
		}
		at := 0
		err = c.(PartialDecoder).DecodeBlocks(s, container, n, func(off int, piece []byte) error {
			if off != at || !bytes.Equal(piece, src[off:off+len(piece)]) {
				t.Fatalf("blocks of %d: a wrong piece of %d bytes at %d, want %d", blocksize, len(piece), off, at)
			}
			at += len(piece)
			return nil
		})
		if err != nil || at != n {
			t.Errorf("blocks of %d: %d bytes in pieces, want %d; %v", blocksize, at, n, err)
		}
		damaged := bytes.Clone(container)
		damaged[bloscHeader+3] ^= 0x7f // an offset
		if _, err := c.Decode(s, make([]byte, n), damaged); err == nil {
			t.Errorf("blocks of %d: a wrong offset goes unnoticed", blocksize)
		}
	}
	ctx, cancel := context.WithCancel(work.WithHands(context.Background(), work.NewHands(3, 0, 1<<30, nil)))
	cancel()
	s := NewScratch()
	c, _ := Blosc("lz4", 1, ByteShuffle, 4, 0)
	container, err := c.Encode(s, nil, src)
	if err != nil {
		t.Fatal(err)
	}
	s.Bind(ctx)
	if _, err := c.Decode(s, make([]byte, n), container); !errors.Is(err, context.Canceled) {
		t.Errorf("%v after the context's end", err)
	}
}

// TestBloscGroupSizes: planes in Zstandard, which are looked at anew in each group, take at most 1 % more.
func TestBloscGroupSizes(t *testing.T) {
	race.Leave(t)
	c, err := Blosc("zstd", 3, ByteShuffle, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	const n = 16 << 20
	for kind, src := range various(n) {
		got, err := c.Encode(NewScratch(), nil, src)
		if err != nil {
			t.Fatal(err)
		}
		lowerSegments(t, n)
		want, err := c.Encode(NewScratch(), nil, src)
		lowerSegments(t, n/4)
		if err != nil || len(got) > len(want)+len(want)/100 {
			t.Errorf("%s: %d bytes in groups, %d as one; %v", kind, len(got), len(want), err)
		}
	}
}
