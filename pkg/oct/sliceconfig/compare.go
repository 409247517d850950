package sliceconfig

import (
	"context"
	"math"
	"slices"
	"sync"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr"
)

// view is the central part of a slice's planes, in which slices are compared.
type view struct {
	*blocks.Volume
	start, size [2]int // along y and x
}

func newView(s Slice, o AssessOptions) (*view, error) {
	if o.Level >= len(s.Image.Levels) {
		return nil, oct.BadInput("%s: there is no level %d of this image: the last is %d", s.Image.Levels[0].Array.Location(), o.Level, len(s.Image.Levels)-1)
	}
	level := *s.Image
	level.Levels = level.Levels[o.Level:]
	volume, err := blocks.Open(&level)
	if err != nil {
		return nil, err
	}
	volume.Array = volume.Array.With(zarr.Workers(1)) // slices are shared out, not their chunks
	v := &view{Volume: volume}
	for d := range v.size {
		n := v.Shape[d+1]
		end := n
		if o.ROI > 0 {
			v.start[d], end = max(0, n/2-o.ROI/2), min(n, n/2+o.ROI/2)
		}
		v.size[d] = end - v.start[d]
	}
	if v.size[0] < filter.SSIMWindow || v.size[1] < filter.SSIMWindow {
		return nil, oct.BadInput("%s: planes of %d × %d pixels are compared, want at least %d × %d", v.Where, v.size[0], v.size[1], filter.SSIMWindow, filter.SSIMWindow)
	}
	return v, nil
}

// fewest is the number of planes that a worker holds at least.
const fewest = 3

// buffers belong to a worker.
type buffers struct {
	area  int
	plane [][]float32 // an even number, at least fewest
	raw   []byte
	done  int64 // bytes of planes, as stored, that were read
}

func newBuffers(planes, area, raw int) *buffers {
	return &buffers{area: area, plane: make([][]float32, planes), raw: make([]byte, raw)}
}

// take returns the first n pixels of plane i, which exists from then on.
func (b *buffers) take(i, n int) []float32 {
	if b.plane[i] == nil {
		b.plane[i] = make([]float32, b.area)
	}
	return b.plane[i][:n]
}

// read reads the middle of planes, of a size that is at most the view's, into a worker's planes from the first on.
func (v *view) read(ctx context.Context, b *buffers, first int, size [2]int, planes ...int) ([][]float32, error) {
	var dst [][]float32
	for i := range planes {
		dst = append(dst, b.take(first+i, size[0]*size[1]))
	}
	return dst, v.readInto(ctx, b, dst, size, planes)
}

// readInto reads the central part of planes, size pixels high and wide, into dst. Non-finite values become 0.
func (v *view) readInto(ctx context.Context, b *buffers, dst [][]float32, size [2]int, planes []int) error {
	var starts [][3]int
	for _, z := range planes {
		starts = append(starts, [3]int{z, v.start[0] + (v.size[0]-size[0])/2, v.start[1] + (v.size[1]-size[1])/2})
	}
	if err := v.ReadBoxes(ctx, dst, b.raw, starts, [3]int{1, size[0], size[1]}); err != nil {
		return err
	}
	b.done += int64(mem.Product(size[0], size[1], len(planes), v.DType.Size()))
	for _, plane := range dst {
		for i, f := range plane {
			if f-f != 0 {
				plane[i] = 0
			}
		}
	}
	return nil
}

// get returns the central part, size pixels high and wide, of plane z of slice i. It takes a plane that is kept in
// memory, or reads it into plane number at of the worker's buffers.
func (a *assessor) get(ctx context.Context, b *buffers, at, i, z int, size [2]int) ([]float32, error) {
	v, k := a.views[i], a.kept[i][z]
	if k == nil {
		planes, err := v.read(ctx, b, at, size, z)
		if err != nil {
			return nil, err
		}
		return planes[0], nil
	}
	plane := dtype.Slice[float32](k.B)
	if size == v.size {
		return plane, nil
	}
	out := b.take(at, size[0]*size[1])
	top, left := (v.size[0]-size[0])/2, (v.size[1]-size[1])/2
	for y := range size[0] {
		copy(out[y*size[1]:][:size[1]], plane[(top+y)*v.size[1]+left:])
	}
	return out, nil
}

