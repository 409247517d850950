package mattes

import (
	"math"
	"math/rand/v2"
	"testing"

	"strata/pkg/work"
)

// body is a smooth object without symmetry: a bent ellipsoid with blobs. It is 0 outside.
func body(p Vec) float64 {
	x, y, z := p[0]/1.0, (p[1]-0.12*p[0]*p[0])/0.8, p[2]/0.62
	r := x*x + y*y + z*z
	if r > 1 {
		return 0
	}
	v := 0.5 + 0.18*math.Sin(5*p[0]+1)*math.Cos(6*p[1]) + 0.15*math.Sin(7*p[2]+2*p[0])
	for _, b := range [][4]float64{{0.45, 0.2, 0.1, 0.2}, {-0.4, -0.3, 0.2, 0.17}, {0, 0.4, -0.25, 0.22}, {-0.5, 0.25, -0.1, 0.15}} {
		d := (p[0]-b[0])*(p[0]-b[0]) + (p[1]-b[1])*(p[1]-b[1]) + (p[2]-b[2])*(p[2]-b[2])
		v += 0.5 * math.Exp(-d/(b[3]*b[3]))
	}
	return v * min(1, (1-r)*8)
}

// scene returns the body in an image, with its voxels mapped to the body by p ↦ R(p − centre) and values changed by
// contrast.
func scene(shape [3]int, spacing Vec, e *Euler, contrast func(v float64) float64) *Volume {
	v := &Volume{Shape: shape, Spacing: spacing, Voxels: make([]float32, shape[0]*shape[1]*shape[2])}
	r := rand.New(rand.NewPCG(1, 9))
	m, offset := e.Affine()
	i := 0
	for z := range shape[0] {
		for y := range shape[1] {
			for x := range shape[2] {
				q := m.Apply(v.at(z, y, x))
				for d := range q {
					q[d] += offset[d]
				}
				if b := body(q); b > 0 {
					v.Voxels[i] = float32(max(0.001, contrast(b)+0.02*r.NormFloat64()))
				}
				i++
			}
		}
	}
	return v
}

// A phantom of another contrast, turned and shifted by known amounts, comes back within 0.3° and half a voxel, by any
// number of workers with the same bits.
func TestRegister(t *testing.T) {
	fixedCentre := Vec{1.3, 1.1, 0.9}
	fixed := scene([3]int{45, 55, 65}, Vec{0.04, 0.04, 0.04}, &Euler{Translation: Vec{-fixedCentre[0], -fixedCentre[1], -fixedCentre[2]}}, func(v float64) float64 { return v })
	const degree = math.Pi / 180
	for _, c := range []struct {
		angles, shift Vec
		start         Vec
	}{
		{Vec{8, 0, 0}, Vec{0.1, -0.05, 0.08}, Vec{}},
		{Vec{0, -8, 0}, Vec{}, Vec{}},
		{Vec{0, 0, 8}, Vec{-0.12, 0.1, 0}, Vec{}},
		{Vec{-8, 8, -8}, Vec{0.05, 0.1, -0.1}, Vec{}},
		{Vec{5, 4, 60}, Vec{0.05, 0.05, 0}, Vec{0, 0, 52}},
	} {
		truth := Euler{Centre: fixedCentre}
		for d := range 3 {
			truth.Angles[d], truth.Translation[d] = c.angles[d]*degree, c.shift[d]+0.2
		}
		// the moving image shows at T(p) what the fixed one shows at p
		m, offset := truth.Affine()
		inverse := m.Transpose()
		moving := &Volume{Shape: [3]int{60, 60, 60}, Spacing: Vec{0.05, 0.05, 0.045}, Voxels: make([]float32, 60*60*60)}
		r := rand.New(rand.NewPCG(2, 3))
		i := 0
		for z := range 60 {
			for y := range 60 {
				for x := range 60 {
					q := moving.at(z, y, x)
					for d := range q {
						q[d] -= offset[d]
					}
					p := inverse.Apply(q)
					for d := range p {
						p[d] -= fixedCentre[d]
					}
					if v := body(p); v > 0 { // bright becomes dark, and the darkest middle
						moving.Voxels[i] = float32(max(1, 900-600*v+250*math.Sin(9*v)+15*r.NormFloat64()))
					}
					i++
				}
			}
		}
		var first *Result
		for _, workers := range []int{3, 1} {
			if workers == 1 && c.shift != (Vec{}) {
				continue
			}
			o := Options{Samples: 200000, Each: func(n int, f func(i int) error) error {
				return work.Each(t.Context(), workers, n, func(_, i int) error { return f(i) })
			}}
			for d := range 3 {
				o.Rotation[d] = c.start[d] * degree
			}
			got, err := Register(fixed, moving, o)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = got
			}
			if *got != *first {
				t.Errorf("%d workers: %+v, want %+v", workers, got, first)
			}
		}
		rotation, shift := difference(&first.Euler, &truth, fixedCentre)
		t.Logf("%v: off by %.3f° and %.3f voxel after %d steps, information %.3f of %.3f", c.angles, rotation/degree, shift/0.045, first.Iterations, first.Information, first.Before)
		if rotation > 0.3*degree || shift > 0.5*0.045 || !first.StepConverged || first.Information <= first.Before {
			t.Errorf("%v, %v: %+v, off by %.3f° and %.3f voxel", c.angles, c.shift, first, rotation/degree, shift/0.045)
		}
	}
}

// difference returns the angle between two transforms and the distance of the places to which they map a point.
func difference(a, b *Euler, at Vec) (angle, distance float64) {
	ma, oa := a.Affine()
	mb, ob := b.Affine()
	trace := 0.0
	for i := range 3 {
		for j := range 3 {
			trace += ma[i][j] * mb[i][j]
		}
	}
	p, q := ma.Apply(at), mb.Apply(at)
	for d := range p {
		v := p[d] + oa[d] - q[d] - ob[d]
		distance += v * v
	}
	return math.Acos(min(1, (trace-1)/2)), math.Sqrt(distance)
}

