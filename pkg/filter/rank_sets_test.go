package filter

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// The order statistics of each set are those of the sorted values, whatever the order and the goroutines.
func TestRankSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	percent := []float64{0, 50, 99.9, 100}
	var sets [][]float32
	for _, n := range []int{0, 1, 2, 3, 1000, 40000} {
		for _, kind := range []func() float32{
			func() float32 { return float32(rng.NormFloat64()) },
			func() float32 { return float32(rng.IntN(5)) },
			func() float32 { return 1 + rng.Float32()*1e-6 },
			func() float32 { return math.Float32frombits(rng.Uint32()) },
		} {
			v := make([]float32, n)
			for i := range v {
				v[i] = kind()
			}
			sets = append(sets, v)
		}
	}
	r := NewRankSets(len(sets), percent...)
	for r.Begin() {
		var wg sync.WaitGroup
		for k := range 3 {
			wg.Go(func() {
				for z, v := range sets {
					r.Add(z, v[k*len(v)/3:(k+1)*len(v)/3])
				}
			})
		}
		wg.Wait()
	}
	for z, v := range sets {
		sorted := slices.DeleteFunc(slices.Clone(v), func(f float32) bool { return f-f != 0 })
		slices.Sort(sorted)
		n := int64(len(sorted))
		if n != r.Count(z) {
			t.Fatalf("set %d: %d values, want %d", z, r.Count(z), n)
		}
		for i, p := range percent {
			lo, hi, w := r.Around(z, i)
			if n == 0 {
				if lo == lo || hi == hi {
					t.Errorf("set %d is empty and has a percentile %v", z, lo)
				}
				continue
			}
			a, b, wantW := Ranks(n, p)
			if lo != sorted[a] || hi != sorted[b] || w != wantW {
				t.Errorf("set %d, percentile %v: %v, %v, %v, want %v, %v, %v", z, p, lo, hi, w, sorted[a], sorted[b], wantW)
			}
		}
	}
}

// The threshold is scikit-image's threshold_otsu of the same values (0.26).
func TestPositiveOtsu(t *testing.T) {
	var v []float32
	for i := range 1000 {
		v = append(v, float32(10+i%7), float32(100+i%31))
	}
	v = append(v, 0, -5, float32(math.NaN()), float32(math.Inf(1)))
	got, ok := PositiveOtsu(v)
	if want := 15.859375; !ok || math.Abs(got-want) > 1e-9 {
		t.Errorf("threshold %v, want %v", got, want)
	}
	for _, flat := range [][]float32{nil, {0, -1}, {3, 3, 3}, {float32(math.NaN())}} {
		if got, ok := PositiveOtsu(flat); ok {
			t.Errorf("%v has the threshold %v", flat, got)
		}
	}
	a, b := NewOtsuHistogram(10, 130), NewOtsuHistogram(10, 130)
	a.Add(v[:900])
	b.Add(v[900:])
	a.Merge(b)
	if merged, ok := a.Threshold(); !ok || merged != got {
		t.Errorf("of two parts: %v, want %v", merged, got)
	}
}
