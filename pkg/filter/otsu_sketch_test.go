package filter

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The threshold in one pass is that of the values within a bin.
func TestOtsuSketch(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 20 {
		low, high := 1+10*r.Float64(), 20+200*r.Float64()
		v := []float32{0, -3, float32(math.NaN()), float32(math.Inf(1))}
		for i := range 20000 {
			centre := low
			if i%3 == 0 {
				centre = high
			}
			v = append(v, float32(centre*(1+0.2*r.NormFloat64())))
		}
		want, ok := PositiveOtsu(v)
		a := NewOtsuSketch()
		a.Add(v[:7000])
		a.Add(v[7000:])
		got, found := a.Threshold()
		lo, hi, n := PositiveRange(v)
		if width := float64(hi-lo) / 256; !ok || !found || math.Abs(got-want) > 1.5*width || n != a.Count() {
			t.Errorf("threshold %v of %d, want %v of %d ± %v", got, a.Count(), want, n, width)
		}
	}
	for _, flat := range [][]float32{nil, {0, -1}, {3, 3}} {
		s := NewOtsuSketch()
		s.Add(flat)
		if got, ok := s.Threshold(); ok {
			t.Errorf("%v has the threshold %v", flat, got)
		}
	}
}