// The derivatives are those of the values.
func TestGradient(t *testing.T) {
	fixed := scene([3]int{40, 44, 50}, Vec{0.05, 0.05, 0.05}, &Euler{Translation: Vec{-1.2, -1.1, -1}}, func(v float64) float64 { return v })
	moving := scene([3]int{40, 44, 50}, Vec{0.05, 0.05, 0.05}, &Euler{Translation: Vec{-1.25, -1.05, -1}}, func(v float64) float64 { return 2 - v })
	moving, err := moving.shrink(1, 2, Options{}.withDefaults().Each)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMetric(fixed, moving, 50000, Options{}.withDefaults().Each)
	if err != nil {
		t.Fatal(err)
	}
	at := Euler{Angles: Vec{0.05, -0.04, 0.03}, Translation: Vec{0.02, 0.03, -0.02}, Centre: Vec{1.2, 1.1, 1}}
	_, angles, translation, _, _ := m.evaluate(&at)
	const h = 2e-4
	for d := range 3 {
		for k, got := range []float64{angles[d], translation[d]} {
			var value [2]float64
			for i, s := range []float64{-h, h} {
				e := at
				if k == 0 {
					e.Angles[d] += s
				} else {
					e.Translation[d] += s
				}
				value[i], _, _, _, _ = m.evaluate(&e)
			}
			want := (value[1] - value[0]) / (2 * h)
			if math.Abs(got-want) > 0.05*math.Abs(want)+0.01 {
				t.Errorf("derivative %d of axis %d: %v, want %v", k, d, got, want)
			}
		}
	}
}

// ITK's convention: R = Rz·Rx·Ry, checked with numbers by SimpleITK's definition of Euler3DTransform.
func TestEuler(t *testing.T) {
	quarter := math.Pi / 2
	for _, c := range []struct{ angles, from, to Vec }{
		{Vec{quarter, 0, 0}, Vec{0, 1, 0}, Vec{0, 0, 1}},
		{Vec{0, quarter, 0}, Vec{0, 0, 1}, Vec{1, 0, 0}},
		{Vec{0, 0, quarter}, Vec{1, 0, 0}, Vec{0, 1, 0}},
		{Vec{quarter, quarter, 0}, Vec{1, 0, 0}, Vec{0, 1, 0}},        // Ry: −z, then Rx: y
		{Vec{quarter, 0, quarter}, Vec{0, 1, 0}, Vec{0, 0, 1}},        // Rx: z, which Rz keeps
		{Vec{quarter, quarter, quarter}, Vec{1, 0, 0}, Vec{-1, 0, 0}}, // Ry: −z, Rx: y, Rz: −x
	} {
		e := Euler{Angles: c.angles}
		m := e.Matrix()
		got := m.Apply(c.from)
		for d := range got {
			if math.Abs(got[d]-c.to[d]) > 1e-12 {
				t.Errorf("%v of %v is %v, want %v", c.angles, c.from, got, c.to)
			}
		}
	}
}

func TestBadVolumes(t *testing.T) {
	good := scene([3]int{30, 30, 30}, Vec{0.08, 0.08, 0.08}, &Euler{Translation: Vec{-1.2, -1.2, -1.2}}, func(v float64) float64 { return v })
	zero := &Volume{Shape: [3]int{8, 8, 8}, Spacing: Vec{1, 1, 1}, Voxels: make([]float32, 512)}
	flat := &Volume{Shape: [3]int{8, 8, 8}, Spacing: Vec{1, 1, 1}, Voxels: make([]float32, 512)}
	nan := &Volume{Shape: [3]int{8, 8, 8}, Spacing: Vec{1, 1, 1}, Voxels: make([]float32, 512)}
	for i := range flat.Voxels {
		flat.Voxels[i], nan.Voxels[i] = 3, float32(math.NaN())
	}
	nan.Voxels[100] = 1
	for name, c := range map[string][2]*Volume{"zero": {good, zero}, "zero template": {zero, good}, "flat": {good, flat}, "flat template": {flat, good}, "NaN": {good, nan}} {
		if r, err := Register(c[0], c[1], Options{}); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// In volumes of a few voxels coarse levels see next to nothing and may lead astray: the result is never worse than the
// start.
func TestNeverWorseThanTheStart(t *testing.T) {
	registered, restarted := 0, 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 3))
		random := func() *Volume {
			v := &Volume{Shape: [3]int{4 + r.IntN(8), 6 + r.IntN(8), 6 + r.IntN(8)}, Spacing: Vec{1, 1, 1}}
			phase := r.Float64() * 6
			for z := range v.Shape[0] {
				for y := range v.Shape[1] {
					for x := range v.Shape[2] {
						f := math.Sin(float64(x)/2+phase)*math.Cos(float64(y)/3+phase) + math.Sin(float64(z)/2) + 0.1*r.Float64()
						v.Voxels = append(v.Voxels, float32(max(0, f)*float64(r.IntN(2))))
					}
				}
			}
			return v
		}
		got, err := Register(random(), random(), Options{Iterations: 50})
		if err != nil {
			continue // they hardly overlap
		}
		registered++
		if got.Restarted {
			restarted++
		}
		if got.Information < got.Before {
			t.Errorf("seed %d: mutual information %v, %v at the start", seed, got.Information, got.Before)
		}
	}
	if registered < 50 || restarted == 0 {
		t.Errorf("%d registered, %d of them from the start again: this test shows nothing", registered, restarted)
	}
}
