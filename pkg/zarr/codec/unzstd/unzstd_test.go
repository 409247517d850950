package unzstd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// general decodes with klauspost's decoder, the reference of these tests.
func general(t testing.TB) *zstd.Decoder {
	t.Helper()
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func encoder(t testing.TB, options ...zstd.EOption) *zstd.Encoder {
	t.Helper()
	e, err := zstd.NewWriter(nil, append([]zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// inputs are bytes of different kinds: constant, random, of few values, repeating with short and long periods, text,
// and mixtures.
func inputs(n int, seed uint64) map[string][]byte {
	r := rand.New(rand.NewPCG(seed, 1))
	make := func(f func(i int) byte) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = f(i)
		}
		return b
	}
	words := []string{"shard ", "chunk ", "tile ", "mosaic ", "slice ", "voxel\n"}
	var text []byte
	for len(text) < n {
		text = append(text, words[r.IntN(len(words))]...)
	}
	random := make(func(int) byte { return byte(r.Uint32()) })
	mixed := bytes.Clone(random)
	for i := 0; i < n; i += 700 {
		copy(mixed[i:], text[:min(n, 1+r.IntN(600))])
		if k := i + 300; k < n && r.IntN(2) == 0 {
			clear(mixed[k:min(n, k+1+r.IntN(5000))])
		}
	}
	return map[string][]byte{
		"zero":    make(func(int) byte { return 0 }),
		"random":  random,
		"few":     make(func(int) byte { return "abacabad"[r.IntN(8)] }),
		"skewed":  make(func(int) byte { return byte(max(0, r.IntN(40)-36)) }),
		"short":   make(func(i int) byte { return byte(i % 3) }),
		"period7": make(func(i int) byte { return byte(i % 7 * i / 1000) }),
		"long":    make(func(i int) byte { return byte(i * i >> 3 % 251) }),
		"steps":   make(func(i int) byte { return byte(i / 300) }),
		"text":    text[:n],
		"mixed":   mixed,
	}
}

func TestDecode(t *testing.T) {
	var d Decoder
	for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault, zstd.SpeedBetterCompression, zstd.SpeedBestCompression} {
		e := encoder(t, zstd.WithEncoderLevel(level), zstd.WithAllLitEntropyCompression(true))
		for _, n := range []int{0, 1, 7, 100, 1000, 5000, 131071, 131072, 131073, 400_000} {
			for kind, want := range inputs(n, uint64(n)) {
				frame := e.EncodeAll(want, nil)
				buf := bytes.Repeat([]byte{0xa5}, n+64)
				got, err := d.Decode(buf[:n], frame)
				if err != nil || got != n || !bytes.Equal(buf[:n], want) {
					t.Fatalf("%s, %d bytes, level %v: %d bytes, %v", kind, n, level, got, err)
				}
				if !bytes.Equal(buf[n:], bytes.Repeat([]byte{0xa5}, 64)) {
					t.Fatalf("%s, %d bytes: written behind the end", kind, n)
				}
				if n > 0 {
					if _, err := d.Decode(buf[:n-1], frame); !errors.Is(err, ErrTooLong) {
						t.Fatalf("%s, %d bytes into one less: %v", kind, n, err)
					}
				}
				// more room does not matter, and lets the last copies be wide
				if got, err := d.Decode(buf, frame); err != nil || got != n || !bytes.Equal(buf[:n], want) {
					t.Fatalf("%s, %d bytes with room behind: %d bytes, %v", kind, n, got, err)
				}
			}
		}
	}
}

func TestSeveralFrames(t *testing.T) {
	e := encoder(t)
	skippable := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, skipMagic+3), 5)
	skippable = append(skippable, "tools"...)
	data := bytes.Join([][]byte{skippable, e.EncodeAll([]byte("first "), nil), skippable, e.EncodeAll([]byte("second"), nil), skippable}, nil)
	var d Decoder
	dst := make([]byte, 20)
	n, err := d.Decode(dst, data)
	if err != nil || string(dst[:n]) != "first second" {
		t.Errorf("%q, %v", dst[:n], err)
	}
	if _, err := d.Decode(dst, data[:len(data)-1]); !errors.Is(err, ErrCorrupt) {
		t.Errorf("truncated skippable frame: %v", err)
	}
}

func TestUnsupported(t *testing.T) {
	frame := encoder(t, zstd.WithEncoderDictRaw(7, []byte("a dictionary"))).EncodeAll([]byte("a dictionary is needed"), nil)
	var d Decoder
	if _, err := d.Decode(make([]byte, 30), frame); !errors.Is(err, ErrUnsupported) {
		t.Errorf("frame that needs a dictionary: %v", err)
	}
}

