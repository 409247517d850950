package filter

import "slices"

// MovingAverage averages over a window of min(w, n) values; an even window has one more value before the centre
// than after it. The first and last ⌊w/2⌋ values stay unchanged. A window of 0 or 1 changes nothing.
func MovingAverage(raw []float64, w int) []float64 {
	w = min(w, len(raw))
	out := slices.Clone(raw)
	if w < 2 {
		return out
	}
	for i := w / 2; i < len(raw)-w/2; i++ {
		sum := 0.0
		for _, v := range raw[i-w/2 : i-w/2+w] {
			sum += v
		}
		out[i] = sum / float64(w)
	}
	return out
}
