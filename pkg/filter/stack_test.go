package filter

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/tests/golden"
)

// bothWays runs a test with and without the vector versions.
func bothWays(t *testing.T, f func(t *testing.T)) {
	for _, avx := range []bool{false, useAVX2} {
		t.Run(fmt.Sprintf("avx2=%v", avx), func(t *testing.T) {
			was := useAVX2
			useAVX2 = avx
			defer func() { useAVX2 = was }()
			f(t)
		})
	}
}

func differAt(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) && !(a[i] != a[i] && b[i] != b[i]) {
			return i
		}
	}
	return -1
}

func TestHannGolden(t *testing.T) {
	for _, p := range golden.Primitives(t, "hann") {
		for name, a := range p.Arrays {
			want := dtype.Slice[float64](a.Data)
			for i, got := range Hann(len(want)) {
				if math.Abs(got-want[i]) > 1e-12 {
					t.Errorf("%s: sample %d is %v, want %v", name, i, got, want[i])
				}
			}
		}
	}
}

func TestMix(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	special := []float32{0, -1, nan, inf, 1, 1e-42, 100.25, -inf}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		f, m := make([]float32, n), make([]float32, n)
		for i := range f {
			f[i], m[i] = rng.Float32()*1000, rng.Float32()*1000
			if rng.IntN(3) == 0 {
				f[i] = special[rng.IntN(len(special))]
			}
			if rng.IntN(3) == 0 {
				m[i] = special[rng.IntN(len(special))]
			}
		}
		w, g := rng.Float64(), float32(0.5+rng.Float64())
		want := make([]float32, n)
		for i := range want {
			a, b := f[i], m[i]*g
			switch {
			case a > 0 && b > 0:
				want[i] = float32((1-w)*float64(a) + float64(w*float64(b)))
			case a > 0:
				want[i] = a
			case b > 0:
				want[i] = b
			}
		}
		bothWays(t, func(t *testing.T) {
			got := slices.Clone(f)
			Mix(got, m, w, g)
			if i := differAt(got, want); i >= 0 {
				t.Fatalf("n %d: %v and %v (gain %v, weight %v) give %v, want %v", n, f[i], m[i], g, w, got[i], want[i])
			}
		})
	}
}

func TestDots(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 70 {
		vec := func() []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(rng.NormFloat64() * 1e3)
			}
			return v
		}
		a := vec()
		bs := make([][]float32, n%11)
		for k := range bs {
			bs[k] = vec()
		}
		var first []float64
		bothWays(t, func(t *testing.T) {
			got := make([]float64, len(bs))
			Dots(got, a, bs)
			for k, b := range bs {
				sum, size := 0.0, 0.0
				for i := range a {
					sum += float64(a[i]) * float64(b[i])
					size += math.Abs(float64(a[i]) * float64(b[i]))
				}
				if math.Abs(got[k]-sum) > 1e-14*size {
					t.Fatalf("n %d: product %d is %v, want %v", n, k, got[k], sum)
				}
			}
			if first == nil {
				first = got
			} else if !slices.Equal(first, got) {
				t.Fatalf("n %d: %v with the vector version, %v without", n, got, first)
			}
		})
	}
}

func TestSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for n := range 40 {
		v := make([]float32, n)
		var lanes, squares [4]float64
		for i := range v {
			v[i] = float32(rng.NormFloat64() * 1e3)
			lanes[i%4] += float64(v[i])
			squares[i%4] += float64(v[i]) * float64(v[i])
		}
		want := [2]float64{(lanes[0] + lanes[1]) + (lanes[2] + lanes[3]), (squares[0] + squares[1]) + (squares[2] + squares[3])}
		bothWays(t, func(t *testing.T) {
			if s, q := Sums(v); s != want[0] || q != want[1] {
				t.Fatalf("n %d: %v and %v, want %v", n, s, q, want)
			}
		})
	}
}

func TestNCC(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 2; n < 3000; n *= 3 {
		a, b := make([]float32, n), make([]float32, n)
		for i := range a {
			a[i] = float32(500 + 160*rng.NormFloat64())
			b[i] = 0.7*a[i] + float32(90*rng.NormFloat64())
		}
		mean := func(v []float32) (m, s float64) {
			for _, x := range v {
				m += float64(x) / float64(n)
			}
			for _, x := range v {
				s += (float64(x) - m) * (float64(x) - m) / float64(n)
			}
			return m, math.Sqrt(s)
		}
		ma, sa := mean(a)
		mb, sb := mean(b)
		want := 0.0
		for i := range a {
			want += (float64(a[i]) - ma) / (sa + 1e-8) * ((float64(b[i]) - mb) / (sb + 1e-8)) / float64(n)
		}
		if got := NCC(a, b); math.Abs(got-want) > 1e-9 {
			t.Errorf("n %d: correlation %v, want %v", n, got, want)
		}
		// in two parts
		var m Moments
		for _, c := range [][2]int{{0, n / 3}, {n / 3, n}} {
			a, b := a[c[0]:c[1]], b[c[0]:c[1]]
			p := Moments{N: int64(len(a)), AB: dot(a, b)}
			p.A, p.AA = Sums(a)
			p.B, p.BB = Sums(b)
			m.Add(p)
		}
		if got := m.NCC(); math.Abs(got-want) > 1e-9 {
			t.Errorf("n %d: correlation in two parts %v, want %v", n, got, want)
		}
	}
	flat := slices.Repeat([]float32{500.3}, 1000)
	ramp := make([]float32, 1000)
	for i := range ramp {
		ramp[i] = float32(i)
	}
	if got := NCC(flat, ramp); got != 0 {
		t.Errorf("a constant image correlates by %v, want 0", got)
	}
	if got := NCC(make([]float32, 1000), make([]float32, 1000)); got != 0 {
		t.Errorf("two empty images correlate by %v, want 0", got)
	}
	ramp[3] = float32(math.NaN())
	if got := NCC(ramp, ramp); got == got {
		t.Errorf("images with NaN correlate by %v, want NaN", got)
	}
}

