package volume

import (
	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
)

// level computes the planes of an image's level 0 from those of a larger canvas in the order of z, like
// ngff.PlaneWriter: with float32 passes along Y, then Z, then X. Only the stored planes leave the device.
type level struct {
	from, to [3]int
	z        *filter.Weights
	y, x     *kernels.Weights // nil: the number of rows, or columns, stays the same
	sums     int              // maximum number of planes under construction at a time
	next     int              // first incomplete plane
	tables   int64            // bytes of the weights

	rows gpu.Span // a plane after the first pass
	acc  gpu.Span // sums along Z, of plane k at k mod sums
}

// levelSums returns the maximum number of sums under construction at a time along an axis.
func levelSums(z *filter.Weights) (most int) {
	begun := 0
	for k := range z.Out() {
		_, end := z.Inputs(k, k+1)
		for begun < z.Out() {
			if first, _ := z.Inputs(begun, begun+1); first >= end {
				break
			}
			begun++
		}
		most = max(most, begun-k)
	}
	return most
}

// newLevel returns the level of shape to for a canvas of shape from, or nil if the shapes are equal. It uploads
// the weights.
func newLevel(s *gpu.Stream, from, to [3]int) (l *level, err error) {
	if from == to {
		return nil, nil
	}
	weights := func(d int) *filter.Weights {
		return filter.CentreAligned(from[d], to[d], filter.AntiAliasSigma(from[d], to[d]), filter.Mirror)
	}
	l = &level{from: from, to: to, z: weights(0)}
	l.sums = levelSums(l.z)
	for d, to := range []**kernels.Weights{&l.y, &l.x} {
		w := weights(1 + d)
		n := 2*w.Out() + 1
		for i := range w.Out() {
			_, taps := w.Taps(i)
			n += len(taps)
		}
		l.tables += int64(mem.Size(4 * n))
		if w.Identity() {
			continue
		}
		if *to, err = kernels.NewWeights(s, w); err != nil {
			l.release()
			return nil, err
		}
	}
	return l, nil
}

// bytes returns the device memory of the level: rows, sums and weights.
func (l *level) bytes() (rows, acc, tables int64) {
	if l == nil {
		return 0, 0, 0
	}
	rows = 4 * int64(l.to[1]) * int64(l.from[2])
	return rows, int64(l.sums) * rows, l.tables
}

// release releases the memory of the weights.
func (l *level) release() {
	if l == nil {
		return
	}
	for _, w := range []*kernels.Weights{l.y, l.x} {
		if w != nil {
			w.Release()
		}
	}
}

// add queues the contribution of plane z of the canvas; an empty span is a plane of zeros. For each plane that it
// completes, in order, place returns the destination.
func (l *level) add(s *gpu.Stream, z int, plane gpu.Span, place func(k int) (gpu.Span, error)) error {
	n := int64(l.to[1]) * int64(l.from[2])
	rows := l.rows
	switch {
	case plane.Bytes() == 0:
		s.Zero(rows)
	case l.y == nil:
		rows = plane
	default:
		if err := l.y.Apply(s, rows, plane, dtype.Float32, 1, int64(l.from[2])); err != nil {
			return err
		}
	}
	for k := l.next; k < l.z.Out(); k++ {
		from, taps := l.z.Taps(k)
		if from > z {
			break
		}
		acc := l.acc.From(4*n*int64(k%l.sums), 4*n)
		if err := kernels.Accumulate(s, acc, rows, taps[z-from], n, z == from); err != nil {
			return err
		}
		if z < from+len(taps)-1 {
			continue
		}
		to, err := place(k)
		if err != nil {
			return err
		}
		if l.x == nil {
			s.Copy(to, acc)
		} else if err := l.x.Apply(s, to, acc, dtype.Float32, int64(l.to[1]), 1); err != nil {
			return err
		}
		l.next = k + 1
	}
	return nil
}
