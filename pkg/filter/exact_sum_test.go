package filter

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// The mean is that of the numbers' sum without rounding, in any order.
func TestExactSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, kind := range []func() float32{
		func() float32 { return rng.Float32() * 1000 },
		func() float32 { return float32(rng.NormFloat64()) },
		func() float32 { return math.Float32frombits(rng.Uint32() &^ (1 << 30)) }, // up to 2, down to the smallest
	} {
		var s, a, b ExactSum
		want, n := new(big.Float).SetPrec(400), 0
		for i := range 20000 {
			f := kind()
			s.Add(f)
			if i%3 == 0 {
				a.Add(f)
			} else {
				b.Add(f)
			}
			if f-f == 0 {
				want.Add(want, big.NewFloat(float64(f)))
				n++
			}
		}
		s.Add(float32(math.NaN()))
		s.Add(float32(math.Inf(-1)))
		b.Merge(&a)
		exact, _ := want.Quo(want, big.NewFloat(float64(n))).Float64()
		if got := s.Mean(); math.Abs(got-exact) > 1e-15*math.Abs(exact)*float64(n) || s.Count() != int64(n) {
			t.Errorf("mean %v of %d, want %v of %d", got, s.Count(), exact, n)
		}
		if b != s {
			t.Errorf("in another order: %v, want %v", b.Mean(), s.Mean())
		}
	}
	if m := new(ExactSum).Mean(); m == m {
		t.Errorf("the mean of nothing is %v", m)
	}
}
