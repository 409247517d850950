package filter

import "math"

// OtsuSketch finds Otsu's threshold of positive numbers in one pass, without knowing their range. It counts numbers by
// their upper bits, which distinguish about one part in two thousand, and assigns these counts to histogram bins after
// the last number. It is not safe for concurrent use.
type OtsuSketch struct {
	low, high float32
	n         int64
	counts    []int64
}

// sketchShift is the number of lower bits of a float32 that the sketch does not see.
const sketchShift = 12

// OtsuSketchBytes is the memory of a sketch.
const OtsuSketchBytes = 8 << (31 - sketchShift)

// NewOtsuSketch returns a sketch of no numbers.
func NewOtsuSketch() *OtsuSketch {
	return &OtsuSketch{low: float32(math.Inf(1)), high: float32(math.Inf(-1)), counts: make([]int64, OtsuSketchBytes/8)}
}

// Add counts the finite numbers above 0.
func (s *OtsuSketch) Add(v []float32) {
	low, high, n := PositiveRange(v)
	s.low, s.high, s.n = min(s.low, low), max(s.high, high), s.n+n
	for _, f := range v {
		if f > 0 && f <= math.MaxFloat32 {
			s.counts[math.Float32bits(f)>>sketchShift]++
		}
	}
}

// Count returns the number of numbers.
func (s *OtsuSketch) Count() int64 { return s.n }

// Threshold returns the threshold as [OtsuHistogram] does, with 256 bins between the smallest and the largest number.
// ok is false if these do not differ.
func (s *OtsuSketch) Threshold() (t float64, ok bool) {
	h := NewOtsuHistogram(float64(s.low), float64(s.high))
	scale := otsuBins / (h.high - h.low)
	if s.n == 0 || !(scale > 0) || math.IsInf(scale, 0) {
		return 0, false
	}
	for k, c := range s.counts {
		if c == 0 {
			continue
		}
		centre := math.Float32frombits(uint32(k)<<sketchShift | 1<<(sketchShift-1))
		v := min(max(float64(centre), h.low), h.high)
		h.counts[min(otsuBins-1, int((v-h.low)*scale))] += c
	}
	return h.Threshold()
}
