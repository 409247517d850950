package pairwise

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"strata/pkg/filter"
)

// waves are displacements of a plane by at most about size pixels.
func waves(size, length float64) func(x, y float64) (dx, dy float64) {
	k := 2 * math.Pi / length
	return func(x, y float64) (float64, float64) {
		return size * math.Sin(k*x+0.4) * math.Cos(k*y*0.8), size * 0.8 * math.Cos(k*x*0.7-1) * math.Sin(k*y+0.2)
	}
}

// deformed returns two planes of one scene: fixed(p) = moving(T(p) + d(T(p))).
func deformed(rng *rand.Rand, ny, nx int, t filter.Rigid, d func(x, y float64) (float64, float64), noise float64) *pair {
	height, width := ny+2*margin, nx+2*margin
	scene := texture(rng, height, width, 2, 6, 20)
	p := &pair{ny: ny, nx: nx, truth: t}
	s, c := math.Sincos(t.Angle)
	for y := range ny {
		for x := range nx {
			u, v := float64(x)-t.CX, float64(y)-t.CY
			rx, ry := c*u-s*v+t.CX+t.TX, s*u+c*v+t.CY+t.TY
			dx, dy := d(rx, ry)
			p.fixed = append(p.fixed, filter.Linear(scene, height, width, rx+dx+margin, ry+dy+margin, 0))
			p.moving = append(p.moving, scene[(y+margin)*width+x+margin])
		}
	}
	p.change(func(_, _, _ int, v float64) float64 { return v + noise*rng.NormFloat64() })
	return p
}

// missed returns the root of the mean square by which displacements miss the truth after a transform, inside the plane:
// the transform that registration finds takes up a part of them.
func missed(r ElasticResult, t, truth filter.Rigid, d func(x, y float64) (float64, float64), ny, nx int) (rms, before float64) {
	n := 0
	back := t.Inverse()
	for y := 15; y < ny-15; y += 3 {
		for x := 15; x < nx-15; x += 3 {
			// the point of the fixed plane that t takes to (x, y), and where the truth takes it
			px, py := move(back, float64(x), float64(y))
			tx, ty := move(truth, px, py)
			ux, uy := d(tx, ty)
			gx, gy := 0.0, 0.0
			if r.Warp != nil {
				gx, gy = r.Warp.At(float64(x), float64(y))
			}
			ux, uy = tx+ux-float64(x), ty+uy-float64(y)
			rms += (gx-ux)*(gx-ux) + (gy-uy)*(gy-uy)
			before += ux*ux + uy*uy
			n++
		}
	}
	return math.Sqrt(rms / float64(n)), math.Sqrt(before / float64(n))
}

func move(t filter.Rigid, x, y float64) (float64, float64) {
	s, c := math.Sincos(t.Angle)
	u, v := x-t.CX, y-t.CY
	return c*u - s*v + t.CX + t.TX, s*u + c*v + t.CY + t.TY
}

func elasticOf(t *testing.T, p *pair, o ElasticOptions) (ElasticResult, filter.Rigid) {
	t.Helper()
	a, b := NewImage(p.fixed, p.ny, p.nx), NewImage(p.moving, p.ny, p.nx)
	r, err := Register(a, b, p.truth.CX, p.truth.CY, Options{Rotation: true, MaxRotation: 5 * degree, MaxTranslation: 30, Phase: true})
	if err != nil || r.Refused != "" {
		t.Fatal(err, r.Refused)
	}
	e, err := Elastic(a, b, r.Transform, o)
	if err != nil {
		t.Fatal(err)
	}
	return e, r.Transform
}

