package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/gpu"
)

// AddPlanes queues filter.AddPlanes: nz planes of n pixels of type t are added to acc, n float64, which
// begins at zero if begin. bad, a uint64, increases by the number of NaN and infinite voxels.
func AddPlanes(s *gpu.Stream, acc, src, bad gpu.Span, t dtype.Type, nz int, n int64, begin bool) error {
	first := bit(begin)
	return queueTyped(s, "project", "add_planes", t, few(n, max(1, 8/t.Size())), src, acc, bad, n, int32(nz), first)
}

// Mean queues filter.Mean: dst, n float32, is acc, n float64, over nz planes.
func Mean(s *gpu.Stream, dst, acc gpu.Span, nz int, n int64) error {
	return queue(s, "project", "mean", blocks(n), acc, dst, n, int32(nz))
}

// CountNonFinite queues filter.CountNonFinite of n elements of type t: bad, a uint64,
// grows by their number. Integers have none. src begins at a multiple of 16 bytes, as buffers do.
func CountNonFinite(s *gpu.Stream, bad, src gpu.Span, t dtype.Type, n int64) error {
	if !t.IsFloat() {
		return nil
	}
	return queueTyped(s, "project", "count_bad", t, counting((n+15)/16), src, bad, n)
}
