package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/gpu"
)

// AddPlanes queues filter.AddPlanes: nz planes of n pixels of type t are added to acc, n float64, which
// begins at zero if begin. bad, a uint64, increases by the number of NaN and infinite voxels.
func AddPlanes(s *gpu.Stream, acc, src, bad gpu.Span, t dtype.Type, nz int, n int64, begin bool) error {
	k, err := typed(s, "project", "add_planes", t)
	if err != nil {
		return err
	}
	first := int32(0)
	if begin {
		first = 1
	}
	grid, block := few(n, max(1, 8/t.Size()))
	s.Launch(k, grid, block, src, acc, bad, n, int32(nz), first)
	return nil
}

// Mean queues filter.Mean: dst, n float32, is acc, n float64, over nz planes.
func Mean(s *gpu.Stream, dst, acc gpu.Span, nz int, n int64) error {
	k, err := get(s.Device(), "project", "mean")
	if err != nil {
		return err
	}
	grid, block := blocks(n)
	s.Launch(k, grid, block, acc, dst, n, int32(nz))
	return nil
}

// CountNonFinite queues filter.CountNonFinite of n elements of type t: bad, a uint64,
// grows by their number. Integers have none. src begins at a multiple of 16 bytes, as buffers do.
func CountNonFinite(s *gpu.Stream, bad, src gpu.Span, t dtype.Type, n int64) error {
	if !t.IsFloat() {
		return nil
	}
	k, err := typed(s, "project", "count_bad", t)
	if err != nil {
		return err
	}
	grid, block := blocks((n + 15) / 16)
	grid[0] = min(grid[0], countBlocks)
	s.Launch(k, grid, block, src, bad, n)
	return nil
}
