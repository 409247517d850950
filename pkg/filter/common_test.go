package filter

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestBracketMedian(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	hits := 0
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	special := []float32{nan, -nan, inf, -inf, 0, float32(math.Copysign(0, -1)), 1e-45, -1e-45, math.MaxFloat32, 18, 30, 10, 35}
	for trial := range 400 {
		n := 1 + rng.IntN(300)
		a, b := make([]float32, n), make([]float32, n)
		var both [2][]float32
		for i := range a {
			a[i], b[i] = float32(rng.IntN(50)-5), float32(rng.NormFloat64()*10+20)
			if rng.IntN(20) == 0 {
				a[i] = special[rng.IntN(len(special))]
			}
			if rng.IntN(20) == 0 {
				b[i] = special[rng.IntN(len(special))]
			}
			if a[i] > 0 && b[i] > 0 {
				both[0], both[1] = append(both[0], a[i]), append(both[1], b[i])
			}
		}
		var brackets [2][]*Bracket
		for w := range 3 {
			pair := [2]*Bracket{{Lo: 18, Hi: 30, Cap: 60}, {Lo: 10, Hi: 35, Cap: 1000}}
			AddCommon(a[w*n/3:(w+1)*n/3], b[w*n/3:(w+1)*n/3], pair[0], pair[1])
			brackets[0], brackets[1] = append(brackets[0], pair[0]), append(brackets[1], pair[1])
		}
		if got := CountCommon(a, b); got != len(both[0]) {
			t.Fatalf("%d elements are common, want %d", got, len(both[0]))
		}
		for i := range 2 {
			want := sortedPercentile(both[i], 50)
			got, ok := BracketMedian(brackets[i])
			if ok && got != want && !(got != got && want != want) {
				t.Fatalf("trial %d: median %v, want %v", trial, got, want)
			}
			if ok {
				hits++
			}
		}
	}
	if hits < 200 {
		t.Errorf("only %d medians were found", hits)
	}
	if _, ok := BracketMedian([]*Bracket{{Lo: 1, Hi: 2, Cap: 1, n: 2, full: true}}); ok {
		t.Error("a full bracket makes a median")
	}
}

// The same brackets with and without vectors, and as by comparing one by one.
func TestAddCommon(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	special := []float32{nan, inf, -inf, 0, float32(math.Copysign(0, -1)), 1e-45, -1e-45, math.MaxFloat32, 40, 60, 30, 50}
	for trial := range 60 {
		n := rng.IntN(50)
		if trial%10 == 0 {
			n = 2000 + rng.IntN(4000)
		}
		a, b := make([]float32, n), make([]float32, n)
		for i := range a {
			a[i], b[i] = rng.Float32()*100-5, rng.Float32()*100-5
			if rng.IntN(8) == 0 {
				a[i] = special[rng.IntN(len(special))]
			}
			if rng.IntN(8) == 0 {
				b[i] = special[rng.IntN(len(special))]
			}
		}
		limit := 1 + rng.IntN(2000)
		hi := []float32{60, inf, 40}[trial%3]
		want := [2]Bracket{{Lo: 40, Hi: hi, Cap: limit}, {Lo: []float32{30, 0}[trial%2], Hi: 50, Cap: 10000}}
		for i := range a {
			if a[i] > 0 && b[i] > 0 {
				for k, v := range []float32{a[i], b[i]} {
					w := &want[k]
					w.n++
					if v < w.Lo {
						w.below++
					} else if v <= w.Hi {
						if len(w.inside) == w.Cap {
							w.full = true
						} else {
							w.inside = append(w.inside, v)
						}
					}
				}
			}
		}
		bothWays(t, func(t *testing.T) {
			got := [2]Bracket{{Lo: want[0].Lo, Hi: want[0].Hi, Cap: want[0].Cap}, {Lo: want[1].Lo, Hi: want[1].Hi, Cap: want[1].Cap}}
			AddCommon(a, b, &got[0], &got[1])
			for k := range got {
				if g, w := got[k], want[k]; g.n != w.n || g.below != w.below || g.full != w.full || differAt(g.inside, w.inside) >= 0 || len(g.inside) != len(w.inside) {
					t.Fatalf("%d elements, bracket %d: %d values, %d below, %d within (%v), want %d, %d, %d (%v)", n, k, g.n, g.below, len(g.inside), g.full, w.n, w.below, len(w.inside), w.full)
				}
			}
		})
	}
}
