package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
)

// Resizer resizes volumes (z, y, x) in device memory, with the same bits as [filter.Resizer]: one pass of
// weights along each axis, in the same order.
type Resizer struct {
	in     [3]int
	passes []resizePass
	free   [2]*gpu.Buffer
}

type resizePass struct {
	axis    int
	weights *Weights
}

// NewResizer copies the weights to the device of s and allocates the intermediate results of the passes.
func NewResizer(s *gpu.Stream, z, y, x *filter.Weights) (*Resizer, error) {
	r := &Resizer{in: [3]int{z.In(), y.In(), x.In()}}
	shape := r.in
	var most [2]int64
	for i, p := range filter.Passes(z, y, x) {
		w, err := NewWeights(s, p.Weights)
		if err != nil {
			r.Release()
			return nil, err
		}
		r.passes = append(r.passes, resizePass{p.Axis, w})
		shape[p.Axis] = w.out
		most[i%2] = max(most[i%2], int64(shape[0])*int64(shape[1])*int64(shape[2])*4)
	}
	for i, n := range most {
		if n == 0 {
			continue
		}
		var err error
		if r.free[i], err = s.Device().Memory().Get(n); err != nil {
			r.Release()
			return nil, err
		}
	}
	return r, nil
}

// ResizerBytes returns the device memory that a [Resizer] of volumes of shape in to shape out takes, at most,
// without the volume.
func ResizerBytes(in, out [3]int) int64 {
	most := int64(1)
	for d := range in {
		most *= int64(max(in[d], out[d]))
	}
	weights := int64(0)
	for d := range in {
		weights += 64 * int64(in[d]+out[d])
	}
	return 2*4*most + weights
}

// Run queues the passes over a volume of type t. The result, float32, is in memory of the resizer and valid
// until the next Run.
func (r *Resizer) Run(s *gpu.Stream, volume gpu.Span, t dtype.Type) (gpu.Span, error) {
	shape := r.in
	for i, p := range r.passes {
		outer, inner := int64(1), int64(1)
		for d, n := range shape {
			switch {
			case d < p.axis:
				outer *= int64(n)
			case d > p.axis:
				inner *= int64(n)
			}
		}
		dst := r.free[i%2].Span
		if err := p.weights.Apply(s, dst, volume, t, outer, inner); err != nil {
			return gpu.Span{}, err
		}
		shape[p.axis] = p.weights.out
		volume, t = dst.From(0, int64(shape[0])*int64(shape[1])*int64(shape[2])*4), dtype.Float32
	}
	return volume, nil
}

// Release frees the memory.
func (r *Resizer) Release() {
	for _, p := range r.passes {
		p.weights.Release()
	}
	for _, b := range r.free {
		b.Release()
	}
	r.passes, r.free = nil, [2]*gpu.Buffer{}
}
