package filter

import (
	"math"
	"math/rand/v2"
	"testing"
)

// waves is a texture with a value everywhere: plane waves of wavelengths from
// shortest px on.
func waves(seed uint64, shortest float64) func(y, x float64) float64 {
	rng := rand.New(rand.NewPCG(seed, 9))
	type wave struct{ v, u, phase float64 }
	var all []wave
	for range 40 {
		k := 2 * math.Pi / (shortest * (1 + 6*rng.Float64()))
		sin, cos := math.Sincos(2 * math.Pi * rng.Float64())
		all = append(all, wave{k * sin, k * cos, 2 * math.Pi * rng.Float64()})
	}
	return func(y, x float64) float64 {
		s := 100.0
		for _, w := range all {
			s += math.Sin(w.v*y + w.u*x + w.phase)
		}
		return s
	}
}

func TestSubPixel(t *testing.T) {
	p := NewPhase()
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct{ shortest, noise, limit float64 }{{3, 0, 0.05}, {6, 0, 0.04}, {12, 0, 0.1}, {6, 2, 0.12}} {
		worst := 0.0
		for seed := range uint64(10) {
			f := waves(seed, c.shortest)
			h, w := 30+rng.IntN(80), 30+rng.IntN(80)
			dy, dx := 0.9*rng.Float64()-0.45, 0.9*rng.Float64()-0.45
			fixed, moving := make([]float32, h*w), make([]float32, h*w)
			for i := range fixed {
				y, x := float64(i/w), float64(i%w)
				fixed[i] = float32(f(y, x) + c.noise*rng.NormFloat64())
				// another shading does no harm
				moving[i] = float32(f(y+dy, x+dx)*1.2 + 0.3*x - 0.01*y*y + 5 + c.noise*rng.NormFloat64())
			}
			got, ok := p.SubPixel(fixed, moving, h, w)
			if !ok || !got.Peak {
				t.Fatalf("waves of %v px and longer, %d × %d: %+v, %v", c.shortest, h, w, got, ok)
			}
			worst = max(worst, math.Hypot(got.DY-dy, got.DX-dx))
		}
		t.Logf("waves of %v px and longer, noise %v of a wave: worst %.3f px", c.shortest, c.noise, worst)
		if worst > c.limit {
			t.Errorf("waves of %v px and longer: %.3f px off", c.shortest, worst)
		}
	}
}

func TestSubPixelLeadsUphill(t *testing.T) {
	f := waves(3, 10)
	const h, w = 60, 70
	fixed, moving := make([]float32, h*w), make([]float32, h*w)
	for i := range fixed {
		fixed[i], moving[i] = float32(f(float64(i/w), float64(i%w))), float32(f(float64(i/w)+3, float64(i%w)-2))
	}
	got, ok := NewPhase().SubPixel(fixed, moving, h, w)
	if !ok || got.Peak || got.DY != 1 || got.DX > 0 {
		t.Errorf("three pixels away: %+v, %v", got, ok)
	}
	for name, v := range map[string][]float32{"constant": make([]float32, h*w), "a plane": nil} {
		if v == nil {
			v = make([]float32, h*w)
			for i := range v {
				v[i] = float32(i / w)
			}
		}
		if got, ok := NewPhase().SubPixel(fixed, v, h, w); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, ok := NewPhase().SubPixel(fixed[:8], moving[:8], 2, 4); ok {
		t.Error("a fit to next to nothing")
	}
}

func TestSurfaceFit(t *testing.T) {
	const h, w = 17, 23
	v := make([]float64, h*w)
	for i := range v {
		y, x := float64(i/w)/h, float64(i%w)/w
		v[i] = 3 + y - 2*x*x + y*x*x - 4*y*y*y*x
	}
	fit := func(v []float64, h, w, degree int) (out []float64) {
		s := newSurface(v, h, w, degree)
		for y := range h {
			out = append(out, s.row(nil, y)...)
		}
		return out
	}
	for i, got := range fit(v, h, w, 4) {
		if math.Abs(got-v[i]) > 1e-9 {
			t.Fatalf("element %d: %v, want %v", i, got, v[i])
		}
	}
	sum := 0.0
	for i, got := range fit(v, h, w, 0) {
		sum += v[i] - got
	}
	if math.Abs(sum) > 1e-9 {
		t.Errorf("degree 0 is not the mean: %v", sum)
	}
	if got := fit([]float64{5}, 1, 1, 4); got[0] != 5 {
		t.Errorf("of a pixel: %v", got)
	}
}

// Surfaces that are added up show a displacement that single ones do not.
func TestSurfacesAddUp(t *testing.T) {
	const n, dy, dx = 64, 5, -9
	ny, nx := SurfaceSize(n, n)
	sum := make([]float32, ny*nx)
	p := NewPhase()
	rng := rand.New(rand.NewPCG(4, 4))
	single := 0
	for seed := range uint64(40) {
		v := texture(seed, n+20, n+20, 0)
		fixed, moving := window(v, n+20, 9, 10, n, n), window(v, n+20, 9+dy, 10+dx, n, n)
		for i := range fixed {
			fixed[i] += float32(3.5 * rng.NormFloat64())
			moving[i] += float32(3.5 * rng.NormFloat64())
		}
		if !p.Surface(sum, fixed, moving, n, n) {
			t.Fatal("nothing to compare")
		}
		if y, x := p.Shift(fixed, moving, n, n); y == dy && x == dx {
			single++
		}
	}
	best := 0
	for i, v := range sum {
		if v > sum[best] {
			best = i
		}
	}
	if y, x := best/nx, best%nx; y != dy || x != nx+dx {
		t.Errorf("maximum at (%d, %d)", y, x)
	}
	if single == 40 {
		t.Error("each of them shows it")
	}
	if p.Surface(sum, make([]float32, n*n), make([]float32, n*n), n, n) {
		t.Error("a surface of nothing")
	}
}
