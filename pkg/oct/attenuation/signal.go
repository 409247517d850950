package attenuation

import (
	"context"
	"iter"
	"math"
	"sync/atomic"

	"strata/pkg/filter"
	"strata/pkg/oct/blocks"
)

// floorPlanes is the number of last planes from which the noise is estimated if too few voxels lie outside the tissue.
const floorPlanes = 5

// median computes and keeps the median-filtered volume, and collects the values from which the noise is estimated.
func (j *job) median(ctx context.Context) error {
	k := j.Radius
	wide, c := int64(j.size[1]+2*k)*int64(j.size[2]+2*k), j.medianing
	if j.Method == Li {
		j.medians = filter.NewQuantiles(50)
	}
	type worker struct {
		median   *filter.PlaneMedian
		src, dst []float32
		noise    noise
	}
	workers := make([]worker, max(1, j.res.Workers))
	return c.Each(ctx, func(_ context.Context, b *blocks.Block) error {
		w := &workers[b.Worker]
		if w.median == nil {
			w.median, w.src, w.dst = filter.NewPlaneMedian(k), make([]float32, wide), make([]float32, j.voxels())
		}
		area := b.Size[1] * b.Size[2]
		for z := range b.Size[0] {
			spread(w.src, b, z, k)
			if plane := w.dst[z*area:][:area]; k == 0 {
				copy(plane, w.src)
			} else {
				w.median.Apply(plane, w.src, b.Size[1], b.Size[2])
			}
		}
		all := w.dst[:area*b.Size[0]]
		if err := w.noise.count(j, b.Index, all); err != nil {
			return err
		}
		return write(j.scratch, all, b.Index, numbers, 0)
	})
}

// spread copies plane z of a block with k pixels around it to dst, the edges of the volume repeated. Voxels that are
// not finite become NaN.
func spread(dst []float32, b *blocks.Block, z, k int) {
	nan := float32(math.NaN())
	i := 0
	for y := b.Inner[1] - k; y < b.Inner[1]+b.Size[1]+k; y++ {
		row := b.Voxels[b.At(z, max(0, min(y, b.Shape[1]-1)), 0):][:b.Shape[2]]
		for x := b.Inner[2] - k; x < b.Inner[2]+b.Size[2]+k; x++ {
			f := row[max(0, min(x, len(row)-1))]
			if f-f != 0 {
				f = nan
			}
			dst[i] = f
			i++
		}
	}
}

// noise collects the medians from which the noise is estimated: those outside the mask, or those of the last planes if
// at most 100 voxels lie outside.
type noise struct {
	set   []uint64
	plane []float32
}

// count adds the medians of a column.
func (n *noise) count(j *job, column int, medians []float32) error {
	if j.medians == nil {
		return nil
	}
	shape, row := j.shape(column), words(j.size)
	area := shape[1] * shape[2]
	if j.outside <= 100 {
		j.medians.Add(medians[max(0, shape[0]-floorPlanes)*area:])
		return nil
	}
	if n.set == nil {
		n.set, n.plane = make([]uint64, j.size[0]*j.size[1]*row), make([]float32, j.size[1]*j.size[2])
	}
	set := n.set[:shape[0]*shape[1]*row]
	if err := read(j.scratch, set, column, bits, 0); err != nil {
		return err
	}
	for z := range shape[0] {
		loose := n.plane[:0]
		for y := range shape[1] {
			line := set[(z*shape[1]+y)*row:]
			for x, f := range medians[z*area+y*shape[2]:][:shape[2]] {
				if line[x>>6]>>(x&63)&1 == 0 {
					loose = append(loose, f)
				}
			}
		}
		j.medians.Add(loose)
	}
	return nil
}

