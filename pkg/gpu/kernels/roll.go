package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/gpu"
)

// Roll queues filter.Roll, with the same bits, from src to dst, both planes × ny × nx of type t and distinct.
// shift holds one float32 per A-line, in ny rows that lie pitch numbers apart, of magnitudes below 2⁶². bad,
// a uint64, increases by the number of NaN and infinite voxels.
func Roll(s *gpu.Stream, dst, src, bad gpu.Span, t dtype.Type, planes, ny, nx int, shift gpu.Span, pitch int) error {
	each := 1 // A-lines of a thread
	if t.Size() <= 2 {
		each = 4
	}
	return queueTyped(s, "roll", "roll", t, threads(1, ny, (nx+each-1)/each), src, dst, shift, bad, int32(planes), int32(ny), int32(nx), int32(pitch))
}
