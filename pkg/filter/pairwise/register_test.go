package pairwise

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"strata/pkg/filter"
	"strata/tests/race"
)

const degree = math.Pi / 180

// texture returns the sum of noises of unit variance, each smoothed by a Gaussian.
func texture(rng *rand.Rand, ny, nx int, sigmas ...float64) []float32 {
	out := make([]float32, ny*nx)
	smooth, noise := make([]float32, ny*nx), make([]float32, ny*nx)
	for _, sigma := range sigmas {
		for i := range noise {
			noise[i] = float32(rng.NormFloat64())
		}
		var taps []float32
		squares := 0.0
		for _, k := range filter.GaussianKernel(sigma, 0) {
			taps = append(taps, float32(k))
			squares += k * k
		}
		filter.Separable(smooth, noise, ny, nx, taps)
		for i, f := range smooth {
			out[i] += f / float32(squares)
		}
	}
	return out
}

// pair is two planes of one scene, and how the second lies on the first.
type pair struct {
	ny, nx        int
	fixed, moving []float32
	truth         filter.Rigid
}

// margin is how far a scene extends beyond the planes that are cut from it.
const margin = 120

// view cuts the planes of a pair from scenes that show the same place: fixed(p) = moving(truth(p)).
func view(fixed, moving []float32, ny, nx int, angle, tx, ty float64) *pair {
	p := &pair{ny: ny, nx: nx, truth: filter.Rigid{Angle: angle, TX: tx, TY: ty, CX: float64(nx / 2), CY: float64(ny / 2)}}
	height, width := ny+2*margin, nx+2*margin
	turn := p.truth
	turn.CX, turn.CY = turn.CX+margin, turn.CY+margin
	turned := make([]float32, height*width)
	turn.Resample(turned, fixed, height, width, 0, height, 0)
	for y := range ny {
		at := (y+margin)*width + margin
		p.fixed = append(p.fixed, turned[at:][:nx]...)
		p.moving = append(p.moving, moving[at:][:nx]...)
	}
	return p
}

// change changes the pixels of both planes.
func (p *pair) change(f func(plane, y, x int, v float64) float64) {
	for k, v := range [][]float32{p.fixed, p.moving} {
		for i := range v {
			v[i] = float32(f(k, i/p.nx, i%p.nx, float64(v[i])))
		}
	}
}

// errors returns how far a transform is from the truth: the translation in pixels, and the rotation in degrees.
func (p *pair) errors(t filter.Rigid) (px, deg float64) {
	return root(t.TX-p.truth.TX, t.TY-p.truth.TY), math.Abs(t.Angle-p.truth.Angle) / degree
}

func (p *pair) register(o Options) Result {
	return register(NewImage(p.fixed, p.ny, p.nx), NewImage(p.moving, p.ny, p.nx), p.truth.CX, p.truth.CY, o)
}

// register registers without callbacks, which cannot fail.
func register(fixed, moving *Image, cx, cy float64, o Options) Result {
	r, err := Register(fixed, moving, cx, cy, o)
	if err != nil {
		panic(err)
	}
	return r
}

var anywhere = Options{Thorough: true, Rotation: true, MaxRotation: 5 * degree, MaxTranslation: 200, Phase: true, Mass: true}

// tissue paints texture into an ellipse on agarose.
func tissue(texture []float32, ny, nx int) []float32 {
	height, width := ny+2*margin, nx+2*margin
	out := make([]float32, len(texture))
	for i, f := range texture {
		u, v := (float64(i%width)-float64(width)/2)/(0.42*float64(nx)), (float64(i/width)-float64(height)/2)/(0.38*float64(ny))
		in := 1 / (1 + math.Exp((math.Hypot(u, v)-1)/0.05))
		out[i] = float32(in*max(0.15, 0.55+0.1*float64(f)) + (1-in)*0.08)
	}
	return out
}