// noise finds the noise floor.
func (j *job) noise(ctx context.Context) error {
	if j.medians == nil {
		return nil
	}
	j.medians.Refine()
	bytes := 4*int64(j.voxels()) + 8*int64(j.size[0]*j.size[1]*words(j.size)) + 4*int64(j.size[1]*j.size[2])
	err := j.each(ctx, j.columns(), bytes, "counting columns", func(_ context.Context, pieces iter.Seq[int]) error {
		var own noise
		all := make([]float32, j.voxels())
		for i := range pieces {
			v := all[:product(j.shape(i))]
			if err := read(j.scratch, v, i, numbers, 0); err != nil {
				return err
			}
			if err := own.count(j, i, v); err != nil {
				return err
			}
		}
		return nil
	})
	if floor := j.medians.Value(0); floor == floor {
		j.result.Floor = float64(float32(floor))
	}
	return err
}

// together is the number of A-lines that are brought into order at a time: those of a cache line.
const together = 16

// depths keeps the optical depth of each voxel in place of its median, ends the mask of A-lines at the noise, and
// counts it.
func (j *job) depths(ctx context.Context) error {
	row := words(j.size)
	model := filter.DepthDecay{Tail: j.Method != Vermeer, Slope: j.result.Decay, Noise: j.Method == Li, Floor: float32(j.result.Floor),
		Least: float32(max(j.result.Floor, 1e-6) * math.Pow(10, j.SNR/10))}
	var inside atomic.Int64
	bytes := 4*int64(j.voxels()) + 8*int64(j.size[0]*j.size[1]*row) + 4*int64(j.scratch.offsets[heights+1]-j.scratch.offsets[heights])
	err := j.each(ctx, j.columns(), bytes, "optical depths of columns", func(_ context.Context, pieces iter.Seq[int]) error {
		all, words := make([]float32, j.voxels()), make([]uint64, j.size[0]*j.size[1]*row)
		lines := newLines(j.size[0])
		for i := range pieces {
			shape := j.shape(i)
			v, set := all[:product(shape)], words[:shape[0]*shape[1]*row]
			if err := read(j.scratch, v, i, numbers, 0); err != nil {
				return err
			}
			if err := read(j.scratch, set, i, bits, 0); err != nil {
				return err
			}
			inside.Add(lines.column(&model, v, set, shape, row, j.Method != Vermeer))
			if err := write(j.scratch, v, i, numbers, 0); err != nil {
				return err
			}
			if err := write(j.scratch, set, i, bits, 0); err != nil {
				return err
			}
			if err := j.start(i, v); err != nil {
				return err
			}
		}
		return nil
	})
	j.result.Coverage = float64(inside.Load()) / (float64(j.size[0]) * float64(j.v.Shape[1]) * float64(j.v.Shape[2]))
	return err
}

// lines is the scratch memory for A-lines that are computed together.
type lines struct {
	f, x []float32 // A-line by A-line
	mask []bool
}

func newLines(planes int) *lines {
	return &lines{make([]float32, together*planes), make([]float32, together*planes), make([]bool, together*planes)}
}

// column replaces the medians of a column by optical depths, those outside the mask by 0 if masked, ends the mask, and
// returns how many voxels it has.
func (l *lines) column(model *filter.DepthDecay, v []float32, set []uint64, shape [3]int, row int, masked bool) (inside int64) {
	nz, area := shape[0], shape[1]*shape[2]
	for y := range shape[1] {
		for x0 := 0; x0 < shape[2]; x0 += together {
			n := min(together, shape[2]-x0)
			for z := range nz {
				line, from := set[(z*shape[1]+y)*row:], v[z*area+y*shape[2]+x0:]
				for k := range n {
					x := x0 + k
					l.f[k*nz+z], l.mask[k*nz+z] = from[k], line[x>>6]>>(x&63)&1 != 0
				}
			}
			for k := range n {
				model.Line(l.x[k*nz:][:nz], l.f[k*nz:][:nz], l.mask[k*nz:][:nz])
			}
			for z := range nz {
				line, to := set[(z*shape[1]+y)*row:], v[z*area+y*shape[2]+x0:]
				for k := range n {
					x := x0 + k
					to[k] = l.x[k*nz+z]
					if l.mask[k*nz+z] {
						inside++
						continue
					}
					line[x>>6] &^= 1 << (x & 63)
					if masked {
						to[k] = 0
					}
				}
			}
		}
	}
	return inside
}
