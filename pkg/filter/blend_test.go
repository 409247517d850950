package filter

import (
	"math"
	"math/rand/v2"
	"testing"
)

// odd are values that a row may hold, NaN and infinities among them.
func odd(rng *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		switch rng.IntN(12) {
		case 0:
			out[i] = float32(math.NaN())
		case 1:
			out[i] = float32(math.Inf(1 - 2*rng.IntN(2)))
		case 2:
			out[i] = 0
		default:
			out[i] = float32(rng.NormFloat64() * 1000)
		}
	}
	return out
}

func equalBits(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) && (a[i] == a[i] || b[i] == b[i]) {
			return i
		}
	}
	return -1
}

func TestBlendVectorIsScalar(t *testing.T) {
	defer func(old bool) { useAVX2 = old }(useAVX2)
	if !useAVX2 {
		t.Skip("no vector version here")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		acc, v, w := odd(rng, n), odd(rng, n), make([]float32, n)
		for i := range w {
			w[i] = []float32{0, 1, 1.5, rng.Float32(), rng.Float32()}[rng.IntN(5)]
		}
		f := rng.Float32() - 0.5
		var got, between [2][]float32
		for k := range 2 {
			useAVX2 = k == 1
			got[k] = append([]float32(nil), acc...)
			Blend(got[k], v, w)
			between[k] = make([]float32, n)
			Between(between[k], acc, v, f)
		}
		if i := equalBits(got[0], got[1]); i >= 0 {
			t.Fatalf("%d elements, blend %v and %v by %v: scalar %v, vector %v", n, acc[i], v[i], w[i], got[0][i], got[1][i])
		}
		if i := equalBits(between[0], between[1]); i >= 0 {
			t.Fatalf("%d elements, between %v and %v: scalar %v, vector %v", n, acc[i], v[i], between[0][i], between[1][i])
		}
	}
}

func TestBlendIsAWeightedMean(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 37
	acc, want, sum := make([]float64, n), make([]float64, n), make([]float64, n)
	for range 5 {
		v, alpha := make([]float64, n), make([]float32, n)
		for i := range v {
			v[i] = rng.Float64()
			w := rng.Float64() + 0.1
			sum[i] += w
			want[i] += w * v[i]
			alpha[i] = float32(w / sum[i])
		}
		Blend(acc, v, alpha)
	}
	for i := range acc {
		if d := math.Abs(acc[i] - want[i]/sum[i]); d > 1e-6 {
			t.Errorf("element %d: %v, want %v", i, acc[i], want[i]/sum[i])
		}
	}
}

func TestBlendOfEqualValuesIsTheValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	v, w := make([]float32, 100), make([]float32, 100)
	for i := range v {
		v[i], w[i] = rng.Float32()*1e5, rng.Float32()
	}
	acc := append([]float32(nil), v...)
	Blend(acc, v, w)
	if i := equalBits(acc, v); i >= 0 {
		t.Errorf("element %d: %v from twice %v", i, acc[i], v[i])
	}
	nan := float32(math.NaN())
	acc = []float32{nan, 3, nan, 5}
	Blend(acc, []float32{2, nan, nan, 7}, []float32{0.2, 0.2, 0.2, 1})
	if acc[0] != 2 || acc[1] != 3 || acc[2] == acc[2] || acc[3] != 7 {
		t.Errorf("blend with NaN: %v", acc)
	}
	inf := float32(math.Inf(1))
	for n := range 2 { // by the scalar version and, where there is one, the vector's
		acc = []float32{inf, -inf, 3, inf, 5, 5, inf, nan}
		v = []float32{inf, -inf, inf, 4, inf, -inf, -inf, inf}
		w = []float32{0.5, 0.5, 0.5, 0.5, 0, 1, 0.5, 0}
		want := []float32{inf, -inf, inf, inf, 5, -inf, nan, inf}
		acc, v, w = acc[n:], v[n:], w[n:]
		Blend(acc, v, w)
		if i := equalBits(acc, want[n:]); i >= 0 {
			t.Errorf("blend %v with infinite %v by %v: %v, want %v", i, v[i], w[i], acc[i], want[n+i])
		}
	}
}
