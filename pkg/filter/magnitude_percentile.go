package filter

import (
	"math"
	"sync"
	"sync/atomic"
)

// MagnitudePercentile finds a percentile of the magnitudes |v| of more values than memory holds, exactly and
// usually in one pass. A first look at part of the values predicts where the percentile lies; values near
// there are counted to the last bit, smaller ones only as a total. If the prediction fails, one or two more
// passes find it.
//
//	p := filter.NewMagnitudePercentile(99.9, 32<<20)
//	p.Look(part)
//	for p.Begin() {
//		// call p.Add with all values, in any order, from any goroutine
//	}
//	clip := p.Value()
//
// NaN and infinite values are ignored. The percentile p is interpolated linearly at position (n−1)·p/100 of
// the order statistics of the n magnitudes.
type MagnitudePercentile struct {
	percent float64
	keys    int     // how many upper halves can be counted to the last bit
	coarse  []int64 // by upper half; those below low together in the first
	low     int     // upper half from which on they are told apart
	slot    []int32 // by upper half: where in fine, ×65536; -1: not there
	fine    []uint32
	passes  int
	done    bool

	mu    sync.Mutex
	spare []*[magnitudeKeys]uint32
}

// magnitudeKeys is the number of values that the upper 16 bits of a non-negative float32 can have.
const magnitudeKeys = 1 << 15

// infinite is the bits of the magnitudes that are no numbers, and of larger ones.
const infinite = 0x7f800000

// NewMagnitudePercentile prepares for a percentile, 0…100. bytes is the approximate memory for counters, at
// least 1 MiB.
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
		if b := math.Float32bits(f) &^ (1 << 31); b < infinite {
			p.coarse[b>>16]++
		}
	}
}

// Begin starts another pass, or returns false if none is needed.
func (p *MagnitudePercentile) Begin() bool {
	if p.done {
		return false
	}
	lo, hi := p.bins()
	if p.passes > 0 && (p.empty() || p.slot[lo] >= 0 && p.slot[hi] >= 0) {
		p.done = true
		return false
	}
	switch {
	case p.passes == 0: // around what was seen
		p.low = max(0, min(lo-p.keys/2, magnitudeKeys-p.keys))
		p.fine = make([]uint32, p.keys<<16)
		for k := range p.keys {
			p.slot[p.low+k] = int32(k)
		}
	case p.low > 0 && lo == 0: // somewhere below
		p.none()
		p.low = 0
	default:
		p.none()
		p.slot[hi], p.slot[lo] = 1, 0 // the same one if lo is hi
		p.low = lo
	}
	clear(p.coarse)
	p.passes++
	return true
}

// none clears the exact counts.
func (p *MagnitudePercentile) none() {
	for i := range p.slot {
		p.slot[i] = -1
	}
	clear(p.fine)
}

// Passes returns the number of passes so far.
func (p *MagnitudePercentile) Passes() int { return p.passes }

// Add counts values in the current pass and returns how many are NaN or infinite. It is safe for concurrent
// use. Calls with ten thousand values or more cost little more than reading them.
func (p *MagnitudePercentile) Add(v []float32) (nonFinite int64) {
	counts := p.take()
	// of what fits into a counter of 32 bits
	for len(v) > 0 {
		n := min(len(v), 1<<30)
		high, bad := p.tell(counts, v[:n])
		p.merge(counts, high)
		nonFinite += bad
		v = v[n:]
	}
	p.mu.Lock()
	p.spare = append(p.spare, counts)
	p.mu.Unlock()
	return nonFinite
}

// tell counts values, up to the upper half high.
func (p *MagnitudePercentile) tell(counts *[magnitudeKeys]uint32, v []float32) (high uint32, nonFinite int64) {
	low := uint32(p.low) << 16
	below, step := 0, 8
	for len(v) > 0 {
		n := belowVector(v, low)
		below += n
		v = v[n:]
		// many of them follow each other, or hardly any
		if step = min(2*step, 1<<12); n > 0 {
			step = 8
		}
		n = min(step, len(v))
		for _, f := range v[:n] {
			b := math.Float32bits(f) &^ (1 << 31)
			if b < low {
				below++
				continue
			}
			if b >= infinite {
				nonFinite++
				continue
			}
			k := b >> 16
			counts[k]++
			high = max(high, k)
			if s := p.slot[k]; s >= 0 {
				atomic.AddUint32(&p.fine[int(s)<<16|int(b&0xffff)], 1)
			}
		}
		v = v[n:]
	}
	counts[0] += uint32(below)
	return high, nonFinite
}

// Window returns the bits from…to−1 of the magnitudes that the first pass counts to the last bit.
func (p *MagnitudePercentile) Window() (from, to uint32) {
	return uint32(p.low) << 16, uint32(p.low+p.keys) << 16
}

// AddCounted adds n values that were counted elsewhere in the current pass. bits is the magnitude's bit pattern;
// outside the [MagnitudePercentile.Window], a pattern near it suffices but may cost another pass. No call of Add may be
// running.
func (p *MagnitudePercentile) AddCounted(bits uint32, n int64) {
	k := bits >> 16
	if int(k) < p.low {
		k = 0
	}
	p.coarse[k] += n
	if s := p.slot[k]; s >= 0 {
		p.fine[int(s)<<16|int(bits&0xffff)] += uint32(n)
	}
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

func (p *MagnitudePercentile) merge(counts *[magnitudeKeys]uint32, high uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.coarse[0] += int64(counts[0])
	counts[0] = 0
	for k := max(1, p.low); k <= int(high); k++ {
		p.coarse[k] += int64(counts[k])
		counts[k] = 0
	}
}

func (p *MagnitudePercentile) count() (n int64) {
	for _, c := range p.coarse {
		n += c
	}
	return n
}

func (p *MagnitudePercentile) empty() bool { return p.count() == 0 }

// bins returns the upper halves of the order statistics around the percentile.
func (p *MagnitudePercentile) bins() (lo, hi int) {
	a, b, _ := Ranks(p.count(), p.percent)
	lo, _ = find(p.coarse, a)
	hi, _ = find(p.coarse, b)
	return lo, hi
}

// Value returns the percentile, after the last pass; 0 when there were no values.
func (p *MagnitudePercentile) Value() float32 {
	n := p.count()
	if n == 0 {
		return 0
	}
	lo, hi, t := Ranks(n, p.percent)
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
