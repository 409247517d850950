package filter

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// testValues returns values of which some are equal, some negative and some not finite.
func testValues(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		switch f := float32(r.NormFloat64()); r.IntN(50) {
		case 0:
			v[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), -float32(math.NaN())}[r.IntN(4)]
		case 1:
			v[i] = 0.25
		default:
			v[i] = f
		}
	}
	return v
}

func TestRankWindow(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 3, 99, 1000, 50_001} {
			for _, finite := range []bool{false, true} {
				v := testValues(n, uint64(n))
				if finite {
					v = slices.DeleteFunc(v, func(f float32) bool { return f-f != 0 })
				}
				for _, p := range []float64{0, 1, 50, 90, 99.9, 100} {
					w := NewRankWindow(Every(nil, v, 2000), p)
					half := len(v) / 2
					w.Add(v[:half])
					o := w.Fresh(nil)
					o.Add(v[half:])
					w.Merge(o)
					lo, hi, q, ok := w.Around()
					sorted := slices.DeleteFunc(slices.Clone(v), func(f float32) bool { return f-f != 0 })
					slices.Sort(sorted)
					if int(w.Count()) != len(sorted) || !ok {
						t.Fatalf("%d values, percentile %v: %d are finite, want %d; ok is %v", n, p, w.Count(), len(sorted), ok)
					}
					if len(sorted) == 0 {
						if lo == lo || hi == hi {
							t.Errorf("no values: %v, %v", lo, hi)
						}
						continue
					}
					a, b, want := Ranks(int64(len(sorted)), p)
					if lo != sorted[a] || hi != sorted[b] || q != want {
						t.Errorf("%d values, percentile %v: %v, %v, %v, want %v, %v, %v", n, p, lo, hi, q, sorted[a], sorted[b], want)
					}
					if n > 50_000 && w.Kept() > n/5 {
						t.Errorf("percentile %v of %d values: %d are kept", p, n, w.Kept())
					}
				}
			}
		}
	})
}

func TestRankWindowMisled(t *testing.T) {
	sample := make([]float32, 1000)
	for i := range sample {
		sample[i] = float32(i)
	}
	for _, far := range []float32{-5, 5000} {
		w := NewRankWindow(slices.Clone(sample), 50)
		all := slices.Repeat([]float32{far}, 10_000)
		w.Add(all)
		if lo, hi, _, ok := w.Around(); ok {
			t.Errorf("values of %v, a sample of 0…999: %v, %v", far, lo, hi)
		}
	}
}

func TestAddClipped(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		for _, n := range []int{1, 8, 13, 40} {
			const planes, stride = 5, 50
			src := testValues(planes*stride, 7)
			bad := int64(0)
			want, got := make([]float64, n), make([]float64, n)
			for p := range planes {
				for i, f := range src[p*stride:][:n] {
					if f-f != 0 {
						bad++
					}
					want[i] += min(float64(f), 0.5)
				}
			}
			if k := AddClipped(got, src, planes, stride, 0.5); k != bad {
				t.Errorf("%d values a plane: %d are not finite, want %d", n, k, bad)
			}
			for i := range want {
				if math.Float64bits(want[i]) != math.Float64bits(got[i]) && (want[i] == want[i] || got[i] == got[i]) {
					t.Errorf("%d values a plane: sum %d is %v, want %v", n, i, got[i], want[i])
				}
			}
		}
	})
}

func TestExactSumAddAll(t *testing.T) {
	v := append(testValues(1001, 3), 1e-40, -1e-40, 0, float32(math.Copysign(0, -1)))
	for _, clip := range []float32{0.5, float32(math.Inf(1)), -2} {
		var one, all ExactSum
		for _, f := range v {
			if f-f == 0 {
				one.Add(min(f, clip))
			}
		}
		all.AddAll(v[:500], clip)
		all.AddAll(v[500:], clip)
		if one != all {
			t.Errorf("clipped at %v: %v of %d, want %v of %d", clip, all.Mean(), all.Count(), one.Mean(), one.Count())
		}
	}
}

func TestPlaneVectors(t *testing.T) {
	v := append(testValues(1003, 4), 0, float32(math.Copysign(0, -1)))
	nan := float32(math.NaN())
	same := func(name string, a, b []float32) {
		t.Helper()
		for i := range a {
			if math.Float32bits(a[i]) != math.Float32bits(b[i]) && (a[i] == a[i] || b[i] == b[i]) {
				t.Errorf("%s: value %d (%v) becomes %v with vectors, %v without", name, i, v[i], a[i], b[i])
			}
		}
	}
	run := func(name string, f func(v []float32)) {
		a, b := slices.Clone(v), slices.Clone(v)
		f(a)
		scalar(func() { f(b) })
		same(name, a, b)
	}
	run("DividePlane", func(v []float32) { DividePlane(v, 1.3) })
	for _, l := range [][3]float32{{-0.2, 1.1, 0.7}, {0, 0, 1}, {0, nan, 2}, {1, -1, 3}} {
		run("ScalePlane", func(v []float32) { ScalePlane(v, l[0], l[1], l[2]) })
	}
}

func TestSum(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		for n := range 20 {
			v := make([]float32, n)
			var want [4]float64
			for i := range v {
				v[i] = float32(math.Exp(float64(7 * i % 31)))
				want[i%4] += float64(v[i])
			}
			if got := Sum(v); got != want[0]+want[1]+want[2]+want[3] {
				t.Errorf("%d values: %v, want %v", n, got, want)
			}
		}
	})
}
