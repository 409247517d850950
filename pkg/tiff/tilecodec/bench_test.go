package tilecodec

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/dtype"
)

// specimen is a tile as microscopes make them: structure on a slope, noise of a few grey values.
func specimen(f *Format) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, f.Bytes())
	size := f.Type.Size()
	for i := range len(out) / size {
		x, y := float64(i/f.samples()%f.Width), float64(i/f.samples()/f.Width)
		v := 0.5 + 0.2*math.Sin(x/37)*math.Cos(y/23) + 0.1*math.Sin(x/5+y/7+float64(i%f.samples())) + 0.008*r.NormFloat64()
		switch at := i * size; f.Type {
		case dtype.Uint8:
			out[at] = byte(255 * v)
		case dtype.Uint16:
			binary.LittleEndian.PutUint16(out[at:], uint16(8000*v))
		default:
			binary.LittleEndian.PutUint32(out[at:], math.Float32bits(float32(math.Round(4000*v)/7)))
		}
	}
	return out
}

// BenchmarkTile times one goroutine with tiles of 512×512 pixels; MB are of samples.
func BenchmarkTile(b *testing.B) {
	for _, compression := range []struct {
		name string
		tag  int
	}{{"none", None}, {"lzw", LZW}, {"deflate", Deflate}, {"zstd", Zstd}, {"packbits", PackBits}, {"jpeg", JPEG}} {
		for _, c := range []Format{
			{Type: dtype.Uint8, Samples: 3, Photometric: 6, Subsampling: [2]int{1, 1}},
			{Type: dtype.Uint8, Samples: 3, Photometric: 2},
			{Type: dtype.Uint8, Samples: 3, Photometric: 2, Predictor: 2},
			{Type: dtype.Uint16, Samples: 1, BigEndian: true},
			{Type: dtype.Uint16, Samples: 1, Predictor: 2},
			{Type: dtype.Float32, Samples: 1, Predictor: 3},
		} {
			c.Compression, c.Width, c.Height = compression.tag, 512, 512
			if c.CheckEncode() != nil || c.Predictor > 1 && c.predictor() == 1 {
				continue
			}
			samples := specimen(&c)
			var s Scratch
			stored, err := c.Encode(&s, nil, samples)
			if err != nil {
				b.Fatal(err)
			}
			name := fmt.Sprintf("%s/%s×%d/predictor %d", compression.name, c.Type, c.Samples, max(c.Predictor, 1))
			if c.Photometric == photometricYCC {
				name += "/YCbCr"
			}
			b.Run("decode/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(samples)))
				for b.Loop() {
					if err := c.Decode(b.Context(), &s, samples, stored, c.Height); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(samples))/float64(len(stored)), "ratio")
			})
			b.Run("encode/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(samples)))
				for b.Loop() {
					if stored, err = c.Encode(&s, stored, samples); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
