package filter

import "math"

// Hann returns the rising half of a Hann window over n ≥ 2 samples, w[k] = ½·(1 − cos(π·k/(n−1))), from 0 to
// 1 (stages specification, stack: assembly). For n = 1 it returns 0.
func Hann(n int) []float64 {
	w := make([]float64, n)
	for k := range w {
		if n > 1 {
			w[k] = 0.5 * (1 - math.Cos(math.Pi*float64(k)/float64(n-1)))
		}
	}
	return w
}

// Mix blends a row of moving voxels, times gain, into a row of fixed ones of the same length. Where both are
// above 0, fixed = (1−w)·fixed + w·(gain·moving); where only one is, the result is that one, and otherwise 0.
// NaN is not above 0. gain·moving is rounded to float32, the two products and their sum to float64, and the
// result to float32.
func Mix(fixed, moving []float32, w float64, gain float32) {
	n := mixVector(fixed, moving, w, gain)
	u := 1 - w
	for i := n; i < len(fixed); i++ {
		f, m := fixed[i], moving[i]*gain
		switch {
		case f > 0 && m > 0:
			fixed[i] = float32(float64(u*float64(f)) + float64(w*float64(m)))
		case f > 0:
		case m > 0:
			fixed[i] = m
		default:
			fixed[i] = 0
		}
	}
}