// Smooth displacements of a few pixels are found, with and without noise.
func TestElastic(t *testing.T) {
	for seed, c := range []struct {
		ny, nx              int
		size, length, noise float64
		angle               float64
		most                float64
	}{
		{240, 260, 3, 240, 0, 0, 0.3},
		{240, 260, 2, 160, 0, 1.2, 0.3},
		{320, 300, 5, 300, 0, -2, 0.3},
		{240, 260, 3, 240, 0.5, 0.7, 0.5},
		{400, 420, 1.5, 300, 1, 0.7, 0.5},
	} {
		d := waves(c.size, c.length)
		truth := filter.Rigid{Angle: c.angle * degree, TX: 2.3, TY: -4.6, CX: float64(c.nx) / 2, CY: float64(c.ny) / 2}
		p := deformed(rand.New(rand.NewPCG(uint64(seed), 1)), c.ny, c.nx, truth, d, c.noise)
		r, rigid := elasticOf(t, p, ElasticOptions{Spacing: 50, Largest: 20})
		rms, before := missed(r, rigid, truth, d, c.ny, c.nx)
		t.Logf("%+v: %.3f px RMS left of %.3f; correlation %.4f after %.4f, held out %.4f after %.4f, largest %.2f: %s", c, rms, before, r.After, r.Before, r.HeldOutAfter, r.HeldOutBefore, r.Displacement, r.Refused)
		if r.Refused != "" || rms > c.most || r.After <= r.Before {
			t.Errorf("%+v: %.3f px RMS, %q", c, rms, r.Refused)
		}
	}
}

// Planes that are not deformed get next to no displacements, or none.
func TestElasticNone(t *testing.T) {
	none := func(x, y float64) (float64, float64) { return 0, 0 }
	for seed, noise := range []float64{0, 0.3, 1} {
		truth := filter.Rigid{Angle: 0.9 * degree, TX: 2.3, TY: -4.6, CX: 130, CY: 120}
		p := deformed(rand.New(rand.NewPCG(uint64(seed), 2)), 240, 260, truth, none, noise)
		r, rigid := elasticOf(t, p, ElasticOptions{Spacing: 50, Largest: 20})
		rms, _ := missed(r, rigid, truth, none, 240, 260)
		t.Logf("noise %v: %.3f px RMS, largest %.3f, held out %.4f after %.4f: %q", noise, rms, r.Displacement, r.HeldOutAfter, r.HeldOutBefore, r.Refused)
		if rms > 0.15 {
			t.Errorf("noise %v: %.3f px RMS", noise, rms)
		}
	}
}

// Displacements that are larger than allowed, planes without content and errors of the workers are told.
func TestElasticRefused(t *testing.T) {
	truth := filter.Rigid{CX: 100, CY: 100}
	p := deformed(rand.New(rand.NewPCG(5, 2)), 200, 200, truth, waves(4, 220), 0)
	if r, _ := elasticOf(t, p, ElasticOptions{Spacing: 50, Largest: 1}); r.Warp != nil || !strings.Contains(r.Refused, "are more than 1 px") {
		t.Errorf("%+v", r)
	}
	flat := NewImage(make([]float32, 200*200), 200, 200)
	if r, err := Elastic(flat, NewImage(p.moving, 200, 200), truth, ElasticOptions{Spacing: 50, Largest: 9}); err != nil || r.Refused == "" || r.Warp != nil {
		t.Errorf("%+v %v", r, err)
	}
	stop := errors.New("stop")
	a, b := NewImage(p.fixed, 200, 200), NewImage(p.moving, 200, 200)
	if _, err := Elastic(a, b, truth, ElasticOptions{Spacing: 50, Largest: 9, Each: func(int, func(int)) error { return stop }}); !errors.Is(err, stop) {
		t.Error(err)
	}
	var results []ElasticResult
	for _, each := range []func(n int, f func(int)) error{nil, func(n int, f func(int)) error {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { f(i) })
		}
		wg.Wait()
		return nil
	}} {
		r, err := Elastic(a, b, truth, ElasticOptions{Spacing: 50, Largest: 9, Each: each})
		if err != nil || r.Refused != "" {
			t.Fatal(err, r.Refused)
		}
		results = append(results, r)
	}
	if !reflect.DeepEqual(results[0], results[1]) {
		t.Error("results depend on how the work is shared out")
	}
}
