package filter

import (
	"math"
	"testing"
)

// The parts of a map, one after the other, make the whole; known powers.
func TestAffinePower(t *testing.T) {
	turn := func(angle float64) [2][2]float64 {
		s, c := math.Sincos(angle)
		return [2][2]float64{{c, -s}, {s, c}}
	}
	for _, m := range [][2][2]float64{{{1, 0}, {0, 1}}, turn(0.1), {{1.02, 0.03}, {-0.05, 0.97}}, {{1, 0.1}, {0, 1}}, {{1.1, 0}, {0, 1}}, {{1 + 1e-9, 0}, {0, 1 - 1e-9}}, {{0.9, 0.05}, {0, 0.9}}, {{2, 1}, {1, 3}}} {
		a := Affine{M: m, T: [2]float64{3, -5}, C: [2]float64{20, 31}}
		for _, alpha := range []float64{0, 0.25, 0.5, 1, -0.75} {
			p, lost := a.Power(alpha)
			q, _ := a.Power(1 - alpha)
			x, y := p.At(q.At(7, 90))
			wx, wy := a.At(7, 90)
			if math.Hypot(x-wx, y-wy) > 1e-7 || lost > 1e-12 {
				t.Errorf("%v to the powers %v and %v: (%v, %v), want (%v, %v); lost %v", m, alpha, 1-alpha, x, y, wx, wy, lost)
			}
		}
	}
	p, _ := Affine{M: turn(0.4)}.Power(0.5)
	for i, row := range turn(0.2) {
		for j, v := range row {
			if math.Abs(p.M[i][j]-v) > 1e-12 {
				t.Errorf("half a turn is %v", p.M)
			}
		}
	}
	if _, lost := (Affine{M: [2][2]float64{{-1, 0}, {0, -2}}}).Power(0.5); !(lost > 0.5) {
		t.Errorf("a power without a real part loses %v", lost)
	}
}

// blobs is a smooth plane of bumps, at the point that a maps a pixel to.
func blobs(ny, nx int, a Affine) []float32 {
	v := make([]float32, ny*nx)
	for i := range v {
		x, y := a.At(float64(i%nx), float64(i/nx))
		f := 0.0
		for k := range 14 {
			cx, cy, s := float64(k*37%83)+6, float64(k*53%79)+5, 5+float64(k%4)
			f += float64(1+k%3) * math.Exp(-((x-cx)*(x-cx)+(y-cy)*(y-cy))/(2*s*s))
		}
		v[i] = float32(f)
	}
	return v
}

func TestFitAffine(t *testing.T) {
	const ny, nx = 88, 96
	centre := [2]float64{46, 41}
	truth := Affine{M: [2][2]float64{{1.01, 0.04}, {-0.03, 0.98}}, T: [2]float64{2.5, -3.25}, C: centre}
	moving, fixed := blobs(ny, nx, Identity(centre)), blobs(ny, nx, truth)
	for _, by := range []Metric{MeanSquares, Correlation, MutualInformation} {
		in := moving
		if by != MeanSquares {
			in = make([]float32, len(moving))
			for i, v := range moving {
				in[i] = 10 - 3*v
			}
			if by == Correlation {
				for i := range in {
					in[i] = 3*moving[i] + 2
				}
			}
		}
		a, ok := FitAffine(fixed, in, ny, nx, Identity(centre), by, 200)
		limit := 0.05
		if by == MutualInformation {
			limit = 0.5
		}
		for _, p := range [][2]float64{{0, 0}, {95, 0}, {0, 87}, {95, 87}} {
			x, y := a.At(p[0], p[1])
			wx, wy := truth.At(p[0], p[1])
			if !ok || math.Hypot(x-wx, y-wy) > limit {
				t.Errorf("%s: (%v, %v) to (%.3f, %.3f), want (%.3f, %.3f) (%v)", by, p[0], p[1], x, y, wx, wy, ok)
			}
		}
	}
	if _, ok := FitAffine(make([]float32, 64), make([]float32, 64), 8, 8, Identity([2]float64{4, 4}), Correlation, 10); ok {
		t.Error("empty planes are fitted")
	}
	if a, ok := FitAffine(make([]float32, 64), make([]float32, 64), 8, 8, Affine{M: [2][2]float64{{1, 0}, {0, 1}}, T: [2]float64{100, 0}}, MeanSquares, 10); ok || a.T[0] != 100 {
		t.Error("planes that do not overlap are fitted")
	}
}

func TestAffineResample(t *testing.T) {
	const ny, nx = 40, 56
	r := Rigid{Angle: 0.07, TX: 2.25, TY: -1.5, CX: 20, CY: 18}
	s, c := math.Sincos(r.Angle)
	a := Affine{M: [2][2]float64{{c, -s}, {s, c}}, T: [2]float64{r.TX, r.TY}, C: [2]float64{r.CX, r.CY}}
	src := blobs(ny, nx, Identity([2]float64{}))
	got, want := make([]float32, ny*nx), make([]float32, ny*nx)
	a.Resample(got, src, ny, nx, 0, ny, 0, nx, -1)
	r.Resample(want, src, ny, nx, 0, ny, -1)
	for i, v := range got {
		if math.Abs(float64(v-want[i])) > 1e-5 {
			t.Fatalf("pixel %d is %v, want %v", i, v, want[i])
		}
	}
	Identity(a.C).Resample(got, src, ny, nx, 0, ny, 0, nx, -1)
	for i, v := range got {
		if v != src[i] {
			t.Fatalf("pixel %d is %v, without a map %v", i, v, src[i])
		}
	}
}

func TestAffineResampleBox(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		const ny, nx, y0, y1, x0, x1 = 40, 56, 3, 31, 5, 48
		a := Affine{M: [2][2]float64{{0.98, -0.03}, {0.05, 1.01}}, T: [2]float64{3.2, -1.7}, C: [2]float64{20, 18}}
		src := blobs(ny, nx, Identity([2]float64{}))
		all, box := make([]float32, ny*nx), make([]float32, (y1-y0)*(x1-x0))
		a.Resample(all, src, ny, nx, 0, ny, 0, nx, -1)
		a.Resample(box, src, ny, nx, y0, y1, x0, x1, -1)
		for i, v := range box {
			if want := all[(y0+i/(x1-x0))*nx+x0+i%(x1-x0)]; v != want {
				t.Fatalf("pixel %d of the box is %v, of the plane %v", i, v, want)
			}
		}
	})
}

func TestDistance(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {1, 9}, {9, 1}, {13, 17}} {
		ny, nx := size[0], size[1]
		src := make([]float32, ny*nx)
		for i := range src {
			src[i] = float32((i*i + 3) % 7)
		}
		src[0] = float32(math.NaN())
		got := make([]float32, ny*nx)
		if !Distance(got, src, ny, nx) {
			t.Fatalf("%v: no pixel outside", size)
		}
		for i := range src {
			want := math.Inf(1)
			for k, v := range src {
				if !(v > 0) {
					want = min(want, math.Hypot(float64(i/nx-k/nx), float64(i%nx-k%nx)))
				}
			}
			if math.Abs(float64(got[i])-want) > 1e-6 {
				t.Errorf("%v: pixel %d is %v away, want %v", size, i, got[i], want)
			}
		}
		for i := range src {
			src[i] = 1
		}
		if Distance(got, src, ny, nx) {
			t.Errorf("%v: a full plane has distances", size)
		}
	}
}
