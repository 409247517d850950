package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
)

var fetchScratch = NewScratch()

// fetched decodes a range of what fetchBlosc fetches of data into memory that holds fill, and counts the bytes fetched.
func fetched(t *testing.T, data []byte, off, n, size, front int, fill byte) (dst []byte, bytesRead int, err error) {
	t.Helper()
	c, err := Blosc("zstd", 1, ByteShuffle, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := c.(PartialDecoder)
	src := bytes.Repeat([]byte{fill}, len(data))
	if err := fetchBlosc(src, off, n, size, front, func(from, to int) error {
		bytesRead += copy(src[from:to], data[from:to])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	dst = make([]byte, n)
	return dst, bytesRead, p.DecodeRange(fetchScratch, dst, src, off, size)
}

// swapBlocks exchanges blocks i and i+1 of a container, as threads of c-blosc may do.
func swapBlocks(data []byte, i int) []byte {
	offset := func(j int) int { return signed(data[bloscHeader+4*j:]) }
	first, second, end := offset(i), offset(i+1), offset(i+2)
	out := bytes.Clone(data[:first])
	binary.LittleEndian.PutUint32(out[bloscHeader+4*(i+1):], uint32(first))
	binary.LittleEndian.PutUint32(out[bloscHeader+4*i:], uint32(first+end-second))
	out = append(out, data[second:end]...)
	out = append(out, data[first:second]...)
	return append(out, data[end:]...)
}

func TestBloscFetch(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	src := sample(20_000, 4, 9)
	for _, level := range []int{0, 1} {
		c, err := Blosc("zstd", level, ByteShuffle, 4, 1024)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := c.Encode(NewScratch(), nil, src)
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range [][]byte{encoded, append(bytes.Clone(encoded), 1, 2, 3)} {
			for i := range 300 {
				off := r.IntN(len(src) + 1)
				n := r.IntN(len(src) - off + 1)
				if i%2 == 0 {
					n = min(n, 3000)
				}
				dst, k, err := fetched(t, data, off, n, len(src), []int{16, 64, 4096}[i%3], 0xff)
				if err != nil || !bytes.Equal(dst, src[off:off+n]) {
					t.Fatalf("level %d, range [%d, %d): %v", level, off, off+n, err)
				}
				if most := 4096 + 2*(n+2*1024); k > most && most < len(data) {
					t.Errorf("level %d, range [%d, %d): %d bytes were fetched", level, off, off+n, k)
				}
			}
		}
		stop := errors.New("stop")
		if err := c.(PartialDecoder).FetchRange(bytes.Clone(encoded), 0, 8, len(src), func(int, int) error { return stop }); err != stop {
			t.Errorf("error of fetch became %v", err)
		}
	}
}

// Blocks may lie in any order, and be one for several.
func TestBloscFetchUnordered(t *testing.T) {
	c, err := Blosc("zstd", 1, ByteShuffle, 4, 1024)
	if err != nil {
		t.Fatal(err)
	}
	src := sample(20_000, 4, 9)
	encoded, err := c.Encode(NewScratch(), nil, src)
	if err != nil {
		t.Fatal(err)
	}
	swapped := swapBlocks(encoded, 2)
	same := bytes.Clone(encoded)
	copy(same[bloscHeader+4*3:], same[bloscHeader+4*2:][:4]) // block 3 is block 2
	long := bytes.Clone(encoded)
	at := signed(long[bloscHeader+4*4:])
	binary.LittleEndian.PutUint32(long[bloscHeader+4*5:], uint32(at+2)) // block 5 begins in the length of block 4
	for name, data := range map[string][]byte{"swapped": swapped, "same": same, "overlapping": long} {
		for j := range 8 {
			want := make([]byte, 1024)
			wantErr := c.(PartialDecoder).DecodeRange(fetchScratch, want, data, 1024*j, len(src))
			got, _, err := fetched(t, data, 1024*j, 1024, len(src), 64, 0xff)
			if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
				t.Errorf("%s: block %d: %v, of the whole chunk %v", name, j, err, wantErr)
			}
		}
	}
}

// What is fetched decodes as the whole does, whatever lay in memory before.
func FuzzBloscFetch(f *testing.F) {
	seeds(f, "blosc")
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		size = min(max(size, 0), 1<<16)
		for _, part := range [][2]int{{0, size}, {size / 2, size / 4}, {size - size/8, size / 8}} {
			want := make([]byte, part[1])
			c, err := Blosc("zstd", 1, ByteShuffle, 4, 0)
			if err != nil {
				t.Fatal(err)
			}
			wantErr := c.(PartialDecoder).DecodeRange(fetchScratch, want, data, part[0], size)
			for _, fill := range []byte{0, 0xff} {
				got, _, err := fetched(t, data, part[0], part[1], size, bloscHeader, fill)
				if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
					t.Fatalf("range %v: %v, of the whole %v", part, err, wantErr)
				}
			}
		}
	})
}
