package benchzarr

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	cut "strata/pkg/bench/boxes"
	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/work"
	"strata/pkg/zarr"
)

// content is the content of generated arrays: blocks of [stretch] elements along the last axis and [rows] along
// the one before are either noise, in which nothing repeats, or a single number. The fraction of noise is 1/ratio,
// so that any codec that handles runs compresses the array, and each of its chunks, about ratio times. An element
// depends only on the seed and its place, so the same array results whatever the chunks.
type content struct {
	ratio float64
	seed  uint64
	elem  dtype.Type
}

const (
	stretch = 256
	rows    = 8
)

// checkContent returns an error for element types that cannot be generated.
func checkContent(elem dtype.Type) error {
	if elem.IsComplex() || elem == dtype.Bool {
		return fmt.Errorf("arrays of %s are not generated: want integers or floats", elem)
	}
	return nil
}

// fill generates the elements of a region of an array of the given shape, in C order.
func (c content) fill(shape []int, r zarr.Region, data []byte) {
	last := len(shape) - 1
	if Volume(r.Shape) == 0 {
		return
	}
	row := c.elem.Size() * r.Shape[last]
	blocks := uint64((shape[last] + stretch - 1) / stretch)
	at := append([]int{}, r.Start[:last]...)
	for off := 0; off < len(data); off += row {
		line, group := uint64(0), uint64(0) // numbers of the row, and of the row of blocks
		for d, i := range at {
			line = line*uint64(shape[d]) + uint64(i)
			n, i := uint64(shape[d]), uint64(i)
			if d == last-1 {
				n, i = (n+rows-1)/rows, i/rows
			}
			group = group*n + i
		}
		c.row(line*blocks, group*blocks, r.Start[last], data[off:off+row])
		for d := last - 1; d >= 0; d-- {
			if at[d]++; at[d] < r.Start[d]+r.Shape[d] {
				break
			}
			at[d] = r.Start[d]
		}
	}
}

// row generates a part of a row that begins with element x. line is the number of the row's first stretch, block
// that of its first block.
func (c content) row(line, block uint64, x int, data []byte) {
	size := c.elem.Size()
	for len(data) > 0 {
		skip, i := x%stretch, uint64(x/stretch)
		n := min((stretch-skip)*size, len(data))
		if c.noisy(block + i) {
			c.noise(Mix(c.seed+0x9e3779b97f4a7c15*(line+i+1)), skip*size, data[:n])
		} else {
			c.even(data[:n])
		}
		x, data = x+n/size, data[n:]
	}
}

// noisy reports whether a block is noise. Multiples of the golden ratio are evenly distributed in every part of
// the array, so that each chunk has its share.
func (c content) noisy(block uint64) bool {
	at := block*0x9e3779b97f4a7c15 + Mix(c.seed)
	return float64(at>>11)*c.ratio < 1<<53
}

// noise fills data with bytes of a stretch from byte off on. Every eight of them depend on their place; the
// exponents of floats that would not be finite are replaced.
func (c content) noise(number uint64, off int, data []byte) {
	var word [8]byte
	for i := 0; i < len(data); {
		at := off + i
		binary.LittleEndian.PutUint64(word[:], Mix(number+uint64(at/8)*0xd1342543de82ef95))
		i += copy(data[i:], word[at%8:])
	}
	size := c.elem.Size()
	var high byte // bits of the exponent in the last byte but one; the last has the others
	switch c.elem {
	case dtype.Float16:
		high = 0x7c
	case dtype.Float32, dtype.Float64:
		high = 0x7f
	default:
		return
	}
	for i := size - 1; i < len(data); i += size {
		if data[i]&high == high {
			data[i] ^= 0x40
		}
	}
}

// even fills data with the number one.
func (c content) even(data []byte) {
	var one [8]byte
	switch c.elem {
	case dtype.Float16:
		binary.LittleEndian.PutUint16(one[:], dtype.Float16Bits(1))
	case dtype.Float32:
		binary.LittleEndian.PutUint32(one[:], math.Float32bits(1))
	case dtype.Float64:
		binary.LittleEndian.PutUint64(one[:], math.Float64bits(1))
	default:
		one[0] = 1
	}
	for n := copy(data, one[:c.elem.Size()]); n < len(data); n *= 2 {
		copy(data[n:], data[:n])
	}
}

// Mix applies the finishing step of splitmix64 (Steele, Lea and Flood 2014).
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fillAll fills a region like fill, with several workers on planes of their own.
func (c content) fillAll(ctx context.Context, workers int, shape []int, r zarr.Region, data []byte) error {
	if len(r.Shape) < 2 || r.Shape[0] == 0 {
		c.fill(shape, r, data)
		return nil
	}
	plane := len(data) / r.Shape[0]
	return work.Each(ctx, workers, r.Shape[0], func(_, i int) error {
		p := zarr.Region{Start: append([]int{}, r.Start...), Shape: append([]int{}, r.Shape...)}
		p.Start[0], p.Shape[0] = r.Start[0]+i, 1
		c.fill(shape, p, data[i*plane:][:plane])
		return nil
	})
}

// generate fills an array, chunk file by chunk file, and calls done with the bytes of each.
func (c content) generate(ctx context.Context, a *zarr.Array, workers int, budget int64, done func(int64)) error {
	l := layoutOf(a)
	a = a.With(zarr.Workers(1))
	list := cut.Split(l.Shape, l.files)
	each := l.Bytes(clip(l.files, l.Shape)) + a.ScratchBytes(true)
	n := int(min(int64(workers), max(1, budget/each), int64(len(list))))
	bufs := make([][]byte, n)
	defer func() {
		for _, b := range bufs {
			mem.Free(b)
		}
	}()
	for i := range bufs {
		var err error
		if bufs[i], err = mem.Alloc(int(l.Bytes(clip(l.files, l.Shape)))); err != nil {
			return err
		}
	}
	return work.Each(ctx, n, len(list), func(worker, i int) error {
		b := bufs[worker][:l.Bytes(list[i].Shape)]
		c.fill(l.Shape, list[i], b)
		if err := a.Write(ctx, list[i], b); err != nil {
			return err
		}
		done(int64(len(b)))
		return nil
	})
}
