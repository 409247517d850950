package jpegxr

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// micrograph makes a tile as a camera of 16 bits makes it: cells on a dark ground, with noise.
func micrograph(width, height int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	p := make([]byte, 0, 2*width*height)
	for y := range height {
		for x := range width {
			v := 600 + 2000*math.Pow(math.Sin(float64(x)/37)*math.Cos(float64(y)/29), 4)
			p = binary.LittleEndian.AppendUint16(p, uint16(v+math.Sqrt(v)*r.NormFloat64()))
		}
	}
	return p
}

func benchmarkTile(b *testing.B, quantizer byte) (src []byte, o options) {
	l := needLibrary(b)
	o = options{Header: Header{1024, 1024, Gray16}, guid: 0xb, overlap: 1, index: [9]byte{quantizer, quantizer, quantizer}}
	src, err := l.encode(o, micrograph(o.Width, o.Height))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(1024 * 1024) // pixels, not bytes
	b.ReportMetric(float64(8*len(src))/(1024*1024), "bits/pixel")
	return src, o
}

func BenchmarkDecode(b *testing.B) {
	for _, q := range []byte{1, 40, 80} {
		b.Run(map[byte]string{1: "lossless", 40: "fine", 80: "coarse"}[q], func(b *testing.B) {
			src, o := benchmarkTile(b, q)
			dst := make([]byte, 2*o.Width*o.Height)
			var d Decoder
			b.ResetTimer()
			for b.Loop() {
				if err := d.Decode(context.Background(), dst, 2*o.Width, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLibrary(b *testing.B) {
	for _, q := range []byte{1, 40, 80} {
		b.Run(map[byte]string{1: "lossless", 40: "fine", 80: "coarse"}[q], func(b *testing.B) {
			src, o := benchmarkTile(b, q)
			l := needLibrary(b)
			b.ResetTimer()
			for b.Loop() {
				if _, err := l.decode(src, o.Header); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
