package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"strata/pkg/dtype"
	"strata/tests/race"
)

// guard is what lies behind a decoder's output, to see whether it is left alone.
const guard = "0123456789abcdef0123456789abcdef"

// decodeGuarded decodes src to n bytes in the middle of a larger buffer and
// fails if anything around them changes.
func decodeGuarded(t testing.TB, c Codec, s *Scratch, n int, src []byte) ([]byte, error) {
	t.Helper()
	buf := append(append([]byte(guard), make([]byte, n)...), guard...)
	dst := buf[len(guard) : len(guard)+n] // with capacity behind it
	got, err := c.Decode(s, dst, src)
	if string(buf[:len(guard)]) != guard || string(buf[len(guard)+n:]) != guard {
		t.Fatalf("%s wrote outside of its %d bytes", c.Name(), n)
	}
	if err != nil {
		return nil, err
	}
	if got < 0 || got > n {
		t.Fatalf("%s returned %d of %d bytes", c.Name(), got, n)
	}
	return dst[:got], nil
}

// sample is n bytes that look like elements of the given size: smooth, with
// noise in the low bytes, constant in between.
func sample(n, size int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	v := uint64(1) << 40
	for i := 0; i < n; i += size {
		if i/4096%3 != 1 {
			v += r.Uint64N(1000)
		}
		for j := range min(size, n-i) {
			b[i+j] = byte(v >> (j % 8 * 8))
		}
	}
	return b
}