// Checksums are verified, also where only the beginning of the data is wanted.
func TestChecksum(t *testing.T) {
	e := encoder(t, zstd.WithEncoderCRC(true))
	var d Decoder
	for kind, want := range inputs(3*blockMax, 5) {
		frame := e.EncodeAll(want, e.EncodeAll([]byte("first "), nil))
		buf := make([]byte, 6+len(want))
		if n, err := d.Decode(buf, frame); err != nil || n != len(buf) || !bytes.Equal(buf[6:], want) {
			t.Fatalf("%s: %d bytes, %v", kind, n, err)
		}
		frame[len(frame)-1]++
		for _, need := range []int{7, len(buf)} {
			if _, err := d.Prefix(buf, frame, need); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, first %d bytes with a wrong checksum: %v", kind, need, err)
			}
		}
		if _, err := d.Decode(buf, frame[:len(frame)-2]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s, checksum cut short: %v", kind, err)
		}
	}
}

// No damage to a frame makes the decoder panic, write where it should not, or accept what the reference refuses with
// other bytes.
func TestDamage(t *testing.T) {
	ref, e := general(t), encoder(t)
	var d Decoder
	r := rand.New(rand.NewPCG(3, 4))
	for kind, want := range inputs(3000, 9) {
		frame := e.EncodeAll(want, nil)
		for range 1500 {
			bad := bytes.Clone(frame)
			for range 1 + r.IntN(3) {
				bad[r.IntN(len(bad))] = byte(r.Uint32())
			}
			if r.IntN(4) == 0 {
				bad = bad[:r.IntN(len(bad))]
			}
			compare(t, &d, ref, bad, len(want), kind)
		}
	}
}

// compare decodes with both decoders and fails if both succeed with different results.
func compare(t testing.TB, d *Decoder, ref *zstd.Decoder, data []byte, room int, what string) {
	t.Helper()
	buf := bytes.Repeat([]byte{0xa5}, room+64)
	n, err := d.Decode(buf[:room], data)
	if !bytes.Equal(buf[room:], bytes.Repeat([]byte{0xa5}, 64)) {
		t.Fatalf("%s: written behind the end", what)
	}
	if err != nil {
		return
	}
	want, refErr := ref.DecodeAll(data, make([]byte, 0, room))
	if refErr == nil && !bytes.Equal(want, buf[:n]) {
		t.Fatalf("%s: %d bytes, the reference has %d others", what, n, len(want))
	}
}

func FuzzDecode(f *testing.F) {
	for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedBestCompression} {
		e := encoder(f, zstd.WithEncoderLevel(level), zstd.WithAllLitEntropyCompression(true))
		for _, b := range inputs(600, 2) {
			f.Add(e.EncodeAll(b, nil), 600)
		}
	}
	var d Decoder
	ref := general(f)
	f.Fuzz(func(t *testing.T, data []byte, room int) {
		compare(t, &d, ref, data, min(max(room, 0), 1<<16), "fuzz")
	})
}

// A prefix has the bytes of the whole, costs no more blocks than it needs, and
// does not care for what is behind them.
func TestPrefix(t *testing.T) {
	var d Decoder
	e := encoder(t)
	const n = 5*blockMax + 1000
	for kind, want := range inputs(n, 3) {
		frame := e.EncodeAll(want[n/2:], e.EncodeAll(want[:n/2], nil)) // two frames
		for _, need := range []int{1, 1000, blockMax, blockMax + 1, n/2 - 1, n / 2, n/2 + 1, n - 1, n} {
			buf := make([]byte, n)
			got, err := d.Prefix(buf, frame, need)
			if err != nil || got < need || got >= need+blockMax && got != n {
				t.Fatalf("%s, first %d of %d: %d bytes, %v", kind, need, n, got, err)
			}
			if !bytes.Equal(buf[:need], want[:need]) {
				t.Fatalf("%s, first %d of %d: other bytes", kind, need, n)
			}
		}
		if got, err := d.Prefix(make([]byte, n), frame, n+1); err != nil || got != n {
			t.Fatalf("%s, more than there is: %d bytes, %v", kind, got, err)
		}
	}
	want := inputs(n, 3)["random"]
	frame := e.EncodeAll(want, nil)
	buf := make([]byte, n)
	if got, err := d.Prefix(buf, frame[:2*blockMax+100], blockMax+1); err != nil || !bytes.Equal(buf[:blockMax+1], want[:blockMax+1]) {
		t.Errorf("prefix of a frame whose end is missing: %d bytes, %v", got, err)
	}
	if _, err := d.Prefix(buf, frame[:2*blockMax+100], 3*blockMax); !errors.Is(err, ErrCorrupt) {
		t.Errorf("more than a frame cut short has: %v, want ErrCorrupt", err)
	}
}
