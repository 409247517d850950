package preview

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/work"
	"strata/pkg/zarr"
)

// reading fills the planes of a preview.
type reading struct {
	volume *volume
	planes []*plane
	res    oct.Resources
}

// read fills the planes and finds the window of values to show: given, or the
// exact percentiles of the voxels that the cuts cross, of a projection: of its
// pixels.
func (r *reading) read(ctx context.Context, o *Options) (window [2]float64, err error) {
	if o.Window != nil {
		window = *o.Window
	}
	q := filter.NewQuantiles(o.Percentiles[:]...)
	if o.Projection == None {
		collect := q
		if o.Window != nil || allWhole(r.planes) {
			collect = nil // or they are counted below
		}
		if err := r.cut(ctx, collect, true); err != nil {
			return window, err
		}
		if collect != nil {
			q.Refine()
			if err := r.cut(ctx, q, false); err != nil {
				return window, err
			}
			return r.window(q), nil
		}
	} else if err := r.project(ctx, o.Projection == MIP); err != nil {
		return window, err
	}
	if o.Window != nil {
		return window, nil
	}
	count := func() {
		for _, p := range r.planes {
			for row := range p.n[0] {
				addFinite(q, p.values[row*p.n[1]:(row+1)*p.n[1]])
			}
		}
	}
	count()
	q.Refine()
	count()
	return r.window(q), nil
}

// window returns the range of the percentiles; without any number it is 0 to 1.
func (r *reading) window(q *filter.Quantiles) [2]float64 {
	w := [2]float64{q.Value(0), q.Value(1)}
	if math.IsNaN(w[0]) {
		if r.res.Warn != nil {
			r.res.Warn(fmt.Sprintf("%s: the part to be drawn has no finite value", r.volume.where))
		}
		return [2]float64{0, 1}
	}
	return w
}

func allWhole(planes []*plane) bool {
	for _, p := range planes {
		if !p.whole() {
			return false
		}
	}
	return true
}

// addFinite counts values except infinite ones, which are shown as the window's ends and do not affect the
// window. It does not change v.
func addFinite(q *filter.Quantiles, v []float32) {
	start := 0
	for i, f := range v {
		if f-f != 0 && f == f {
			q.Add(v[start:i])
			start = i + 1
		}
	}
	q.Add(v[start:])
}

// unit is a piece of a plane that is read at once: whole chunks if there is room, and always whole blocks.
type unit struct {
	plane      *plane
	start, end [2]int // blocks
}

// rawPiece is the number of voxels of an uncompressed chunk that are read at a time.
const rawPiece = 1 << 20

// mostUnits limits the units of a plane: chunks may be as small as a voxel.
const mostUnits = 1 << 17

// units cuts the planes into pieces.
func (r *reading) units() (list []unit, largest int64) {
	v := r.volume
	for _, p := range r.planes {
		var step [2]int
		for k, d := range []int{p.rows, p.cols} {
			step[k] = max(1, (v.Chunk[d]+p.step[k]-1)/p.step[k])
		}
		if len(v.Array.Codecs()) == 0 {
			step[1] = max(1, min(step[1], rawPiece/p.step[1]))
			step[0] = max(1, min(step[0], rawPiece/(p.step[0]*step[1]*p.step[1])))
		}
		along := func(k int) int { return (p.n[k]-1)/step[k] + 1 }
		for along(0)*along(1) > mostUnits {
			if along(0) > along(1) {
				step[0] *= 2
			} else {
				step[1] *= 2
			}
		}
		for i := 0; i < p.n[0]; i += step[0] {
			for j := 0; j < p.n[1]; j += step[1] {
				u := unit{plane: p, start: [2]int{i, j}, end: [2]int{min(i+step[0], p.n[0]), min(j+step[1], p.n[1])}}
				list = append(list, u)
				_, n := u.voxels(v)
				largest = max(largest, int64(n[0])*int64(n[1]))
			}
		}
	}
	return list, largest
}

// voxels returns a unit's box along rows and cols.
func (u *unit) voxels(v *volume) (start, n [2]int) {
	for k, d := range []int{u.plane.rows, u.plane.cols} {
		start[k] = u.start[k] * u.plane.step[k]
		n[k] = min(u.end[k]*u.plane.step[k], v.Shape[d]) - start[k]
	}
	return start, n
}

