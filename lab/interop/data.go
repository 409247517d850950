package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"strata/pkg/dtype"
)

// values generates the elements of an array in C order, little-endian. smooth values are compressible, others are
// not; both include numbers that programs often get wrong.
func values(t dtype.Type, shape []int, smooth bool, seed uint64) []byte {
	n := 1
	for _, s := range shape {
		n *= s
	}
	r := rand.New(rand.NewPCG(seed, 7))
	out := make([]byte, n*t.Size())
	inner := 1
	if len(shape) > 0 {
		inner = shape[len(shape)-1]
	}
	for i := range n {
		v := 100*math.Sin(float64(i)/37) + float64(i/max(inner, 1)) + r.NormFloat64()
		e := out[i*t.Size() : (i+1)*t.Size()]
		switch {
		case t == dtype.Bool:
			e[0] = byte(r.IntN(2))
			if smooth {
				e[0] = byte(i / 5 % 2)
			}
		case t.IsComplex():
			h := t.Size() / 2
			putFloat(e[:h], special(v, i, r, smooth))
			putFloat(e[h:], special(-v/3, i+4, r, smooth))
		case t.IsFloat():
			putFloat(e, special(v, i, r, smooth))
		default:
			u := r.Uint64()
			if smooth {
				u = uint64(int64(v) + 1000)
			}
			putUint(e, u)
		}
	}
	return out
}

func special(v float64, i int, r *rand.Rand, smooth bool) float64 {
	list := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, 1e-45}
	if i%101 < len(list) {
		return list[i%101]
	}
	if smooth {
		return v
	}
	return v * math.Exp(4*r.NormFloat64())
}

func putFloat(b []byte, v float64) {
	switch len(b) {
	case 2:
		binary.LittleEndian.PutUint16(b, dtype.Float16Bits(float32(v)))
	case 4:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(v)))
	case 8:
		binary.LittleEndian.PutUint64(b, math.Float64bits(v))
	}
}

func putUint(b []byte, u uint64) {
	var all [8]byte
	binary.LittleEndian.PutUint64(all[:], u)
	copy(b, all[:])
}

// box copies the box at start of the given shape out of the elements of an array or, with into, into them.
func box(all []byte, size int, shape, start, boxShape []int, into []byte) []byte {
	n := size
	for _, s := range boxShape {
		n *= s
	}
	part := into
	if part == nil {
		part = make([]byte, n)
	}
	var walk func(d, at, from int)
	row := func(at, from int) {
		w := size
		if k := len(shape); k > 0 {
			w *= boxShape[k-1]
		}
		if into == nil {
			copy(part[from:from+w], all[at:])
		} else {
			copy(all[at:at+w], part[from:])
		}
	}
	stride := func(s []int, d int) int {
		n := size
		for _, k := range s[d+1:] {
			n *= k
		}
		return n
	}
	walk = func(d, at, from int) {
		if d >= len(shape)-1 {
			if len(shape) > 0 {
				at += start[d] * size
			}
			row(at, from)
			return
		}
		for i := range boxShape[d] {
			walk(d+1, at+(start[d]+i)*stride(shape, d), from+i*stride(boxShape, d))
		}
	}
	if n > 0 {
		walk(0, 0, 0)
	}
	return part
}

// ball generates a volume of float32 with an object somewhat off its centre.
func ball(shape []int) []byte {
	out := make([]byte, 0, 4*elements(shape))
	for i := range elements(shape) {
		r := 0.0
		for d, at := range [3]int{i / (shape[1] * shape[2]), i / shape[2] % shape[1], i % shape[2]} {
			e := (float64(at)/float64(shape[d]) - 0.52) / 0.1
			r += e * e
		}
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(1000*math.Exp(-r/2))))
	}
	return out
}
