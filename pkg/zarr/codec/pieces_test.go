package codec

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"io"
	"math/bits"
	"testing"

	"strata/pkg/zarr/codec/shuffle"
	"strata/tests/race"
)

// xxh64 is XXH64 with seed 0 (xxHash specification, "XXH64 algorithm description").
func xxh64(b []byte) uint64 {
	const p1, p2, p3, p4, p5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
	round := func(acc, lane uint64) uint64 { return bits.RotateLeft64(acc+lane*p2, 31) * p1 }
	n, h := uint64(len(b)), uint64(p5)
	if n >= 32 {
		one := uint64(p1)
		v := [4]uint64{one + p2, p2, 0, -one}
		for ; len(b) >= 32; b = b[32:] {
			for i := range v {
				v[i] = round(v[i], binary.LittleEndian.Uint64(b[8*i:]))
			}
		}
		h = 0
		for i, r := range []int{1, 7, 12, 18} {
			h += bits.RotateLeft64(v[i], r)
		}
		for _, x := range v {
			h = (h^round(0, x))*p1 + p4
		}
	}
	h += n
	for ; len(b) >= 8; b = b[8:] {
		h = bits.RotateLeft64(h^round(0, binary.LittleEndian.Uint64(b)), 27)*p1 + p4
	}
	if len(b) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(b))*p1, 23)*p2 + p3
		b = b[4:]
	}
	for _, x := range b {
		h = bits.RotateLeft64(h^uint64(x)*p5, 11) * p1
	}
	h = (h ^ h>>33) * p2
	h = (h ^ h>>29) * p3
	return h ^ h>>32
}

// decodePieces does on the host what a device does with the pieces of a chunk.
func decodePieces(t *testing.T, s *Scratch, p *Pieces, src []byte) ([]byte, error) {
	t.Helper()
	plain, covered := make([]byte, p.Size), 0
	for i, k := range p.List {
		if k.At < 0 || k.Len < 1 || k.At+k.Len > len(src) || k.To != covered || k.Size < 1 || k.To+k.Size > p.Size {
			t.Fatalf("stream %d of %d stored and %d decoded bytes: %+v", i, len(src), p.Size, k)
		}
		covered += k.Size
		in, out := src[k.At:k.At+k.Len], plain[k.To:k.To+k.Size]
		var err error
		switch k.Format {
		case StreamStored:
			copy(out, in)
		case StreamLZ4:
			err = lz4Block(t.Context(), out[:len(out):len(out)], in)
		case StreamZstd:
			var n int
			if n, err = s.decodeZstd(out[:len(out):len(out)], in, len(out)); err == nil && n != len(out) {
				err = fmt.Errorf("%d bytes", n)
			}
		case StreamDeflate:
			r := bytes.NewReader(in)
			var b []byte
			if b, err = io.ReadAll(io.LimitReader(flate.NewReader(r), int64(len(out)+1))); err == nil && (len(b) != len(out) || r.Len() > 0) {
				err = fmt.Errorf("%d bytes, %d left", len(b), r.Len())
			}
			copy(out, b)
		}
		if err != nil {
			return nil, err
		}
		sum := uint32(0)
		switch k.Sum {
		case SumCRC32:
			sum = crc32.ChecksumIEEE(out)
		case SumAdler32:
			sum = adler32.Checksum(out)
		case SumXXH64:
			sum = uint32(xxh64(out))
		}
		if err := k.Check(sum); err != nil {
			return nil, err
		}
	}
	if covered != p.Size {
		t.Fatalf("streams cover %d of %d bytes", covered, p.Size)
	}
	out := plain
	for at := 0; at < p.Size && p.Shuffle != NoShuffle; at += p.Block {
		if at == 0 {
			out = make([]byte, p.Size)
		}
		to := min(at+p.Block, p.Size)
		if p.Shuffle == ByteShuffle {
			shuffle.Unshuffle(out[at:to], plain[at:to], p.Typesize)
		} else {
			shuffle.BitUnshuffle(out[at:to], plain[at:to], p.Typesize)
		}
	}
	return out, nil
}

