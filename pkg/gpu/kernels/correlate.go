package kernels

import (
	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
)

// momentBytes is the size of the result of OverlapMoments per overlap: Σa, Σb, Σa², Σb², Σab in float64.
const momentBytes = 5 * 8

// OverlapBytes returns the sizes of the result and of the scratch memory of [OverlapMoments], for overlaps of
// lo … hi planes of ny rows.
func OverlapBytes(lo, hi, ny int) (dst, scratch int64) {
	dst = int64(hi-lo+1) * momentBytes
	return dst, int64(ny)*dst + 2*2*8*int64(hi)*int64(ny)
}

// OverlapMoments queues the sums for the normalised cross-correlation of two slices at each overlap of lo …
// hi planes, of ny rows of nx voxels. fixed holds the last hi planes of one slice, moving the first hi of the
// other: at overlap o, the last o planes of fixed lie on the first o of moving. The sums of a row equal those
// of filter.Sums and filter.Dots; they are added over the planes, from the end of fixed backwards, then over
// the rows in increasing y, with the same bits as on the CPU. They are added to dst, which must be zeroed
// before the first rows.
func OverlapMoments(s *gpu.Stream, dst, scratch gpu.Span, fixed, moving Planes, lo, hi, ny, nx int) error {
	n := hi - lo + 1
	size := 2 * 8 * int64(hi) * int64(ny)
	of := [2]gpu.Span{scratch.From(0, size), scratch.From(size, size)}
	rows := scratch.From(2*size, int64(ny)*int64(n)*momentBytes)
	for i, p := range [2]Planes{fixed, moving} {
		if err := queue(s, "correlate", "row_sums", blocks(4*int64(hi)*int64(ny)), p.At, of[i], int32(hi), int32(ny), int32(nx), int64(p.Pitch), p.Stride); err != nil {
			return err
		}
	}
	g := blocks(4 * int64(n))
	g.grid[1] = upTo(ny)
	if err := queue(s, "correlate", "row_moments", g, fixed.At, moving.At, of[0], of[1], rows, int32(lo), int32(hi), int32(ny), int32(nx),
		int64(fixed.Pitch), fixed.Stride, int64(moving.Pitch), moving.Stride); err != nil {
		return err
	}
	return queue(s, "correlate", "add_rows", blocks(5*int64(n)), rows, dst, int32(ny), int32(5*n))
}

// Moments reads the results of [OverlapMoments] for overlaps from lo planes and of area voxels per plane.
func Moments(dst []byte, lo, area int) []filter.Moments {
	v := dtype.Slice[float64](dst)
	out := make([]filter.Moments, len(v)/5)
	for k := range out {
		m := v[5*k:]
		out[k] = filter.Moments{N: int64(lo+k) * int64(area), A: m[0], B: m[1], AA: m[2], BB: m[3], AB: m[4]}
	}
	return out
}
