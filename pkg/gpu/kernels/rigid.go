package kernels

import (
	"math"

	"strata/pkg/filter"
	"strata/pkg/gpu"
)

// Box is a part of planes: Height × Width pixels, the first at (Y, X).
type Box struct{ Y, X, Height, Width int }

// ResampleRigid queues filter.Rigid.Resample of src, planes of ny × nx float32 without gaps, with the same
// bits, and writes a box of the result to dst. fill holds a float64 per plane. dst and src must differ.
func ResampleRigid(s *gpu.Stream, dst Planes, src gpu.Span, t filter.Rigid, planes, ny, nx int, box Box, fill gpu.Span) error {
	sin, cos := math.Sincos(t.Angle)
	return queue(s, "rigid", "rigid", threads(planes, box.Height, box.Width), src, dst.At, fill, int32(planes), int32(ny), int32(nx),
		int32(box.Y), int32(box.X), int32(box.Height), int32(box.Width), int64(dst.Pitch), dst.Stride, sin, cos, t.TX, t.TY, t.CX, t.CY)
}
