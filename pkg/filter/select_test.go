package filter

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"strata/pkg/dtype"
	"strata/tests/golden"
)

func TestPercentilesAgainstSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 1; n < 100_000; n += 1 + n/9 {
		if n > 400 && n < manyValues/2 {
			continue
		}
		for kind := range 5 {
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
				case 4:
					v[i] = 1 + float32(i)*1e-8 // alike in their upper bits
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

func TestPercentilesGolden(t *testing.T) {
	for _, p := range golden.Primitives(t, "percentile") {
		v := dtype.Slice[float32](p.Arrays["in"].Data)
		q := dtype.Slice[float64](p.Arrays["q"].Data)
		want := dtype.Slice[float64](p.Arrays["out"].Data)
		for i, got := range Percentiles(slices.Clone(v), q...) {
			if math.Abs(got-want[i]) > p.Tolerance.Rel*math.Abs(want[i]) {
				t.Errorf("%s: percentile %v is %v, want %v", p.File, q[i], got, want[i])
			}
		}
	}
}

func TestMedian(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		v    []float32
		want float64
	}{{[]float32{3}, 3}, {[]float32{4, 1}, 2.5}, {[]float32{9, nan, 1, 2}, 2}, {[]float32{5, 5, 5, 1, 9, 9}, 5}, {nil, math.NaN()}} {
		if got := Percentiles(slices.Clone(c.v), 50)[0]; got != c.want && !(got != got && c.want != c.want) {
			t.Errorf("median of %v is %v, want %v", c.v, got, c.want)
		}
	}
}
