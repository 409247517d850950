package kernels

import "strata/pkg/gpu"

// Mix queues filter.Mix for planes of ny × nx voxels, plane z with the z-th weight (float64 on the device).
// moving is first displaced by (dy, dx) with its edges repeated: fixed voxel (y, x) is mixed with moving
// voxel (y−dy, x−dx).
func Mix(s *gpu.Stream, fixed, moving Planes, planes, ny, nx int, weights gpu.Span, gain float32, dy, dx int) error {
	return queue(s, "blend", "mix", threads(planes, ny, nx), fixed.At, moving.At, weights, gain, int32(planes), int32(ny), int32(nx),
		int64(fixed.Pitch), fixed.Stride, int64(moving.Pitch), moving.Stride, int32(dy), int32(dx))
}

// Scale queues fixed = gain·moving in float32, with moving displaced as in [Mix].
func Scale(s *gpu.Stream, fixed, moving Planes, planes, ny, nx int, gain float32, dy, dx int) error {
	return queue(s, "blend", "scale", threads(planes, ny, nx), fixed.At, moving.At, gain, int32(planes), int32(ny), int32(nx),
		int64(fixed.Pitch), fixed.Stride, int64(moving.Pitch), moving.Stride, int32(dy), int32(dx))
}

// CountCommon queues filter.CountCommon by plane: counts, one uint64 per plane of ny × nx voxels, increases
// by the number of voxels that are above 0 in both a and b. With b = a it counts the voxels of a above 0.
func CountCommon(s *gpu.Stream, counts gpu.Span, a, b Planes, planes, ny, nx int) error {
	return queue(s, "blend", "count_common", shape{gpu.Dim{1, max(1, min(ny, 256)), upTo(planes)}, gpu.Dim{blockSize, 1, 1}},
		a.At, b.At, counts, int32(planes), int32(ny), int32(nx), int64(a.Pitch), a.Stride, int64(b.Pitch), b.Stride)
}
