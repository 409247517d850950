package sliceconfig

import (
	"context"
	"math"
	"slices"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr"
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
	plane [][]float32 // an even number, at least fewest
	raw   []byte
	done  int64 // bytes of planes, as stored, that were read
}

func newBuffers(planes, area, raw int) *buffers {
	b := &buffers{raw: make([]byte, raw)}
	for range planes {
		b.plane = append(b.plane, make([]float32, area))
	}
	return b
}

// read reads the middle of planes, of a size that is at most the view's, into a worker's planes from the first on. Values that are not
// finite become 0.
func (v *view) read(ctx context.Context, b *buffers, first int, size [2]int, planes ...int) ([][]float32, error) {
	n := size[0] * size[1]
	var dst [][]float32
	var starts [][3]int
	for i, z := range planes {
		dst = append(dst, b.plane[first+i][:n])
		starts = append(starts, [3]int{z, v.start[0] + (v.size[0]-size[0])/2, v.start[1] + (v.size[1]-size[1])/2})
	}
	if err := v.ReadBoxes(ctx, dst, b.raw, starts, [3]int{1, size[0], size[1]}); err != nil {
		return nil, err
	}
	b.done += int64(n) * int64(len(planes)) * int64(v.DType.Size())
	for _, plane := range dst {
		for i, f := range plane {
			if f-f != 0 {
				plane[i] = 0
			}
		}
	}
	return dst, nil
}

// leastStd is the standard deviation from which on a plane holds data.
const leastStd = 1e-6

// facts returns whether one of about eight planes of a slice is not constant, and the variance of its sampled planes together.
func (a *assessor) facts(ctx context.Context, b *buffers, i int) (hasData bool, variance float64, err error) {
	v := a.views[i]
	var all moments
	for batch := range slices.Chunk(sampled(v.Shape[0], a.options.Depth), len(b.plane)) {
		planes, err := v.read(ctx, b, 0, v.size, batch...)
		if err != nil {
			return false, 0, err
		}
		for k, plane := range planes {
			all.add(plane)
			hasData = hasData || batch[k] == 0 && holdsData(plane)
		}
	}
	for z := 0; z < v.Shape[0] && !hasData; z += max(1, v.Shape[0]/8) {
		planes, err := v.read(ctx, b, 0, v.size, z)
		if err != nil {
			return false, 0, err
		}
		hasData = holdsData(planes[0])
	}
	return hasData, all.variance(), nil
}

// holdsData reports whether a plane is not constant.
func holdsData(plane []float32) bool {
	var m moments
	m.add(plane)
	return math.Sqrt(m.variance()) >= leastStd
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

// similarity returns the mean structural similarity of the sampled planes of two slices.
func (a *assessor) similarity(ctx context.Context, b *buffers, i, k int) (float64, error) {
	size := a.common(i, k)
	half := len(b.plane) / 2
	var total float64
	at := sampled(min(a.views[i].Shape[0], a.views[k].Shape[0]), a.options.Depth)
	for batch := range slices.Chunk(at, half) {
		p, err := a.views[i].read(ctx, b, 0, size, batch...)
		if err != nil {
			return 0, err
		}
		q, err := a.views[k].read(ctx, b, half, size, batch...)
		if err != nil {
			return 0, err
		}
		for n := range batch {
			total += filter.SSIM(p[n], q[n], size[0], size[1])
		}
	}
	return total / float64(len(at)), nil
}

// edges returns how well the edges in the middle plane of a slice correlate with those in the mean of its neighbours.
func (a *assessor) edges(ctx context.Context, b *buffers, i int, near []int) (float64, error) {
	size := a.common(i, near...)
	z := a.views[i].Shape[0] / 2
	own, err := a.views[i].read(ctx, b, 0, size, z)
	if err != nil {
		return 0, err
	}
	var mean []float32
	for n, k := range near {
		other, err := a.views[k].read(ctx, b, 1+n, size, min(z, a.views[k].Shape[0]-1))
		if err != nil {
			return 0, err
		}
		if n == 0 {
			mean = other[0]
			continue
		}
		for p := range mean {
			mean[p] = mean[p]/2 + other[0][p]/2
		}
	}
	return max(0, filter.EdgeCorrelation(own[0], mean, size[0], size[1])), nil
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