// checkPieces compares both ways to decode a chunk and tells whether there were two.
func checkPieces(t *testing.T, s *Scratch, c Chain, src []byte, size int) bool {
	t.Helper()
	want := make([]byte, size)
	wrong := c.Decode(s, want, src)
	var p Pieces
	err := c.Pieces(&p, src, size)
	if errors.Is(err, ErrWhole) {
		return false
	}
	var got []byte
	if err == nil {
		got, err = decodePieces(t, s, &p, src)
	}
	switch {
	case wrong == nil && err != nil:
		t.Errorf("in pieces: %v", err)
	case wrong != nil && err == nil:
		t.Errorf("decodes in pieces, but not whole: %v", wrong)
	case err == nil && !bytes.Equal(got, want):
		t.Error("decodes to other bytes in pieces")
	}
	return true
}

// Every chunk of the corpus is the same in pieces.
func TestPiecesOfCorpus(t *testing.T) {
	s, both := NewScratch(), map[string]int{}
	for _, archive := range []string{"v2.zip", "v3.zip", "neg.zip"} {
		files := corpusFiles(t, archive)
		for _, c := range append(chunksV2(t, files, "", nil), chunksV3(t, files, "", nil)...) {
			t.Run(c.array+"/"+c.key, func(t *testing.T) {
				if c.size < 0 || c.size > 1<<24 || !checkPieces(t, s, c.chain, c.data, c.size) {
					return
				}
				for _, k := range c.chain {
					both[k.Name()]++
				}
			})
		}
	}
	for _, name := range []string{"blosc", "zstd", "lz4", "gzip", "zlib", "crc32c", "shuffle"} {
		if both[name] == 0 {
			t.Errorf("no chunk of %s was decoded in pieces", name)
		}
	}
	t.Log(both)
}

func samplesOfPieces() [][]byte {
	var all [][]byte
	for _, n := range []int{0, 1, 7, 129, 4096, 5000, 70001, 300000} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i>>9) + byte(i*i>>3)*byte(i&1)
		}
		all = append(all, b)
	}
	return all
}

