package filter

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"strata/pkg/dtype"
)

var awkward = []float32{0, -0.5, 0.5, 1.5, 2.5, 254.5, 255.5, 32766.5, 32767.5, -32768.5, 65534.5, 65535.5, 1e9, 3e9, -3e9, 1e38, -1e38,
	float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e-40}

func testConvert[T dtype.Element](t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	for n := range 100 {
		src := make([]float32, n)
		for i := range src {
			if src[i] = float32(rng.NormFloat64() * 40000); i%3 == 0 {
				src[i] = awkward[rng.IntN(len(awkward))]
			}
		}
		want := make([]T, n)
		dtype.ConvertSlice(want, dtype.Bytes(src), dtype.Float32)
		got := make([]T, n)
		FromFloat32(got, src)
		if !slices.EqualFunc(got, want, func(a, b T) bool { return a == b || a != a && b != b }) {
			t.Fatalf("%d elements: %v becomes %v, want %v", n, src, got, want)
		}
		back := make([]float32, n)
		ToFloat32(back, got)
		for i, v := range got {
			if f := float32(v); back[i] != f && f == f {
				t.Fatalf("%v becomes %v", v, back[i])
			}
		}
	}
}

func TestConvert(t *testing.T) {
	t.Run("uint8", testConvert[uint8])
	t.Run("int8", testConvert[int8])
	t.Run("uint16", testConvert[uint16])
	t.Run("int16", testConvert[int16])
	t.Run("uint32", testConvert[uint32])
	t.Run("int64", testConvert[int64])
	t.Run("float32", testConvert[float32])
	t.Run("float64", testConvert[float64])
}

func TestCountNonFinite(t *testing.T) {
	for n := range 70 {
		v := make([]float32, n)
		want := int64(0)
		for i := range v {
			if v[i] = awkward[(i*7+n)%len(awkward)]; v[i]-v[i] != 0 {
				want++
			}
		}
		wide := make([]float64, n)
		ToFloat32(v, v)
		for i, f := range v {
			wide[i] = float64(f)
		}
		if got := CountNonFinite(v); got != want {
			t.Errorf("%v: %d, want %d", v, got, want)
		}
		if got := CountNonFinite(wide); got != want {
			t.Errorf("float64 %v: %d, want %d", v, got, want)
		}
	}
	if CountNonFinite([]uint16{1, 65535}) != 0 {
		t.Error("integers are finite")
	}
}

// What is passed over lies below the limit, and what is not begins with a vector
// that does not.
func TestBelowVector(t *testing.T) {
	for n := range 70 {
		for limit, large := range map[uint32]float32{0: 0, 1: -1e-45, 0x42c80000: -100, 0x42c80001: float32(math.NaN()), 0x7f800000: float32(math.Inf(-1))} {
			for at := range n + 1 {
				v := make([]float32, n)
				for i := range v {
					v[i] = math.Float32frombits((max(limit, 1) - 1) | uint32(i%2)<<31)
				}
				if at < n {
					v[at] = large
				}
				want := min(at, n) &^ 7
				if limit == 0 || !useAVX2 {
					want = 0
				}
				if got := belowVector(v, limit); got != want {
					t.Fatalf("%d values, %v at %d, limit %#x: %d, want %d", n, large, at, limit, got, want)
				}
			}
		}
	}
}

func TestLn(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	v := []float32{1, 2, 0.5, math.MaxFloat32, math.SmallestNonzeroFloat32, 1e-39, 0x1p-126, float32(math.E), 0, float32(math.Copysign(0, -1)), -3,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0.70710677, 0.7071068, 1.4142135, 1.4142137}
	for range 20000 {
		v = append(v, math.Float32frombits(rng.Uint32()&0x7fffffff))
	}
	got := slices.Clone(v)
	Ln(got)
	scalar := slices.Clone(v)
	was := useAVX2
	useAVX2 = false
	Ln(scalar)
	useAVX2 = was
	for i, x := range v {
		if math.Float32bits(got[i]) != math.Float32bits(scalar[i]) {
			t.Fatalf("ln %v: %v with AVX2, %v without", x, got[i], scalar[i])
		}
		if !(x > 0 && x <= math.MaxFloat32) {
			if math.Float32bits(got[i]) != math.Float32bits(x) {
				t.Fatalf("%v becomes %v", x, got[i])
			}
			continue
		}
		want := math.Log(float64(x))
		if math.Abs(float64(got[i])-want) > 2.4e-7*math.Abs(want)+1e-9 {
			t.Fatalf("ln %v = %v, want %v", x, got[i], want)
		}
	}
}
