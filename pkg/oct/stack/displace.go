package stack

import (
	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/oct"
)

// motion returns the transform that lays the slice's planes on the preceding slice as imaged, or nil if the planes are
// used unchanged.
func (m *movingSlice) motion() *bspline.Motion {
	if !m.turned() {
		return nil
	}
	return &bspline.Motion{Rigid: m.rigid, Warp: m.elastic()}
}

// displace determines the displacements of the slices. A registration gives a slice's displacements relative to the
// preceding slice as imaged. That slice is displaced as well, so displacements add up along the stack. A slice without
// a transform of its own keeps those of the preceding slice.
func (p *stackPlan) displace(res *oct.Resources) {
	var before *bspline.Warp
	for _, m := range p.moving {
		t, own := filter.Rigid{}, m.elastic()
		if m.transform.loaded && m.action != "skip" {
			t = m.transform.rigid
		}
		next := bspline.Accumulated(before, t, own)
		if next != nil {
			if _, determinant := next.Extent(); !(determinant > 0) {
				res.Warnf("slice %d: its displacements and those of the slices before it fold the plane: not applied from here on", m.slice.id)
				next = nil
			}
		}
		m.warp, before = next, next
		m.resampled = m.resampled || next != nil
	}
}

// warped reports whether any slice is displaced.
func (p *stackPlan) warped() bool {
	for _, m := range p.moving {
		if m.warp != nil {
			return true
		}
	}
	return false
}
