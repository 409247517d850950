package shuffle

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// sizes: every remainder of the vector widths at small n, then some around the piece sizes of the bit shuffle and
// beyond.
func sizes() []int {
	var s []int
	for n := range 601 {
		s = append(s, n)
	}
	return append(s, 1024, 2048+8, 4096, 4096+32, 8192+255, 8192+264, 20000, 65536+40)
}

// The definitions of the package comment, a bit or byte at a time.
func refShuffle(src []byte, ts int) []byte {
	dst := bytes.Clone(src)
	n := len(src) / ts
	for i := range n {
		for j := range ts {
			dst[j*n+i] = src[i*ts+j]
		}
	}
	return dst
}

func refBitShuffle(src []byte, ts int) []byte {
	dst := bytes.Clone(src)
	n := len(src) / ts
	if n%8 != 0 {
		return dst
	}
	clear(dst[:n*ts])
	for i := range n {
		for r := range 8 * ts {
			dst[r*(n/8)+i/8] |= src[i*ts+r/8] >> (r % 8) & 1 << (i % 8)
		}
	}
	return dst
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// guarded calls f with a destination of n bytes inside a larger buffer and checks that nothing around it changes.
func guarded(t *testing.T, n int, f func(dst []byte)) []byte {
	t.Helper()
	const guard = 64
	buf := bytes.Repeat([]byte{0xA5}, n+2*guard)
	f(buf[guard : guard+n])
	for i := range guard {
		if buf[i] != 0xA5 || buf[guard+n+i] != 0xA5 {
			t.Fatalf("a byte outside the destination of %d bytes changed", n)
		}
	}
	return buf[guard : guard+n]
}

// TestTwins compares scalar and accelerated code with the definition, both directions, all remainders.
func TestTwins(t *testing.T) {
	ways := []bool{false}
	if haveAVX2 {
		ways = append(ways, true)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for ts := 1; ts <= 17; ts++ {
		t.Run(fmt.Sprintf("typesize%d", ts), func(t *testing.T) {
			for _, n := range sizes() {
				if testing.Short() && n > 600 {
					break
				}
				src := randomBytes(r, n*ts+r.IntN(ts))
				wantByte, wantBit := refShuffle(src, ts), refBitShuffle(src, ts)
				for _, fast := range ways {
					check := func(name string, got, want []byte) {
						t.Helper()
						if !bytes.Equal(got, want) {
							t.Fatalf("%s (avx2 %v) differs from the definition at %d bytes", name, fast, len(src))
						}
					}
					check("shuffle", guarded(t, len(src), func(d []byte) { shuffle(d, src, ts, fast) }), wantByte)
					check("unshuffle", guarded(t, len(src), func(d []byte) { unshuffle(d, wantByte, ts, fast) }), src)
					check("bit shuffle", guarded(t, len(src), func(d []byte) { bitShuffle(d, src, ts, fast) }), wantBit)
					check("bit unshuffle", guarded(t, len(src), func(d []byte) { bitUnshuffle(d, wantBit, ts, fast) }), src)
				}
			}
		})
	}
}

// TestUnusual: element sizes that a damaged header can name, and those beyond what the assembly's scratch holds.
func TestUnusual(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, ts := range []int{-1, 0, 1, 31, 32, 33, 100, 255, 4000} {
		for _, n := range []int{0, 1, 7, 256 * 33, 255 * 256, 300_000} {
			src := randomBytes(r, n)
			wantByte, wantBit := src, src
			if ts > 0 {
				wantByte, wantBit = refShuffle(src, ts), refBitShuffle(src, ts)
			}
			got := make([]byte, n+3) // a longer destination is fine
			for _, c := range []struct {
				name      string
				f         func(dst, src []byte, ts int)
				src, want []byte
			}{
				{"Shuffle", Shuffle, src, wantByte},
				{"Unshuffle", Unshuffle, wantByte, src},
				{"BitShuffle", BitShuffle, src, wantBit},
				{"BitUnshuffle", BitUnshuffle, wantBit, src},
			} {
				clear(got)
				c.f(got, c.src, ts)
				if !bytes.Equal(got[:n], c.want) || got[n]|got[n+1]|got[n+2] != 0 {
					t.Errorf("%s of %d bytes, typesize %d, is wrong", c.name, n, ts)
				}
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	src, dst := make([]byte, 1<<16), make([]byte, 1<<16)
	for _, f := range []func(dst, src []byte, ts int){Shuffle, Unshuffle, BitShuffle, BitUnshuffle} {
		if n := testing.AllocsPerRun(10, func() { f(dst, src, 4) }); n != 0 {
			t.Errorf("%v allocations per call", n)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), 4)
	f.Add(make([]byte, 1000), 3)
	f.Fuzz(func(t *testing.T, src []byte, ts int) {
		a, b := make([]byte, len(src)), make([]byte, len(src))
		Shuffle(a, src, ts)
		Unshuffle(b, a, ts)
		if !bytes.Equal(b, src) {
			t.Fatalf("byte shuffle of %d bytes, typesize %d, does not come back", len(src), ts)
		}
		BitShuffle(a, src, ts)
		BitUnshuffle(b, a, ts)
		if !bytes.Equal(b, src) {
			t.Fatalf("bit shuffle of %d bytes, typesize %d, does not come back", len(src), ts)
		}
	})
}

// The buffers fit the L2 cache together, like the blocks of Blosc.
func BenchmarkShuffle(b *testing.B) {
	for _, c := range []struct {
		name string
		f    func(dst, src []byte, ts int, fast bool)
	}{{"byte", shuffle}, {"unbyte", unshuffle}, {"bit", bitShuffle}, {"unbit", bitUnshuffle}} {
		for _, ts := range []int{1, 2, 4, 8, 3} {
			for _, fast := range []bool{true, false} {
				if fast && !haveAVX2 {
					continue
				}
				name := fmt.Sprintf("%s/%d/scalar", c.name, ts)
				if fast {
					name = fmt.Sprintf("%s/%d/avx2", c.name, ts)
				}
				b.Run(name, func(b *testing.B) {
					src, dst := randomBytes(rand.New(rand.NewPCG(5, 6)), 96<<10), make([]byte, 96<<10)
					b.SetBytes(int64(len(src)))
					for b.Loop() {
						c.f(dst, src, ts, fast)
					}
				})
			}
		}
	}
}