func blosc(t testing.TB, name string, how BloscShuffle, typesize, blocksize int) Codec {
	t.Helper()
	c, err := Blosc(name, 5, how, typesize, blocksize)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// All chains that have pieces, with chunks of odd sizes.
func TestPieces(t *testing.T) {
	race.Leave(t)
	chains := []Chain{{}, {CRC32C()}, {Zstd(1, false)}, {Zstd(19, true)}, {LZ4(1), CRC32C()}, {Gzip(6)}, {Zlib(6), CRC32(), Adler32()}, {Shuffle(4)}, {Shuffle(1), Zstd(3, false)}}
	for _, name := range []string{"lz4", "lz4hc", "zlib", "zstd"} {
		for _, how := range []BloscShuffle{NoShuffle, ByteShuffle, BitShuffle} {
			for _, typesize := range []int{1, 2, 3, 4, 8, 17} {
				chains = append(chains, Chain{blosc(t, name, how, typesize, 0)}, Chain{blosc(t, name, how, typesize, 4096)})
			}
		}
	}
	s := NewScratch()
	for _, c := range chains {
		for _, data := range samplesOfPieces() {
			src, err := c.Encode(s, nil, data)
			if err != nil {
				if len(c) > 0 && c[0].Name() == "shuffle" {
					continue // not whole elements
				}
				t.Fatal(err)
			}
			if !checkPieces(t, s, c, src, len(data)) && len(data) > 0 {
				t.Errorf("%v of %d bytes is not decoded in pieces", c, len(data))
			}
			var p Pieces
			if c.Pieces(&p, src, len(data)) == nil {
				f, n, largest := c.Streams(len(data))
				for _, k := range p.List {
					if whole := len(p.List) == 1 && k.Format == StreamStored; len(p.List) > n || k.Size > largest && !whole || k.Format != f && k.Format != StreamStored {
						t.Fatalf("%v of %d bytes: stream %+v of %d, said %d of format %d, of at most %d bytes", c, len(data), k, len(p.List), n, f, largest)
					}
				}
			}
			for i := 0; i < min(len(src), 120) && len(data) < 10000; i++ { // damage of the headers, and of the end
				bad := bytes.Clone(src)
				bad[i] ^= 1 << (i % 8)
				checkPieces(t, s, c, bad, len(data))
				checkPieces(t, s, c, src[:i], len(data))
				checkPieces(t, s, c, src[:len(src)-i], len(data))
			}
			checkPieces(t, s, c, append(bytes.Clone(src), 0), len(data))
			checkPieces(t, s, c, append(bytes.Clone(src), src...), 2*len(data))
			checkPieces(t, s, c, src, len(data)+1)
		}
	}
}

func TestNoPieces(t *testing.T) {
	for _, c := range []Chain{
		{&bz2Codec{}},
		{Zstd(1, false), Zstd(1, false)},
		{CRC32C(), Zstd(1, false)},
		{&deltaCodec{}, Zstd(1, false)},
		{Shuffle(4), Shuffle(4)},
		{blosc(t, "blosclz", ByteShuffle, 4, 0)},
	} {
		if err := c.InPieces(); !errors.Is(err, ErrWhole) {
			t.Errorf("%v: %v", c, err)
		}
		if err := c.Pieces(new(Pieces), make([]byte, 100), 100); !errors.Is(err, ErrWhole) {
			t.Errorf("%v: %v", c, err)
		}
	}
	s := NewScratch()
	data := make([]byte, 8000)
	whole := func(what string, c Chain, src []byte) {
		if err := c.Pieces(new(Pieces), src, len(data)); !errors.Is(err, ErrWhole) {
			t.Errorf("%s: %v", what, err)
		}
		if err := c.Decode(s, make([]byte, len(data)), src); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	encode := func(c Codec, b []byte) []byte {
		out, err := c.Encode(s, nil, b)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(out)
	}
	one, two := encode(Gzip(6), data[:3000]), encode(Gzip(6), data[3000:])
	whole("two members", Chain{Gzip(6)}, append(one, two...))
	twice := encode(blosc(t, "lz4", ByteShuffle, 2, 0), encode(Shuffle(4), data))
	whole("shuffled twice", Chain{Shuffle(4), blosc(t, "lz4", ByteShuffle, 2, 0)}, twice)
	frames := encode(Zstd(1, false), data[:1])
	for i := 1; i < 100; i++ {
		frames = append(frames, encode(Zstd(1, false), data[80*i:80*i+80-79*(i%2)])...)
	}
	p := new(Pieces)
	if err := (Chain{Zstd(1, false)}).Pieces(p, frames, 1+50*1+49*80); !errors.Is(err, ErrWhole) {
		t.Errorf("many small frames: %v", err)
	}
}

func FuzzPieces(f *testing.F) {
	chains := map[byte]Chain{}
	for i, name := range []string{"blosc", "zstd", "lz4", "gzip", "zlib"} {
		c := parsed(f, `{"id": "`+name+`"}`)
		chains[byte(2*i)], chains[byte(2*i+1)] = Chain{c}, Chain{Shuffle(2), c, CRC32C()}
		for _, data := range samplesOfPieces()[:5] {
			for k := range byte(2) {
				src, err := chains[byte(2*i)+k].Encode(NewScratch(), nil, data[:len(data)&^1])
				if err != nil {
					f.Fatal(err)
				}
				f.Add(byte(2*i)+k, src, len(data)&^1)
			}
		}
	}
	s := NewScratch()
	f.Fuzz(func(t *testing.T, which byte, src []byte, size int) {
		if c, ok := chains[which]; ok && size >= 0 && size <= 1<<16 {
			checkPieces(t, s, c, src, size)
		}
	})
}
