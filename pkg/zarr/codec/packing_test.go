package codec

import (
	"bytes"
	"errors"
	"testing"

	"strata/pkg/zarr/codec/shuffle"
)

// pack does on the host what a device does with a packing.
func pack(t *testing.T, s *Scratch, p *Packing, chunk []byte) []byte {
	t.Helper()
	plain := bytes.Clone(chunk)
	for at := 0; at < len(chunk) && p.Shuffle == ByteShuffle; at += p.Block {
		to := min(at+p.Block, len(chunk))
		shuffle.Shuffle(plain[at:to], chunk[at:to], p.Typesize)
	}
	var streams [][]byte
	var lengths []int64
	for _, k := range p.List {
		var out []byte
		var err error
		in := plain[k.To : k.To+k.Size]
		if k.Format == StreamZstd {
			out, err = Zstd(1, false).Encode(s, nil, in)
		} else if out, err = LZ4(1).Encode(s, nil, in); err == nil {
			out = out[4:]
		}
		if err != nil {
			t.Fatal(err)
		}
		streams, lengths = append(streams, out), append(lengths, int64(len(out)))
	}
	var l Layout
	p.Lay(&l, lengths)
	if most := p.Bound(func(n int) int { return n + n/8 + 64 }); l.Bytes > most {
		t.Errorf("%d bytes, at most %d were announced", l.Bytes, most)
	}
	b := bytes.Repeat([]byte{0xee}, l.Bytes)
	if l.Whole {
		copy(b[l.At[0]:], chunk)
	} else {
		for i, k := range p.List {
			if l.Plain[i] {
				streams[i] = plain[k.To : k.To+k.Size]
			}
			copy(b[l.At[i]:], streams[i])
		}
	}
	p.Finish(b, &l, lengths)
	return b
}

func TestPacking(t *testing.T) {
	chains := []Chain{{Zstd(1, false)}, {Zstd(1, false), CRC32C()}, {LZ4(1)}, {LZ4(1), CRC32(), CRC32C(), Adler32()}, {Shuffle(4), Zstd(1, false)}}
	for _, name := range []string{"lz4", "zstd"} {
		for _, how := range []BloscShuffle{NoShuffle, ByteShuffle} {
			for _, typesize := range []int{1, 2, 3, 4, 8, 17} {
				chains = append(chains, Chain{blosc(t, name, how, typesize, 0)}, Chain{blosc(t, name, how, typesize, 8192), CRC32()})
			}
		}
	}
	s, whole := NewScratch(), 0
	for _, c := range chains {
		for _, chunk := range append(samplesOfPieces(), noise(5000), noise(70000)) {
			p, err := c.Packing(len(chunk))
			if err != nil {
				if len(chunk) >= bloscMinSplit && c[0].Name() != "shuffle" {
					t.Errorf("%v of %d bytes: %v", c, len(chunk), err)
				}
				continue
			}
			got := make([]byte, len(chunk))
			b := pack(t, s, p, chunk)
			if err := c.Decode(s, got, b); err != nil || !bytes.Equal(got, chunk) {
				t.Errorf("%v of %d bytes: %v", c, len(chunk), err)
			}
			if p.blosc != nil && len(b) < len(chunk) {
				whole++
			}
		}
	}
	if whole == 0 {
		t.Error("no container shrinks")
	}
}

func TestNoPacking(t *testing.T) {
	for _, c := range []Chain{{}, {CRC32C()}, {Gzip(1)}, {Zstd(1, true)}, {Zstd(1, false), Zstd(1, false)}, {&deltaCodec{}, Zstd(1, false)}, {blosc(t, "zlib", ByteShuffle, 4, 0)},
		{blosc(t, "lz4hc", ByteShuffle, 4, 0)}, {blosc(t, "lz4", BitShuffle, 4, 0)}, {blosc(t, "zstd", AutoShuffle, 1, 0)}, {Shuffle(2), blosc(t, "lz4", ByteShuffle, 2, 0)}} {
		if _, err := c.Packing(4096); !errors.Is(err, ErrWhole) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// noise does not shrink.
func noise(n int) []byte {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x >> 8)
	}
	return b
}
