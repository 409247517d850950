package inflate

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"strata/tests/race"

	kflate "github.com/klauspost/compress/flate"
)

// sample returns n bytes of some kind of data.
func sample(kind string, n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	b := make([]byte, 0, n+8)
	for i := 0; len(b) < n; i++ {
		switch kind {
		case "zeros":
			b = append(b, 0)
		case "random":
			b = append(b, byte(r.Uint32()))
		case "bytes of few values":
			b = append(b, byte(r.Uint32()&r.Uint32()&3))
		case "float32": // integers of 12 bits, noise on a slope
			v := math.Float32bits(float32(math.Round(2000 + 800*math.Sin(float64(i)/300) + 60*r.NormFloat64())))
			b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		case "text":
			b = fmt.Appendf(b, "tile %d of row %x, ", i/7, r.Uint32()>>28)
		case "periods": // runs of every period from 1 to 40, so that matches have every short distance
			p := 1 + i%40
			unit := b[:0:0]
			for range p {
				unit = append(unit, byte(r.Uint32()))
			}
			for range 1 + r.IntN(300/p+1) {
				b = append(b, unit...)
			}
		}
	}
	return b[:n]
}

var kinds = []string{"zeros", "random", "bytes of few values", "float32", "text", "periods"}

// guarded decodes into n bytes inside a larger buffer and checks that nothing around them changes.
func guarded(t testing.TB, decode func(ctx context.Context, dst, src []byte) (int, error), n int, src []byte) ([]byte, error) {
	t.Helper()
	const guard = 320
	buf := bytes.Repeat([]byte{0xA5}, n+2*guard)
	got, err := decode(t.Context(), buf[guard:guard+n:guard+n], bytes.Clone(src))
	if got < 0 || got > n {
		t.Fatalf("%d bytes reported, there is room for %d", got, n)
	}
	for i := range guard {
		if buf[i] != 0xA5 || buf[guard+n+i] != 0xA5 {
			t.Fatal("a byte outside the destination changed")
		}
	}
	return buf[guard : guard+got], err
}

func deflated(t testing.TB, level int, data []byte, flushEvery int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	writeAll(t, w, data, flushEvery)
	return b.Bytes()
}

func kdeflated(t testing.TB, level int, data []byte, flushEvery int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := kflate.NewWriter(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	writeAll(t, w, data, flushEvery)
	return b.Bytes()
}

func writeAll(t testing.TB, w interface {
	io.WriteCloser
	Flush() error
}, data []byte, flushEvery int) {
	t.Helper()
	for flushEvery > 0 && len(data) > flushEvery {
		if _, err := w.Write(data[:flushEvery]); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		data = data[flushEvery:]
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRoundTrip decodes what both encoders make at all their levels, with short and long blocks.
func TestRoundTrip(t *testing.T) {
	race.Leave(t)
	sizes := []int{0, 1, 2, 3, 15, 100, 279, 280, 281, 1000, 5000, 40_000, 300_000}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			for _, n := range sizes {
				if testing.Short() && n > 5000 {
					break
				}
				data := sample(kind, n)
				for level := -2; level <= 9; level++ {
					if n > 100_000 && level != 1 && level != 6 {
						continue // the time is the encoders'
					}
					for _, flush := range []int{0, 777} {
						streams := [][]byte{deflated(t, level, data, flush), kdeflated(t, level, data, flush)}
						for i, s := range streams {
							got, err := guarded(t, Raw, n, s)
							if err != nil || !bytes.Equal(got, data) {
								t.Fatalf("%d bytes, level %d, encoder %d, flush %d: %d bytes, %v", n, level, i, flush, len(got), err)
							}
							if n > 0 {
								if _, err := guarded(t, Raw, n-1, s); !errors.Is(err, ErrTooLong) {
									t.Fatalf("%d bytes, level %d, encoder %d, flush %d: one byte less room gives %v", n, level, i, flush, err)
								}
							}
							if got, err := guarded(t, Raw, n+1000, s); err != nil || !bytes.Equal(got, data) {
								t.Fatalf("%d bytes, level %d, encoder %d: with more room: %v", n, level, i, err)
							}
						}
					}
				}
			}
		})
	}
}

// TestEveryTruncation cuts a stream of stored, fixed and dynamic blocks after every byte.
func TestEveryTruncation(t *testing.T) {
	var s []byte
	s = append(s, deflated(t, 0, []byte("stored block"), 1)...)
	s = s[:len(s)-5] // without the final, empty block
	data := append([]byte("stored block"), sample("float32", 1600)...)
	s = append(s, deflated(t, 6, data[12:], 800)...)
	if got, err := guarded(t, Raw, len(data), s); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("the whole stream gives %d bytes, %v", len(got), err)
	}
	for n := range s {
		if _, err := guarded(t, Raw, len(data), s[:n]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("the first %d of %d bytes give %v", n, len(s), err)
		}
	}
}

// TestDamage changes every bit of a stream: any answer is right that compress/flate gives too.
func TestDamage(t *testing.T) {
	race.Leave(t)
	for _, kind := range kinds {
		s := deflated(t, 6, sample(kind, 900), 400)
		for bit := range 8 * len(s) {
			s[bit/8] ^= 1 << (bit % 8)
			compare(t, s, 4000)
			s[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// compare decodes s here and with compress/flate into at most limit bytes; both must accept the same streams and give
// the same bytes.
func compare(t testing.TB, s []byte, limit int) {
	t.Helper()
	in := bytes.NewReader(s)
	r := flate.NewReader(in)
	want, wantErr := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if wantErr == nil && len(want) <= limit && in.Len() > 0 {
		wantErr = errors.New("something follows")
	}
	got, err := guarded(t, Raw, limit, s)
	switch {
	case wantErr != nil && len(want) <= limit:
		// compress/flate hands out what it has decoded in larger pieces, so the bytes before the error cannot be
		// compared.
		if err == nil {
			t.Fatalf("compress/flate refuses %x: %v; it was accepted with %d bytes", s, wantErr, len(got))
		}
	case len(want) > limit:
		if err == nil || len(got) > limit {
			t.Fatalf("%x has more than %d bytes; it was accepted with %d", s, limit, len(got))
		}
		if !bytes.Equal(got, want[:len(got)]) {
			t.Fatalf("%x: the bytes differ from those of compress/flate", s)
		}
	default:
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("compress/flate reads %d bytes from %x; here it gives %d bytes, %v", len(want), s, len(got), err)
		}
	}
}

// same checks that r gives want.
func same(t testing.TB, r io.Reader, want []byte) {
	t.Helper()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the streaming decoder gives %d bytes, %v; here they are %d", len(got), err, len(want))
	}
}

func FuzzInflate(f *testing.F) {
	for _, kind := range kinds {
		f.Add(deflated(f, 6, sample(kind, 400), 0), uint16(400))
		f.Add(deflated(f, 1, sample(kind, 3000), 1000), uint16(3000))
	}
	for _, c := range handMade {
		f.Add(c.stream(), uint16(1000))
	}
	f.Fuzz(func(t *testing.T, s []byte, limit uint16) { compare(t, s, int(limit)) })
}

func TestNoAllocation(t *testing.T) {
	data := sample("float32", 1<<16)
	s, dst := deflated(t, 5, data, 0), make([]byte, len(data))
	// A garbage collection may empty the pool between two calls.
	if n := testing.AllocsPerRun(20, func() {
		if _, err := Raw(t.Context(), dst, s); err != nil {
			t.Fatal(err)
		}
	}); n >= 1 && !race.Enabled() {
		t.Errorf("%v allocations per call", n)
	}
}
