package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/gpu"
)

// FromFloat32 queues the conversion of n float32 to type t, with the same bits as filter.FromFloat32. For
// float32 it copies.
func FromFloat32(s *gpu.Stream, dst, src gpu.Span, t dtype.Type, n int64) error {
	if t == dtype.Float32 {
		s.Copy(dst, src.From(0, 4*n))
		return nil
	}
	return queueTyped(s, "convert", "from_f32", t, few(n, 4), src, dst, n)
}
