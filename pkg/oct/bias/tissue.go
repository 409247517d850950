package bias

import (
	"slices"
	"sync/atomic"

	"strata/pkg/filter"
	"strata/pkg/oct"
)

// runs is the mask of a plane: the pixels, counted in C order, at which it changes, the first time from outside to
// tissue.
type runs []uint32

// expand writes the mask.
func (r runs) expand(mask []uint8) {
	clear(mask)
	for i := 0; i+1 < len(r); i += 2 {
		part := mask[r[i]:r[i+1]]
		for k := range part {
			part[k] = 1
		}
	}
}

// has reports whether a pixel is in the mask.
func (r runs) has(pixel uint32) bool {
	before, at := slices.BinarySearch(r, pixel)
	if at {
		before++
	}
	return before%2 == 1
}

// count returns the number of pixels in the mask.
func (r runs) count() (n int64) {
	for i := 0; i+1 < len(r); i += 2 {
		n += int64(r[i+1] - r[i])
	}
	return n
}

// merge returns the intersection of two masks if both is set, otherwise their union.
func merge(a, b runs, both bool) (out runs) {
	in := false
	for i, j := 0, 0; i < len(a) || j < len(b); {
		var at uint32
		if j == len(b) || i < len(a) && a[i] <= b[j] {
			at = a[i]
		} else {
			at = b[j]
		}
		if i < len(a) && a[i] == at {
			i++
		}
		if j < len(b) && b[j] == at {
			j++
		}
		inA, inB := i%2 == 1, j%2 == 1
		if now := inA && inB || !both && (inA || inB); now != in {
			out = append(out, at)
			in = now
		}
	}
	return out
}

// tissueMask is the mask of the volume, plane by plane, in a limited amount of memory.
type tissueMask struct {
	planes []runs
	most   int64 // bytes
	used   atomic.Int64
}

// put stores the mask of a plane, and reports whether there is room for it.
func (m *tissueMask) put(z int, r runs) bool {
	m.planes[z] = r
	return m.used.Add(4*int64(cap(r))) <= m.most
}

// closeAlongZ closes gaps along z over 5 planes. Planes beyond the volume count as its first and last: no tissue is
// lost there.
func (m *tissueMask) closeAlongZ() {
	const side = 2
	over := func(from []runs, both bool) []runs {
		out := make([]runs, len(from))
		for z := range from {
			lo, hi := max(0, z-side), min(len(from)-1, z+side)
			out[z] = from[lo]
			for k := lo + 1; k <= hi; k++ {
				out[z] = merge(out[z], from[k], both)
			}
		}
		return out
	}
	m.planes = over(over(m.planes, false), true)
}

// coverage returns the number of voxels in the mask.
func (m *tissueMask) coverage() (n int64) {
	for _, r := range m.planes {
		n += r.count()
	}
	return n
}

// segment makes the mask of a smoothed plane.
func (p *plan) segment(mask *filter.BitPlane, z int, smooth []float32) error {
	mask.Above(smooth, float32(p.thresholds[p.sectionOf(z)]))
	mask.FillHoles()
	mask.Close()
	if !p.mask.put(z, mask.AppendRuns(nil)) {
		return p.granted.TooLittle(2*p.granted.Mem, "%s: a mask of tissue as ragged as this one (a larger --mask_smoothing_sigma makes it smoother)", p.Where)
	}
	return nil
}

// findThresholds turns the sketches of the sections into thresholds.
func (p *plan) findThresholds(sketches []*filter.OtsuSketch) error {
	const least = 100 // positive voxels
	for i, s := range sketches {
		t, ok := s.Threshold()
		switch {
		case s.Count() < least:
			t = -1 // all is tissue
			p.res.Warnf("section %d of %d has %d voxels above 0: all of it counts as tissue", i+1, len(sketches), s.Count())
		case !ok:
			t = 0
			p.res.Warnf("section %d of %d has the same value everywhere: all voxels above 0 count as tissue", i+1, len(sketches))
		}
		p.thresholds = append(p.thresholds, t)
	}
	if !(p.high > 0) {
		return oct.BadInput("%s: no voxel is above 0: there is nothing to correct", p.Where)
	}
	return nil
}
