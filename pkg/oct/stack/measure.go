package stack

import (
	"fmt"
	"math"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/volume"
)

// measure finds the overlaps that the plan searches for.
//
// It reads the planes in strips of rows, each slice once, and keeps the strip of a slice for the pair with the
// next one.
func (p *stackPlan) measure(mem volume.Memory, res *oct.Resources) error {
	ms := newMeasuring(p)
	if ms == nil {
		return nil
	}
	search := &volume.Search{
		First: ms.y0, Last: ms.y1, Chunk: ms.chunk, Strips: ms.strips,
		What: fmt.Sprintf("measuring the overlap of slices of %v voxels in chunks of %v", ms.needs[0].slice.shape, ms.needs[0].slice.chunk),
	}
	for _, pair := range ms.pairs {
		search.Pairs = append(search.Pairs, volume.Range{Lo: pair.m.search.lo, Hi: pair.m.search.hi})
	}
	overlaps := mem.Overlaps(search)
	if overlaps == nil {
		return mem.Err()
	}
	for rows, y := overlaps.Rows(), ms.y0; y < ms.y1 && mem.Err() == nil; {
		end := min(y/rows*rows+rows, ms.y1) // strips end where chunks do
		ms.strip(mem, overlaps, y, end)
		y = end
	}
	sums := overlaps.Sums()
	if err := mem.Err(); err != nil {
		return err
	}
	ms.decide(sums, res)
	return nil
}

// decide takes the overlap with the highest correlation for each pair.
func (ms *measuring) decide(sums [][]filter.Moments, res *oct.Resources) {
	for i, pair := range ms.pairs {
		s := pair.m.search
		best, correlation := s.best, math.Inf(-1)
		for k, sum := range sums[i] {
			if c := sum.NCC(); c > correlation {
				best, correlation = s.lo+k, c
			}
		}
		if math.IsInf(correlation, -1) {
			res.Warnf("slices %d and %d: no overlap can be correlated: some of their voxels are not finite", pair.m.fixed.id, pair.m.slice.id)
			correlation = 0
		}
		s.take(best, correlation)
	}
}

// measuring is a pass over the centres of planes.
type measuring struct {
	pairs  []*measuredPair
	needs  []*stripNeed // slices in order
	y0, y1 int          // rows that some pair needs
	chunk  int          // rows of a chunk
}

// measuredPair is a pair whose overlap is searched for.
type measuredPair struct {
	m              *movingSlice
	fixed, moving  *stripNeed
	y0, y1, x0, x1 int // its centre
}

// stripNeed describes what is read of a slice: planes at its end and at its beginning.
type stripNeed struct {
	slice       *stackSlice
	first, last [2]int // half-open ranges of planes, as the moving and as the fixed slice
	x0, x1      int
	asMoving    *measuredPair
	asFixed     *measuredPair
	spans       [][2]int // disjoint ranges of planes to read, in order
	planes      int      // in all spans
}

func newMeasuring(p *stackPlan) *measuring {
	ms := &measuring{y0: math.MaxInt}
	by := map[*stackSlice]*stripNeed{}
	need := func(s *stackSlice) *stripNeed {
		n := by[s]
		if n == nil {
			n = &stripNeed{slice: s, x0: math.MaxInt}
			by[s] = n
			ms.needs = append(ms.needs, n)
		}
		return n
	}
	for _, m := range p.moving {
		s := m.search
		if s == nil || s.aligned {
			continue
		}
		// slices lie with their origins on each other; what both have counts
		h, w := min(m.fixed.shape[1], m.slice.shape[1]), min(m.fixed.shape[2], m.slice.shape[2])
		margin := min(h, w) / 4
		pair := &measuredPair{m: m, y0: margin, y1: h - margin, x0: margin, x1: w - margin}
		pair.fixed, pair.moving = need(m.fixed), need(m.slice)
		pair.fixed.asFixed, pair.moving.asMoving = pair, pair
		pair.fixed.last = [2]int{m.fixed.shape[0] - s.hi, m.fixed.shape[0]}
		pair.moving.first = [2]int{s.first, s.first + s.hi}
		for _, n := range []*stripNeed{pair.fixed, pair.moving} {
			n.x0, n.x1 = min(n.x0, pair.x0), max(n.x1, pair.x1)
			ms.chunk = max(ms.chunk, n.slice.chunk[1])
		}
		ms.y0, ms.y1 = min(ms.y0, pair.y0), max(ms.y1, pair.y1)
		ms.pairs = append(ms.pairs, pair)
	}
	if len(ms.pairs) == 0 {
		return nil
	}
	for _, n := range ms.needs {
		n.plan()
	}
	return ms
}

