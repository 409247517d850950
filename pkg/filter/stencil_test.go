package filter

import (
	"math"
	"math/rand/v2"
	"testing"
)

func gaussians(sigma [3]float64, order int) (k [3][]float64) {
	for d, s := range sigma {
		k[d] = GaussianKernel(s, order)
	}
	return k
}

// What a stencil makes is the definition's sum over all that the taps cover, and a voxel is the same bits wherever the
// volume is cut.
func TestStencil(t *testing.T) {
	sobel := [2][3][]float64{}
	for d := range 3 {
		sobel[0][d], sobel[1][d] = SobelKernel(0), SobelKernel(1)
	}
	var none [3][]float64
	flat := gaussians([3]float64{0, 1, 0.7}, 1)
	flat[0] = nil
	for name, c := range map[string]struct{ smooth, derivative [3][]float64 }{
		"Gaussian":           {gaussians([3]float64{0.8, 1.3, 2}, 0), none},
		"Gaussian of planes": {gaussians([3]float64{0, 1.3, 2}, 0), none},
		"along z":            {gaussians([3]float64{1, 0, 0}, 0), none},
		"nothing":            {gaussians([3]float64{}, 0), none},
		"Sobel":              {sobel[0], sobel[1]},
		"Sobel of planes":    {[3][]float64{{1}, sobel[0][1], sobel[0][2]}, [3][]float64{nil, sobel[1][1], sobel[1][2]}},
		"gradient":           {gaussians([3]float64{0.8, 1.3, 1}, 0), gaussians([3]float64{0.8, 1.3, 1}, 1)},
		"gradient of planes": {gaussians([3]float64{0, 1, 0.7}, 0), flat},
	} {
		t.Run(name, func(t *testing.T) {
			testStencil[float32](t, c.smooth, c.derivative, 1e-5)
			testStencil[float64](t, c.smooth, c.derivative, 1e-13)
		})
	}
}

func testStencil[F float32 | float64](t *testing.T, smooth, derivative [3][]float64, tolerance float64) {
	s := NewStencil[F](smooth, derivative)
	radius, shape := s.Radius(), [3]int{3, 5, 37}
	wide, n := shape, 1
	for d := range wide {
		wide[d] += 2 * radius[d]
		n *= wide[d]
	}
	r := rand.New(rand.NewPCG(3, 5))
	src := make([]F, n)
	for i := range src {
		src[i] = F(1000 * r.NormFloat64())
	}
	got := make([]F, shape[0]*shape[1]*shape[2])
	s.Apply(got, src, shape)
	for i, v := range got {
		want := defined(src, wide, smooth, derivative, i/shape[2]/shape[1], i/shape[2]%shape[1], i%shape[2])
		if math.Abs(float64(v)-want) > tolerance*1000 {
			t.Fatalf("voxel %d: %v, want %v", i, v, want)
		}
	}
	scalar(func() {
		again := make([]F, len(got))
		s.Apply(again, src, shape)
		for i := range got {
			if again[i] != got[i] {
				t.Fatalf("voxel %d: %v, without vector instructions %v", i, got[i], again[i])
			}
		}
	})
	// a part: one plane, two rows, from the fourth voxel on
	from, part := [3]int{2, 1, 3}, [3]int{1, 2, 21}
	var cut []F
	for z := range part[0] + 2*radius[0] {
		for y := range part[1] + 2*radius[1] {
			cut = append(cut, src[((from[0]+z)*wide[1]+from[1]+y)*wide[2]+from[2]:][:part[2]+2*radius[2]]...)
		}
	}
	some := make([]F, part[0]*part[1]*part[2])
	NewStencil[F](smooth, derivative).Apply(some, cut, part)
	for i, v := range some {
		want := got[((from[0]+i/part[2]/part[1])*shape[1]+from[1]+i/part[2]%part[1])*shape[2]+from[2]+i%part[2]]
		if v != want {
			t.Fatalf("voxel %d of a part: %v, of the whole %v", i, v, want)
		}
	}
	if s.Bytes(shape) <= 0 {
		t.Errorf("%d bytes of scratch", s.Bytes(shape))
	}
}

// defined is a voxel by the definition, in float64.
func defined[F float32 | float64](src []F, wide [3]int, smooth, derivative [3][]float64, z, y, x int) float64 {
	sum := func(k [3][]float64) (s float64) {
		for a, ta := range k[0] {
			for b, tb := range k[1] {
				for c, tc := range k[2] {
					s += ta * tb * tc * float64(src[((z+a)*wide[1]+y+b)*wide[2]+x+c])
				}
			}
		}
		return s
	}
	squares, gradient := 0.0, false
	for d, k := range derivative {
		if k != nil {
			taps := smooth
			taps[d] = k
			squares += sum(taps) * sum(taps)
			gradient = true
		}
	}
	if !gradient {
		return sum(smooth)
	}
	return math.Sqrt(squares)
}

func TestStencilRefuses(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an even number of taps is taken")
		}
	}()
	NewStencil[float32]([3][]float64{{1}, {0.5, 0.5}, {1}}, [3][]float64{})
}