// leastStd is the standard deviation from which on a plane holds data.
const leastStd = 1e-6

// fact holds the measurements of a slice that do not involve its neighbours.
type fact struct {
	hasData  bool    // one of about eight planes is not constant
	variance float64 // of its sampled planes together
}

// facts looks at slices from … to−1, and keeps the planes that they are compared by as far as memory allows.
func (a *assessor) facts(ctx context.Context, from, to int) ([]fact, error) {
	type job struct {
		slice  int
		planes []int
	}
	var jobs []job
	seen := make([]map[int]moments, to-from) // of planes
	var mu sync.Mutex
	for i := from; i < to; i++ {
		v := a.views[i]
		planes := append(sampled(v.Shape[0], a.options.Depth), v.Shape[0]/2) // the last is the one whose edges count
		slices.Sort(planes)
		planes = slices.Compact(planes)
		n := a.planes
		if v.InBlocks() {
			n = 2 // no more is decoded than these need
		}
		for batch := range slices.Chunk(planes, n) {
			jobs = append(jobs, job{i, batch})
		}
		seen[i-from], a.kept[i] = map[int]moments{}, map[int]*mem.Buffer{}
	}
	if err := a.each(ctx, len(jobs), func(b *buffers, k int) error {
		j := jobs[k]
		v := a.views[j.slice]
		n := v.size[0] * v.size[1]
		dst, keep := make([][]float32, len(j.planes)), make([]*mem.Buffer, len(j.planes))
		for i := range dst {
			if keep[i] = a.keep(n); keep[i] != nil {
				dst[i] = dtype.Slice[float32](keep[i].B)
			} else {
				dst[i] = b.take(i, n)
			}
		}
		if err := v.readInto(ctx, b, dst, v.size, j.planes); err != nil {
			return err
		}
		for i, z := range j.planes {
			var m moments
			m.add(dst[i])
			mu.Lock()
			if seen[j.slice-from][z] = m; keep[i] != nil {
				a.kept[j.slice][z] = keep[i]
			}
			mu.Unlock()
		}
		return nil
	}); err != nil {
		return nil, err
	}
	out := make([]fact, to-from)
	err := a.each(ctx, len(out), func(b *buffers, i int) (err error) {
		v := a.views[from+i]
		var all moments
		for _, z := range sampled(v.Shape[0], a.options.Depth) {
			all.join(seen[i][z])
		}
		out[i].variance = all.variance()
		first := seen[i][0]
		out[i].hasData = first.std() >= leastStd
		for z := 0; z < v.Shape[0] && !out[i].hasData; z += max(1, v.Shape[0]/8) {
			plane, err := a.get(ctx, b, 0, from+i, z, v.size)
			if err != nil {
				return err
			}
			var m moments
			m.add(plane)
			out[i].hasData = m.std() >= leastStd
		}
		return nil
	})
	return out, err
}

// sampled returns the planes of n that are compared, spread from the first to the last; some twice if there are few.
func sampled(n, samples int) []int {
	out := make([]int, samples)
	for i := range out {
		if i == samples-1 && i > 0 {
			out[i] = n - 1
		} else if i > 0 {
			out[i] = int(float64(i) * (float64(n-1) / float64(samples-1)))
		}
	}
	return out
}

// common returns the largest size of a plane that all views have.
func (a *assessor) common(first int, others ...int) [2]int {
	size := a.views[first].size
	for _, i := range others {
		for d, n := range a.views[i].size {
			size[d] = min(size[d], n)
		}
	}
	return size
}

