package bspline

import (
	"math"
	"math/rand/v2"
	"testing"
)

// value evaluates a lattice at a place in samples, by the definition: the sum over all control points of their value
// times the cubic B-splines around them.
func value(l *Lattice, at [3]float64) float64 {
	spline := func(d float64) float64 {
		switch d = math.Abs(d); {
		case d < 1:
			return 2.0/3 - d*d + d*d*d/2
		case d < 2:
			return (2 - d) * (2 - d) * (2 - d) / 6
		}
		return 0
	}
	sum := 0.0
	for i, v := range l.Values {
		c := [3]int{i / (l.Control[1] * l.Control[2]), i / l.Control[2] % l.Control[1], i % l.Control[2]}
		w := 1.0
		for d := range c {
			u := 0.0
			if l.Samples[d] > 1 {
				u = at[d] / float64(l.Samples[d]-1) * float64(l.Control[d]-3)
			}
			w *= spline(u - float64(c[d]-1))
		}
		sum += w * v
	}
	return sum
}

func evaluate(l *Lattice, at [3]float64) float64 {
	plane, row := make([]float64, l.Control[1]*l.Control[2]), make([]float64, l.Control[2])
	l.Plane(plane, l.Taps(0, 1, at[0], 1)[0])
	Row(row, plane, l.Taps(1, 1, at[1], 1)[0])
	return At(row, &l.Taps(2, 1, at[2], 1)[0])
}

func randomLattice(r *rand.Rand, samples, control [3]int) *Lattice {
	l := New(samples, control)
	for i := range l.Values {
		l.Values[i] = r.NormFloat64()
	}
	return l
}

// A lattice has the values of the sum of B-splines, keeps them when it is refined, and those of its edges outside.
func TestLattice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ samples, control [3]int }{{[3]int{7, 9, 30}, [3]int{4, 5, 9}}, {[3]int{1, 2, 5}, [3]int{4, 4, 4}}} {
		l := randomLattice(r, c.samples, c.control)
		fine := l.Refine()
		if want := [3]int{2*c.control[0] - 3, 2*c.control[1] - 3, 2*c.control[2] - 3}; fine.Control != want {
			t.Fatalf("refined to %v control points, want %v", fine.Control, want)
		}
		for range 200 {
			var at [3]float64
			for d, n := range c.samples {
				at[d] = r.Float64() * float64(n-1)
			}
			want := value(l, at)
			if got := evaluate(l, at); math.Abs(got-want) > 1e-12 {
				t.Errorf("%v: %v, want %v", at, got, want)
			}
			if got := evaluate(fine, at); math.Abs(got-want) > 1e-12 {
				t.Errorf("%v refined: %v, want %v", at, got, want)
			}
		}
		last := [3]float64{float64(c.samples[0] - 1), float64(c.samples[1] - 1), float64(c.samples[2] - 1)}
		if a, b := evaluate(l, [3]float64{99, 99, 99}), value(l, last); math.Abs(a-b) > 1e-12 {
			t.Errorf("beyond the last sample: %v, want %v", a, b)
		}
		if a, b := evaluate(l, [3]float64{-5, -5, -5}), value(l, [3]float64{}); math.Abs(a-b) > 1e-12 {
			t.Errorf("before the first sample: %v, want %v", a, b)
		}
	}
	ramp := New([3]int{1, 1, 13}, [3]int{4, 4, 7}) // control points of a straight line make that line
	for i := range ramp.Values {
		ramp.Values[i] = float64(i%7 - 1)
	}
	for x := range 13 {
		if got, want := evaluate(ramp, [3]float64{0, 0, float64(x)}), float64(x)/3; math.Abs(got-want) > 1e-12 {
			t.Errorf("line at %d: %v, want %v", x, got, want)
		}
	}
}
