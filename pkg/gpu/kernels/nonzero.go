package kernels

import "strata/pkg/gpu"

// CountSet queues a test of memory: count, a uint64, increases unless all bytes of v are zero.
func CountSet(s *gpu.Stream, count, v gpu.Span) error {
	k, err := get(s.Device(), "nonzero", "count_set")
	if err != nil {
		return err
	}
	grid, block := blocks(v.Bytes() / 16)
	grid[0] = min(grid[0], 2048)
	s.Launch(k, grid, block, v, count, v.Bytes())
	return nil
}
