package basic

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"strata/pkg/dtype"
	"strata/tests/golden"
)

func TestFlatFieldGolden(t *testing.T) {
	for _, p := range golden.Primitives(t, "basic") {
		t.Run(p.File, func(t *testing.T) {
			var tolerance struct {
				Field float64 `json:"flatfield_abs"`
				Work  float64 `json:"work0_abs"`
			}
			if err := json.Unmarshal(p.RawTolerance, &tolerance); err != nil || tolerance.Field == 0 || tolerance.Work == 0 {
				t.Fatal(err, tolerance)
			}
			in := p.Arrays["in"]
			n, ny, nx := in.Shape[0], in.Shape[1], in.Shape[2]
			src := dtype.Slice[float32](in.Data)
			work := make([]float32, n*pixels)
			for i := range n {
				Triangles(ny, nx).Shrink(work[i*pixels:], src[i*ny*nx:], ny, nx)
			}
			compare(t, "first image at working size", work[:pixels], dtype.Slice[float32](p.Arrays["work0"].Data), tolerance.Work)
			small := flatField(t, work)
			narrow := make([]float32, pixels)
			for i, v := range small {
				narrow[i] = float32(v)
			}
			compare(t, "flat-field at working size", narrow, dtype.Slice[float32](p.Arrays["flatfield_128"].Data), tolerance.Field)
			field := make([]float32, ny*nx)
			Enlarge(field, small, ny, nx)
			compare(t, "flat-field", field, dtype.Slice[float32](p.Arrays["flatfield"].Data), tolerance.Field)
		})
	}
}

// flatField estimates by basicpy's solver.
func flatField(t testing.TB, images []float32) []float64 {
	t.Helper()
	f, err := Approximate().FlatField(images)
	if err != nil {
		t.Fatal(err)
	}
	return f.Pixels
}

func compare(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	worst := 0.0
	for i, w := range want {
		worst = max(worst, math.Abs(float64(got[i])-float64(w)))
	}
	if t.Logf("%s: differs by %.2g at most", what, worst); !(worst <= tolerance) {
		t.Errorf("%s differs by %g, may by %g", what, worst, tolerance)
	}
}

func TestDCT(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	v := make([]float64, pixels)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	got := append([]float64(nil), v...)
	d := newDCT()
	d.forward(got)
	basis := func(k, i int) float64 {
		if k == 0 {
			return math.Sqrt(1.0 / Size)
		}
		return math.Sqrt(2.0/Size) * math.Cos(math.Pi*(float64(i)+0.5)*float64(k)/Size)
	}
	for range 50 {
		j, k := rng.IntN(Size), rng.IntN(Size)
		want := 0.0
		for y := range Size {
			for x := range Size {
				want += basis(j, y) * basis(k, x) * v[y*Size+x]
			}
		}
		if math.Abs(got[j*Size+k]-want) > 1e-11 {
			t.Fatalf("coefficient %d, %d: %v, want %v", j, k, got[j*Size+k], want)
		}
	}
	d.inverse(got)
	for i := range v {
		if math.Abs(got[i]-v[i]) > 1e-11 {
			t.Fatalf("pixel %d comes back as %v, was %v", i, got[i], v[i])
		}
	}
}

// Weights of each output sum to 1 and keep places: a ramp stays one, at the centres of outputs.
func TestCentredWeights(t *testing.T) {
	check := func(what string, n int, out []taps) {
		t.Helper()
		for i, o := range out {
			sum, at := 0.0, 0.0
			for k, w := range o.weights {
				if o.first+k >= n && w != 0 {
					t.Fatalf("%s of %d: output %d takes input %d", what, n, i, o.first+k)
				}
				sum += w
				at += w * (float64(o.first+k) + 0.5)
			}
			step := float64(n) / float64(len(out))
			want := min(max((float64(i)+0.5)*step, 0.5), float64(n)-0.5)
			if math.Abs(sum-1) > 1e-12 || math.Abs(at-want) > max(1e-9, 0.5*(math.Ceil(step)-step)) {
				t.Fatalf("%s of %d: output %d has weight %v at %v, want 1 at %v", what, n, i, sum, at, want)
			}
		}
	}
	for _, n := range []int{1, 2, 36, 127, 128, 129, 150, 256, 400} {
		check("linear", n, linear(n, Size))
		check("enlarged", Size, linear(Size, n))
		if n >= Size {
			check("areas", n, areas(n))
		}
	}
	// tall and narrow: means along y, linear along x
	src, dst := make([]float32, 256*50), make([]float32, pixels)
	for i := range src {
		src[i] = float32(i/50%2) + float32(i%50)
	}
	Centred(256, 50).Shrink(dst, src, 256, 50)
	for i, v := range dst {
		want := 0.5 + min(max((float64(i%Size)+0.5)*50/Size-0.5, 0), 49)
		if math.Abs(float64(v)-want) > 1e-5 {
			t.Fatalf("pixel %d is %v, want %v", i, v, want)
		}
	}
}

