package filter

import (
	"math"
	"sync"
	"sync/atomic"
)

// MagnitudePercentile finds a percentile of more values than memory holds, exactly, and as a rule
// in one pass: a first look at a part of the values says where the percentile
// will lie, and around there values are counted to the last bit. Where it lies
// elsewhere, a second pass finds it.
//
//	p := filter.NewMagnitudePercentile(99.9, 32<<20)
//	p.Look(part)
//	for p.Begin() {
//		// call p.Add with all values, in any order, from any goroutine
//	}
//	clip := p.Value()
//
// Values are magnitudes, such as [Magnitudes] makes: finite and not negative.
// The percentile p lies at (n−1)·p/100 between the order statistics of the n
// values, linear in between.
type MagnitudePercentile struct {
	percent float64
	keys    int // how many upper halves can be counted to the last bit
	coarse  []int64
	slot    []int32  // by upper half: where in fine, ×65536; -1: not there
	fine    []uint32 // by lower half
	passes  int
	done    bool

	mu    sync.Mutex
	spare []*[magnitudeKeys]uint32
}

// magnitudeKeys is the number of upper halves of the bits of a float32 that is not negative.
const magnitudeKeys = 1 << 15

// NewMagnitudePercentile prepares for a percentile, 0…100, with about that many
// bytes of counters, at least 1 MiB.
func NewMagnitudePercentile(percent float64, bytes int64) *MagnitudePercentile {
	keys := int(min(256, max(2, (bytes-1<<19)/(4<<16))))
	p := &MagnitudePercentile{percent: percent, keys: keys, coarse: make([]int64, magnitudeKeys), slot: make([]int32, magnitudeKeys)}
	for i := range p.slot {
		p.slot[i] = -1
	}
	return p
}

// Look counts a part of the values, before the first pass.
func (p *MagnitudePercentile) Look(v []float32) {
	for _, f := range v {
		p.coarse[math.Float32bits(f)>>16]++
	}
}

// Begin starts a pass, if there must be one.
func (p *MagnitudePercentile) Begin() bool {
	if p.done {
		return false
	}
	lo, hi := p.bins()
	if p.passes > 0 && (p.empty() || p.slot[lo] >= 0 && p.slot[hi] >= 0) {
		p.done = true
		return false
	}
	if p.passes == 0 { // around what was seen
		from := max(0, min(lo-p.keys/2, magnitudeKeys-p.keys))
		p.fine = make([]uint32, p.keys<<16)
		for k := range p.keys {
			p.slot[from+k] = int32(k)
		}
	} else {
		for i := range p.slot {
			p.slot[i] = -1
		}
		p.slot[hi], p.slot[lo] = 1, 0 // the same one if lo is hi
		clear(p.fine)
	}
	clear(p.coarse)
	p.passes++
	return true
}

// Passes is how many there were.
func (p *MagnitudePercentile) Passes() int { return p.passes }

// Add counts values in the current pass. It is safe for concurrent use; calls
// with a hundred thousand values or more cost little more than reading them.
func (p *MagnitudePercentile) Add(v []float32) {
	counts := p.take()
	// of what fits into a counter of 32 bits
	for len(v) > 0 {
		n := min(len(v), 1<<30)
		for _, f := range v[:n] {
			b := math.Float32bits(f)
			k := b >> 16 & (magnitudeKeys - 1)
			counts[k]++
			if s := p.slot[k]; s >= 0 {
				atomic.AddUint32(&p.fine[int(s)<<16|int(b&0xffff)], 1)
			}
		}
		v = v[n:]
		p.merge(counts)
	}
	p.mu.Lock()
	p.spare = append(p.spare, counts)
	p.mu.Unlock()
}

func (p *MagnitudePercentile) take() *[magnitudeKeys]uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.spare); n > 0 {
		c := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return c
	}
	return new([magnitudeKeys]uint32)
}

func (p *MagnitudePercentile) merge(counts *[magnitudeKeys]uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, n := range counts {
		p.coarse[k] += int64(n)
	}
	clear(counts[:])
}

func (p *MagnitudePercentile) count() (n int64) {
	for _, c := range p.coarse {
		n += c
	}
	return n
}

func (p *MagnitudePercentile) empty() bool { return p.count() == 0 }

// bins are the upper halves of the order statistics around the percentile.
func (p *MagnitudePercentile) bins() (lo, hi int) {
	a, b, _ := ranks(p.count(), p.percent)
	lo, _ = find(p.coarse, a)
	hi, _ = find(p.coarse, b)
	return lo, hi
}

// Value is the percentile, after the last pass; 0 when there were no values.
func (p *MagnitudePercentile) Value() float32 {
	n := p.count()
	if n == 0 {
		return 0
	}
	lo, hi, t := ranks(n, p.percent)
	a, b := float64(p.at(lo)), float64(p.at(hi))
	return float32(a + float64((b-a)*t))
}

func (p *MagnitudePercentile) at(rank int64) float32 {
	k, rest := find(p.coarse, rank)
	for i, c := range p.fine[int(p.slot[k])<<16:][:1<<16] {
		if rest -= int64(c); rest < 0 {
			return math.Float32frombits(uint32(k)<<16 | uint32(i))
		}
	}
	return math.Float32frombits(uint32(k) << 16)
}
