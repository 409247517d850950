package bspline

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"strata/pkg/filter"
)

// Displacements add up along the stack: what is bent one way and back is straight again, at the places to which the
// transforms take it.
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

// The share of a box that shows a plane is that of its pixels which Resample does not fill; none where it is 0.
func TestShown(t *testing.T) {
	const ny, nx = 60, 80
	r := rand.New(rand.NewPCG(3, 4))
	src := slices.Repeat([]float32{1}, ny*nx) // and 0 around it
	none, some := 0, 0
	for i := range 300 {
		m := Motion{Rigid: filter.Rigid{Angle: r.Float64() * 7, TX: 100 * (r.Float64() - 0.5), TY: 80 * (r.Float64() - 0.5), CX: 30 + 20*r.Float64(), CY: 20 + 20*r.Float64()}}
		if i%3 == 0 {
			m.Warp = NewWarp(ny, nx, 20).Like(func(x, y float64) (float64, float64) { return 3 * math.Sin(x/30), 2 * math.Cos(y/25) })
		}
		out := m.Resample(src, ny, nx, [2]int{})
		y0, x0 := r.IntN(ny-10), r.IntN(nx-10)
		y1, x1 := y0+1+r.IntN(ny-y0), x0+1+r.IntN(nx-x0)
		n := 0
		for y := y0; y < y1; y++ {
			for x := x0; x < x1; x++ {
				n += int(out[y*nx+x])
			}
		}
		got, want := m.Shown(ny, nx, y0, y1, x0, x1), float64(n)/float64((y1-y0)*(x1-x0))
		tolerance := 2 / float64(min(y1-y0, x1-x0)) // of pixels that are cut
		switch {
		case got == 0 && n > 0:
			t.Errorf("%+v: nothing of %d pixels", m.Rigid, n)
		case got == 0:
			none++
		case m.Warp == nil && math.Abs(got-want) > tolerance, m.Warp != nil && got < want-tolerance:
			t.Errorf("%+v: %.3f of the box, want %.3f", m.Rigid, got, want)
		default:
			some++
		}
	}
	if none < 20 || some < 100 {
		t.Errorf("%d boxes show nothing, %d something", none, some)
	}
	for _, far := range []float64{1e9, -1e12} {
		if got := (&Motion{Rigid: filter.Rigid{Angle: 0.3, TX: far, CX: 40}}).Shown(ny, nx, 0, ny, 0, nx); got != 0 {
			t.Errorf("%v pixels away: %v is shown", far, got)
		}
	}
}

// No displacement is longer than the bound, which is that of a uniform displacement.
func TestBound(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	w := NewWarp(50, 60, 10)
	for i := range w.DX {
		w.DX[i], w.DY[i] = r.NormFloat64(), r.NormFloat64()
	}
	if largest, _ := w.Extent(); w.Bound() < largest || w.Bound() > 6 {
		t.Errorf("bound %v, the largest is %v", w.Bound(), largest)
	}
	for i := range w.DX {
		w.DX[i], w.DY[i] = 3, -4
	}
	if got := w.Bound(); math.Abs(got-5) > 1e-12 {
		t.Errorf("bound %v, want 5", got)
	}
}