// scenes are ways to make a pair from random numbers, with the errors that are allowed and the noise.
var scenes = []struct {
	name    string
	px, deg float64
	trials  int
	make    func(rng *rand.Rand, ny, nx int, angle, tx, ty float64) *pair
}{
	{"texture", 0.15, 0.05, 20, func(rng *rand.Rand, ny, nx int, angle, tx, ty float64) *pair {
		scene := texture(rng, ny+2*margin, nx+2*margin, 1.5, 4, 12)
		return view(scene, scene, ny, nx, angle, tx, ty)
	}},
	{"noise as strong as the texture", 0.3, 0.1, 20, func(rng *rand.Rand, ny, nx int, angle, tx, ty float64) *pair {
		scene := texture(rng, ny+2*margin, nx+2*margin, 1.5, 4, 12)
		p := view(scene, scene, ny, nx, angle, tx, ty)
		p.change(func(_, _, _ int, v float64) float64 { return v + math.Sqrt(3)*rng.NormFloat64() })
		return p
	}},
	{"grain that halving removes", 0.15, 0.05, 20, func(rng *rand.Rand, ny, nx int, angle, tx, ty float64) *pair {
		scene := texture(rng, ny+2*margin, nx+2*margin, 0.8)
		return view(scene, scene, ny, nx, angle, tx, ty)
	}},
	{"tissue under vignetted tiles", 0.3, 0.1, 20, func(rng *rand.Rand, ny, nx int, angle, tx, ty float64) *pair {
		scene := tissue(texture(rng, ny+2*margin, nx+2*margin, 1.5, 4, 12), ny, nx)
		p := view(scene, scene, ny, nx, angle, tx, ty)
		p.change(func(_, y, x int, v float64) float64 {
			return v*(0.6+0.4*math.Cos(float64(x%100-50)/40)*math.Cos(float64(y%100-50)/40)) + 0.03*rng.NormFloat64()
		})
		return p
	}},
	{"tissue in frames of a canvas", 0.3, 0.1, 20, func(rng *rand.Rand, ny, nx int, angle, tx, ty float64) *pair {
		scene := tissue(texture(rng, ny+2*margin, nx+2*margin, 1.5, 4, 12), ny, nx)
		p := view(scene, scene, ny, nx, angle, tx, ty)
		p.change(func(k, y, x int, v float64) float64 {
			if k == 0 && (x > nx-12 || y > ny-15) || k == 1 && (x < 13 || y < 9) {
				return 0.03
			}
			return max(0, v+0.03*rng.NormFloat64()-0.05)
		})
		return p
	}},
	{"a neighbouring plane", 0.4, 0.3, 20, func(rng *rand.Rand, ny, nx int, angle, tx, ty float64) *pair {
		first, other := texture(rng, ny+2*margin, nx+2*margin, 1.5, 4, 12), texture(rng, ny+2*margin, nx+2*margin, 1.5, 4, 12)
		for i, f := range first {
			other[i] = 0.55*f + 0.45*other[i]
		}
		p := view(tissue(first, ny, nx), tissue(other, ny, nx), ny, nx, angle, tx, ty)
		p.change(func(_, _, _ int, v float64) float64 { return v + 0.03*rng.NormFloat64() })
		return p
	}},
}

// Displacements and rotations of planes of many sizes are found, and what is not found is not claimed.
func TestTruth(t *testing.T) {
	race.Leave(t)
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			missed := 0
			for n := range s.trials {
				ny, nx := 96+rng.IntN(305), 96+rng.IntN(305)
				far := 0.4 + rng.Float64()*min(17.6, float64(min(ny, nx))/6)
				if n%4 == 3 {
					far = min(100, float64(min(ny, nx))/3.5) * rng.Float64()
				}
				angle, direction := (10*rng.Float64()-5)*degree, 2*math.Pi*rng.Float64()
				p := s.make(rng, ny, nx, angle, far*math.Cos(direction), far*math.Sin(direction))
				r := p.register(anywhere)
				px, deg := p.errors(r.Transform)
				what := fmt.Sprintf("%d×%d moved by %.1f px and %.2f°: %.3f px and %.3f° off, %+v", ny, nx, far, angle/degree, px, deg, r)
				switch {
				case r.Refused != "":
					missed++
					t.Log("refused: ", what)
				case px > s.px || deg > s.deg:
					missed++
					t.Log("inexact: ", what)
					if px > 1 || deg > 0.5 {
						t.Error("wrong, and not refused: ", what)
					}
				}
			}
			if 20*missed > s.trials {
				t.Errorf("%d of %d missed", missed, s.trials)
			}
		})
	}
}

