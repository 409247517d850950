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

// Shown returns the share of a box of pixels, rows y0 … y1−1 and columns x0 … x1−1, that shows a plane of ny × nx
// pixels which is resampled there. 0 means that no pixel shows any; where there are displacements, the share is not
// below what is shown.
func (t *Motion) Shown(ny, nx, y0, y1, x0, x1 int) float64 {
	far := 0.0
	if t.Warp != nil {
		far = t.Warp.Bound()
	}
	var box [][2]float64
	for _, c := range [][2]int{{y0, x0}, {y0, x1}, {y1, x1}, {y1, x0}} {
		x, y := t.Rigid.Apply(float64(c[1])-0.5, float64(c[0])-0.5)
		box = append(box, [2]float64{x, y})
	}
	inside := box
	for d, n := range [2]int{nx, ny} {
		inside = clipped(inside, d, 1, float64(n)-0.5+far)
		inside = clipped(inside, d, -1, 0.5+far)
	}
	return area(inside) / area(box)
}

// clipped returns the part of a convex polygon in which sign times coordinate d is at most limit.
func clipped(p [][2]float64, d int, sign, limit float64) (out [][2]float64) {
	for i, a := range p {
		b := p[(i+1)%len(p)]
		u, v := limit-sign*a[d], limit-sign*b[d]
		if u >= 0 {
			out = append(out, a)
		}
		if (u >= 0) != (v >= 0) {
			s := u / (u - v)
			out = append(out, [2]float64{a[0] + s*(b[0]-a[0]), a[1] + s*(b[1]-a[1])})
		}
	}
	return out
}

// area returns that of a polygon.
func area(p [][2]float64) (sum float64) {
	for i := 2; i < len(p); i++ {
		a, b := [2]float64{p[i-1][0] - p[0][0], p[i-1][1] - p[0][1]}, [2]float64{p[i][0] - p[0][0], p[i][1] - p[0][1]}
		sum += a[0]*b[1] - a[1]*b[0]
	}
	return math.Abs(sum) / 2
}

// Accumulated returns the displacements of a plane at its points r: those of the plane before it, before, at the points
// that the transform t of their registration takes to r, followed by its own. Either may be nil: none.
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
