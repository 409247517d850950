package filter

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The correlations of all displacements are those of the overlaps, one by one.
func TestCorrelator(t *testing.T) {
	const h, w = 21, 34
	rng := rand.New(rand.NewPCG(8, 8))
	a, b := make([]float32, h*w), make([]float32, h*w)
	for i := range a {
		a[i], b[i] = float32(100+rng.NormFloat64()), float32(-3+rng.NormFloat64())
	}
	c := NewCorrelator(h, w)
	r := Displacements{[2]int{-15, -20}, [2]int{18, 33}}
	got := c.Correlate(c.Spectrum(nil, a), c.Spectrum(nil, b), r, 12)
	n := r.Size()
	for i, g := range got {
		dy, dx := r.First[0]+i/n[1], r.First[1]+i%n[1]
		ny, nx := h-max(dy, -dy), w-max(dx, -dx)
		want := 0.0
		if nx > 0 && ny*nx >= 12 {
			want = NCC(Crop(a, w, [2]int{max(dy, 0), max(dx, 0)}, ny, nx), Crop(b, w, [2]int{max(-dy, 0), max(-dx, 0)}, ny, nx))
		}
		if math.Abs(float64(g)-want) > 1e-4 {
			t.Fatalf("displacement (%d, %d): %v, want %v", dy, dx, g, want)
		}
	}
}

// The highest maxima come first, none beside a higher one, none at the border.
func TestPeaks(t *testing.T) {
	r := Displacements{[2]int{-3, 10}, [2]int{3, 19}}
	v := make([]float32, 70)
	v[3*10+4], v[3*10+6], v[5*10+8], v[0], v[1*10+1] = 5, 4, 3, 9, -1
	got := r.Peaks(v, 3, 3)
	if len(got) != 2 || got[0] != (Peak{[2]int{0, 14}, 5}) || got[1] != (Peak{[2]int{2, 18}, 3}) {
		t.Errorf("%+v", got)
	}
}
