package bspline

import (
	"math"

	"strata/pkg/filter"
)

// Motion is how a plane is resampled: moved by a rigid transform and displaced.
type Motion struct {
	Rigid filter.Rigid
	Warp  *Warp // nil: no displacements
}

// Resample returns a part of a plane, which begins at (y, x) = at and has 0 around it.
func (t *Motion) Resample(v []float32, ny, nx int, at [2]int) []float32 {
	out := make([]float32, len(v))
	if t.Warp != nil {
		t.Warp.Resample(out, v, ny, nx, t.Rigid, at[0], at[1], 0)
		return out
	}
	here := t.Rigid
	here.CX, here.CY = here.CX-float64(at[1]), here.CY-float64(at[0])
	here.Resample(out, v, ny, nx, 0, ny, 0)
	return out
}

// Binned returns the motion in pixels that are each bin (y, x) of these.
func (t *Motion) Binned(bin [2]int) *Motion {
	by, bx := float64(bin[0]), float64(bin[1])
	r := t.Rigid
	out := &Motion{Rigid: filter.Rigid{Angle: r.Angle, TX: r.TX / bx, TY: r.TY / by, CX: (r.CX+0.5)/bx - 0.5, CY: (r.CY+0.5)/by - 0.5}}
	if t.Warp != nil {
		out.Warp = t.Warp.Reduced([2]float64{by, bx})
	}
	return out
}

// Reach returns the maximum distance by which the pixels of a tile move, whose first pixel and shape are (y, x).
func (t *Motion) Reach(start, shape [2]int) (far float64) {
	r := &t.Rigid
	sin, cos := math.Sincos(r.Angle)
	for _, y := range []int{start[0], start[0] + shape[0]} {
		for _, x := range []int{start[1], start[1] + shape[1]} {
			u, v := float64(x)-r.CX, float64(y)-r.CY
			far = max(far, math.Abs(float64(cos*u)-float64(sin*v)-u+r.TX), math.Abs(float64(sin*u)+float64(cos*v)-v+r.TY))
		}
	}
	if t.Warp != nil {
		largest, _ := t.Warp.Extent()
		far += largest
	}
	return far
}

// Accumulated returns the displacements of a plane at its points r: those of the plane before it, before, at the points that the
// transform t of their registration takes to r, followed by its own. Either may be nil: none.
func Accumulated(before *Warp, t filter.Rigid, own *Warp) *Warp {
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
