package inflate

import (
	"bytes"
	"compress/flate"
	"hash/adler32"
	"io"
	"testing"

	kflate "github.com/klauspost/compress/flate"
)

// BenchmarkInflate times what Raw and the Go decoders do with streams of level 5.
func BenchmarkInflate(b *testing.B) {
	for _, kind := range []string{"float32", "text", "random"} {
		data := sample(kind, 4<<20)
		s := deflated(b, 5, data, 0)
		dst := make([]byte, len(data))
		run := func(name string, f func() error) {
			b.Run(kind+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				clear(dst)
				for b.Loop() {
					if err := f(); err != nil {
						b.Fatal(err)
					}
				}
				if !bytes.Equal(dst, data) {
					b.Fatal("wrong bytes")
				}
			})
		}
		run("ours", func() error {
			_, err := Raw(b.Context(), dst, s)
			return err
		})
		stream := func(r io.ReadCloser) func() error {
			return func() error {
				if err := r.(flate.Resetter).Reset(bytes.NewReader(s), nil); err != nil {
					return err
				}
				_, err := io.ReadFull(r, dst)
				return err
			}
		}
		run("klauspost", stream(kflate.NewReader(bytes.NewReader(s))))
		run("standard", stream(flate.NewReader(bytes.NewReader(s))))
	}
}

// BenchmarkSmall times chunks so small that building tables counts.
func BenchmarkSmall(b *testing.B) {
	data := sample("float32", 4096)
	s, dst := deflated(b, 5, data, 0), make([]byte, len(data))
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := Raw(b.Context(), dst, s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("klauspost", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		r := kflate.NewReader(bytes.NewReader(s))
		for b.Loop() {
			if err := r.(flate.Resetter).Reset(bytes.NewReader(s), nil); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(r, dst); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAdler(b *testing.B) {
	data := sample("float32", 1<<20)
	run := func(name string, f func([]byte) uint32) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				f(data)
			}
		})
	}
	run("ours", adler)
	run("standard", adler32.Checksum)
}
