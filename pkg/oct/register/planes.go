package register

import (
	"context"
	"math"

	"strata/pkg/filter"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr"
)

// plane is a plane of a slice, in the part that both slices have, averaged over squares of pixels. Squares at the far
// edges that are not whole are left out.
type plane struct {
	ny, nx int
	v      []float32
}

// bandBytes is the least memory of voxels that are read at a time.
const bandBytes = 1 << 20

// read reads planes of a volume, n from z0 on, in bands of rows.
func (p *pairPlan) read(ctx context.Context, v *blocks.Volume, z0, n int) ([]*plane, error) {
	k := p.shrink
	area := (p.ny / k) * (p.nx / k)
	all := make([]float32, n*area)
	out := make([]*plane, n)
	for i := range out {
		out[i] = &plane{ny: p.ny / k, nx: p.nx / k, v: all[i*area:][:area:area]}
	}
	each := 4 + v.DType.Size()
	rows := max(k, min(p.ny, int(max(p.res.Mem/8, bandBytes))/(n*p.nx*each))/k*k)
	if c := v.Chunk[1]; rows > c && rows < p.ny { // bands end where chunks do, if squares do too
		if whole := rows / c * c; whole%k == 0 {
			rows = whole
		}
	}
	a := v.Array
	defer func() { v.Array = a }()
	v.Array = a.With(zarr.Workers(p.res.Workers), zarr.Budget(max(p.res.Mem/4, a.ScratchBytes(false))))
	voxels, raw := all, []byte(nil)
	inPlace := k == 1 && rows >= p.ny // voxels are planes already
	if !inPlace {
		voxels = make([]float32, n*min(rows, p.ny)*p.nx)
	}
	if size := v.Scratch([3]int{n, min(rows, p.ny), p.nx}); size > 0 {
		raw = make([]byte, size)
	}
	for y := 0; y < p.ny/k*k; y += rows {
		h := min(rows, p.ny/k*k-y)
		if err := v.Read(ctx, voxels, raw, [3]int{z0, y, 0}, [3]int{n, h, p.nx}); err != nil {
			return nil, err
		}
		for i, o := range out {
			if inPlace {
				break
			}
			shrink(o.v[y/k*o.nx:], voxels[i*h*p.nx:][:h*p.nx], h, p.nx, k)
		}
		p.res.Done(int64(n) * int64(h) * int64(p.nx) * int64(v.DType.Size()))
	}
	return out, nil
}

// shrink averages a plane of ny × nx pixels over squares of k × k pixels. It drops incomplete squares at the edges. A
// square with a NaN or infinite pixel becomes NaN.
func shrink(dst, src []float32, ny, nx, k int) {
	if k == 1 {
		copy(dst, src[:ny*nx])
		return
	}
	h, w := ny/k, nx/k
	sums := make([]float64, w)
	for y := range h {
		clear(sums)
		for r := range k {
			row := src[(y*k+r)*nx:][:nx]
			for x, s := range sums {
				for _, f := range row[x*k:][:k] {
					s += float64(f)
				}
				sums[x] = s
			}
		}
		filter.Mean(dst[y*w:][:w], sums, k*k)
	}
}

// smaller returns the plane averaged over squares of k × k pixels.
func (o *plane) smaller(k int) *plane {
	s := &plane{ny: o.ny / k, nx: o.nx / k}
	s.v = make([]float32, s.ny*s.nx)
	shrink(s.v, o.v, o.ny, o.nx, k)
	return s
}

// centre is the middle of a plane with mean 0 and deviation 1 (workflow specification, register, 2).
type centre []float32

// newCentre standardises the middle of a plane: brightness from the 5th to the 95th percentile of the positive values,
// cut off beyond.
func newCentre(o *plane) *centre {
	margin := min(o.ny, o.nx) / 4
	h, w := o.ny-2*margin, o.nx-2*margin
	v := make([]float32, 0, max(h*w, 0))
	positive := make([]float32, 0, cap(v))
	for y := margin; y < o.ny-margin; y++ {
		for _, f := range o.v[y*o.nx+margin:][:w] {
			if v = append(v, f); f > 0 {
				positive = append(positive, f)
			}
		}
	}
	c := centre(v)
	q := filter.Percentiles(positive, 5, 95)
	if !(q[1] > q[0]) {
		clear(c)
		return &c
	}
	lo, span := float32(q[0]), float32(q[1]-q[0])
	sum, squares := 0.0, 0.0
	for i, f := range c {
		if f != f {
			f = lo
		}
		f = min(max((f-lo)/span, 0), 1)
		c[i] = f
		sum += float64(f)
	}
	mean := sum / float64(len(c))
	for _, f := range c {
		d := float64(f) - mean
		squares += float64(d * d)
	}
	std := math.Sqrt(squares/float64(len(c))) + 1e-8
	for i, f := range c {
		c[i] = float32((float64(f) - mean) / std)
	}
	return &c
}

// correlate returns the mean of the products of two centres.
func (c *centre) correlate(d *centre) float64 {
	if len(*c) == 0 {
		return 0
	}
	var sum [1]float64
	filter.Dots(sum[:], *c, [][]float32{*d})
	return sum[0] / float64(len(*c))
}