// every codec that can write, with an element size that its input must be a
// multiple of (1: any)
func writers(t testing.TB) map[string]Codec {
	t.Helper()
	m := map[string]Codec{
		"gzip": Gzip(1), "gzip0": Gzip(0), "zlib": Zlib(6), "zstd": Zstd(3, false), "zstd-checksum": Zstd(1, true), "zstd-neg": Zstd(-5, false),
		"lz4": LZ4(1), "crc32c": CRC32C(), "crc32": CRC32(), "adler32": Adler32(), "lzma": LZMA(),
	}
	for _, cname := range []string{"lz4", "lz4hc", "zlib", "zstd"} {
		for _, level := range []int{1, 5, 9} {
			for shuffle := AutoShuffle; shuffle <= BitShuffle; shuffle++ {
				for _, typesize := range []int{1, 2, 3, 4, 8, 16, 17, 255} {
					for _, blocksize := range []int{0, 256, 4096} {
						if blocksize > 0 && level != 5 {
							continue
						}
						c, err := Blosc(cname, level, shuffle, typesize, blocksize)
						if err != nil {
							t.Fatal(err)
						}
						m[fmt.Sprintf("blosc-%s-%d-%d-%d-%d", cname, level, shuffle, typesize, blocksize)] = c
					}
				}
			}
		}
	}
	stored, err := Blosc("zstd", 0, ByteShuffle, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	m["blosc-stored"] = stored
	return m
}

// Lengths around everything that matters: nothing, less than an element, odd,
// a block and one more or less.
var lengths = []int{0, 1, 2, 3, 7, 15, 16, 17, 100, 127, 128, 129, 255, 256, 257, 1000, 4095, 4096, 4097, 8191, 10000}

func TestRoundTrip(t *testing.T) {
	race.Leave(t)
	s := NewScratch()
	for name, c := range writers(t) {
		var encoded []byte
		for _, n := range lengths {
			if strings.HasPrefix(name, "blosc-lz4hc-9") && n > 1000 {
				continue // slow
			}
			src := sample(n, 4, uint64(n))
			var err error
			encoded, err = c.Encode(s, encoded, src)
			if err != nil {
				t.Fatalf("%s: encode %d bytes: %v", name, n, err)
			}
			if lo, hi := c.EncodedSize(n); len(encoded) < lo || len(encoded) > hi {
				t.Errorf("%s: %d bytes became %d, outside of %d to %d", name, n, len(encoded), lo, hi)
			}
			got, err := decodeGuarded(t, c, s, n, encoded)
			if err != nil || !bytes.Equal(got, src) {
				t.Fatalf("%s: %d bytes do not come back: %v", name, n, err)
			}
			if n > 0 {
				// one byte too few must not pass for the whole
				if got, err := decodeGuarded(t, c, s, n-1, encoded); err == nil {
					t.Errorf("%s: %d bytes decoded to room for %d without an error (%d)", name, n, n-1, len(got))
				}
			}
			if got, err := decodeGuarded(t, c, s, n+9, encoded); err == nil && !bytes.Equal(got, src) {
				t.Errorf("%s: %d bytes decoded to other %d in larger room", name, n, len(got))
			}
		}
	}
}

// A large chunk goes through every block size that c-blosc would choose.
func TestBloscLarge(t *testing.T) {
	s := NewScratch()
	lengths := []int{1<<20 + 12, 3<<20 - 4}
	if race.Enabled() {
		lengths = lengths[:1] // there is nothing concurrent here
	}
	for _, n := range lengths {
		src := sample(n, 4, 3)
		for _, cname := range []string{"lz4", "zlib", "zstd"} {
			for _, level := range []int{1, 5} {
				for _, shuffle := range []BloscShuffle{NoShuffle, ByteShuffle, BitShuffle} {
					c, err := Blosc(cname, level, shuffle, 4, 0)
					if err != nil {
						t.Fatal(err)
					}
					encoded, err := c.Encode(s, nil, src)
					if err != nil {
						t.Fatal(err)
					}
					if shuffle == ByteShuffle && len(encoded) > n*2/3 {
						t.Errorf("%s:%d: %d bytes only shrank to %d", cname, level, n, len(encoded))
					}
					got, err := decodeGuarded(t, c, s, n, encoded)
					if err != nil || !bytes.Equal(got, src) {
						t.Errorf("%s:%d shuffle %d: %d bytes do not come back: %v", cname, level, shuffle, n, err)
					}
				}
			}
		}
	}
}

func TestBloscParts(t *testing.T) {
	s := NewScratch()
	r := rand.New(rand.NewPCG(5, 6))
	for _, level := range []int{0, 1} {
		c, err := Blosc("zstd", level, ByteShuffle, 4, 1024)
		if err != nil {
			t.Fatal(err)
		}
		src := sample(10_000, 4, 9)
		encoded, err := c.Encode(s, nil, src)
		if err != nil {
			t.Fatal(err)
		}
		p := c.(PartialDecoder)
		for range 300 {
			off := r.IntN(len(src) + 1)
			n := r.IntN(len(src) - off + 1)
			dst := make([]byte, n)
			if err := p.DecodeRange(s, dst, encoded, off, len(src)); err != nil || !bytes.Equal(dst, src[off:off+n]) {
				t.Fatalf("range [%d, %d): %v", off, off+n, err)
			}
		}
		for _, bad := range [][2]int{{-1, 1}, {len(src), 1}, {0, len(src) + 1}} {
			if err := p.DecodeRange(s, make([]byte, bad[1]), encoded, bad[0], len(src)); err == nil {
				t.Errorf("range %v was decoded", bad)
			}
		}
		var all []byte
		if err := p.DecodeBlocks(s, encoded, len(src), func(off int, piece []byte) error {
			if off != len(all) {
				t.Errorf("piece at %d after %d bytes", off, len(all))
			}
			all = append(all, piece...)
			return nil
		}); err != nil || !bytes.Equal(all, src) {
			t.Errorf("blocks: %v", err)
		}
		stop := errors.New("stop")
		if err := p.DecodeBlocks(s, encoded, len(src), func(int, []byte) error { return stop }); err != stop {
			t.Errorf("error of emit became %v", err)
		}
		// damage in the last block does not matter to the first
		encoded = encoded[:len(encoded)-1]
		binary.LittleEndian.PutUint32(encoded[12:], uint32(len(encoded)))
		if level > 0 {
			if err := p.DecodeRange(s, make([]byte, 1000), encoded, 0, len(src)); err != nil {
				t.Errorf("first block of a truncated chunk: %v", err)
			}
		}
		if err := p.DecodeRange(s, make([]byte, 1000), encoded, len(src)-1000, len(src)); err == nil {
			t.Error("last block of a truncated chunk was decoded")
		}
	}
}

// Truncation anywhere is noticed.
func TestTruncated(t *testing.T) {
	s := NewScratch()
	src := sample(3000, 4, 1)
	for name, c := range writers(t) {
		if strings.HasPrefix(name, "blosc") && !strings.HasSuffix(name, "-4-256") && name != "blosc-stored" {
			continue
		}
		encoded, err := c.Encode(s, nil, src)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(encoded); n += 1 + n/50 {
			got, err := decodeGuarded(t, c, s, len(src), encoded[:n])
			if err == nil && len(got) == len(src) {
				t.Errorf("%s: %d of %d bytes decode", name, n, len(encoded))
			}
		}
	}
}

// Damage never makes a decoder panic or write where it should not; where there
// is a checksum, it is noticed.
func TestDamaged(t *testing.T) {
	s := NewScratch()
	r := rand.New(rand.NewPCG(1, 2))
	src := sample(2000, 4, 1)
	checked := map[string]bool{"gzip": true, "zlib": true, "zstd-checksum": true, "crc32c": true, "crc32": true, "adler32": true}
	for name, c := range writers(t) {
		encoded, err := c.Encode(s, nil, src)
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			bad := bytes.Clone(encoded)
			at := r.IntN(len(bad))
			bad[at] ^= byte(1 + r.IntN(255))
			got, err := decodeGuarded(t, c, s, len(src), bad)
			if checked[name] && err == nil && !bytes.Equal(got, src) {
				t.Errorf("%s: damage at byte %d is not noticed", name, at)
			}
		}
	}
}

