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
//
// Use it where values do not fit in memory or come from several goroutines; for those in memory, [Percentiles] and
// [RankWindow] need one call or one pass.
type Quantiles struct {
	mu      sync.Mutex
	percent []float64
	coarse  []int64   // first pass: by the upper 16 bits of the key
	bin     []uint16  // second pass: which of fine counts these upper bits, plus 1; 0: none
	fine    [][]int64 // by the lower 16 bits
	refined bool
	low     uint32 // first and last of bin that is one of a positive value
	high    uint32
	idle    []*positives // of calls that have ended
}

// QuantileBytes is the memory of [Quantiles] for one percentile: half a megabyte of counters, an eighth to find the
// bins of the second pass, and half a megabyte for each of these, of which a percentile has two at most. Goroutines in
// AddPositive take less than half a megabyte each, most of it before the second pass.
const QuantileBytes = 3<<19 + 1<<17

// NewQuantiles prepares for the given percentiles, each 0…100.
func NewQuantiles(percent ...float64) *Quantiles {
	return &Quantiles{percent: percent, coarse: make([]int64, 1<<16)}
}

// sortKey returns a number with the order of the float's value: the inverted bits of a negative float, and the bits
// with the sign set of any other.
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

// positives counts the positive values of a call: by their upper 16 bits, or those that the second pass looks for.
type positives struct {
	n      int64
	counts []uint32 // of the first pass, for even and odd values apart, since equal ones wait for each other
	found  []uint32
}

// AddPositive adds the positive values of v, otherwise like [Quantiles.Add]. Concurrent calls do not wait for each
// other.
func (q *Quantiles) AddPositive(v []float32) {
	q.mu.Lock()
	p := new(positives)
	if n := len(q.idle); n > 0 {
		p, q.idle = q.idle[n-1], q.idle[:n-1]
	}
	refined, bin, low, high := q.refined, q.bin, q.low, q.high
	q.mu.Unlock()
	for len(v) > 0 {
		n := min(len(v), mostFound)
		switch {
		case !refined:
			p.count(v[:n])
		case low <= high:
			p.look(v[:n], bin, low, high)
		}
		v = v[n:]
		if len(p.found) > 0 || p.n > 1<<30 {
			q.mu.Lock()
			q.collect(p)
			q.mu.Unlock()
		}
	}
	q.mu.Lock()
	q.idle = append(q.idle, p)
	q.mu.Unlock()
}

// mostFound is the number of values within the window after which they are moved to the shared counts.
const mostFound = 1 << 14

// count counts in the first pass.
func (p *positives) count(v []float32) {
	p.n += int64(len(v))
	if p.counts == nil {
		p.counts = make([]uint32, 2<<15)
	}
	counts := p.counts[:2<<15]
	for ; len(v) >= 2; v = v[2:] {
		if a := v[0]; a > 0 {
			counts[math.Float32bits(a)>>16&0x7fff]++
		}
		if b := v[1]; b > 0 {
			counts[math.Float32bits(b)>>16|1<<15]++
		}
	}
	if len(v) > 0 && v[0] > 0 {
		counts[math.Float32bits(v[0])>>16&0x7fff]++
	}
}

// look finds values in the bins of the second pass, of which low is the first and high the last.
func (p *positives) look(v []float32, bin []uint16, low, high uint32) {
	from, span := low<<16&^(1<<31), (high-low+1)<<16-1
	test := func(f float32) {
		if b := math.Float32bits(f); b-from <= span && f > 0 && bin[b>>16|1<<15] != 0 {
			p.found = append(p.found, b)
		}
	}
	for ; len(v) >= 4; v = v[4:] {
		a, b, c, d := math.Float32bits(v[0])-from, math.Float32bits(v[1])-from, math.Float32bits(v[2])-from, math.Float32bits(v[3])-from
		if min(a, b, c, d) > span { // nearly always
			continue
		}
		for _, f := range v[:4] {
			test(f)
		}
	}
	for _, f := range v {
		test(f)
	}
}

// collect adds the counts of a part. mu is held.
func (q *Quantiles) collect(p *positives) {
	for _, b := range p.found {
		k := b | 1<<31
		q.fine[q.bin[k>>16]-1][uint16(k)]++
	}
	p.found = p.found[:0]
	if p.n == 0 {
		return
	}
	for k, n := range p.counts {
		q.coarse[1<<15|k&0x7fff] += int64(n)
	}
	clear(p.counts)
	p.n = 0
}

// Refine ends the first pass.
func (q *Quantiles) Refine() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.idle {
		q.collect(p)
	}
	q.idle = nil
	q.refined = true
	q.bin = make([]uint16, 1<<16)
	q.low = 1 << 16
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
				if k := uint32(upper); k >= 1<<15 {
					q.low, q.high = min(q.low, k), max(q.high, k)
				}
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
