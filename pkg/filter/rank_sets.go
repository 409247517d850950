package filter

import (
	"math"
	"slices"
	"sync"
)

// RankSets finds exact percentiles of many sets of values, such as the planes of a volume, none of which is kept. It
// takes three passes over the values: the first counts the upper 11 bits of their sort keys, the second the next 11 of
// those that begin like a wanted rank, the third the last 10. A set needs 8 KiB and at most 8 KiB more for each
// percentile.
//
//	r := filter.NewRankSets(planes, 99.9)
//	for r.Begin() {
//		// call r.Add(z, v) with all values of each set z, in any order, from any goroutine
//	}
//	lo, hi, t := r.Around(z, 0)
//
// A percentile p lies at (n−1)·p/100 between the order statistics of the n values. NaN and infinite values are left
// out.
type RankSets struct {
	percent []float64
	pass    int // 1, 2, 3; 4: done
	sets    []rankSet
}

// rankSet holds the state of one set. Wanted ranks with the same known bits share a table of counts.
type rankSet struct {
	mu     sync.Mutex
	n      int64
	begins []uint32   // the bits known so far of the ranks that are wanted, each once
	counts [][]uint32 // for each of these, of the next bits
	ranks  []wantedRank
}

// wantedRank is an order statistic of which the upper bits are known so far.
type wantedRank struct {
	begin uint32 // its bits so far
	rest  int64  // its rank among the values that begin so
}

// rankShifts holds the lowest bit that each pass determines.
var rankShifts = [...]uint{21, 10, 0}

// RankSetsBytes returns the memory of a [RankSets].
func RankSetsBytes(sets, percentiles int) int64 {
	return int64(sets) * int64(8<<10+percentiles*(16<<10))
}

// NewRankSets prepares for a number of sets. The given percentiles, each 0…100, are computed for every set.
func NewRankSets(sets int, percent ...float64) *RankSets {
	return &RankSets{percent: percent, sets: make([]rankSet, sets)}
}

// Begin starts the next pass if there is one, and reports whether it did.
func (r *RankSets) Begin() bool {
	if r.pass > len(rankShifts) {
		return false
	}
	r.pass++
	for i := range r.sets {
		s := &r.sets[i]
		if r.pass == 1 {
			s.begins, s.counts = []uint32{0}, [][]uint32{make([]uint32, 1<<11)}
			continue
		}
		s.narrow(r.percent, r.pass)
	}
	return r.pass <= len(rankShifts)
}

// narrow ends the pass before the given one.
func (s *rankSet) narrow(percent []float64, pass int) {
	if pass == 2 {
		for _, c := range s.counts[0] {
			s.n += int64(c)
		}
		for _, p := range percent {
			lo, hi, _ := Ranks(max(s.n, 1), p)
			s.ranks = append(s.ranks, wantedRank{rest: lo}, wantedRank{rest: hi})
		}
	}
	bits := width(pass - 1)
	for i, w := range s.ranks {
		k := slices.Index(s.begins, w.begin)
		bin, rest := find(s.counts[k], w.rest)
		s.ranks[i] = wantedRank{w.begin<<bits | uint32(bin), rest}
	}
	s.begins, s.counts = nil, nil
	if pass > len(rankShifts) {
		return
	}
	for _, w := range s.ranks {
		if !slices.Contains(s.begins, w.begin) {
			s.begins = append(s.begins, w.begin)
			s.counts = append(s.counts, make([]uint32, 1<<width(pass)))
		}
	}
}

// width returns the bits that a pass tells apart.
func width(pass int) uint {
	if pass == 1 {
		return 32 - rankShifts[0]
	}
	return rankShifts[pass-2] - rankShifts[pass-1]
}

// Add counts values of a set in the current pass. It is safe for concurrent use.
func (r *RankSets) Add(set int, v []float32) {
	s := &r.sets[set]
	s.mu.Lock()
	defer s.mu.Unlock()
	shift := rankShifts[r.pass-1]
	mask := uint32(1)<<width(r.pass) - 1
	above := shift + width(r.pass)
	for k, begin := range s.begins {
		counts := s.counts[k]
		for _, f := range v {
			if f-f != 0 {
				continue
			}
			key := sortKey(f)
			if uint64(key)>>above == uint64(begin) { // a shift by 32 leaves 0
				counts[key>>shift&mask]++
			}
		}
	}
}

// Count returns the number of values of a set, after the first pass.
func (r *RankSets) Count(set int) int64 { return r.sets[set].n }

// Around returns the two order statistics around a percentile of a set, after the last pass, and the weight of the
// upper one. They are NaN for a set without numbers.
func (r *RankSets) Around(set, percentile int) (lo, hi float32, t float64) {
	s := &r.sets[set]
	if s.n == 0 {
		nan := float32(math.NaN())
		return nan, nan, 0
	}
	_, _, t = Ranks(s.n, r.percent[percentile])
	w := s.ranks[2*percentile:]
	return keyValue(w[0].begin), keyValue(w[1].begin), t
}
