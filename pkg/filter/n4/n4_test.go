package n4

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"strata/pkg/filter/bspline"
	"strata/pkg/work"
)

func evaluate(l *bspline.Lattice, at [3]float64) float64 {
	plane, row := make([]float64, l.Control[1]*l.Control[2]), make([]float64, l.Control[2])
	l.Plane(plane, l.Taps(0, 1, at[0], 1)[0])
	bspline.Row(row, plane, l.Taps(1, 1, at[1], 1)[0])
	return bspline.At(row, &l.Taps(2, 1, at[2], 1)[0])
}

// The sums over rows, planes and the volume are those of the formula of Lee et al.; a single sample is interpolated.
func TestApproximation(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	samples, control := [3]int{5, 8, 11}, [3]int{4, 5, 6}
	for _, share := range []float64{1, 0.3, 0.005, 0} {
		data := make([]float64, 5*8*11)
		for i := range data {
			if data[i] = math.NaN(); r.Float64() < share {
				data[i] = r.NormFloat64()
			}
		}
		single := -1
		if share == 0 {
			single = 5 + 11*(3+8*2)
			data[single] = 1.7
		}
		a := newApproximation(samples, control)
		both := func(squared bool) []float64 {
			for z := range samples[0] {
				a.plane(z, make([]float64, samples[2]), make([]float64, control[2]), squared, func(y int, line []float64) {
					for x := range line {
						if line[x] = data[(z*samples[1]+y)*samples[2]+x]; squared && line[x] == line[x] {
							line[x] = 1
						}
					}
				})
			}
			return a.volume(squared)
		}
		a.cover = both(true)
		both(false)
		got := a.lattice()
		n := control[0] * control[1] * control[2]
		top, bottom := make([]float64, n), make([]float64, n)
		for p, v := range data {
			if v != v {
				continue
			}
			at := [3]float64{float64(p / 88), float64(p / 11 % 8), float64(p % 11)}
			w, sum := make([]float64, n), 0.0
			for c := range w {
				unit := bspline.New(samples, control)
				unit.Values[c] = 1
				w[c] = evaluate(unit, at)
				sum += w[c] * w[c]
			}
			for c := range w {
				top[c] += w[c] * w[c] * (w[c] * v / sum)
				bottom[c] += w[c] * w[c]
			}
		}
		for c := range top {
			want := 0.0
			if bottom[c] > 1e-20 {
				want = top[c] / bottom[c]
			}
			if math.Abs(got.Values[c]-want) > 1e-12*(1+math.Abs(want)) && bottom[c] > 1e-20 {
				t.Fatalf("share %v: control point %d is %v, want %v", share, c, got.Values[c], want)
			}
		}
		if single >= 0 {
			if v := evaluate(got, [3]float64{2, 3, 5}); math.Abs(v-1.7) > 1e-12 {
				t.Errorf("a single sample of 1.7 becomes %v", v)
			}
		}
	}
}

// Two sharp classes that a Gaussian blurs are pulled back to their centres.
func TestSharpening(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	h := newHistogram(-1.5, 0.5, 200)
	const fwhm = 0.15
	for i := range 200000 {
		v := []float64{-0.8, -0.2}[i%2] + r.NormFloat64()*fwhm/2.3548
		b, p := h.place(min(max(v, -1.5), 0.5))
		h.counts[b] += 1 - p
		h.counts[b+1] += p
	}
	s := newSharpener(200, fwhm, 0.01)
	expected := s.expectation(h)
	for _, centre := range []float64{-0.8, -0.2} {
		for _, off := range []float64{-0.08, 0, 0.08} {
			b, p := h.place(centre + off)
			got := expected[b] + (expected[b+1]-expected[b])*p
			if math.Abs(got-centre) > 0.045 {
				t.Errorf("%v becomes %v, want it nearer to %v", centre+off, got, centre)
			}
		}
	}
	for i := 1; i < 200; i++ {
		if expected[i] != expected[i] {
			t.Fatalf("bin %d has no expectation", i)
		}
	}
}

