package sliceconfig

import (
	"context"
	"math"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
)

// view is the part of a slice that is compared: the middle of its planes.
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

// planes is the number of planes that a worker holds as float32.
const planes = 3

// buffers belong to a worker.
type buffers struct {
	plane [planes][]float32
	raw   []byte
	done  int64 // bytes of planes, as stored, that were read
}

func newBuffers(area, raw int) *buffers {
	b := &buffers{raw: make([]byte, raw)}
	for i := range b.plane {
		b.plane[i] = make([]float32, area)
	}
	return b
}

// read reads the middle of plane z, of a size that is at most the view's, into a worker's plane k. Values that are not finite become 0.
func (v *view) read(ctx context.Context, b *buffers, k, z int, size [2]int) ([]float32, error) {
	dst := b.plane[k][:size[0]*size[1]]
	start := [3]int{z, v.start[0] + (v.size[0]-size[0])/2, v.start[1] + (v.size[1]-size[1])/2}
	if err := v.Read(ctx, dst, b.raw, start, [3]int{1, size[0], size[1]}); err != nil {
		return nil, err
	}
	b.done += int64(len(dst)) * int64(v.DType.Size())
	for i, f := range dst {
		if f-f != 0 {
			dst[i] = 0
		}
	}
	return dst, nil
}

// leastStd is the standard deviation from which on a plane holds data.
const leastStd = 1e-6

// hasData reports whether one of about eight planes is not constant.
func (v *view) hasData(ctx context.Context, b *buffers) (bool, error) {
	for z := 0; z < v.Shape[0]; z += max(1, v.Shape[0]/8) {
		plane, err := v.read(ctx, b, 0, z, v.size)
		if err != nil {
			return false, err
		}
		var m moments
		m.add(plane)
		if math.Sqrt(m.variance()) >= leastStd {
			return true, nil
		}
	}
	return false, nil
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

// variance returns the variance of the sampled planes of a slice together.
func (a *assessor) variance(ctx context.Context, b *buffers, i int) (float64, error) {
	v := a.views[i]
	var m moments
	for _, z := range sampled(v.Shape[0], a.options.Depth) {
		plane, err := v.read(ctx, b, 0, z, v.size)
		if err != nil {
			return 0, err
		}
		m.add(plane)
	}
	return m.variance(), nil
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

// similarity returns the mean structural similarity of the sampled planes of two slices.
func (a *assessor) similarity(ctx context.Context, b *buffers, i, k int) (float64, error) {
	size := a.common(i, k)
	var total, last float64
	at := sampled(min(a.views[i].Shape[0], a.views[k].Shape[0]), a.options.Depth)
	for n, z := range at {
		if n == 0 || z != at[n-1] {
			p, err := a.views[i].read(ctx, b, 0, z, size)
			if err != nil {
				return 0, err
			}
			q, err := a.views[k].read(ctx, b, 1, z, size)
			if err != nil {
				return 0, err
			}
			last = filter.SSIM(p, q, size[0], size[1])
		}
		total += last
	}
	return total / float64(len(at)), nil
}

// edges returns how well the edges in the middle plane of a slice correlate with those in the mean of its neighbours.
func (a *assessor) edges(ctx context.Context, b *buffers, i int, near []int) (float64, error) {
	size := a.common(i, near...)
	z := a.views[i].Shape[0] / 2
	own, err := a.views[i].read(ctx, b, 0, z, size)
	if err != nil {
		return 0, err
	}
	var mean []float32
	for n, k := range near {
		other, err := a.views[k].read(ctx, b, 1+n, min(z, a.views[k].Shape[0]-1), size)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			mean = other
			continue
		}
		for p := range mean {
			mean[p] = mean[p]/2 + other[p]/2
		}
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

// variance returns the population variance.
func (m *moments) variance() float64 {
	mean := m.sum / m.n
	return max(0, m.squares/m.n-float64(mean*mean))
}
