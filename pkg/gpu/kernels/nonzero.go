package kernels

import "strata/pkg/gpu"

// CountSet queues a test of memory: count, a uint64, increases unless all bytes of v are zero.
func CountSet(s *gpu.Stream, count, v gpu.Span) error {
	g := blocks(v.Bytes() / 16)
	g.grid[0] = min(g.grid[0], 2048)
	return queue(s, "nonzero", "count_set", g, v, count, v.Bytes())
}
