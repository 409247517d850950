package filter

import "math"

// Bracket collects data for the median of many values when a range is known that probably contains it: the
// number of values, the number below the range, and the values within. Several brackets of one range, for
// instance one per worker, together give a median: see [BracketMedian].
type Bracket struct {
	Lo, Hi float32
	// Cap is the maximum number of values within the range that are kept.
	Cap int

	n, below int64
	inside   []float32
	full     bool
}

// Count returns the number of values.
func (b *Bracket) Count() int64 { return b.n }

func (b *Bracket) add(v float32) {
	b.n++
	switch {
	case v < b.Lo:
		b.below++
	case v <= b.Hi:
		b.keep(v)
	}
}

func (b *Bracket) keep(v float32) {
	if len(b.inside) < b.Cap {
		b.inside = append(b.inside, v)
	} else {
		b.full = true
	}
}

// AddCommon adds the elements of two images that are above 0 in both, each to
// its bracket. NaN is not above 0. The images have the same length.
func AddCommon(a, b []float32, in, other *Bracket) {
	b = b[:len(a)]
	for i := commonVector(a, b, in, other); i < len(a); i++ {
		if v, w := a[i], b[i]; v > 0 && w > 0 {
			in.add(v)
			other.add(w)
		}
	}
}

// CountCommon returns the number of elements that are above 0 in both of two images of the same length.
func CountCommon(a, b []float32) (n int) {
	b = b[:len(a)]
	for i, v := range a {
		if v > 0 && b[i] > 0 {
			n++
		}
	}
	return n
}

// BracketMedian returns the exact median of the values of all brackets, or NaN without values. ok is false if the
// median lies outside of their range, or if the range holds more values than they may keep. It reorders the brackets'
// values.
func BracketMedian(brackets []*Bracket) (median float64, ok bool) {
	var n, below int64
	var inside []float32
	for _, b := range brackets {
		if b.full {
			return 0, false
		}
		n, below = n+b.n, below+b.below
		if len(brackets) == 1 {
			inside = b.inside
		} else {
			inside = append(inside, b.inside...)
		}
	}
	if n == 0 {
		return math.NaN(), true
	}
	lo, hi := (n-1)/2-below, n/2-below
	if lo < 0 || hi >= int64(len(inside)) {
		return 0, false
	}
	v := float64(selectNth(inside, int(lo)))
	if hi == lo {
		return v, true
	}
	w := float64(minimum(inside[lo+1:]))
	if w == v {
		return v, true // also for infinities
	}
	return v + float64((w-v)*0.5), true
}