// Planes that have nothing in common are refused, whatever is tried.
func TestUnrelated(t *testing.T) {
	race.Leave(t)
	for k := range 6 {
		rng := rand.New(rand.NewPCG(5, uint64(k)))
		ny, nx := 96+rng.IntN(200), 96+rng.IntN(200)
		a, b := texture(rng, ny, nx, 1.5, 4, 12), texture(rng, ny, nx, 1.5, 4, 12)
		r := register(NewImage(a, ny, nx), NewImage(b, ny, nx), 0, 0, anywhere)
		if r.Refused == "" || r.Transform != (filter.Rigid{}) {
			t.Errorf("%d×%d: %+v", ny, nx, r)
		}
	}
}

func TestNothingToSee(t *testing.T) {
	const n = 60
	rng := rand.New(rand.NewPCG(6, 6))
	good := texture(rng, n, n, 2)
	blank := map[string]func(i int) float32{
		"zero":       func(int) float32 { return 0 },
		"constant":   func(int) float32 { return 7.5 },
		"nan":        func(int) float32 { return nan },
		"infinite":   func(i int) float32 { return float32(math.Inf(1 - i%2*2)) },
		"one pixel":  func(i int) float32 { return float32(max(0, 1-i)) },
		"two halves": func(i int) float32 { return float32(i / (n * n / 2)) },
		"all but a row": func(i int) float32 {
			if i < n {
				return good[i]
			}
			return nan
		},
	}
	for name, f := range blank {
		v := make([]float32, n*n)
		for i := range v {
			v[i] = f(i)
		}
		im := NewImage(v, n, n)
		for k, r := range []Result{
			register(im, NewImage(good, n, n), 30, 30, anywhere), register(NewImage(good, n, n), im, 30, 30, anywhere), register(im, im, 30, 30, anywhere),
		} {
			if r.Refused == "" || r.Transform != (filter.Rigid{CX: 30, CY: 30}) || math.IsNaN(r.After+r.Before+r.Peak+r.Overlap) {
				t.Errorf("%s, %d: %+v", name, k, r)
			}
		}
	}
	for _, size := range [][2]int{{0, 0}, {1, 1}, {1, 50}, {3, 2}, {8, 8}} {
		im := NewImage(good[:size[0]*size[1]], size[0], size[1])
		if r := register(im, im, 0, 0, anywhere); r.Refused == "" {
			t.Errorf("%v: %+v", size, r)
		}
	}
}

// A plane lies on itself, also without any start, and limits hold.
func TestLimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	scene := texture(rng, 150+2*margin, 130+2*margin, 1.5, 4, 12)
	same := view(scene, scene, 150, 130, 0, 0, 0)
	for _, o := range []Options{anywhere, {}, {Rotation: true, MaxRotation: degree, MaxTranslation: 3}} {
		r := same.register(o)
		if px, deg := same.errors(r.Transform); r.Refused != "" || px > 1e-3 || deg > 1e-3 || r.After < 0.9999 {
			t.Errorf("%+v: %+v", o, r)
		}
	}
	near := view(scene, scene, 150, 130, 1.5*degree, 2, -1)
	if r := near.register(Options{Rotation: true, MaxRotation: 2 * degree, MaxTranslation: 10}); r.Refused != "" || r.Limited || r.After <= r.Before {
		t.Errorf("from the identity: %+v", r)
	}
	for _, o := range []Options{
		{Rotation: true, MaxRotation: 0.2 * degree, MaxTranslation: 10, Phase: true}, {Rotation: true, MaxRotation: 5 * degree, MaxTranslation: 0.5, Phase: true},
		{MaxTranslation: 10, Phase: true},
	} {
		r := near.register(o)
		if d := root(r.Transform.TX, r.Transform.TY); d > o.MaxTranslation+1e-9 || math.Abs(r.Transform.Angle) > o.MaxRotation {
			t.Errorf("%+v: %+v", o, r)
		}
	}
	far := view(scene, scene, 150, 130, -2*degree, 40, 0)
	if r := far.register(Options{Rotation: true, MaxRotation: 5 * degree, MaxTranslation: 20, Phase: true, Mass: true}); r.Refused == "" {
		t.Errorf("beyond the largest translation: %+v", r)
	}
}

