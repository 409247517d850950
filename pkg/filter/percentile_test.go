package filter

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

// sorted is the definition, on a sorted copy.
func sortedPercentile(v []float32, q float64) float64 {
	var s []float64
	for _, f := range v {
		if f == f {
			s = append(s, float64(f))
		}
	}
	if len(s) == 0 {
		return math.NaN()
	}
	sort.Float64s(s)
	pos := float64(len(s)-1) * q / 100
	k := int(pos)
	if k+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[k] + (s[k+1]-s[k])*(pos-float64(k))
}

func TestPercentilesAgainstSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 1; n < 400; n += 1 + n/9 {
		for kind := range 4 {
			v := make([]float32, n)
			for i := range v {
				switch kind {
				case 0:
					v[i] = rng.Float32()
				case 1:
					v[i] = float32(rng.IntN(3)) // many ties
				case 2:
					v[i] = float32(i) // sorted already
				case 3:
					v[i] = -float32(i * i)
				}
				if rng.IntN(10) == 0 {
					v[i] = float32(math.NaN())
				}
			}
			q := []float64{0, 0.1, 25, 50, 99.9, 100}
			want := make([]float64, len(q))
			for i := range q {
				want[i] = sortedPercentile(v, q[i])
			}
			for i, got := range Percentiles(v, q...) {
				if math.Abs(got-want[i]) > 1e-12*math.Abs(want[i]) && !(got != got && want[i] != want[i]) {
					t.Fatalf("n %d kind %d: percentile %v = %v, want %v", n, kind, q[i], got, want[i])
				}
			}
		}
	}
}

func TestPercentilesOfInfinities(t *testing.T) {
	inf := float32(math.Inf(1))
	if got := Percentiles([]float32{inf, inf, 1}, 0, 50, 100); got[0] != 1 || !math.IsInf(got[1], 1) || !math.IsInf(got[2], 1) {
		t.Errorf("got %v", got)
	}
}

// A worst case for a fixed pivot takes linear time: 2²⁰ values with a pattern
// that a median of first, middle and last splits badly.
func TestSelectionStaysLinear(t *testing.T) {
	n := 1 << 20
	v := make([]float32, n)
	for i := range v {
		if i%2 == 0 {
			v[i] = float32(i)
		} else {
			v[i] = float32(n - i)
		}
	}
	if got := Percentiles(v, 50)[0]; got < float64(n)/2-2 || got > float64(n)/2+2 {
		t.Errorf("median %v", got)
	}
}