// cut reads the planes at their indices. Voxels are added to q, unless it is nil;
// the planes are filled if fill is set.
func (r *reading) cut(ctx context.Context, q *filter.Quantiles, fill bool) error {
	v := r.volume
	list, largest := r.units()
	size := int64(v.Array.DType().Size())
	each := largest * (size + 4)
	scratch := int64(v.Chunk[0]) * int64(v.Chunk[1]) * int64(v.Chunk[2]) * size
	if len(v.Array.Codecs()) == 0 {
		scratch = 0
	}
	workers, budget, err := r.share(each, 2*scratch)
	if err != nil {
		return err
	}
	if fill {
		for _, p := range r.planes {
			p.values = make([]float32, p.n[0]*p.n[1])
		}
	}
	a := v.Array.With(zarr.Workers(1), zarr.Meter(r.res.Meter), zarr.Budget(budget))
	return work.Share(ctx, workers, len(list), func(ctx context.Context, _ int, units iter.Seq[int]) error {
		w := &cutter{reading: r, array: a, q: q, fill: fill}
		for i := range units {
			if err := w.read(ctx, &list[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// share returns how many workers fit into memory beside the planes, each with its own buffers and scratch,
// and the scratch that a call may use.
func (r *reading) share(each, scratch int64) (workers int, budget int64, err error) {
	avail := r.res.Mem - bytesOf(r.planes, 4)
	if each > avail {
		return 0, 0, fmt.Errorf("%s: a preview needs %d MiB of buffers, --mem grants %d MiB",
			r.volume.where, (each+bytesOf(r.planes, 4))>>20+1, r.res.Mem>>20)
	}
	workers = int(max(1, min(int64(r.res.Workers), avail/max(1, each+scratch))))
	return workers, max(1, avail/int64(workers)-each), nil
}

// cutter is a worker of cut.
type cutter struct {
	*reading
	array  *zarr.Array
	q      *filter.Quantiles
	fill   bool
	raw    []byte
	values []float32
	sum    []float64
	count  []int32
}

func (c *cutter) read(ctx context.Context, u *unit) error {
	v, p := c.volume, u.plane
	from, n := u.voxels(v)
	var start, shape [3]int
	start[p.rows], shape[p.rows] = from[0], n[0]
	start[p.cols], shape[p.cols] = from[1], n[1]
	start[p.across], shape[p.across] = p.index, 1
	if err := c.load(ctx, start, shape, p); err != nil {
		return err
	}
	began := time.Now()
	defer c.res.Meter.Since(meter.Compute, began)
	if c.q != nil {
		addFinite(c.q, c.values)
	}
	if !c.fill {
		return nil
	}
	if p.whole() {
		for i := range n[0] {
			copy(p.values[(from[0]+i)*p.n[1]+from[1]:], c.values[i*n[1]:(i+1)*n[1]])
		}
		return nil
	}
	width := u.end[1] - u.start[1]
	c.sum, c.count = grown(c.sum, width), grown(c.count, width)
	for b := u.start[0]; b < u.end[0]; b++ {
		clear(c.sum)
		clear(c.count)
		for i := b * p.step[0]; i < min((b+1)*p.step[0], from[0]+n[0]); i++ {
			addRow(c.sum, c.count, c.values[(i-from[0])*n[1]:(i-from[0]+1)*n[1]], p.step[1])
		}
		dst := p.values[b*p.n[1]+u.start[1]:]
		for j, s := range c.sum {
			dst[j] = mean(s, c.count[j])
		}
	}
	return nil
}

// load reads a box of voxels one thick along p.across into c.values, in the
// order of the panel: rows, then cols.
func (c *cutter) load(ctx context.Context, start, shape [3]int, p *plane) error {
	n := shape[0] * shape[1] * shape[2]
	t := c.array.DType()
	c.raw, c.values = grown(c.raw, n*t.Size()), grown(c.values, n)
	// The strides say where the voxels go, so that any order of axes in the file,
	// and of the panel, comes out right.
	strides := make([]int, len(c.array.Shape()))
	for i, d := range c.volume.Axes {
		switch {
		case d < 0:
		case i == p.rows:
			strides[d] = shape[p.cols] * t.Size()
		case i == p.cols:
			strides[d] = t.Size()
		}
	}
	if err := c.array.ReadStrided(ctx, c.volume.region(start, shape), c.raw, strides); err != nil {
		return err
	}
	return toFloat(c.values, c.raw, t)
}

// toFloat makes numbers of elements; a bool is 0 or 1.
func toFloat(dst []float32, src []byte, t dtype.Type) error {
	if t == dtype.Bool {
		t = dtype.Uint8
	}
	return dtype.Convert(dtype.Bytes(dst), dtype.Float32, src, t)
}

// addRow adds a row to the sums and counts of blocks of step voxels, without NaN.
func addRow(sum []float64, count []int32, row []float32, step int) {
	for j := range sum {
		s, n := sum[j], count[j]
		for _, f := range row[j*step : min((j+1)*step, len(row))] {
			if f == f {
				s += float64(f)
				n++
			}
		}
		sum[j], count[j] = s, n
	}
}

// mean returns the mean of n values, or NaN for n = 0.
func mean(sum float64, n int32) float32 {
	if n == 0 {
		return nan
	}
	return float32(sum / float64(n))
}

// grown returns a slice of n elements, reusing s if it is large enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