// SimpleITK's Resample with an Euler2DTransform.
func TestRigidGolden(t *testing.T) {
	for _, p := range golden.Primitives(t, "euler2d") {
		var args struct {
			Cases map[string]struct {
				Angle float64 `json:"angle_deg"`
				TX    float64 `json:"tx"`
				TY    float64 `json:"ty"`
				CX    float64 `json:"cx"`
				CY    float64 `json:"cy"`
			}
			Fill float64
		}
		var tol struct {
			Rel, Abs float64
			Off      float64 `json:"max_fraction_off"`
		}
		if err := json.Unmarshal(p.Args, &args); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(p.RawTolerance, &tol); err != nil {
			t.Fatal(err)
		}
		in := p.Arrays["in"]
		src := dtype.Slice[float32](in.Data)
		ny, nx := in.Shape[0], in.Shape[1]
		for name, c := range args.Cases {
			bothWays(t, func(t *testing.T) {
				want := dtype.Slice[float32](p.Arrays[name].Data)
				got := make([]float32, ny*nx)
				r := Rigid{c.Angle * math.Pi / 180, c.TX, c.TY, c.CX, c.CY}
				r.Resample(got, src, ny, nx, 0, ny, float32(args.Fill))
				off := 0
				for i := range got {
					if d := math.Abs(float64(got[i] - want[i])); d > tol.Abs+tol.Rel*math.Abs(float64(want[i])) {
						off++
					}
				}
				if float64(off) > tol.Off*float64(len(got)) {
					t.Errorf("%s: %d of %d pixels differ", name, off, len(got))
				}
			})
		}
	}
}

// Any transform, any size, any rows: the same bits with and without vectors, and
// in bands as in one piece.
func TestRigidSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		ny, nx := 1+rng.IntN(20), 1+rng.IntN(40)
		src := make([]float32, ny*nx)
		for i := range src {
			src[i] = rng.Float32() * 100
		}
		r := Rigid{rng.NormFloat64(), rng.NormFloat64() * 5, rng.NormFloat64() * 5, rng.Float64() * 20, rng.Float64() * 20}
		if rng.IntN(20) == 0 {
			r.TX = []float64{math.NaN(), math.Inf(1), 1e300, -1e18}[rng.IntN(4)]
		}
		whole := make([]float32, ny*nx)
		was := useAVX2
		useAVX2 = false
		r.Resample(whole, src, ny, nx, 0, ny, -7)
		useAVX2 = was
		got := make([]float32, ny*nx)
		cut := rng.IntN(ny)
		r.Resample(got[cut*nx:], src, ny, nx, cut, ny, -7)
		r.Resample(got[:cut*nx], src, ny, nx, 0, cut, -7)
		if i := differAt(got, whole); i >= 0 {
			t.Fatalf("%+v on %d×%d: pixel %d is %v, want %v", r, ny, nx, i, got[i], whole[i])
		}
	}
}

func BenchmarkStackOperators(b *testing.B) {
	const n = 1200
	plane, other := make([]float32, n*n), make([]float32, n*n)
	for i := range plane {
		plane[i], other[i] = float32(i%977), float32(i%1013)
	}
	b.Run("mix", func(b *testing.B) {
		b.SetBytes(4 * n * n)
		for b.Loop() {
			Mix(plane, other, 0.3, 1.1)
		}
	})
	b.Run("dots", func(b *testing.B) {
		b.SetBytes(4 * 4 * n)
		var d [4]float64
		for b.Loop() {
			Dots(d[:], plane[:n], [][]float32{other[:n], other[n : 2*n], other[2*n : 3*n], other[3*n : 4*n]})
		}
	})
	b.Run("rigid", func(b *testing.B) {
		b.SetBytes(4 * n * n)
		out := make([]float32, n*n)
		for b.Loop() {
			Rigid{0.01, 1.3, -2.1, 600, 600}.Resample(out, plane, n, n, 0, n, 3)
		}
	})
}
