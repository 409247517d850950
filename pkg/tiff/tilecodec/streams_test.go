package tilecodec

import (
	"bytes"
	"compress/zlib"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/jpeg2000"
	"strata/pkg/zarr/codec/inflate"
	"strata/tests/race"
)

//go:embed testdata/streams.json
var streams []byte

// stream is a tile that other programs stored, see testdata/make.py.
type stream struct {
	Name    string
	Format  Format
	Stored  []byte
	Samples []byte // zlib
}

func loadStreams(t testing.TB) []stream {
	t.Helper()
	var all []stream
	if err := json.Unmarshal(streams, &all); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		r, err := zlib.NewReader(bytes.NewReader(all[i].Samples))
		if err != nil {
			t.Fatal(err)
		}
		if all[i].Samples, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// lossless reports whether what is encoded comes back as it was.
func (s stream) lossless() bool { return s.Format.family() != JPEG }

// bothWays runs a test with the vector kernels and without.
func bothWays(t *testing.T, f func(t *testing.T)) {
	was := useAVX2
	defer func() { useAVX2 = was }()
	t.Run("scalar", func(t *testing.T) { useAVX2 = false; f(t) })
	if was {
		t.Run("AVX2", func(t *testing.T) { useAVX2 = true; f(t) })
	}
}

// What other programs stored decodes to their samples; with one scratch for all, in memory that is not clean. What is
// encoded from these decodes to them again, and so does what is cut off behind some rows, up to these.
func TestStreams(t *testing.T) {
	all := loadStreams(t)
	bothWays(t, func(t *testing.T) {
		var s Scratch
		for _, c := range all {
			if c.Format.family() == JPEG2000 {
				continue // TestJPEG2000
			}
			checkStream(t, &s, c)
			if c.Format.CheckEncode() != nil {
				continue
			}
			again, err := c.Format.Encode(&s, nil, c.Samples)
			if lo, hi := c.Format.EncodedSize(); err != nil || len(again) < lo || len(again) > hi {
				t.Errorf("%s: encoded to %d bytes, expected were %d to %d, %v", c.Name, len(again), lo, hi, err)
				continue
			}
			if c.Stored = again; c.lossless() {
				checkStream(t, &s, c)
			}
		}
	})
}

func checkStream(t *testing.T, s *Scratch, c stream) {
	t.Helper()
	dst := bytes.Repeat([]byte{0xa5}, c.Format.Bytes())
	if err := c.Format.Decode(t.Context(), s, dst, c.Stored, c.Format.Height); err != nil {
		t.Errorf("%s: %v", c.Name, err)
	} else if !bytes.Equal(dst, c.Samples) {
		t.Errorf("%s: samples differ", c.Name)
	}
	if _, hi := c.Format.EncodedSize(); len(c.Stored) > hi {
		t.Errorf("%s: %d bytes, at most %d were expected", c.Name, len(c.Stored), hi)
	}
}

func TestJPEG2000(t *testing.T) {
	err := jpeg2000.Available()
	for _, c := range loadStreams(t) {
		if c.Format.family() != JPEG2000 {
			continue
		}
		if err != nil {
			got := c.Format.Decode(t.Context(), new(Scratch), make([]byte, c.Format.Bytes()), c.Stored, 1)
			if got == nil || !strings.Contains(got.Error(), "libopenjp2") {
				t.Errorf("%s: without the library: %v", c.Name, got)
			}
			continue
		}
		checkStream(t, new(Scratch), c)
		if c.Format.Samples == 3 { // taken for Y, Cb and Cr
			c.Format.Compression = JPEG2000YCbCr
			rgb(c.Samples)
			checkStream(t, new(Scratch), c)
		}
	}
	if err != nil {
		t.Skip("libopenjp2 is not installed")
	}
}

// A tile with fewer rows is good enough for who needs no more; the others are 0. With more data than it needs, a tile
// is complete where there is no checksum behind the data, which would go unseen.
func TestRows(t *testing.T) {
	var s Scratch
	for _, compression := range []int{None, LZW, Deflate, PackBits, Zstd, JPEG} {
		f := Format{Compression: compression, Type: dtype.Uint8, Samples: 3, Width: 21, Height: 16, Photometric: 2}
		samples := bytes.Repeat([]byte("a row of 63 bytes is what this is, more or less, give or take. "), 16)
		stored, err := f.Encode(&s, nil, samples[:10*f.row()])
		if err != nil {
			t.Fatal(err)
		}
		dst := bytes.Repeat([]byte{0xa5}, f.Bytes())
		if err := f.Decode(t.Context(), &s, dst, stored, 10); err != nil {
			t.Errorf("compression %d: %v", compression, err)
		} else if !bytes.Equal(dst[10*f.row():], make([]byte, 6*f.row())) || compression != JPEG && !bytes.Equal(dst[:10*f.row()], samples[:10*f.row()]) {
			t.Errorf("compression %d: wrong samples", compression)
		}
		if err := f.Decode(t.Context(), &s, dst, stored, 11); err == nil || !strings.Contains(err.Error(), "10 of 11 rows") {
			t.Errorf("compression %d: ten rows, eleven wanted: %v", compression, err)
		}
		if compression == Zstd {
			continue
		}
		if err := f.Decode(t.Context(), &s, dst, append(bytes.Clone(stored), make([]byte, 5)...), 10); err != nil {
			t.Errorf("compression %d: bytes behind the data: %v", compression, err)
		}
		if compression == JPEG {
			continue
		}
		f.Height = 7
		if compression == Deflate {
			if err := f.Decode(t.Context(), &s, dst[:f.Bytes()], stored, 7); !errors.Is(err, inflate.ErrTooLong) {
				t.Errorf("Deflate: more rows than the tile has: %v", err)
			}
			continue
		}
		if err := f.Decode(t.Context(), &s, dst[:f.Bytes()], stored, 7); err != nil || !bytes.Equal(dst[:f.Bytes()], samples[:f.Bytes()]) {
			t.Errorf("compression %d: more rows than the tile has: %v", compression, err)
		}
	}
}

// A tile that would decode to far more than it has room for costs what it has room for.
func TestBombs(t *testing.T) {
	const long = 16 << 20
	var s Scratch
	for _, compression := range []int{LZW, Deflate, PackBits, Zstd} {
		f := Format{Compression: compression, Type: dtype.Uint8, Width: 1 << 13, Height: long >> 13}
		bomb, err := f.Encode(&s, nil, make([]byte, long))
		if err != nil {
			t.Fatal(err)
		}
		f.Width, f.Height = 32, 32
		dst := make([]byte, f.Bytes())
		decode := func() error { return f.Decode(t.Context(), &s, dst, bomb, 32) }
		if err := decode(); err != nil && compression != Zstd && !errors.Is(err, inflate.ErrTooLong) {
			t.Errorf("compression %d: %v", compression, err)
		}
		if n := testing.AllocsPerRun(3, func() { _ = decode() }); n > 10 { // those of an error
			t.Errorf("compression %d: %v allocations", compression, n)
		}
	}
}

// Whoever stops waiting is soon free.
func TestCancelled(t *testing.T) {
	var s Scratch
	for _, compression := range []int{None, LZW, Deflate, PackBits, Zstd, JPEG} {
		f := Format{Compression: compression, Type: dtype.Uint8, Width: 1 << 10, Height: 1 << 12}
		stored, err := f.Encode(&s, nil, make([]byte, f.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, f.Bytes())
		looks := &countdown{Context: context.Background(), left: 1}
		if err := f.Decode(looks, &s, dst, stored, f.Height); !errors.Is(err, context.Canceled) {
			t.Errorf("compression %d: %v", compression, err)
		}
	}
}

// countdown is a context that ends when it has been looked at a few times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// In the steady state a tile costs no allocation.
func TestNoAllocation(t *testing.T) {
	var s Scratch
	for _, c := range loadStreams(t) {
		if f := c.Format.family(); f == LZMA || f == JPEG2000 || f == JPEG {
			continue
		}
		dst := make([]byte, c.Format.Bytes())
		if n := testing.AllocsPerRun(5, func() {
			if err := c.Format.Decode(context.Background(), &s, dst, c.Stored, 1); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}); n >= 1 && !race.Enabled() {
			t.Errorf("%s: %v allocations", c.Name, n)
		}
	}
}
