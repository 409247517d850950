package stack

import (
	"math"

	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/oct"
)

// motion is how the planes of a slice are resampled: moved by a rigid transform and displaced.
type motion struct {
	rigid filter.Rigid
	warp  *bspline.Warp // nil: no displacements
}

// motion lays the slice's planes on the slice before it as that was imaged; nil: they are used as they are.
func (m *movingSlice) motion() *motion {
	if !m.turned() {
		return nil
	}
	return &motion{m.rigid, m.elastic()}
}

// resample returns a part of a plane, which begins at (y, x) = at and has 0 around it.
func (t *motion) resample(v []float32, ny, nx int, at [2]int) []float32 {
	out := make([]float32, len(v))
	if t.warp != nil {
		t.warp.Resample(out, v, ny, nx, t.rigid, at[0], at[1], 0)
		return out
	}
	here := t.rigid
	here.CX, here.CY = here.CX-float64(at[1]), here.CY-float64(at[0])
	here.Resample(out, v, ny, nx, 0, ny, 0)
	return out
}

// binned returns the motion in pixels of bin (y, x) of the slice's.
func (t *motion) binned(bin [2]int) *motion {
	by, bx := float64(bin[0]), float64(bin[1])
	r := t.rigid
	out := &motion{rigid: filter.Rigid{Angle: r.Angle, TX: r.TX / bx, TY: r.TY / by, CX: (r.CX+0.5)/bx - 0.5, CY: (r.CY+0.5)/by - 0.5}}
	if t.warp != nil {
		out.warp = t.warp.Reduced([2]float64{by, bx})
	}
	return out
}

// reach returns the maximum distance by which the pixels of a tile move.
func (t *motion) reach(start, shape [2]int) (far float64) {
	r := &t.rigid
	sin, cos := math.Sincos(r.Angle)
	for _, y := range []int{start[0], start[0] + shape[0]} {
		for _, x := range []int{start[1], start[1] + shape[1]} {
			u, v := float64(x)-r.CX, float64(y)-r.CY
			far = max(far, math.Abs(float64(cos*u)-float64(sin*v)-u+r.TX), math.Abs(float64(sin*u)+float64(cos*v)-v+r.TY))
		}
	}
	if t.warp != nil {
		largest, _ := t.warp.Extent()
		far += largest
	}
	return far
}

// displace determines the displacements of the slices. A registration tells those of a slice beside the one before it as it was imaged:
// to lay it on that one as it is corrected, the displacements add up along the stack. A slice without a transform of its own keeps those
// of the slice before it.
func (p *stackPlan) displace(res *oct.Resources) {
	var before *bspline.Warp
	for _, m := range p.moving {
		t, own := filter.Rigid{}, m.elastic()
		if m.transform.loaded && m.action != "skip" {
			t = m.transform.rigid
		}
		next := accumulated(before, t, own)
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

// accumulated returns the displacements of a slice at its points r: those of the slice before it, before, at the points that the
// registration's transform t takes to r, followed by its own.
func accumulated(before *bspline.Warp, t filter.Rigid, own *bspline.Warp) *bspline.Warp {
	grid := own
	switch {
	case before == nil:
		return own
	case own == nil:
		grid = before
	}
	back := t.Inverse()
	bs, bc := math.Sincos(back.Angle)
	sin, cos := math.Sincos(t.Angle)
	return grid.Like(func(x, y float64) (float64, float64) {
		u, v := x-back.CX, y-back.CY
		dx, dy := before.At(float64(bc*u)-float64(bs*v)+back.CX+back.TX, float64(bs*u)+float64(bc*v)+back.CY+back.TY)
		dx, dy = float64(cos*dx)-float64(sin*dy), float64(sin*dx)+float64(cos*dy)
		if own == nil {
			return dx, dy
		}
		ox, oy := own.At(x+dx, y+dy)
		return dx + ox, dy + oy
	})
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
