package basic

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Both forms of a step leave the same bits.
func TestStep(t *testing.T) {
	if !useAVX2 {
		t.Skip("no AVX2")
	}
	defer func() { useAVX2 = true }()
	rng := rand.New(rand.NewPCG(2, 1))
	for _, n := range []int{8, 24, band} {
		for _, pulled := range []bool{false, true} {
			numbers := func(scale float64) []float32 {
				v := make([]float32, n)
				for i := range v {
					v[i] = float32(scale * rng.NormFloat64())
				}
				return v
			}
			image, weight, p, q, u := numbers(1), numbers(1), numbers(0.1), numbers(1), numbers(3)
			for i, w := range weight {
				weight[i] = 0.1 + w*w
			}
			by := factors{1.7, 0.3, 1.1}
			excess := make([]float64, n)
			var pull []float64
			if pulled {
				pull = make([]float64, n)
			}
			run := func(avx bool) (u2 []float32, e, f []float64, s sums) {
				useAVX2 = avx
				u2, e, f = slices.Clone(u), slices.Clone(excess), slices.Clone(pull)
				for range 3 {
					step(u2, image, weight, p, q, by, e, f, &s)
				}
				return u2, e, f, s
			}
			u1, e1, f1, s1 := run(false)
			u2, e2, f2, s2 := run(true)
			if !slices.Equal(u1, u2) || !slices.Equal(e1, e2) || !slices.Equal(f1, f2) || s1 != s2 {
				t.Errorf("%d pixels, pulled %v: the forms differ", n, pulled)
			}
			if slices.Max(e1) <= 0 || s1.square[7] <= 0 || pulled && slices.Max(f1) <= 0 {
				t.Errorf("%d pixels, pulled %v: nothing computed", n, pulled)
			}
		}
	}
}

// specimen returns images of a bowl with noise and specks.
func specimen(n int, scale float64) []float32 {
	rng := rand.New(rand.NewPCG(2, 2))
	images := make([]float32, n*pixels)
	for i := range images {
		y, x := float64(i%pixels/Size)/64-1, float64(i%Size)/64-1
		v := (0.3 + 0.05*float64(i/pixels%5)) * (1.2 - 0.4*y*y - 0.2*x*x) * (1 + 0.03*rng.NormFloat64())
		if rng.IntN(50) == 0 {
			v *= 2 * rng.Float64()
		}
		images[i] = float32(v * scale)
	}
	return images
}

// The steps that need no images lead where all steps lead that look at them.
func TestEven(t *testing.T) {
	images := specimen(9, 1)
	round := func(even bool) (*fit, int) {
		f, err := newFit(Approximate(), images)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.free)
		if f.begin(); !even {
			clear(f.least) // no step is certain to leave R at 0
		}
		steps := 0
		f.how.Each = func(n int, g func(i int)) error {
			steps++
			for i := range n {
				g(i)
			}
			return nil
		}
		f.solveApproximate()
		return f, steps
	}
	with, few := round(true)
	without, many := round(false)
	if few >= many {
		t.Errorf("images were read %d times, without the short cut %d times", few, many)
	}
	if with.mu != without.mu {
		t.Errorf("ends at μ = %v, want %v", with.mu, without.mu)
	}
	for i, s := range without.smooth {
		if math.Abs(with.smooth[i]-s) > 1e-6*math.Abs(s) {
			t.Fatalf("pixel %d of S is %v, want %v", i, with.smooth[i], s)
		}
	}
}

// Images of any magnitude have the flat-field of the same images on the same side of the offset of brightness.
func TestMagnitude(t *testing.T) {
	for name, solver := range map[string]Solver{"approximate": Approximate(), "sorted": Sorted()} {
		solver.Rounds = 3
		at := func(scale float64) []float64 {
			f, err := solver.FlatField(specimen(9, scale))
			if err != nil {
				t.Fatal(err)
			}
			return f.Pixels
		}
		dark, bright := at(0x1p-45), at(0x1p20)
		for _, scale := range []float64{0x1p-140, 0x1p-100, 0x1p-70, 0x1p50, 0x1p100, 0x1p127} {
			want, most := dark, 1e-4
			if scale > 1 {
				want = bright
			} else if scale < 0x1p-126 {
				most = 0.01 // these have fewer digits
			}
			for i, v := range at(scale) {
				if !(math.Abs(v-want[i]) < most) {
					t.Fatalf("%s: images of %g: pixel %d is %v, want %v", name, scale, i, v, want[i])
				}
			}
		}
	}
}