// Power iteration against gonum's singular value decomposition.
func TestSingularValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 7} {
		images := make([]float32, n*pixels)
		wide := make([]float64, len(images))
		for i := range images {
			images[i] = rng.Float32()
			if n == 2 { // images that share no pixel
				images[i] *= float32((i/pixels + i) % 2)
			}
			wide[i] = float64(images[i])
		}
		var svd mat.SVD
		if !svd.Factorize(mat.NewDense(n, pixels, wide), mat.SVDNone) {
			t.Fatal("no decomposition")
		}
		want := svd.Values(nil)[0]
		f, err := newFit(Approximate(), images)
		if err != nil {
			t.Fatal(err)
		}
		defer f.free()
		f.begin()
		if got := f.largest; math.Abs(got-want) > 1e-5*want { // random images that share no pixel have two nearly equal ones
			t.Errorf("%d images: %v, want %v", n, got, want)
		}
	}
}

// A known flat-field comes back from images of different brightness.
func TestFlatFieldComesBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	const n, ny, nx = 12, 100, 140
	truth := make([]float64, ny*nx)
	mean := 0.0
	for y := range ny {
		for x := range nx {
			v, u := 2*float64(y)/(ny-1)-1, 2*float64(x)/(nx-1)-1
			truth[y*nx+x] = 1 + 0.3*v*v + 0.2*u*u - 0.1*u*v
			mean += truth[y*nx+x] / (ny * nx)
		}
	}
	work, im := make([]float32, n*pixels), make([]float32, ny*nx)
	for i := range n {
		b := 0.2 + 0.3*rng.Float64()
		for k := range im {
			if im[k] = float32(b * truth[k] * (1 + 0.02*rng.NormFloat64())); rng.IntN(40) == 0 {
				im[k] = rng.Float32()
			}
		}
		Triangles(ny, nx).Shrink(work[i*pixels:], im, ny, nx)
	}
	field := make([]float32, ny*nx)
	Enlarge(field, flatField(t, work), ny, nx)
	var sum float64
	for _, v := range field {
		sum += float64(v) / (ny * nx)
	}
	for y := 5; y < ny-5; y++ {
		for x := 5; x < nx-5; x++ {
			k := y*nx + x
			if got, want := float64(field[k])/sum, truth[k]/mean; math.Abs(got-want) > 0.02 {
				t.Fatalf("pixel %d, %d: %v, want %v", y, x, got, want)
			}
		}
	}
}

// Images without structure have no flat-field, one image its own, and images of
// one pixel do no harm.
func TestFlatFieldOfLittle(t *testing.T) {
	for name, value := range map[string]func(i int) float32{
		"constant":  func(int) float32 { return 0.1 },
		"one above": func(i int) float32 { return float32(1 - min(i, 1)) },
	} {
		for _, n := range []int{1, 3} {
			images := make([]float32, n*pixels)
			for i := range images {
				images[i] = value(i)
			}
			field := flatField(t, images)
			sum := 0.0
			for _, v := range field {
				sum += v / pixels
				if math.IsNaN(v) || name == "constant" && math.Abs(v-1) > 1e-9 {
					t.Fatalf("%s, %d images: %v in the flat-field", name, n, v)
				}
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("%s, %d images: mean %v", name, n, sum)
			}
		}
	}
	one := make([]float32, pixels)
	Triangles(1, 1).Shrink(one, []float32{0.25}, 1, 1)
	for i, v := range one {
		if v != 0.25 {
			t.Fatalf("an image of one pixel: %v at %d", v, i)
		}
	}
	field := make([]float32, 1)
	if Enlarge(field, flatField(t, one), 1, 1); field[0] != 1 {
		t.Errorf("the flat-field of one pixel is %v", field[0])
	}
}

func BenchmarkFlatField(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 4))
	const n = 36
	images := make([]float32, n*pixels)
	for i := range images {
		y, x := float64(i%pixels/Size)/64-1, float64(i%Size)/64-1
		images[i] = float32(math.Ceil(14+6*(0.5*y*y+0.4*x*x-0.3)+float64(i/pixels%5)+0.7*rng.NormFloat64())) / 200
	}
	for b.Loop() {
		flatField(b, images)
	}
}
