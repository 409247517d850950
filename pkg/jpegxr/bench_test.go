package jpegxr

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// micrograph makes a tile as a camera makes it: cells on a dark ground, with noise.
func micrograph(h Header) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	p := make([]byte, 0, h.Width*h.Height*h.Format.Size())
	for y := range h.Height {
		for x := range h.Width {
			for c := range h.Format.Channels() {
				v := 600 + 2000*math.Pow(math.Sin(float64(x+3*c)/37)*math.Cos(float64(y-2*c)/29), 4)
				v += math.Sqrt(v) * r.NormFloat64()
				if h.Format.Size() == h.Format.Channels() {
					p = append(p, byte(v/12))
				} else {
					p = binary.LittleEndian.AppendUint16(p, uint16(v))
				}
			}
		}
	}
	return p
}

// tile is an image to measure with.
type tile struct {
	name string
	o    options
}

var tiles = []tile{
	{"Gray16/lossless", options{Header: Header{1024, 1024, Gray16}, guid: 0xb, index: [9]byte{1, 1, 1}}},
	{"Gray16/fine", options{Header: Header{1024, 1024, Gray16}, guid: 0xb, index: [9]byte{40, 40, 40}}},
	{"Gray16/coarse", options{Header: Header{1024, 1024, Gray16}, guid: 0xb, index: [9]byte{80, 80, 80}}},
	{"Gray8/fine", options{Header: Header{1024, 1024, Gray8}, guid: 8, index: [9]byte{20, 20, 20}}},
	{"BGR24/444", options{Header: Header{1024, 1024, BGR24}, guid: 0xc, color: color444, index: [9]byte{20, 20, 20, 30, 30, 30, 30, 30, 30}}},
	{"BGR24/420", options{Header: Header{1024, 1024, BGR24}, guid: 0xc, color: color420, index: [9]byte{30, 30, 30, 40, 40, 40, 40, 40, 40}}},
}

// benchmark measures how fast f decodes each tile, in pixels, which Go calls bytes.
func benchmark(b *testing.B, decode func(l *library, dst, src []byte, h Header) error) {
	l := needLibrary(b)
	for _, t := range tiles {
		b.Run(t.name, func(b *testing.B) {
			t.o.overlap = 1
			src, err := l.encode(t.o, micrograph(t.o.Header))
			if err != nil {
				b.Fatal(err)
			}
			dst := make([]byte, t.o.Width*t.o.Height*t.o.Format.Size())
			b.SetBytes(int64(t.o.Width * t.o.Height))
			b.ReportMetric(float64(8*len(src))/float64(t.o.Width*t.o.Height), "bits/pixel")
			for b.Loop() {
				if err := decode(l, dst, src, t.o.Header); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	var d Decoder
	benchmark(b, func(_ *library, dst, src []byte, h Header) error {
		return d.Decode(context.Background(), dst, h.Width*h.Format.Size(), src)
	})
}

func BenchmarkLibrary(b *testing.B) {
	benchmark(b, func(l *library, _, src []byte, h Header) error {
		_, err := l.decode(src, h)
		return err
	})
}
