package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/gpu"
)

// Roll queues filter.Roll, with the same bits, from src to dst, both planes × ny × nx of type t and distinct.
// shift holds one float32 per A-line, in ny rows that lie pitch numbers apart, of magnitudes below 2⁶². bad,
// a uint64, increases by the number of NaN and infinite voxels.
func Roll(s *gpu.Stream, dst, src, bad gpu.Span, t dtype.Type, planes, ny, nx int, shift gpu.Span, pitch int) error {
	columns := rollColumns(t, planes)
	n := int64(ny) * int64(nx)
	g := shape{gpu.Dim{max(1, int((n+int64(columns)-1)/int64(columns))), 1, 1}, gpu.Dim{blockSize, 1, 1}}
	return queueTyped(s, "roll", "roll", t, g, src, dst, shift, bad, int32(planes), int32(ny), int32(nx), int32(pitch), int32(columns))
}

// rollColumns returns the number of A-lines that a block rolls: as many as make up a cache line, or a part of it if
// shared memory holds no more; or one a thread, where it would hold hardly any.
func rollColumns(t dtype.Type, planes int) int {
	const room, line, least = 39936, 128, 8
	for width := line; width >= least; width /= 2 {
		if width*planes <= room {
			return width / t.Size()
		}
	}
	return blockSize
}
