// Package enzstdtest generates the data sets that measure the encoder's sizes and speed.
package enzstdtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"strata/pkg/dtype"
	"strata/pkg/phantom"
	"strata/pkg/zarr/codec/shuffle"
)

// A Set is a data set of one kind. The same name gives the same bytes everywhere, except for the last digit
// of a sine.
type Set struct {
	Name  string
	Bytes []byte
}

// Small returns sets of up to 8 MiB: 12-bit images as chunks and planes, with and without structure, in
// several element types, plain and shuffled as by Blosc; a phantom; and text.
func Small() []Set {
	cube := field(128, 128, 128, true)
	plane, noise := field(1, 1024, 1024, true), field(128, 128, 128, false)
	f32, f64, u16, tissue := float32s(cube), float64s(cube), uint16s(cube), specimen(dtype.Float32)
	counts := specimen(dtype.Uint16)
	return []Set{
		{"image 64³ float32", float32s(field(64, 64, 64, true))},
		{"image 128³ float32", f32},
		{"image 1024² float32", float32s(plane)},
		{"image 64³ uint16", uint16s(field(64, 64, 64, true))},
		{"image 128³ uint16", u16},
		{"image 1024² uint16", uint16s(plane)},
		{"image 128³ float32, 0…4095", counted(cube)},
		{"image 128×128×64 float64", f64[:len(f64)/2]},
		{"noise 128³ float32", float32s(noise)},
		{"noise 128³ uint16", uint16s(noise)},
		{"image float32, shuffled", shuffled(f32, 4)},
		{"image uint16, shuffled", shuffled(u16, 2)},
		{"noise float32, shuffled", shuffled(float32s(noise), 4)},
		{"phantom float32", tissue},
		{"phantom uint16", counts},
		{"phantom float32, shuffled", shuffled(tissue, 4)},
		{"phantom uint16, shuffled", shuffled(counts, 2)},
		{"text", text(1 << 20)},
		{"json", records(200 << 10)},
	}
}

// Large returns the chunk of 256³ float32, 64 MiB.
func Large() []Set { return []Set{{"image 256³ float32", float32s(field(256, 256, 256, true))}} }

// Chunks returns the chunks of 64³ and 256³ float32 with and without structure, and text: what decoders are compared
// with.
func Chunks() []Set {
	var sets []Set
	for _, edge := range []int{64, 256} {
		sets = append(sets, Set{fmt.Sprintf("image %d³ float32", edge), float32s(field(edge, edge, edge, true))},
			Set{fmt.Sprintf("noise %d³ float32", edge), float32s(field(edge, edge, edge, false))})
	}
	return append(sets, Set{"text", text(1 << 20)}, Set{"json", records(200 << 10)})
}

// field returns voxels of 12 bits: noise around a smooth mean, or noise alone, in which all values are as frequent.
func field(nz, ny, nx int, structure bool) []uint16 {
	r := rand.New(rand.NewPCG(12, uint64(nz)))
	v := make([]uint16, 0, nz*ny*nx)
	for range nz {
		for y := range ny {
			for x := range nx {
				if !structure {
					v = append(v, uint16(r.IntN(4096)))
					continue
				}
				mean := 1500 + 500*math.Sin(2*math.Pi*float64(y)/700)*math.Sin(2*math.Pi*float64(x)/900)
				v = append(v, uint16(min(max(math.Round(mean+300*r.NormFloat64()), 0), 4095)))
			}
		}
	}
	return v
}

func uint16s(v []uint16) []byte {
	b := make([]byte, 0, 2*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint16(b, x)
	}
	return b
}

// float32s has the values 0…1.
func float32s(v []uint16) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(float64(x)/4095)))
	}
	return b
}

func counted(v []uint16) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	}
	return b
}

// float64s has the values of float32s.
func float64s(v []uint16) []byte {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(float32(float64(x)/4095))))
	}
	return b
}

// shuffled returns the first MiB of b in one block, byte by byte of its elements.
func shuffled(b []byte, size int) []byte {
	out := make([]byte, 1<<20)
	shuffle.Shuffle(out, b[:1<<20], size)
	return out
}

// specimen returns a tile of tissue.
func specimen(t dtype.Type) []byte {
	c := phantom.Default()
	c.Tile, c.DType = [3]int{96, 128, 128}, t
	s, err := phantom.New(c)
	if err != nil {
		panic(err)
	}
	b := make([]byte, 96*128*128*t.Size())
	if err := s.RenderTile(b, 0, 1, 1); err != nil {
		panic(err)
	}
	return b
}

// text returns sentences of words of which few are frequent.
func text(n int) []byte {
	r := rand.New(rand.NewPCG(7, 7))
	words := make([]string, 6000)
	for i := range words {
		b := make([]byte, 2+r.IntN(9))
		for j := range b {
			b[j] = "eeeettaaooiinnsshhrrddlluucmfwypvbgk"[r.IntN(36)]
		}
		words[i] = string(b)
	}
	var out []byte
	for len(out) < n {
		for range 6 + r.IntN(20) {
			k := int(math.Exp(r.Float64()*math.Log(float64(len(words))))) - 1
			out = append(append(out, words[k]...), ' ')
		}
		out = append(out[:len(out)-1], ". "...)
	}
	return out[:n]
}

// records returns text as tools write it about files.
func records(n int) []byte {
	r := rand.New(rand.NewPCG(8, 8))
	out := []byte("[\n")
	for i := 0; len(out) < n; i++ {
		out = fmt.Appendf(out, "  {\"id\": %d, \"path\": \"mosaic_z%02d/c/%d/%d/%d\", \"mean\": %.4f, \"dtype\": \"float32\", \"complete\": %v},\n",
			i, i/500, r.IntN(4), r.IntN(40), r.IntN(40), 1000*r.Float64(), r.IntN(9) > 0)
	}
	return out[:n]
}
