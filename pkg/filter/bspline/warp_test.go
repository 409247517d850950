package bspline

import (
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/filter"
)

func randomWarp(ny, nx int, spacing, size float64) *Warp {
	r := rand.New(rand.NewPCG(7, 8))
	w := NewWarp(ny, nx, spacing)
	for i := range w.DX {
		w.DX[i], w.DY[i] = size*r.NormFloat64(), size*r.NormFloat64()
	}
	return w
}

// A warp has the displacements that SimpleITK 2.5.7 computes from the same control points (BSplineTransform, order 3),
// and those of its rim outside, where ITK has none.
func TestWarpAt(t *testing.T) {
	w := &Warp{Control: [2]int{4, 5}, Origin: [2]float64{-8, -6}, Spacing: [2]float64{8, 6}}
	for i := range 20 {
		w.DX = append(w.DX, float64(i*i%7)-2.5)
		w.DY = append(w.DY, float64(i*3%5)/2-1)
	}
	for _, c := range [][4]float64{ // x, y, dx, dy
		{0, 0, -0.99999999999999989, 0.083333333333333343},
		{3.3, 1.2, -1.1405438823784726, -0.01864583333333325},
		{11.9, 7.9, -0.9921220136146065, 0.57882330246913583},
		{6, 4, -0.70833333333333304, -0.083333333333333481},
		{2, 7, -0.18679269547325106, 0.058641975308642458},
	} {
		dx, dy := w.At(c[0], c[1])
		if math.Abs(dx-c[2]) > 1e-12 || math.Abs(dy-c[3]) > 1e-12 {
			t.Errorf("at (%v, %v): (%v, %v), want (%v, %v)", c[0], c[1], dx, dy, c[2], c[3])
		}
	}
	ax, ay := w.At(-50, 90)
	bx, by := w.At(0, 8)
	if ax != bx || ay != by {
		t.Errorf("outside: (%v, %v), want (%v, %v)", ax, ay, bx, by)
	}
}

// Rows of taps, larger and smaller pixels and the quasi-interpolant show the same displacements.
func TestWarpForms(t *testing.T) {
	w := randomWarp(40, 50, 9, 2)
	large := w.Enlarged([2]float64{3, 3})
	back := large.Reduced([2]float64{3, 3})
	for _, p := range [][2]float64{{0, 0}, {49, 39}, {12.3, 30.1}, {20, 7.7}} {
		dx, dy := w.At(p[0], p[1])
		if lx, ly := large.At(3*p[0]+1, 3*p[1]+1); math.Abs(lx-3*dx) > 1e-9 || math.Abs(ly-3*dy) > 1e-9 {
			t.Errorf("%v enlarged: (%v, %v), want three times (%v, %v)", p, lx, ly, dx, dy)
		}
		if bx, by := back.At(p[0], p[1]); math.Abs(bx-dx) > 1e-9 || math.Abs(by-dy) > 1e-9 {
			t.Errorf("%v reduced: (%v, %v), want (%v, %v)", p, bx, by, dx, dy)
		}
	}
	cubic := func(x, y float64) (float64, float64) {
		return 1e-4*x*x*x - 0.02*x*y + 3, 2e-4*x*y*y - 0.1*y + x/9
	}
	c := w.Like(cubic)
	for _, p := range [][2]float64{{0, 0}, {49, 39}, {12.3, 30.1}} {
		dx, dy := c.At(p[0], p[1])
		wx, wy := cubic(p[0], p[1])
		if math.Abs(dx-wx) > 1e-9 || math.Abs(dy-wy) > 1e-9 {
			t.Errorf("cubic at %v: (%v, %v), want (%v, %v)", p, dx, dy, wx, wy)
		}
	}
}

// The extent of a warp tells folds.
func TestExtent(t *testing.T) {
	w := NewWarp(33, 33, 8)
	if largest, det := w.Extent(); largest != 0 || det != 1 {
		t.Errorf("no displacements: %v, %v", largest, det)
	}
	stretched := func(share float64) *Warp {
		return w.Like(func(x, y float64) (float64, float64) { return share * x, 0 })
	}
	if largest, det := stretched(0.25).Extent(); math.Abs(largest-8) > 1e-9 || math.Abs(det-1.25) > 1e-9 {
		t.Errorf("stretched: %v, %v", largest, det)
	}
	if _, det := stretched(-1.5).Extent(); math.Abs(det+0.5) > 1e-9 {
		t.Errorf("folded: %v", det)
	}
}

// A plane is resampled as by the rigid transform alone where there are no displacements, and at the displaced places
// elsewhere; a part of a plane as the whole.
func TestResample(t *testing.T) {
	const ny, nx = 30, 41
	r := rand.New(rand.NewPCG(3, 3))
	src := make([]float32, ny*nx)
	for i := range src {
		src[i] = r.Float32()
	}
	rigid := filter.Rigid{Angle: 0.1, TX: 1.3, TY: -2.2, CX: 20, CY: 15}
	want, got := make([]float32, ny*nx), make([]float32, ny*nx)
	rigid.Resample(want, src, ny, nx, 0, ny, -1)
	NewWarp(ny, nx, 10).Resample(got, src, ny, nx, rigid, 0, 0, -1)
	for i, f := range want {
		if math.Abs(float64(got[i]-f)) > 1e-6 {
			t.Fatalf("pixel %d: %v, want %v", i, got[i], f)
		}
	}
	w := randomWarp(ny, nx, 10, 1)
	w.Resample(got, src, ny, nx, rigid, 0, 0, -1)
	back := rigid.Inverse()
	if p := back.Then(rigid.Angle, 0, 0); math.Abs(p.Angle) > 1e-15 {
		t.Errorf("inverse turns by %v", back.Angle)
	}
	xs, ys := make([]float64, 1), make([]float64, 1)
	NewWarp(ny, nx, 10).Places(xs, ys, rigid, 9, 14)
	s, c := math.Sincos(back.Angle)
	u, v := xs[0]-20, ys[0]-15
	if x, y := c*u-s*v+20+back.TX, s*u+c*v+15+back.TY; math.Abs(x-14) > 1e-12 || math.Abs(y-9) > 1e-12 {
		t.Errorf("there and back: (%v, %v), want (14, 9)", x, y)
	}
	w.Places(xs, ys, rigid, 9, 14)
	if f := filter.Linear(src, ny, nx, xs[0], ys[0], -1); got[9*nx+14] != f {
		t.Errorf("pixel (14, 9): %v, want %v", got[9*nx+14], f)
	}
	part := make([]float32, 20*20)
	var cut []float32
	for y := 5; y < 25; y++ {
		cut = append(cut, src[y*nx+10:][:20]...)
	}
	w.Resample(part, cut, 20, 20, rigid, 5, 10, -1)
	if a, b := part[9*20+9], got[14*nx+19]; a != b {
		t.Errorf("part: %v, want %v", a, b)
	}
}
