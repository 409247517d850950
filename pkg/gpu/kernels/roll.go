package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/gpu"
)

// Roll queues filter.Roll, bit by bit, but for where it goes: dst and src, both
// planes × ny × nx of type t, are not the same. shift is one float32 per A-line, ny
// rows that lie pitch numbers apart, of magnitudes below 2⁶². bad, a uint64, grows by the
// number of voxels that are NaN or infinite.
func Roll(s *gpu.Stream, dst, src, bad gpu.Span, t dtype.Type, planes, ny, nx int, shift gpu.Span, pitch int) error {
	k, err := typed(s, "roll", "roll", t)
	if err != nil {
		return err
	}
	each := 1 // A-lines of a thread
	if t.Size() <= 2 {
		each = 4
	}
	grid, block := threads(1, ny, (nx+each-1)/each)
	s.Launch(k, grid, block, src, dst, shift, bad, int32(planes), int32(ny), int32(nx), int32(pitch))
	return nil
}
