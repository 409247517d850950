package kernels

import (
	"math"

	"strata/pkg/filter"
	"strata/pkg/gpu"
)

// ResampleRigid queues filter.Rigid.Resample of planes of ny × nx float32, bit by bit:
// dst and src are not the same.
func ResampleRigid(s *gpu.Stream, dst, src gpu.Span, t filter.Rigid, planes, ny, nx int, fill float32) error {
	k, err := get(s.Device(), "rigid", "rigid")
	if err != nil {
		return err
	}
	sin, cos := math.Sincos(t.Angle)
	grid, block := threads(planes, ny, nx)
	s.Launch(k, grid, block, src, dst, int32(planes), int32(ny), int32(nx), sin, cos, t.TX, t.TY, t.CX, t.CY, fill)
	return nil
}
