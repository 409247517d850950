package filter

import (
	"math"
	"math/rand/v2"
	"sort"
	"sync"
	"testing"
)

// sortedPercentile is the definition, on a sorted copy.
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

// quantiles runs both passes, the values in uneven pieces.
func quantiles(v []float32, p ...float64) []float64 {
	q := NewQuantiles(p...)
	for pass := range 2 {
		for i := 0; i < len(v); i += 37 + pass {
			q.Add(v[i:min(len(v), i+37+pass)])
		}
		if pass == 0 {
			q.Refine()
		}
	}
	out := make([]float64, len(p))
	for i := range p {
		out[i] = q.Value(i)
	}
	return out
}

func TestQuantilesAgainstSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 1; n < 400; n += 1 + n/6 {
		for kind := range 5 {
			v := make([]float32, n)
			for i := range v {
				switch kind {
				case 0:
					v[i] = rng.Float32()
				case 1:
					v[i] = float32(rng.IntN(3)) // many ties
				case 2:
					v[i] = float32(i - n/2) // both signs
				case 3:
					v[i] = -float32(i * i)
				case 4:
					v[i] = 1 + float32(i)*1e-7 // one bin of the first pass
				}
				if rng.IntN(10) == 0 {
					v[i] = float32(math.NaN())
				}
			}
			p := []float64{0, 0.1, 25, 50, 99.9, 100}
			for i, got := range quantiles(v, p...) {
				want := sortedPercentile(v, p[i])
				if math.Abs(got-want) > 1e-12*math.Abs(want) && !(got != got && want != want) {
					t.Fatalf("n %d kind %d: percentile %v = %v, want %v", n, kind, p[i], got, want)
				}
			}
		}
	}
}

func TestQuantilesOfInfinities(t *testing.T) {
	inf := float32(math.Inf(1))
	got := quantiles([]float32{inf, inf, 1, -inf}, 0, 50, 100)
	if !math.IsInf(got[0], -1) || !math.IsInf(got[1], 1) || !math.IsInf(got[2], 1) {
		t.Errorf("got %v", got)
	}
	if got := quantiles(nil, 50)[0]; got == got {
		t.Errorf("the median of nothing is %v", got)
	}
}

// Positive values, counted by several goroutines, give the percentiles of these alone.
func TestPositiveQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for n := 0; n < 5000; n += 1 + n/3 {
		v := make([]float32, n)
		var positive []float32
		for i := range v {
			switch rng.IntN(12) {
			case 0:
				v[i] = float32(math.NaN())
			case 1:
				v[i] = -rng.Float32()
			case 2:
				v[i] = float32(math.Copysign(0, float64(rng.IntN(2))-0.5))
			case 3:
				v[i] = math.SmallestNonzeroFloat32 * float32(rng.IntN(3))
			case 4:
				v[i] = float32(math.Inf(1 - 2*rng.IntN(2)))
			default:
				v[i] = float32(math.Exp(float64(rng.Float32() * 3)))
			}
			if v[i] > 0 {
				positive = append(positive, v[i])
			}
		}
		p := []float64{0, 1, 30, 99.9}
		q := NewQuantiles(p...)
		for range 2 {
			var all sync.WaitGroup
			for i := 0; i < n; i += 1001 {
				all.Go(func() { q.AddPositive(v[i:min(n, i+1001)]) })
			}
			all.Wait()
			if !q.refined {
				q.Refine()
			}
		}
		for i := range p {
			want := quantiles(positive, p[i])[0]
			if got := q.Value(i); got != want && !(got != got && want != want) {
				t.Errorf("n %d: percentile %v is %v, want %v", n, p[i], got, want)
			}
		}
	}
}
