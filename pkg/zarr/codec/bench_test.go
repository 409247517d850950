package codec

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"strata/pkg/dtype"
)

// BenchmarkChunk encodes and decodes a chunk of 256³ float32 voxels of 12-bit
// noise with the codecs of --codec, on one core.
func BenchmarkChunk(b *testing.B) {
	chunk := make([]byte, 4*256*256*256)
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(chunk); i += 4 {
		binary.LittleEndian.PutUint32(chunk[i:], math.Float32bits(float32(r.Uint32N(4096))))
	}
	bits, err := Blosc("zstd", 3, BitShuffle, 4, 0)
	if err != nil {
		b.Fatal(err)
	}
	chains := map[string]Chain{"blosc-zstd-bit:3": {bits}}
	names := []string{"blosc-zstd:1", "blosc-zstd:5", "blosc-lz4:5", "zstd:1", "zstd:3", "lz4", "gzip:1"}
	for _, name := range names {
		if chains[name], err = FromFlag(name, dtype.Float32, 3); err != nil {
			b.Fatal(err)
		}
	}
	for name, format := range map[string]int{"blosc-zstd:1 crc32c": 3, "zstd:1 crc32c": 3, "zstd:1 own checksum": 2} {
		names = append(names, name)
		flag, _, _ := strings.Cut(name, " ")
		if chains[name], err = FromFlag(flag+ChecksumSuffix, dtype.Float32, format); err != nil {
			b.Fatal(err)
		}
	}
	for _, name := range append(names, "blosc-zstd-bit:3") {
		chain, s := chains[name], NewScratch()
		stored, err := chain.Encode(s, nil, chunk)
		if err != nil {
			b.Fatal(err)
		}
		out := make([]byte, len(chunk))
		if err := chain.Decode(s, out, stored); err != nil { // also the scratch's allocations
			b.Fatal(err)
		}
		b.Run("decode/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			for b.Loop() {
				if err := chain.Decode(s, out, stored); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("encode/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			for b.Loop() {
				if stored, err = chain.Encode(s, stored, chunk); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(chunk))/float64(len(stored)), "ratio")
		})
	}
}
