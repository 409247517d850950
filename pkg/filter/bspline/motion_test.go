package bspline

import (
	"math"
	"testing"

	"strata/pkg/filter"
)

// Displacements add up along the stack: what is bent one way and back is straight again, at the places to which the transforms take it.
func TestAccumulated(t *testing.T) {
	grid := NewWarp(100, 120, 20)
	bend := grid.Like(func(x, y float64) (float64, float64) { return 2 * math.Sin(x/30), 1.5 * math.Cos(y/25) })
	if Accumulated(nil, filter.Rigid{}, nil) != nil || Accumulated(nil, filter.Rigid{TX: 3}, bend) != bend {
		t.Error("without displacements before")
	}
	turn := filter.Rigid{Angle: 0.02, TX: 4, TY: -3, CX: 60, CY: 50}
	// own(q) for q = r + R·bend(T⁻¹ r) leads back to r
	straight := Accumulated(bend, turn, nil)
	s, c := math.Sincos(turn.Angle)
	for _, p := range [][2]float64{{50, 50}, {80, 30}, {30, 70}} {
		u, v := p[0]-60, p[1]-50
		dx, dy := bend.At(p[0], p[1])
		gx, gy := straight.At(c*u-s*v+60+4, s*u+c*v+50-3)
		if math.Abs(gx-(c*dx-s*dy)) > 0.1 || math.Abs(gy-(s*dx+c*dy)) > 0.1 {
			t.Errorf("%v: (%v, %v), want (%v, %v) turned", p, gx, gy, dx, dy)
		}
	}
	back := grid.Like(func(x, y float64) (float64, float64) { // the inverse of straight, by iteration
		qx, qy := x, y
		for range 50 {
			dx, dy := straight.At(qx, qy)
			qx, qy = x-dx, y-dy
		}
		return qx - x, qy - y
	})
	sum := Accumulated(bend, turn, back)
	for _, p := range [][2]float64{{50, 50}, {80, 30}, {30, 70}} {
		if dx, dy := sum.At(p[0], p[1]); math.Hypot(dx, dy) > 0.1 {
			t.Errorf("%v: (%v, %v), want none", p, dx, dy)
		}
	}
}
