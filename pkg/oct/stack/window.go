package stack

import (
	"strata/pkg/filter/bspline"
	"strata/pkg/oct/compute/volume"
)

// touches returns the first plane of the canvas that a slice changes.
func (p *stackPlan) touches(m *movingSlice) int {
	if p.blends(m) {
		return max(0, m.from-m.mix)
	}
	return max(0, m.start)
}

// blends reports whether the slice's overlap is blended, not overwritten.
func (p *stackPlan) blends(m *movingSlice) bool {
	return p.opt.Blend && m.mix > 0 && m.start < m.from
}

// turned reports whether the slice's planes are resampled where they are compared with the slice before it.
func (m *movingSlice) turned() bool {
	return m.action == "rotation" || m.action == "full" || m.elastic() != nil
}

// elastic returns the displacements relative to the preceding slice as imaged, or nil if there are none.
func (m *movingSlice) elastic() *bspline.Warp {
	if m.transform.loaded && m.action != "skip" {
		return m.transform.elastic
	}
	return nil
}

// planes returns the planes of a slice, counted from its first used one, that reach the canvas: those that are
// blended and those that are put there.
func (p *stackPlan) planes(m *movingSlice) (blend, put [2]int) {
	lo := max(0, -m.start)
	hi := max(0, m.end-m.start)
	if !p.blends(m) {
		return [2]int{}, [2]int{lo, max(lo, hi)}
	}
	mid := min(m.overlap, hi)
	first := max(lo, m.overlap-m.mix)
	return [2]int{min(first, mid), mid}, [2]int{max(lo, mid), max(lo, mid, hi)}
}

// budget sets the canvas's memory needs for assembling the volume: the minimum, and what saves reading again.
func (p *stackPlan) budget(c *volume.Canvas, limits []int) {
	blended := 0
	for _, m := range p.moving {
		if blend, _ := p.planes(m); blend[1] > blend[0] {
			blended, c.Mixed = max(blended, blend[1]-blend[0]), max(c.Mixed, m.mix)
		}
		if s := m.slice; m.resampled {
			c.RawArea, c.RawDepth = max(c.RawArea, int64(s.shape[1])*int64(s.shape[2])), max(c.RawDepth, s.chunk[0])
		}
	}
	c.Once = blended - min(blended, leastPiece)
	c.Matched, c.Refined = blended > 0 && p.opt.BlendMatch == MatchPairwise, blended > 0 && p.opt.BlendRefinementPx > 0
	c.Least = func(batch int) int { return p.planesNeeded(limits, batch) }
}

// leastPiece is the number of planes to be blended that must be in memory besides those that they are blended
// with.
const leastPiece = 4

// limits returns for each slice the canvas plane below which none changes once it is placed.
func (p *stackPlan) limits() []int {
	v := make([]int, len(p.moving)+1)
	v[len(p.moving)] = p.depth
	for i := len(p.moving) - 1; i >= 0; i-- {
		v[i] = min(v[i+1], p.touches(p.moving[i]))
	}
	return v
}

// planesNeeded returns the number of planes that must be in memory at a time when slices are read in pieces and
// planes are written in batches, including planes that are not on the canvas.
func (p *stackPlan) planesNeeded(limits []int, batch int) int {
	done, top, most := 0, 0, 0
	for i, m := range p.all() {
		blend, rest := p.planes(m)
		if n := blend[1] - blend[0]; n > 0 {
			top = max(top, m.start+blend[1])
			most = max(most, top-done+min(n, leastPiece))
		}
		for z := m.start + rest[0]; z < m.start+rest[1]; z++ {
			top = max(top, z+1)
			most = max(most, top-done)
			done += max(0, (min(limits[i], z+1)-done)/batch*batch)
		}
	}
	return max(most, min(batch, p.depth)) + 1
}
