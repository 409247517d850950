package filter

import "slices"

// Resizer resizes volumes (z, y, x) by one pass of weights along each axis. It takes planes one after the
// other, so that the volume need not be in memory. It owns its scratch memory and serves one goroutine.
//
// The passes go from the axis that shrinks most to the one that shrinks least or grows, with Y before X
// before Z for equal factors; axes that do not change have no pass. The order depends on the weights only, so
// that the result is the same however the planes are grouped.
type Resizer struct {
	z, y, x *Weights
	before  []Pass // along Y and X before the one along Z, in order
	after   []Pass
	acc     [3]int // shape of the sums over z
	sum     []float32
	next    int // planes taken
	own     ResizeScratch
	done    []float32
}

// ResizeScratch is the memory of passes along Y and X, for one goroutine. The zero value is ready.
type ResizeScratch struct {
	free [2][]float32
	rows []float32
}

// Pass is a pass of weights along one axis of a volume (z, y, x).
type Pass struct {
	*Weights
	Axis int
}

// Passes returns the passes of a [Resizer] in order, without those along axes that do not change; the pass
// along Z is always included.
func Passes(z, y, x *Weights) []Pass {
	passes := []Pass{{y, 1}, {x, 2}, {z, 0}}
	slices.SortStableFunc(passes, func(a, b Pass) int { return a.out*b.in - b.out*a.in })
	return slices.DeleteFunc(passes, func(p Pass) bool { return p.Axis != 0 && p.Identity() })
}

// NewResizer returns a resizer for volumes of shape (z.In, y.In, x.In).
func NewResizer(z, y, x *Weights) *Resizer {
	r := &Resizer{}
	r.Reset(z, y, x)
	return r
}

// Reset prepares the resizer for another volume, possibly with other weights, and reuses its memory.
func (r *Resizer) Reset(z, y, x *Weights) {
	r.z, r.y, r.x = z, y, x
	r.before, r.after = r.before[:0], r.after[:0]
	r.next, r.done = 0, nil
	r.acc = [3]int{z.out, y.in, x.in}
	to := &r.before
	for _, p := range Passes(z, y, x) {
		if p.Axis == 0 {
			to = &r.after
			continue
		}
		*to = append(*to, p)
		if to == &r.before {
			r.acc[p.Axis] = p.out
		}
	}
}

// ResizerBytes returns the memory of a [Resizer] of volumes of shape in to shape out that gets n planes at a
// time.
func ResizerBytes(in, out [3]int, n int) int64 {
	w := func(d int) *Weights { return &Weights{in: in[d], out: out[d]} } // their shape is all that counts
	r := NewResizer(w(0), w(1), w(2))
	elements := int64(r.acc[0]) * int64(r.acc[1]) * int64(r.acc[2])
	var most [2]int64
	count := func(shape [3]int, passes []Pass) {
		for i, p := range passes {
			shape[p.Axis] = p.out
			most[i] = max(most[i], int64(shape[0])*int64(shape[1])*int64(shape[2]))
		}
	}
	count([3]int{n, r.y.in, r.x.in}, r.before)
	count(r.acc, r.after)
	return 4 * (elements + most[0] + most[1] + int64(r.x.RowScratch()))
}

// ScratchBytes returns the memory of a [ResizeScratch] for n planes at a time.
func (r *Resizer) ScratchBytes(n int) (bytes int64) {
	shape := [3]int{n, r.y.in, r.x.in}
	for _, p := range r.before {
		shape[p.Axis] = p.out
		bytes += 4 * int64(shape[0]) * int64(shape[1]) * int64(shape[2])
	}
	return bytes + 4*int64(r.x.RowScratch())
}

// Scratch returns the resizer's own scratch, which [Resizer.Add] uses.
func (r *Resizer) Scratch() *ResizeScratch { return &r.own }

// Add takes the next planes of the volume, any number of them. It returns the result of [Resizer.Begin], valid until
// the next call.
func (r *Resizer) Add(planes []float32) []float32 {
	begun := r.Begin(&r.own, planes)
	r.Finish(begun, len(planes)/(r.y.in*r.x.in))
	return begun
}

// Begin runs the passes before the one along Z on any number of planes of the volume. Its result is for
// [Resizer.Finish]; it lies in scratch, or is planes if there are no such passes. Several goroutines may call Begin at
// a time, each with its own scratch. If the weights of Y and X use all inputs, the result contains a NaN or an infinity
// whenever the planes do.
func (r *Resizer) Begin(scratch *ResizeScratch, planes []float32) []float32 {
	n := len(planes) / (r.y.in * r.x.in)
	if len(planes) != n*r.y.in*r.x.in {
		panic("filter: planes do not fit the volume that is resized")
	}
	return scratch.run(r.before, planes, [3]int{n, r.y.in, r.x.in})
}

// Finish adds the result of [Resizer.Begin] for the next n planes.
func (r *Resizer) Finish(begun []float32, n int) {
	if r.next+n > r.z.in {
		panic("filter: planes do not fit the volume that is resized")
	}
	size := r.acc[0] * r.acc[1] * r.acc[2]
	if cap(r.sum) < size {
		r.sum = make([]float32, size)
	}
	r.sum = r.sum[:size]
	r.z.Add(r.sum, begun, r.next, r.acc[1]*r.acc[2])
	r.next += n
}

// Volume returns the result, of shape (z.Out, y.Out, x.Out), once all planes are added. Planes added after
// [Resizer.Reset] overwrite it.
func (r *Resizer) Volume() []float32 {
	if r.next != r.z.in {
		panic("filter: a volume is resized before all of its planes are there")
	}
	if r.done == nil {
		r.done = r.own.run(r.after, r.sum, r.acc)
	}
	return r.done
}

// run runs the passes along Y and X. The result of each pass goes to a scratch buffer of its own.
func (r *ResizeScratch) run(passes []Pass, v []float32, shape [3]int) []float32 {
	for i, p := range passes {
		shape[p.Axis] = p.out
		size := shape[0] * shape[1] * shape[2]
		if cap(r.free[i]) < size {
			r.free[i] = make([]float32, size)
		}
		dst := r.free[i][:size]
		if p.Axis == 1 {
			p.Apply(dst, v, shape[0], shape[2])
		} else {
			if len(r.rows) < p.RowScratch() {
				r.rows = make([]float32, p.RowScratch())
			}
			p.ApplyRows(dst, v, shape[0]*shape[1], r.rows)
		}
		v = dst
	}
	return v
}

// Resize resizes a volume in memory from shape (z.In, y.In, x.In) to (z.Out, y.Out, x.Out), like [Resizer].
func Resize(dst, src []float32, z, y, x *Weights) {
	r := NewResizer(z, y, x)
	plane := y.in * x.in
	step := max(1, (256<<10)/4/plane) // planes that stay in the cache between two passes
	for k := 0; k < z.in; k += step {
		r.Add(src[k*plane : min(k+step, z.in)*plane])
	}
	copy(dst, r.Volume())
}
