package filter

import (
	"math"
	"slices"
)

// Picture is a plane of NY × NX pixels.
type Picture struct {
	V      []float32
	NY, NX int
}

// Within returns the picture on a larger canvas, with NaN outside.
func (p Picture) Within(ny, nx int) []float32 {
	if ny == p.NY && nx == p.NX {
		return p.V
	}
	out := slices.Repeat([]float32{float32(math.NaN())}, ny*nx)
	for y := range p.NY {
		copy(out[y*nx:], p.V[y*p.NX:][:p.NX])
	}
	return out
}

// Common returns the parts of both pictures that overlap when the moving one is displaced by d pixels (y, x) from this
// one, as two planes of h × w pixels.
func (p Picture) Common(moving Picture, d [2]int) (a, b []float32, h, w int) {
	y0, y1 := max(0, -d[0]), min(moving.NY, p.NY-d[0])
	x0, x1 := max(0, -d[1]), min(moving.NX, p.NX-d[1])
	if y0 >= y1 || x0 >= x1 {
		return nil, nil, 0, 0
	}
	for y := y0; y < y1; y++ {
		a = append(a, p.V[(y+d[0])*p.NX+x0+d[1]:][:x1-x0]...)
		b = append(b, moving.V[y*moving.NX+x0:][:x1-x0]...)
	}
	return a, b, y1 - y0, x1 - x0
}

// commonLeast is the minimum fraction of a picture for a correlation.
const commonLeast = 0.04

// CorrelationAt returns the correlation of the overlapping parts, or 0 if they are too small.
func (p Picture) CorrelationAt(moving Picture, d [2]int) float64 {
	a, b, h, w := p.Common(moving, d)
	if float64(h*w) < commonLeast*float64(min(p.NY*p.NX, moving.NY*moving.NX)) || h == 0 {
		return 0
	}
	if c := NCC(a, b); c == c {
		return c
	}
	return 0
}
