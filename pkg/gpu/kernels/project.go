package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/gpu"
)

// AddPlanes queues filter.AddPlanes: nz planes of n pixels of type t are added to acc, n float64, which
// begins at zero if begin. bad, a uint64, increases by the number of NaN and infinite voxels. Of integers of up to
// 16 bits, acc holds sums of integers, which float64 has exactly: whatever the order, the bits are the same.
func AddPlanes(s *gpu.Stream, acc, src, bad gpu.Span, t dtype.Type, nz int, n int64, begin bool) error {
	g := few(n, 1)
	if small(t) {
		const lanes, slices = 32, 8 // of planes, side by side
		each := int64(lanes * 16 / t.Size())
		g = shape{gpu.Dim{max(1, int((n+each-1)/each)), 1, 1}, gpu.Dim{lanes, slices, 1}}
	}
	return queueTyped(s, "project", "add_planes", t, g, src, acc, bad, n, int32(nz), bit(begin))
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