// plan merges the planes at both ends if they meet.
func (n *stripNeed) plan() {
	a, b := n.first, n.last
	switch {
	case n.asMoving == nil:
		n.spans = [][2]int{b}
	case n.asFixed == nil:
		n.spans = [][2]int{a}
	case a[1] >= b[0]:
		n.spans = [][2]int{{min(a[0], b[0]), max(a[1], b[1])}}
	default:
		n.spans = [][2]int{a, b}
	}
	for _, s := range n.spans {
		n.planes += s[1] - s[0]
	}
}

// plane returns the index of plane z among those that are read.
func (n *stripNeed) plane(z int) int {
	at := 0
	for _, s := range n.spans {
		if z < s[1] {
			return at + z - s[0]
		}
		at += s[1] - s[0]
	}
	panic("oct: a plane that is not read")
}

// strips returns the number of pixels in a strip of the given number of rows, by slice.
func (ms *measuring) strips(rows int) (pixels []int) {
	for _, n := range ms.needs {
		pixels = append(pixels, n.planes*rows*(n.x1-n.x0))
	}
	return pixels
}

// strip correlates rows y0…y1−1, for all pairs in order.
func (ms *measuring) strip(mem volume.Memory, overlaps volume.Overlaps, y0, y1 int) {
	var fixed strip
	pair := 0
	for i, n := range ms.needs {
		moving := strip{need: n, y0: y0, ny: max(0, min(y1, n.slice.shape[1])-y0)}
		moving.load(mem, overlaps, i%2)
		if mem.Err() != nil {
			return
		}
		if p := n.asMoving; p != nil {
			if lo, hi := max(y0, p.y0), min(y1, p.y1); lo < hi {
				s := p.m.search
				end := fixed.need.plane(p.m.fixed.shape[0]-1) + 1
				begin := n.plane(s.first)
				overlaps.Add(pair, fixed.planes[end-s.hi:end], moving.planes[begin:begin+s.hi], fixed.part(p, lo, hi), moving.part(p, lo, hi))
			}
			pair++
		}
		fixed = moving
	}
}

// strip holds rows of a slice in memory.
type strip struct {
	need   *stripNeed
	planes []volume.Plane
	y0, ny int
}

// load reads those of the rows that the slice has.
func (s *strip) load(mem volume.Memory, overlaps volume.Overlaps, place int) {
	n := s.need
	if s.ny == 0 {
		return
	}
	nx := n.x1 - n.x0
	s.planes = overlaps.Strip(place, n.planes, s.ny, nx)
	if mem.Err() != nil {
		return
	}
	for _, span := range n.spans {
		first := n.plane(span[0])
		mem.Load(&volume.Box{
			Source: n.slice.source, Start: [3]int{span[0], s.y0, n.x0}, Shape: [3]int{span[1] - span[0], s.ny, nx}, Gain: 1, To: s.planes[first:][:span[1]-span[0]],
		})
	}
}

// part returns the centre of a pair in rows y0…y1−1.
func (s *strip) part(pair *measuredPair, y0, y1 int) oct.Rectangle {
	return oct.Rect(y0-s.y0, y1-s.y0, pair.x0-s.need.x0, pair.x1-s.need.x0)
}
