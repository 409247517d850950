package kernels

import (
	"encoding/binary"
	"fmt"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/ngff"
)

// Downsampler makes the next level of a pyramid from volumes (z, y, x) that lie on a
// device: ngff.Downsample, bit by bit. It may be used by several streams at a time.
type Downsampler struct {
	in, out [3]int
	planes  int // 2 if z is halved, else 1
	kind    dtype.Type
	even    bool        // all halved axes are, and sums of eight do not overflow
	scale   float64     // 2^-(number of even halved axes)
	buffer  *gpu.Buffer // nil: no taps are needed
	taps    [3]gpu.Span
}

// tapBytes is the size of a Tap in downsample.cu.
const tapBytes = 24

// NewDownsampler plans the halving of volumes of a shape and a type. z says whether that
// axis is halved too; y and x are. Where an axis is odd it brings taps to the device of s and
// waits until they are there.
func NewDownsampler(s *gpu.Stream, shape [3]int, z bool, kind dtype.Type) (*Downsampler, error) {
	r := &Downsampler{in: shape, out: shape, planes: 1, kind: kind, even: kind != dtype.Uint64 && kind != dtype.Int64, scale: 1}
	if z {
		r.planes = 2
	}
	var table []byte
	var at [4]int64
	for d, n := range shape {
		at[d] = int64(len(table))
		if d == 0 && !z {
			continue
		}
		t := ngff.LevelTaps(n)
		if r.out[d] = len(t.Lo); r.out[d] == 0 {
			return nil, fmt.Errorf("shape %v cannot be halved", shape)
		}
		if t.Even {
			r.scale /= 2
		} else {
			r.even = false
		}
		for i := range t.Lo {
			table = binary.LittleEndian.AppendUint64(table, math.Float64bits(t.W0[i]))
			table = binary.LittleEndian.AppendUint64(table, math.Float64bits(t.W1[i]))
			table = binary.LittleEndian.AppendUint32(table, uint32(t.Lo[i]))
			table = binary.LittleEndian.AppendUint32(table, uint32(t.Hi[i]))
		}
	}
	at[3] = int64(len(table))
	if r.even {
		return r, nil
	}
	var err error
	if r.buffer, err = bring(s, table); err != nil {
		return nil, err
	}
	for d := range r.taps {
		r.taps[d] = r.buffer.From(at[d], at[d+1]-at[d])
	}
	return r, nil
}

// DownsamplerBytes is the device memory that a [Downsampler] takes.
func DownsamplerBytes(shape [3]int, z bool, kind dtype.Type) int64 {
	n, even := int64(shape[1]/2)+int64(shape[2]/2), shape[1]%2 == 0 && shape[2]%2 == 0
	if z {
		n, even = n+int64(shape[0]/2), even && shape[0]%2 == 0
	}
	if even && kind != dtype.Uint64 && kind != dtype.Int64 {
		return 0
	}
	return tapBytes * n
}

// Out is the shape of the level that is made.
func (r *Downsampler) Out() [3]int { return r.out }

// Run queues the making of dst from src, which begin at multiples of 16 bytes, as buffers
// do, and volumes of even axes that follow each other in one.
func (r *Downsampler) Run(s *gpu.Stream, dst, src gpu.Span) error {
	name, err := suffix(r.kind)
	if err != nil {
		return err
	}
	nz, ny, nx := int32(r.out[0]), int32(r.out[1]), int32(r.out[2])
	if r.even {
		k, err := get(s.Device(), "downsample", "downsample_even_"+name)
		if err != nil {
			return err
		}
		each := max(1, 8/r.kind.Size()) // outputs of a thread
		grid, block := threads(r.out[0], r.out[1], (r.out[2]+each-1)/each)
		s.Launch(k, grid, block, src, dst, nz, ny, nx, int32(r.planes))
		return nil
	}
	k, err := get(s.Device(), "downsample", "downsample_odd_"+name)
	if err != nil {
		return err
	}
	grid, block := threads(r.out[0], r.out[1], r.out[2])
	s.Launch(k, grid, block, src, dst, nz, ny, nx, int32(r.in[1]), int32(r.in[2]), int32(r.planes), r.scale, r.taps[0], r.taps[1], r.taps[2])
	return nil
}

// Release gives the memory back.
func (r *Downsampler) Release() { r.buffer.Release() }
