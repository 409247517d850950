package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/gpu"
)

// Planes locates rows of float32 in device memory: row y of plane z begins z·Stride + y·Pitch elements behind
// the beginning of At.
type Planes struct {
	At     gpu.Span
	Pitch  int
	Stride int64
}

// Place queues the conversion of src, planes × ny × nx elements of type t without gaps, to float32 at dst,
// and the multiplication by gain unless it is 1, with the same bits as dtype.ConvertSlice. Unless it is
// empty, bad, a uint64, increases by the number of NaN and infinite elements.
func Place(s *gpu.Stream, dst Planes, src gpu.Span, t dtype.Type, planes, ny, nx int, gain float32, bad gpu.Span) error {
	return queueTyped(s, "planes", "place", t, threads(planes, ny, nx),
		src, dst.At, bad, int32(planes), int32(ny), int32(nx), int64(dst.Pitch), dst.Stride, gain)
}

// Brighten queues the multiplication of planes of ny × nx voxels by gain, in place.
func Brighten(s *gpu.Stream, v Planes, planes, ny, nx int, gain float32) error {
	return queue(s, "planes", "brighten", threads(planes, ny, nx), v.At, int32(planes), int32(ny), int32(nx), int64(v.Pitch), v.Stride, gain)
}

// SumPlanes queues filter.AddPlanes for planes of ny × nx voxels: acc holds ny·nx float64 without gaps, which
// begin at zero if begin is set.
func SumPlanes(s *gpu.Stream, acc gpu.Span, v Planes, planes, ny, nx int, begin bool) error {
	first := bit(begin)
	return queue(s, "planes", "sum_planes", threads(1, ny, nx), v.At, acc, int32(planes), int32(ny), int32(nx), int64(v.Pitch), v.Stride, first)
}

// Accumulate queues filter.AddCombine with one weight of n float32, or, if begin,
// filter.Combine, which begins the sum.
func Accumulate(s *gpu.Stream, acc, src gpu.Span, weight float32, n int64, begin bool) error {
	first := bit(begin)
	return queue(s, "planes", "accumulate", blocks(n), src, acc, weight, n, first)
}
