package filter

import (
	"math"
	"sync"
)

// Quantiles finds exact percentiles of more values than fit in memory, in two
// passes over them: the first counts the upper halves of the values' bits, the
// second the lower halves of those that fall into the bins where the wanted
// ranks lie.
//
//	q := filter.NewQuantiles(0.1, 99.9)
//	// call q.Add with all values, in any order, from any goroutine
//	q.Refine()
//	// call q.Add with all values again
//	low, high := q.Value(0), q.Value(1)
//
// A percentile p lies at (n−1)·p/100 between the order statistics of the n
// values, linear in between (numpy's "linear"; type 7 of Hyndman and Fan, The
// American Statistician 50, 1996). NaN is left out. [QuantileBytes] is the memory for one percentile.
type Quantiles struct {
	mu      sync.Mutex
	percent []float64
	coarse  []int64   // first pass: by the upper 16 bits of the key
	bin     []uint16  // second pass: which of fine counts these upper bits, plus 1; 0: none
	fine    [][]int64 // by the lower 16 bits
	refined bool
}

// QuantileBytes is the memory of [Quantiles] for one percentile: half a megabyte of counters, an eighth to find the bins of the second pass, and
// half a megabyte for each of these, of which a percentile has two at most.
const QuantileBytes = 3<<19 + 1<<17

// NewQuantiles prepares for the given percentiles, each 0…100.
func NewQuantiles(percent ...float64) *Quantiles {
	return &Quantiles{percent: percent, coarse: make([]int64, 1<<16)}
}

// sortKey orders the bits of floats as their values: the key of a negative one is its
// bits inverted, that of another its bits with the sign set.
func sortKey(f float32) uint32 {
	b := math.Float32bits(f)
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}

// keyValue returns the float whose sort key is k.
func keyValue(k uint32) float32 {
	if k>>31 != 0 {
		return math.Float32frombits(k &^ (1 << 31))
	}
	return math.Float32frombits(^k)
}

// Add counts values in the current pass. It is safe for concurrent use; calls
// with a few thousand values or more cost little more than reading them.
func (q *Quantiles) Add(v []float32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.refined {
		for _, f := range v {
			if f == f {
				q.coarse[sortKey(f)>>16]++
			}
		}
		return
	}
	for _, f := range v {
		if f != f {
			continue
		}
		k := sortKey(f)
		if i := q.bin[k>>16]; i != 0 {
			q.fine[i-1][uint16(k)]++
		}
	}
}

// Refine ends the first pass.
func (q *Quantiles) Refine() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refined = true
	q.bin = make([]uint16, 1<<16)
	n := q.count()
	if n == 0 {
		return
	}
	for _, p := range q.percent {
		lo, hi, _ := Ranks(n, p)
		for _, r := range []int64{lo, hi} {
			if upper, _ := find(q.coarse, r); q.bin[upper] == 0 {
				q.fine = append(q.fine, make([]int64, 1<<16))
				q.bin[upper] = uint16(len(q.fine))
			}
		}
	}
}

// Value returns the i-th percentile that NewQuantiles was given, after the second pass; NaN when there were
// no numbers.
func (q *Quantiles) Value(i int) float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.count()
	if n == 0 {
		return math.NaN()
	}
	lo, hi, t := Ranks(n, q.percent[i])
	return Interpolate(q.at(lo), q.at(hi), t)
}

// Interpolate returns a percentile between two order statistics, t of the way from the lower to the upper.
func Interpolate(lo, hi float32, t float64) float64 {
	a, b := float64(lo), float64(hi)
	if t == 0 || a == b {
		return a // also for infinities
	}
	return a + float64((b-a)*t)
}

func (q *Quantiles) count() (n int64) {
	for _, c := range q.coarse {
		n += c
	}
	return n
}

func (q *Quantiles) at(rank int64) float32 {
	upper, rest := find(q.coarse, rank)
	lower, _ := find(q.fine[q.bin[upper]-1], rest)
	return keyValue(uint32(upper)<<16 | uint32(lower))
}

// Ranks returns the order statistics of n values around a percentile, counted from 0, and the weight of the
// upper one.
func Ranks(n int64, percent float64) (lo, hi int64, t float64) {
	pos := min(float64(n-1), max(0, float64(n-1)*percent/100))
	lo = int64(pos)
	return lo, min(lo+1, n-1), pos - float64(lo)
}

// find returns the bin that holds a rank, and the rank within the bin.
func find[C int64 | uint32](hist []C, rank int64) (bin int, rest int64) {
	for i, c := range hist {
		if rank < int64(c) {
			return i, rank
		}
		rank -= int64(c)
	}
	return len(hist) - 1, 0
}
