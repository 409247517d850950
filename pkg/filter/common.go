package filter

import "math"

// Bracket gathers what the median of many values needs when a range is known
// in which it probably lies: how many values there are, how many lie below, and
// those within. Several brackets of one range, one for each worker, make a median
// together: see [BracketMedian].
type Bracket struct {
	Lo, Hi float32
	// Cap is how many values within may be kept.
	Cap int

	n, below int64
	inside   []float32
	full     bool
}

// Count is the number of values.
func (b *Bracket) Count() int64 { return b.n }

func (b *Bracket) keep(v float32) {
	if len(b.inside) < b.Cap {
		b.inside = append(b.inside, v)
	} else {
		b.full = true
	}
}

// AddCommon adds the elements of two images that are above 0 in both, each to
// its bracket, whose Lo is not negative. NaN is not above 0. The images have the
// same length.
//
// Which of two images is brighter where is anyone's guess, also the processor's:
// there are no branches but for the few values within. Floats above 0 are in the
// order of their bits.
func AddCommon(a, b []float32, in, other *Bracket) {
	const inf = 0x7f800000
	b = b[:len(a)]
	lo, hi := uint64(math.Float32bits(in.Lo)), uint64(math.Float32bits(in.Hi))
	lo2, hi2 := uint64(math.Float32bits(other.Lo)), uint64(math.Float32bits(other.Hi))
	var n, below, below2 uint64
	for i, v := range a {
		p, q := math.Float32bits(v), math.Float32bits(b[i])
		u, w := uint64(p), uint64(q)
		// a difference below 0 has bit 63; 0 − 1 is large, as are NaN and what has a sign
		common := (uint64(p-1) - inf) >> 63 & ((uint64(q-1) - inf) >> 63)
		n += common
		below += common & ((u - lo) >> 63)
		below2 += common & ((w - lo2) >> 63)
		if u-lo <= hi-lo && common != 0 {
			in.keep(v)
		}
		if w-lo2 <= hi2-lo2 && common != 0 {
			other.keep(b[i])
		}
	}
	in.n, other.n = in.n+int64(n), other.n+int64(n)
	in.below, other.below = in.below+int64(below), other.below+int64(below2)
}

// CountCommon is the number of elements that are above 0 in both of two images
// of the same length.
func CountCommon(a, b []float32) (n int) {
	b = b[:len(a)]
	for i, v := range a {
		if v > 0 && b[i] > 0 {
			n++
		}
	}
	return n
}

// BracketMedian is the median of the values of all brackets, exactly. ok is
// false when it does not lie in their range, or more values do than they may
// keep. The brackets' values are reordered. Without values it is NaN.
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
	return v + float64((w-v)*0.5), true
}
