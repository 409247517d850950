package zarrgpu

import (
	"strata/pkg/gpu/kernels"
	"strata/pkg/zarr"
)

// box returns the part of a region that lies in the chunk that begins at start. first and end are the bytes
// of the chunk from its first to its last element; the box's Src counts from first.
func (r *Reader) box(region zarr.Region, to []int64, start []int) (b kernels.Part, first, end int64) {
	b = kernels.Part{Shape: make([]int, len(start)), From: r.within, To: to}
	end = int64(r.size)
	for d, s := range start {
		lo, hi := max(s, region.Start[d]), min(s+r.shape[d], region.Start[d]+region.Shape[d])
		b.Shape[d] = hi - lo
		b.Dst += int64(lo-region.Start[d]) * to[d]
		first += int64(lo-s) * r.within[d]
		end += int64(hi-lo-1) * r.within[d]
	}
	return b, first, first + end
}
