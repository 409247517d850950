package stitch

import (
	"strata/pkg/filter"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/shading"
)

// strips describes where two tiles of the grid may overlap: boxes of the same size, in the coordinates of each.
type strips struct {
	a, b   [2]int // first pixel (y, x)
	ny, nx int
}

// displaced returns the strips in which tiles of the given extents overlap if the second is displaced by d from
// the first, enlarged by more pixels. ok is false if they are less than least pixels wide.
func displaced(na, nb [2]int, d [2]int, more, least int) (s strips, ok bool) {
	var n [2]int
	for k := range 2 {
		s.a[k], s.b[k] = max(d[k]-more, 0), max(-d[k]-more, 0)
		n[k] = min(na[k]-s.a[k], nb[k]-s.b[k])
		if n[k] < least {
			return s, false
		}
	}
	s.ny, s.nx = n[0], n[1]
	return s, true
}

// box returns a box of a view, divided by the shading unless that is nil.
func (v view) box(light *shading.Shading, at [2]int, ny, nx int) []float32 {
	out := filter.Crop(v.v, v.n[1], at, ny, nx)
	if light != nil {
		light.Divide(out, [2]int{v.at[0] + at[0], v.at[1] + at[1]}, ny, nx)
	}
	return out
}

// expected returns the displacement of neighbours along an axis of the grid.
func (g *grid) expected(m affine.Matrix, overlap float64, axis int) [2]float64 {
	if axis == 0 {
		return g.nominal(m, overlap, 1, 0)
	}
	return g.nominal(m, overlap, 0, 1)
}

func (g *grid) extentOf(t int) [2]int { return g.extent(t/g.nx, t%g.nx) }
