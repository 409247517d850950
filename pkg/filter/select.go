package filter

import (
	"math"
	"slices"
	"sync"
)

// Percentiles returns the q-th percentiles of v (0…100), interpolated linearly between the order statistics
// at (n−1)·q/100 (numpy's "linear"; type 7 of Hyndman and Fan, The American Statistician 50, 1996). It
// ignores NaN and reorders v: it finds the order statistics by selection, in O(n) each. Without numbers in v
// every result is NaN.
//
// Use it for values that are in memory and may change places. [RankWindow] leaves values where they are, and takes them
// in parts: use it for one percentile of many finite values of which a sample is known. [Quantiles] serves values that
// do not fit in memory and can be read twice.
func Percentiles(v []float32, q ...float64) []float64 {
	if len(v) >= manyValues && len(q) <= mostCounted {
		if out := countedPercentiles(v, q); out != nil {
			return out
		}
	}
	n := 0
	for i, f := range v {
		if f == f {
			v[i], v[n] = v[n], f
			n++
		}
	}
	v = v[:n]
	out := make([]float64, len(q))
	for i, p := range q {
		if n == 0 {
			out[i] = math.NaN()
			continue
		}
		lo, hi, t := Ranks(int64(n), p)
		a := selectNth(v, int(lo))
		b := a
		if hi > lo {
			b = minimum(v[hi:])
		}
		out[i] = Interpolate(a, b, t)
	}
	return out
}

// manyValues is the number of values from which on [Percentiles] counts them by their upper bits and selects among
// those of a bin.
const manyValues = 1 << 14

// mostCounted is the maximum number of percentiles that are selected by counting in bins of their own.
const mostCounted = 100

// bins are counts of values by the upper 16 bits of their keys, and the numbers of those that are wanted, from 1.
type bins struct {
	counts [1 << 16]uint32
	wanted [1 << 16]uint8
}

var spareBins = sync.Pool{New: func() any { return new(bins) }}

// countedPercentiles is Percentiles without changing v, for up to [mostCounted] percentiles; nil if their bins hold
// most of the values.
func countedPercentiles(v []float32, q []float64) []float64 {
	b := spareBins.Get().(*bins)
	defer spareBins.Put(b)
	clear(b.counts[:])
	n := int64(0)
	for _, f := range v {
		if f == f {
			b.counts[sortKey(f)>>16]++
			n++
		}
	}
	out := make([]float64, len(q))
	if n == 0 {
		for i := range out {
			out[i] = math.NaN()
		}
		return out
	}
	var lists [][]float32 // values of the bins that are wanted
	var used []int
	held := 0 // values in them
	want := func(rank int64) (list int, rest int) {
		bin, r := find(b.counts[:], rank)
		if b.wanted[bin] == 0 {
			lists, held = append(lists, nil), held+int(b.counts[bin])
			used = append(used, bin)
			b.wanted[bin] = uint8(len(lists))
		}
		return int(b.wanted[bin]) - 1, int(r)
	}
	at := make([][2][2]int, len(q))
	parts := make([]float64, len(q))
	for i, p := range q {
		var ranks [2]int64
		ranks[0], ranks[1], parts[i] = Ranks(n, p)
		for k, r := range ranks {
			at[i][k][0], at[i][k][1] = want(r)
		}
	}
	few := held <= len(v)/2
	if few {
		gather(lists, v, b)
	}
	for _, bin := range used {
		b.wanted[bin] = 0
	}
	if !few {
		return nil
	}
	for i, a := range at {
		lo, hi := selectNth(lists[a[0][0]], a[0][1]), selectNth(lists[a[1][0]], a[1][1])
		out[i] = Interpolate(lo, hi, parts[i])
	}
	return out
}

// gather appends the values of the bins that are wanted to their lists.
func gather(lists [][]float32, v []float32, b *bins) {
	for _, f := range v {
		if f != f {
			continue
		}
		if k := b.wanted[sortKey(f)>>16]; k != 0 {
			lists[k-1] = append(lists[k-1], f)
		}
	}
}

// SelectNth returns the k-th smallest of numbers, counted from 0, and reorders them. There is no NaN.
func SelectNth[F float32 | float64](v []F, k int) F { return selectNth(v, k) }

// selectNth moves the k-th smallest element to v[k], smaller ones before it,
// larger ones behind, and returns it: quickselect with the median of three, and
// a random pivot when that makes slow progress.
func selectNth[F float32 | float64](v []F, k int) F {
	lo, hi := 0, len(v)-1
	seed := uint32(2463534242)
	for lo < hi {
		mid := lo + (hi-lo)/2
		seed ^= seed << 13
		seed ^= seed >> 17
		seed ^= seed << 5
		r := lo + int(seed%uint32(hi-lo+1))
		p := median3(v[mid], v[r], v[hi])
		i, j := lo, hi
		for i <= j {
			for v[i] < p {
				i++
			}
			for p < v[j] {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return v[k]
		}
	}
	return v[k]
}

func median3[F float32 | float64](a, b, c F) F {
	return max(min(a, b), min(max(a, b), c))
}

func minimum(v []float32) float32 {
	m := v[0]
	for _, f := range v[1:] {
		m = min(m, f)
	}
	return m
}

// MedianOf returns the middle value of v, or the mean of the two middle ones. It does not change v.
func MedianOf(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// PositivePercentile returns a percentile of the positive finite values of v, or 0 if there are none. scratch has
// the length of v.
func PositivePercentile(v, scratch []float32, percent float64) float32 {
	n := 0
	for _, f := range v {
		scratch[n] = f
		if f > 0 && !math.IsInf(float64(f), 1) {
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return float32(Percentiles(scratch[:n], percent)[0])
}