func TestExp(t *testing.T) {
	for x := -690.0; x < 690; x += 0.37 {
		if got, want := Exp(x), math.Exp(x); math.Abs(got-want) > 2e-15*want {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	if Exp(math.Inf(-1)) != 0 || !math.IsInf(Exp(1e9), 1) || Exp(math.NaN()) == 1 {
		t.Error("exp of extremes")
	}
}

// phantom returns log intensities of blobs of three classes in a body under a smooth field, and the log field.
func phantom(shape [3]int, amplitude [3]float64) (planes, truth [][]float32) {
	r := rand.New(rand.NewPCG(7, 8))
	phase := make([]float64, 12)
	for i := range phase {
		phase[i] = 6 * r.Float64()
	}
	for z := range shape[0] {
		p, f := make([]float32, shape[1]*shape[2]), make([]float32, shape[1]*shape[2])
		for i := range p {
			y, x := i/shape[2], i%shape[2]
			u := [3]float64{2*float64(z)/float64(max(1, shape[0]-1)) - 1, 2*float64(y)/float64(shape[1]-1) - 1, 2*float64(x)/float64(shape[2]-1) - 1}
			s := math.Sin(0.55*float64(x)+phase[0]+math.Sin(0.3*float64(z)+phase[1])) * math.Sin(0.6*float64(y)+phase[2]+0.4*float64(z))
			class := math.Log(0.4)
			if s > 0.3 {
				class = math.Log(0.8)
			} else if s < -0.4 {
				class = math.Log(0.22)
			}
			for d, a := range amplitude {
				f[i] += float32(a * (u[d] - 0.6*u[d]*u[d]))
			}
			p[i] = float32(class+0.03*r.NormFloat64()) + f[i]
			if u[1]*u[1]+u[2]*u[2] > 0.85 {
				p[i] = float32(math.NaN())
			}
		}
		planes, truth = append(planes, p), append(truth, f)
	}
	return planes, truth
}

// missed returns the standard deviation of what the field misses of the truth, and of the truth itself.
func missed(l *bspline.Lattice, planes, truth [][]float32, nx int) (after, before float64) {
	var a, b, aa, bb, n float64
	for z, p := range planes {
		for i, v := range p {
			if v != v {
				continue
			}
			t := float64(truth[z][i])
			d := evaluate(l, [3]float64{float64(z), float64(i / nx), float64(i % nx)}) - t
			a, aa, b, bb, n = a+d, aa+d*d, b+t, bb+t*t, n+1
		}
	}
	return math.Sqrt(aa/n - a*a/n/n), math.Sqrt(bb/n - b*b/n/n)
}

func clone(planes [][]float32) (out [][]float32) {
	for _, p := range planes {
		out = append(out, slices.Clone(p))
	}
	return out
}

// A smooth field over three classes is found, by any number of workers with the same bits.
func TestFit(t *testing.T) {
	shape := [3]int{12, 60, 64}
	planes, truth := phantom(shape, [3]float64{0.1, 0.25, 0.35})
	var first *bspline.Lattice
	for _, workers := range []int{1, 3} {
		got := clone(planes)
		l, err := Fit(got, shape[1], shape[2], Options{Control: [3]int{4, 4, 4}, Iterations: []int{50, 50, 50},
			Each: func(n int, f func(i int) error) error {
				return work.Each(t.Context(), workers, n, func(_, i int) error { return f(i) })
			}})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = l
			after, before := missed(l, planes, truth, shape[2])
			t.Logf("misses %.4f of %.4f", after, before)
			if after > 0.2*before {
				t.Errorf("the field misses %.4f of %.4f", after, before)
			}
			for z := range planes { // what is left in the planes is the difference
				for i, v := range planes[z] {
					want := float64(v) - evaluate(l, [3]float64{float64(z), float64(i / 64), float64(i % 64)})
					if v == v && math.Abs(float64(got[z][i])-want) > 2e-5 {
						t.Fatalf("plane %d, voxel %d: %v left, want %v", z, i, got[z][i], want)
					}
				}
			}
		}
		if !slices.Equal(l.Values, first.Values) {
			t.Errorf("%d workers: other bits", workers)
		}
	}
}

// Control points belong to their axes: a field along z needs them there.
func TestAxes(t *testing.T) {
	shape := [3]int{60, 40, 44}
	planes, truth := phantom(shape, [3]float64{0, 0, 0})
	for z := range planes {
		for i := range planes[z] {
			d := float32(0.12 * math.Sin(4*math.Pi*float64(z)/60))
			planes[z][i] += d
			truth[z][i] += d
		}
	}
	share := func(control [3]int) float64 {
		l, err := Fit(clone(planes), shape[1], shape[2], Options{Control: control, Iterations: []int{60}})
		if err != nil {
			t.Fatal(err)
		}
		after, before := missed(l, planes, truth, shape[2])
		return after / before
	}
	if right, wrong := share([3]int{8, 4, 4}), share([3]int{4, 4, 8}); right > 0.3 || wrong < 0.8 {
		t.Errorf("with control points along z %.2f of the field is missed, along x %.2f", right, wrong)
	}
}

// Volumes without contrast, without voxels and of a single voxel have no field.
func TestFlat(t *testing.T) {
	nan := float32(math.NaN())
	for _, v := range [][]float32{{nan, nan, nan, nan}, {1, 1, nan, 1}, {nan, 2, nan, nan}} {
		l, err := Fit([][]float32{v}, 2, 2, Options{Control: [3]int{4, 4, 4}, Iterations: []int{5, 5}})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range l.Values {
			if c != 0 {
				t.Fatalf("%v: control point %v", v, c)
			}
		}
	}
	two := []float32{1, 2}
	l, err := Fit([][]float32{two}, 1, 2, Options{Control: [3]int{4, 4, 4}, Iterations: []int{3}})
	if err != nil || math.IsNaN(evaluate(l, [3]float64{})) || two[0] != two[0] {
		t.Errorf("two voxels: %v, %v", two, err)
	}
}

func BenchmarkFit(b *testing.B) {
	shape := [3]int{20, 200, 200}
	planes, _ := phantom(shape, [3]float64{0.1, 0.2, 0.3})
	for b.Loop() {
		if _, err := Fit(clone(planes), shape[1], shape[2], Options{Control: [3]int{4, 8, 8}, Iterations: []int{10}, Converged: 1e-9}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10/20/200/200, "ns/voxel/round")
}
