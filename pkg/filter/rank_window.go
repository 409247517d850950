package filter

import (
	"math"
	"slices"
)

// RankWindow finds exact percentiles of values in memory in one pass, which keeps only those between two limits. A
// sample of the values says where to look:
//
//	w := filter.NewRankWindow(filter.Every(nil, v, 1<<16), 99.9)
//	w.Add(v)
//	lo, hi, t, ok := w.Around() // ok is false where the sample misled, which is rare: use [Quantiles] or [AllRanks] then
//
// NaN and infinite values are left out. A zero that is found has no sign.
//
// Use it for one percentile of values that must stay in their order, or of which a sample is known; [Percentiles] is
// simpler where they may change places, and needs no sample.
type RankWindow struct {
	percent   float64
	low, high float32
	n, below  int64 // finite values, and those below low
	found     []float32
	spoilt    bool
}

const (
	windowSigmas = 4   // standard deviations of a rank in a sample that a window spans on either side
	windowLeast  = 4   // ranks that it spans besides
	windowSample = 100 // values of a sample that says anything
)

// NewRankWindow returns a window for a percentile, 0…100, of values of which a sample is known. It reorders the sample.
func NewRankWindow(sample []float32, percent float64) *RankWindow {
	w := AllRanks(percent)
	sample = slices.DeleteFunc(sample, func(f float32) bool { return f-f != 0 })
	n := len(sample)
	if n < windowSample {
		return w
	}
	p := percent / 100
	at, margin := p*float64(n-1), float64(windowSigmas*math.Sqrt(float64(n)*p*(1-p)))+windowLeast
	if k := int(at - margin); at > margin {
		w.low = selectNth(sample, k)
	}
	if k := int(at + margin); k < n-1 {
		w.high = selectNth(sample, k+1)
	}
	return w
}

// AllRanks returns a window that keeps all finite values.
func AllRanks(percent float64) *RankWindow {
	return &RankWindow{percent: percent, low: -math.MaxFloat32, high: math.MaxFloat32}
}

// Every appends about n of the values of v to dst, evenly spaced.
func Every(dst, v []float32, n int) []float32 {
	step := max(1, len(v)/n) | 1 // odd, so as to meet all columns of most images
	for i := 0; i < len(v); i += step {
		dst = append(dst, v[i])
	}
	return dst
}

// Fresh returns an empty window with the same limits, which keeps values in spare memory as far as that suffices.
func (w *RankWindow) Fresh(spare []float32) *RankWindow {
	return &RankWindow{percent: w.percent, low: w.low, high: w.high, found: spare[:0]}
}

// windowPart is the number of values that are looked at while they are in the nearest cache.
const windowPart = 4096

// Add looks at values.
func (w *RankWindow) Add(v []float32) {
	for len(v) > 0 {
		part := v[:min(len(v), windowPart)]
		v = v[len(part):]
		bad := CountNonFinite(part)
		w.n += int64(len(part)) - bad
		for len(part) > 0 {
			n := 0
			if bad == 0 {
				var below int64
				n, below = windowVector(part, w.low, w.high)
				w.below += below
			}
			n = w.scalar(part, n)
			part = part[n:]
		}
	}
}

// scalar looks at values from n on, up to the next that a vector may begin with, and returns where.
func (w *RankWindow) scalar(v []float32, n int) int {
	end := min(len(v), n+windowVectorSize)
	for _, f := range v[n:end] {
		switch {
		case f-f != 0:
		case f < w.low:
			w.below++
		case f <= w.high:
			w.found = append(w.found, f)
		}
	}
	return end
}

// windowVectorSize is the number of values that a vector version skips at a time.
const windowVectorSize = 16

// Kept returns the number of values that are kept.
func (w *RankWindow) Kept() int { return len(w.found) }

// Keep returns the memory of the kept values, so that a later window can reuse it.
func (w *RankWindow) Keep() []float32 { return w.found }

// Count returns the number of finite values.
func (w *RankWindow) Count() int64 { return w.n }

// Spoil says that values are left out: nothing will be found.
func (w *RankWindow) Spoil() { w.spoilt = true }

// Merge adds the values of another window with the same limits.
func (w *RankWindow) Merge(o *RankWindow) {
	w.spoilt = w.spoilt || o.spoilt
	w.n, w.below, w.found = w.n+o.n, w.below+o.below, append(w.found, o.found...)
}

// Around returns the two order statistics around the percentile, and the weight of the upper one. ok is false if they
// lie outside the window. Without values they are NaN.
func (w *RankWindow) Around() (lo, hi float32, t float64, ok bool) {
	if w.spoilt {
		return 0, 0, 0, false
	}
	if w.n == 0 {
		nan := float32(math.NaN())
		return nan, nan, 0, true
	}
	a, b, t := Ranks(w.n, w.percent)
	if a -= w.below; a < 0 || b-w.below >= int64(len(w.found)) {
		return 0, 0, 0, false
	}
	lo = selectNth(w.found, int(a))
	if hi = lo; b-w.below > a {
		hi = minimum(w.found[a+1:])
	}
	return lo + 0, hi + 0, t, true
}