// Refine follows to another plane, and Agreement is highest at the truth.
func TestRefine(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	scene := texture(rng, 120+2*margin, 140+2*margin, 1.5, 4, 12)
	p := view(scene, scene, 120, 140, 0.7*degree, 5, -3)
	fixed, moving := NewImage(p.fixed, 120, 140), NewImage(p.moving, 120, 140)
	start := p.truth
	start.TX, start.Angle = start.TX+0.8, start.Angle-0.2*degree
	r, err := Refine(fixed, moving, start, anywhere)
	if px, deg := p.errors(r.Transform); err != nil || r.Refused != "" || px > 0.05 || deg > 0.02 {
		t.Errorf("%+v", r)
	}
	if a, b := Agreement(fixed, moving, p.truth), Agreement(fixed, moving, start); a < 0.99 || b >= a {
		t.Errorf("agreement %v at the truth, %v beside it", a, b)
	}
}

// Long narrow planes have no coarse level.
func TestNarrow(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 14))
	for _, size := range [][2]int{{30, 700}, {900, 40}} {
		scene := texture(rng, size[0]+2*margin, size[1]+2*margin, 1.5, 4)
		p := view(scene, scene, size[0], size[1], 0.2*degree, 6, -4)
		r := p.register(Options{Rotation: true, MaxRotation: degree, MaxTranslation: 30, Phase: true})
		if px, deg := p.errors(r.Transform); r.Refused != "" || px > 0.15 || deg > 0.05 {
			t.Errorf("%v: %+v, %.3f px and %.3f° off", size, r, px, deg)
		}
	}
}

// The result does not depend on who calls back, or how many at a time.
func TestSameConcurrently(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	scene := texture(rng, 200+2*margin, 180+2*margin, 1.5, 4)
	p := view(scene, scene, 200, 180, -1.1*degree, 8, 3)
	alone := p.register(anywhere)
	o := anywhere
	o.Each = func(n int, f func(i int)) error {
		var wg sync.WaitGroup
		for i := n - 1; i >= 0; i-- {
			wg.Add(1)
			go func() { defer wg.Done(); f(i) }()
		}
		wg.Wait()
		return nil
	}
	if together := p.register(o); together != alone || strings.TrimSpace(alone.Refused) != "" {
		t.Errorf("%+v, then %+v", alone, together)
	}
}

// An error of the callback is that of the registration.
func TestStopped(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 13))
	im := NewImage(texture(rng, 100, 100, 2), 100, 100)
	stop := errors.New("stop")
	for after := range 4 {
		o := anywhere
		calls := 0
		o.Each = func(n int, f func(i int)) error {
			if calls++; calls > after {
				return stop
			}
			for i := range n {
				f(i)
			}
			return nil
		}
		if _, err := Register(im, im, 50, 50, o); !errors.Is(err, stop) && calls > after {
			t.Errorf("after %d calls: %v", after, err)
		}
	}
}

// Squares of one value are no data, however they lie; single equal pixels are.
func TestSolid(t *testing.T) {
	const n = 40
	rng := rand.New(rand.NewPCG(11, 11))
	for range 50 {
		v := make([]float32, n*n)
		for i := range v {
			v[i] = float32(rng.IntN(2)) // chance makes no square of 7 × 7
		}
		y0, x0, h, w := rng.IntN(n-12), rng.IntN(n-12), 5+rng.IntN(8), 5+rng.IntN(8)
		for y := range h {
			for x := range w {
				v[(y0+y)*n+x0+x] = 3
			}
		}
		dropSolid(v, n, n)
		for i, f := range v {
			y, x := i/n-y0, i%n-x0
			inside := y >= 0 && y < h && x >= 0 && x < w && min(h, w) >= solid
			if inside != (f != f) {
				t.Fatalf("a square of %d×%d at (%d, %d): pixel (%d, %d) is %v", h, w, y0, x0, i/n, i%n, f)
			}
		}
	}
}

func BenchmarkRegister(b *testing.B) {
	rng := rand.New(rand.NewPCG(12, 12))
	scene := texture(rng, 400+2*margin, 400+2*margin, 1.5, 4, 12)
	p := view(scene, scene, 400, 400, 1.7*degree, 12, -7)
	for b.Loop() {
		if r := p.register(anywhere); r.Refused != "" {
			b.Fatal(r)
		}
	}
}