// similarities returns the mean structural similarity of the sampled planes of each two neighbours.
func (a *assessor) similarities(ctx context.Context, all []int) ([]float64, error) {
	type job struct{ pair, from, to int } // planes of a pair
	var jobs []job
	at, values := make([][]int, max(len(all)-1, 0)), make([][]float64, max(len(all)-1, 0))
	for p := range at {
		i, k := all[p], all[p+1]
		at[p] = sampled(min(a.views[i].Shape[0], a.views[k].Shape[0]), a.options.Depth)
		values[p] = make([]float64, len(at[p]))
		step := a.planes / 2
		if !slices.ContainsFunc(at[p], func(z int) bool { return a.kept[i][z] == nil || a.kept[k][z] == nil }) {
			step = 1
		}
		for from := 0; from < len(at[p]); from += step {
			jobs = append(jobs, job{p, from, min(from+step, len(at[p]))})
		}
	}
	if err := a.each(ctx, len(jobs), func(b *buffers, n int) error {
		j := jobs[n]
		return a.similarity(ctx, b, all[j.pair], all[j.pair+1], at[j.pair][j.from:j.to], values[j.pair][j.from:j.to])
	}); err != nil {
		return nil, err
	}
	out := make([]float64, len(at))
	for p, list := range values {
		for _, v := range list {
			out[p] += v
		}
		out[p] /= float64(len(list))
	}
	return out, nil
}

// similarity computes the structural similarity of planes of two slices. Unless all are kept, they are at most half of
// a worker's, which are read together.
func (a *assessor) similarity(ctx context.Context, b *buffers, i, k int, zs []int, out []float64) error {
	size := a.common(i, k)
	var planes [2][][]float32
	for n, slice := range []int{i, k} {
		first := n * len(b.plane) / 2
		var err error
		if len(zs) > 1 {
			planes[n], err = a.views[slice].read(ctx, b, first, size, zs...)
		} else {
			planes[n] = make([][]float32, 1)
			planes[n][0], err = a.get(ctx, b, first, slice, zs[0], size)
		}
		if err != nil {
			return err
		}
	}
	for n := range zs {
		out[n] = filter.SSIM(planes[0][n], planes[1][n], size[0], size[1])
	}
	return nil
}

// edges returns how well the edges in the middle plane of a slice correlate with those in the mean of its neighbours.
func (a *assessor) edges(ctx context.Context, b *buffers, i int, near []int) (float64, error) {
	size := a.common(i, near...)
	z := a.views[i].Shape[0] / 2
	own, err := a.get(ctx, b, 0, i, z, size)
	if err != nil {
		return 0, err
	}
	var mean []float32
	for n, k := range near {
		other, err := a.get(ctx, b, 1+n, k, min(z, a.views[k].Shape[0]-1), size)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			mean = other
			continue
		}
		sum := b.take(2, len(other))
		for p, f := range mean {
			sum[p] = f/2 + other[p]/2
		}
		mean = sum
	}
	return max(0, filter.EdgeCorrelation(own, mean, size[0], size[1])), nil
}

// moments adds up values and their squares, relative to the first one.
type moments struct {
	n, sum, squares, first float64
}

func (m *moments) add(v []float32) {
	if m.n == 0 && len(v) > 0 {
		m.first = float64(v[0])
	}
	for _, f := range v {
		d := float64(f) - m.first
		m.sum += d
		m.squares += float64(d * d)
	}
	m.n += float64(len(v))
}

// join adds the values of o.
func (m *moments) join(o moments) {
	if m.n == 0 {
		*m = o
		return
	}
	d := o.first - m.first
	m.squares += o.squares + float64(2*d*o.sum) + float64(float64(o.n*d)*d)
	m.sum += o.sum + float64(o.n*d)
	m.n += o.n
}

// std returns the population standard deviation.
func (m *moments) std() float64 { return math.Sqrt(m.variance()) }

// variance returns the population variance.
func (m *moments) variance() float64 {
	mean := m.sum / m.n
	return max(0, m.squares/m.n-float64(mean*mean))
}
