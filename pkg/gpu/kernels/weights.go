package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
)

// Weights holds [filter.Weights] in device memory. Several streams may use it at a time.
type Weights struct {
	buffer             *gpu.Buffer
	first, start, taps gpu.Span
	in, out            int
}

// NewWeights copies weights to the device of s and waits until they are there.
func NewWeights(s *gpu.Stream, w *filter.Weights) (*Weights, error) {
	first, start := make([]int32, w.Out()), make([]int32, w.Out()+1)
	var taps []float32
	for i := range w.Out() {
		f, t := w.Taps(i)
		taps = append(taps, t...)
		first[i], start[i+1] = int32(f), int32(len(taps))
	}
	// one copy; the sizes are multiples of what the elements must be aligned to
	table := append(dtype.Bytes(first), dtype.Bytes(start)...)
	table = append(table, dtype.Bytes(taps)...)
	buffer, err := bring(s, table)
	if err != nil {
		return nil, err
	}
	n := int64(w.Out()) * 4
	return &Weights{
		buffer: buffer, in: w.In(), out: w.Out(),
		first: buffer.From(0, n), start: buffer.From(n, n+4), taps: buffer.From(2*n+4, int64(len(taps))*4),
	}, nil
}

// Release frees the memory.
func (w *Weights) Release() { w.buffer.Release() }

// Apply queues a pass along the middle axis of src (outer, In, inner) of type t to
// dst (outer, Out, inner) of float32: filter.Weights.Apply, and with inner 1
// filter.Weights.ApplyRows, bit by bit.
func (w *Weights) Apply(s *gpu.Stream, dst, src gpu.Span, t dtype.Type, outer, inner int64) error {
	return queueTyped(s, "weights", "along", t, line(outer, w.out, inner),
		src, dst, w.first, w.start, w.taps, int32(outer), int32(w.in), int32(w.out), inner)
}
