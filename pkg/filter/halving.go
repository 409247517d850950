package filter

// Taps lists the two samples of an axis from which each output sample is made:
//
//	out[i] = W0[i]·in[Lo[i]] + W1[i]·in[Hi[i]]
//
// An axis that is halved from an even number of samples has weights of 1: the sum is to be
// halved at the very end, together with those of the other axes.
type Taps struct {
	Lo, Hi []int32
	W0, W1 []float64
	Even   bool
}

// HalvingTaps places m = floor(n/2) output samples on an axis of n: sample i lies at (i+½)·n/m − ½. For
// an even n it is made from the samples 2i and 2i+1.
func HalvingTaps(n int) Taps {
	m := n / 2
	t := Taps{Lo: make([]int32, m), Hi: make([]int32, m), W0: make([]float64, m), W1: make([]float64, m), Even: n%2 == 0}
	for i := range m {
		switch num := (2*i+1)*n - m; { // the position × 2m, so that nothing is rounded
		case t.Even:
			t.Lo[i], t.Hi[i], t.W0[i], t.W1[i] = int32(2*i), int32(2*i+1), 1, 1
		case num%(2*m) == 0:
			// on a sample: its neighbour, which may be NaN, takes no part
			s := int32(num / (2 * m))
			t.Lo[i], t.Hi[i], t.W0[i], t.W1[i] = s, s, 0.5, 0.5
		default:
			r := num % (2 * m)
			t.Lo[i] = int32(num / (2 * m))
			t.Hi[i] = t.Lo[i] + 1
			t.W0[i] = float64(2*m-r) / float64(2*m)
			t.W1[i] = float64(r) / float64(2*m)
		}
	}
	return t
}
