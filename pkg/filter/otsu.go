package filter

import "math"

// Otsu splits a histogram in two so that the variance between the classes is largest (Otsu, IEEE Transactions
// on Systems, Man, and Cybernetics 9, 1979): bins 0 … split−1 are one class, the rest the other. Of equal
// splits it returns the lowest. split is 0 if fewer than two bins have counts.
func Otsu(counts []int64) (split int) {
	var total, moment float64
	for i, c := range counts {
		total += float64(c)
		moment += float64(c) * float64(i)
	}
	best, low, lowMoment := 0.0, 0.0, 0.0
	for i, c := range counts {
		low += float64(c)
		lowMoment += float64(c) * float64(i)
		high := total - low
		if low == 0 || high == 0 {
			continue
		}
		d := lowMoment/low - (moment-lowMoment)/high
		if v := low * high * d * d; v > best {
			best, split = v, i+1
		}
	}
	return split
}

// otsuBins is the number of bins of an [OtsuHistogram].
const otsuBins = 256

// An OtsuHistogram counts values in 256 equal bins between two limits, to split them in two by [Otsu]'s method. The
// counts are integers, so that the order of the values does not matter.
type OtsuHistogram struct {
	low, high float64
	counts    [otsuBins]int64
}

// NewOtsuHistogram prepares for values from low to high.
func NewOtsuHistogram(low, high float64) *OtsuHistogram { return &OtsuHistogram{low: low, high: high} }

// Add counts the values that lie between the limits, both included. NaN does not.
func (h *OtsuHistogram) Add(v []float32) {
	scale := otsuBins / (h.high - h.low)
	if !(scale > 0) || math.IsInf(scale, 0) {
		return
	}
	for _, f := range v {
		if x := float64(f); x >= h.low && x <= h.high {
			h.counts[min(otsuBins-1, int((x-h.low)*scale))]++
		}
	}
}

// Merge adds the counts of a histogram with the same limits.
func (h *OtsuHistogram) Merge(p *OtsuHistogram) {
	for i, c := range p.counts {
		h.counts[i] += c
	}
}

// Threshold returns the centre of the last bin of the lower class. ok is false if fewer than two bins have counts.
func (h *OtsuHistogram) Threshold() (t float64, ok bool) {
	split := Otsu(h.counts[:])
	if split == 0 {
		return 0, false
	}
	width := (h.high - h.low) / otsuBins
	return h.low + float64(width*(float64(split)-0.5)), true
}

// PositiveRange returns the smallest and the largest of the finite values above 0, and their number. Without any, low
// is +Inf and high -Inf.
func PositiveRange(v []float32) (low, high float32, n int64) {
	low, high = float32(math.Inf(1)), float32(math.Inf(-1))
	for _, f := range v {
		if f > 0 && f <= math.MaxFloat32 {
			low, high = min(low, f), max(high, f)
			n++
		}
	}
	return low, high, n
}

// PositiveOtsu returns the threshold of the finite values above 0 by Otsu's method with 256 bins between the smallest
// and the largest. ok is false if these do not differ.
func PositiveOtsu(v []float32) (t float64, ok bool) {
	low, high, n := PositiveRange(v)
	if n == 0 {
		return 0, false
	}
	h := NewOtsuHistogram(float64(low), float64(high))
	h.Add(v)
	return h.Threshold()
}
