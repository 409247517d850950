package preview

import (
	"context"
	"time"

	"strata/pkg/meter"
	"strata/pkg/work"
	"strata/pkg/zarr"
)

// pieceBytes is about how much of the volume a projection holds at a time. It is
// fixed, so that sums are made in an order that does not depend on the memory.
const pieceBytes = 32 << 20

// project fills the planes with projections: it goes through the volume once, a
// piece at a time, and adds each piece to all of them.
func (r *reading) project(ctx context.Context, maximum bool) error {
	v := r.volume
	size := int64(v.Array.DType().Size())
	piece := v.piece()
	voxels := int64(piece[0]) * int64(piece[1]) * int64(piece[2])
	// the voxels as stored and as numbers; sums, counts and values of the planes
	each := voxels*(size+4) + bytesOf(r.planes, 12)
	if _, _, err := r.share(each, 0); err != nil {
		return err
	}
	budget := max(1, r.res.Mem-each-bytesOf(r.planes, 4))
	a := v.Array.With(zarr.Workers(r.res.Workers), zarr.Meter(r.res.Meter), zarr.Budget(budget))
	accs := make([]*accumulator, len(r.planes))
	for i, p := range r.planes {
		accs[i] = newAccumulator(p, maximum)
	}
	raw, values := make([]byte, voxels*size), make([]float32, voxels)
	for z := 0; z < v.Shape[0]; z += piece[0] {
		for y := 0; y < v.Shape[1]; y += piece[1] {
			for x := 0; x < v.Shape[2]; x += piece[2] {
				start := [3]int{z, y, x}
				shape := [3]int{min(piece[0], v.Shape[0]-z), min(piece[1], v.Shape[1]-y), min(piece[2], v.Shape[2]-x)}
				n := shape[0] * shape[1] * shape[2]
				if err := v.load(ctx, a, start, shape, raw[:n*int(size)]); err != nil {
					return err
				}
				began := time.Now()
				if err := toFloat(values[:n], raw[:n*int(size)], a.DType()); err != nil {
					return err
				}
				for _, acc := range accs {
					if err := acc.add(ctx, values[:n], start, shape, r.res.Workers); err != nil {
						return err
					}
				}
				r.res.Meter.Since(meter.Compute, began)
				if r.res.Progress != nil {
					r.res.Progress(int64(n) * size)
				}
			}
		}
	}
	for _, acc := range accs {
		acc.finish()
	}
	return nil
}

// piece returns the box that a projection reads at a time: whole chunks, as many as fit along X, Y and Z in
// this order, or of larger uncompressed ones a part.
func (v *volume) piece() [3]int {
	room := max(1, pieceBytes/(v.Array.DType().Size()+4))
	p := v.Chunk
	if len(v.Array.Codecs()) == 0 {
		p[2] = min(p[2], room)
		p[1] = min(p[1], max(1, room/p[2]))
		p[0] = min(p[0], max(1, room/p[2]/p[1]))
	}
	for _, d := range []int{2, 1, 0} {
		others := p[0] * p[1] * p[2] / p[d]
		if k := room / others / p[d]; k > 1 {
			p[d] *= k
		}
		p[d] = min(p[d], v.Shape[d])
	}
	return p
}

// load reads a box in the order z, y, x, whatever the order of the array's axes.
func (v *volume) load(ctx context.Context, a *zarr.Array, start, shape [3]int, dst []byte) error {
	size := a.DType().Size()
	strides := make([]int, len(a.Shape()))
	for i, s := range [3]int{shape[1] * shape[2] * size, shape[2] * size, size} {
		if d := v.Axes[i]; d >= 0 {
			strides[d] = s
		}
	}
	return a.ReadStrided(ctx, v.region(start, shape), dst, strides)
}

// accumulator collects one projection.
type accumulator struct {
	plane   *plane
	maximum bool
	sum     []float64 // of a mean
	count   []int32
}

func newAccumulator(p *plane, maximum bool) *accumulator {
	n := p.n[0] * p.n[1]
	a := &accumulator{plane: p, maximum: maximum}
	p.values = make([]float32, n)
	if maximum {
		for i := range p.values {
			p.values[i] = nan
		}
		return a
	}
	a.sum, a.count = make([]float64, n), make([]int32, n)
	return a
}

// add adds a box of voxels (z, y, x). Workers share the rows of blocks, each of
// which is added to in the order of the voxels.
func (a *accumulator) add(ctx context.Context, values []float32, start, shape [3]int, workers int) error {
	p := a.plane
	first := start[p.rows] / p.step[0]
	last := (start[p.rows] + shape[p.rows] - 1) / p.step[0]
	return work.Each(ctx, workers, last-first+1, func(_, i int) error {
		a.row(values, start, shape, first+i)
		return nil
	})
}

// row adds the voxels that belong to one row of blocks.
func (a *accumulator) row(values []float32, start, shape [3]int, row int) {
	p := a.plane
	from, to := [3]int{}, shape
	from[p.rows] = max(0, row*p.step[0]-start[p.rows])
	to[p.rows] = min(shape[p.rows], (row+1)*p.step[0]-start[p.rows])
	base := row * p.n[1]
	for z := from[0]; z < to[0]; z++ {
		for y := from[1]; y < to[1]; y++ {
			line := values[(z*shape[1]+y)*shape[2]:][:shape[2]]
			switch p.cols {
			case 2:
				a.line(base, line, start[2])
			case 1: // the whole line goes to one block
				a.point(base+(start[1]+y)/p.step[1], line)
			default:
				a.point(base+(start[0]+z)/p.step[1], line)
			}
		}
	}
}

// line adds voxels along X, from voxel x on, to the blocks of a row.
func (a *accumulator) line(base int, line []float32, x int) {
	step := a.plane.step[1]
	switch {
	case step > 1:
	case a.maximum:
		values := a.plane.values[base+x:][:len(line)]
		for i, f := range line {
			if m := values[i]; f > m || m != m {
				values[i] = f
			}
		}
		return
	default:
		sum, count := a.sum[base+x:][:len(line)], a.count[base+x:][:len(line)]
		for i, f := range line {
			if f == f {
				sum[i] += float64(f)
				count[i]++
			}
		}
		return
	}
	for len(line) > 0 {
		i := base + x/step
		n := min(len(line), step-x%step)
		a.point(i, line[:n])
		line, x = line[n:], x+n
	}
}

// point adds voxels to one block.
func (a *accumulator) point(i int, v []float32) {
	if a.maximum {
		m := a.plane.values[i]
		for _, f := range v {
			if f > m || m != m {
				m = f
			}
		}
		a.plane.values[i] = m
		return
	}
	s, n := a.sum[i], a.count[i]
	for _, f := range v {
		if f == f {
			s += float64(f)
			n++
		}
	}
	a.sum[i], a.count[i] = s, n
}

// finish makes means of the sums.
func (a *accumulator) finish() {
	if a.maximum {
		return
	}
	for i, s := range a.sum {
		a.plane.values[i] = mean(s, a.count[i])
	}
	a.sum, a.count = nil, nil
}
