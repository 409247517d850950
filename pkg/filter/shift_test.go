package filter

import (
	"math"
	"testing"
)

// A shift is linear interpolation between samples, with half a sample of the edges repeated, from any part of the
// input.
func TestShift(t *testing.T) {
	const n = 7
	in := make([]float32, n)
	for i := range in {
		in[i] = float32(i*i%11) - 3
	}
	for _, d := range []float64{0, 3, 2.25, 0.5, 5.999999999, -1.75, -3, 4.75, 100, -100} {
		for _, length := range []int{1, 5, 12} {
			s := NewShift(n, length, d)
			at := math.Round(d*1e6) / 1e6
			for p := range length {
				q := float64(p) - at
				if inside := q >= -0.5 && q <= n-0.5; inside != (p >= s.From && p < s.To) {
					t.Fatalf("shift %v onto %d: output %d is inside: %v, range %d…%d", d, length, p, inside, s.From, s.To)
				}
			}
			for from := s.From; from < s.To; from++ {
				for to := from + 1; to <= s.To; to++ {
					start, end := s.Needs(from, to)
					if start < 0 || end > n || start >= end {
						t.Fatalf("shift %v: outputs %d…%d need %d…%d", d, from, to, start, end)
					}
					src, got := in[start:end:end], make([]float32, to-from)
					s.Row(got, src, start, from, to)
					for i, v := range got {
						q := min(max(float64(from+i)-at, 0), n-1)
						k := min(int(q), n-2)
						want := float64(in[k]) + (float64(in[k+1])-float64(in[k]))*(q-float64(k))
						if math.Abs(float64(v)-want) > 1e-6 {
							t.Errorf("shift %v: output %d is %v, want %v", d, from+i, v, want)
						}
						var one [1]float32
						if s.Rows(one[:], src, start, from+i, 1); one[0] != v {
							t.Errorf("shift %v: row %d is %v, along a row %v", d, from+i, one[0], v)
						}
					}
				}
			}
		}
	}
	nan := float32(math.NaN())
	var got [2]float32
	if NewShift(3, 5, 2.0000000004).Row(got[:], []float32{1, nan, 3}, 0, 2, 4); got[0] != 1 {
		t.Errorf("a whole shift mixes neighbours: %v", got)
	}
}
