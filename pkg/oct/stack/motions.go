package stack

import (
	"cmp"
	"math"

	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/oct"
)

// checkMotions returns an error for a transform that moves a slice by more than its own size, which no registration of
// slices finds: by itself, together with those before it, or as what it adds to the slice's position.
func (p *stackPlan) checkMotions() error {
	if p.opt.AllowLargeMotion {
		return nil
	}
	for _, m := range p.moving {
		var shift filter.Rigid
		if p.opt.AccumulateTranslations {
			shift.TX, shift.TY = m.transform.counted(&p.opt)
		}
		for _, by := range []struct {
			file, what string
			t          filter.Rigid
			warp       *bspline.Warp
		}{
			{m.transform.file, "moves", m.rigid, m.elastic()},
			{m.transform.from, "moves", shift, nil},
			{m.transform.file, "moves, with the transforms before it,", m.laid, m.warp},
		} {
			if px, ok := within(by.t, by.warp, m.slice); !ok {
				return oct.BadInput("%s: %s slice %d by %.4g pixels, the slice has %d × %d: give --allow_large_motion if that is meant",
					cmp.Or(by.file, m.slice.path), by.what, m.slice.id, px, m.slice.shape[1], m.slice.shape[2])
			}
		}
	}
	return nil
}

// within returns how far a motion takes the corners of a slice, in pixels. ok reports whether that is at most the
// slice's longer side, and the translation alone at most its height and width.
func within(t filter.Rigid, warp *bspline.Warp, s *stackSlice) (px float64, ok bool) {
	ny, nx, bent := float64(s.shape[1]), float64(s.shape[2]), 0.0
	if warp != nil {
		bent = warp.Bound()
	}
	rigid := bspline.Motion{Rigid: t}
	px = rigid.Reach([2]int{}, [2]int(s.shape[1:])) + bent
	return px, px <= max(ny, nx) && math.Abs(t.TX)+bent <= nx && math.Abs(t.TY)+bent <= ny
}

// leastShown is the smallest share of its place on the canvas that a slice may cover without a warning.
const leastShown = 0.1

// show warns of a slice that its transform moves off the canvas, wholly or nearly. The place of a
// slice that is wholly off the canvas becomes empty: the volume shows nothing of it.
func (p *stackPlan) show(m *movingSlice, res *oct.Resources) {
	if r := m.place; m.resampled && !r.Empty() {
		t, file := bspline.Motion{Rigid: m.laid, Warp: m.warp}, cmp.Or(m.transform.file, m.slice.path)
		share := t.Shown(m.slice.shape[1], m.slice.shape[2], r.Y0-m.origin[0], r.Y1-m.origin[0], r.X0-m.origin[1], r.X1-m.origin[1])
		switch {
		case share == 0:
			m.place = oct.Rect(r.Y0, r.Y0, r.X0, r.X0)
			res.Warnf("%s: moves slice %d off the canvas: nothing of it is in the volume", file, m.slice.id)
		case share < leastShown:
			res.Warnf("%s: moves slice %d nearly off the canvas: it covers %.2g %% of its place there", file, m.slice.id, 100*share)
		}
	}
}