// The hostile chunks of the corpus: rejected where they must be, with a message
// of one line, and without taking the memory that they claim.
func TestHostileChunks(t *testing.T) {
	files := corpusFiles(t, "neg.zip")
	var chunks []chunk
	for _, prefix := range []string{"blosc_", "bomb_", "zstd_", "gzip_", "crc32c_", "v2_lz4", "v2_zlib"} {
		chunks = append(chunks, chunksV2(t, files, "neg/"+prefix, nil)...)
		chunks = append(chunks, chunksV3(t, files, "neg/"+prefix, nil)...)
	}
	if len(chunks) < 30 {
		t.Fatalf("only %d chunks", len(chunks))
	}
	either := []string{"gzip_two_members", "zstd_two_frames", "blosc_typesize_3"} // may be read
	s := NewScratch()
	var before, after runtime.MemStats
	failed := map[string]bool{} // arrays, by whether a chunk of them was rejected
	for _, c := range chunks {
		dst := make([]byte, c.size)
		runtime.ReadMemStats(&before)
		err := c.chain.Decode(s, dst, c.data)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 2<<20 {
			t.Errorf("%s: %d bytes of memory for a chunk of %d", c.array, used, c.size)
		}
		failed[c.array] = failed[c.array] || err != nil
		if err != nil && strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("%s/%s: message of several lines: %v", c.array, c.key, err)
		}
	}
	for array, bad := range failed {
		if !bad && !slices.ContainsFunc(either, func(e string) bool { return strings.Contains(array, e) }) {
			t.Errorf("%s: all chunks decode", array)
		}
	}
}

// Headers that claim more than there is do not take memory.
func TestClaims(t *testing.T) {
	s := NewScratch()
	xz, err := LZMA().Encode(s, nil, sample(4096, 4, 1))
	if err != nil {
		t.Fatal(err)
	}
	// the dictionary of the first block: 4 GiB - 1, with the header's checksum made right
	xz[16] = 40
	header := xz[12 : 12+4*(int(xz[12])+1)]
	binary.LittleEndian.PutUint32(header[len(header)-4:], crc32.ChecksumIEEE(header[:len(header)-4]))
	alone := append([]byte{0x5d, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 1, 0}, make([]byte, 40)...)
	lz4 := []byte{0xff, 0xff, 0xff, 0x7f, 0x10, 0}
	cases := []struct {
		name string
		c    Codec
		data []byte
		ok   bool
	}{
		{"xz dictionary", LZMA(), xz, true},
		{"lzma size", &lzmaCodec{format: lzmaAlone}, alone, false},
		{"lz4 size", LZ4(1), lz4, false},
		{"zstd content size", Zstd(1, false), []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0}, false},
	}
	for _, c := range cases {
		dst := make([]byte, 4096)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := c.c.Decode(s, dst, c.data)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
			t.Errorf("%s: %d bytes of memory", c.name, used)
		}
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Codecs are used by many workers at once, each with its own scratch.
func TestConcurrentUse(t *testing.T) {
	src := sample(50_000, 4, 1)
	blosc, err := Blosc("zstd", 1, BitShuffle, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	chain := Chain{Shuffle(4), blosc, Zstd(1, true), Gzip(1), LZ4(1), CRC32C()}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, dst := NewScratch(), make([]byte, len(src))
			var encoded []byte
			for range 5 {
				var err error
				if encoded, err = chain.Encode(s, encoded, src); err != nil {
					t.Error(err)
					return
				}
				clear(dst)
				if err := chain.Decode(s, dst, encoded); err != nil || !bytes.Equal(dst, src) {
					t.Error("does not come back", err)
				}
			}
		})
	}
	wg.Wait()
}

// In steady state, decoding and encoding a chunk allocates nothing.
func TestNoAllocation(t *testing.T) {
	if race.Enabled() {
		t.Skip("the race detector allocates")
	}
	src := sample(200_000, 4, 1)
	for _, flag := range []string{"blosc-zstd:1", "blosc-lz4", "zstd", "lz4", "gzip"} {
		chain, err := FromFlag(flag, dtype.Float32, 2)
		if err != nil {
			t.Fatal(err)
		}
		s, dst := NewScratch(), make([]byte, len(src))
		encoded, err := chain.Encode(s, nil, src)
		if err != nil {
			t.Fatal(err)
		}
		again := make([]byte, 0, 2*len(src)+1<<20)
		if n := testing.AllocsPerRun(20, func() {
			if err := chain.Decode(s, dst, encoded); err != nil {
				t.Error(err)
			}
		}); n >= 1 {
			t.Errorf("%s: decoding allocates %v times", flag, n)
		}
		if n := testing.AllocsPerRun(20, func() {
			if _, err := chain.Encode(s, again, src); err != nil {
				t.Error(err)
			}
		}); n >= 1 {
			t.Errorf("%s: encoding allocates %v times", flag, n)
		}
	}
}
