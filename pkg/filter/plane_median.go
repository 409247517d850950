package filter

import (
	"math"
	"math/bits"
	"unsafe"
)

// PlaneMedian replaces every pixel of a plane of float32 by the exact median of the square window around it. It suits
// wide windows: the pixels of a tile are ranked once, and the ranks that lie in the window are bits of a set. (The
// method is that of J. Suomela, Median filtering is equivalent to sorting, arXiv:1406.1717, 2014.) Windows of common
// widths without NaN find theirs by the sets of their columns ([columnRanks]); others slide along Y, where a step costs
// about twice the window's width in bit operations. NaN pixels are left out of the windows; a window of only NaN gives
// NaN, and one with an even number of values the mean of the middle two. It owns scratch memory and serves one
// goroutine.
type PlaneMedian struct {
	radius int

	pairs, spare []uint64 // sort key, then place in the tile
	ranks        []uint32 // by place
	values       []float32
	set          []uint64 // which ranks lie in the window
	columns      *columnRanks

	// The state of the search: a word of the set and the number of members in the words before it.
	word, below int
}

// NewPlaneMedian returns a filter with windows of 2·radius+1 pixels along Y and X.
func NewPlaneMedian(radius int) *PlaneMedian { return &PlaneMedian{radius: radius} }

// side returns the largest side of a tile of outputs.
func (m *PlaneMedian) side() int {
	if m.byColumns() {
		return rankSide - 2*m.radius
	}
	return max(128, 4*m.radius)
}

func (m *PlaneMedian) byColumns() bool {
	return m.radius >= minColumnsRadius && m.radius <= maxColumnsRadius
}

// Bytes returns the scratch memory needed for planes of the given shape.
func (m *PlaneMedian) Bytes(height, width int) int64 {
	h, w := min(height, m.side())+2*m.radius, min(width, m.side())+2*m.radius
	bytes := int64(h) * int64(w) * (8 + 8 + 4 + 4 + 1)
	if m.byColumns() {
		bytes += int64(unsafe.Sizeof(columnRanks{}))
	}
	return bytes
}

// Apply filters a plane: dst has height × width pixels, src the radius more on either side of both axes. They do not
// overlap.
func (m *PlaneMedian) Apply(dst, src []float32, height, width int) {
	side := m.side()
	for y := 0; y < height; y += side {
		for x := 0; x < width; x += side {
			m.tile(dst, src, y, x, min(side, height-y), min(side, width-x), width)
		}
	}
}

// tile filters h × w pixels of a plane, from (y0, x0) on.
func (m *PlaneMedian) tile(dst, src []float32, y0, x0, h, w, width int) {
	window := 2*m.radius + 1
	rows, cols := h+window-1, w+window-1
	wide := width + window - 1
	n := m.rank(src[y0*wide+x0:], rows, cols, wide)
	if n == rows*cols && m.byColumns() {
		if m.columns == nil {
			m.columns = newColumnRanks()
		}
		m.columns.begin()
		for y := range window - 1 {
			m.columns.add(m.ranks[y*cols:][:cols])
		}
		for y := range h {
			m.columns.add(m.ranks[(y+window-1)*cols:][:cols])
			m.columns.medians(dst[(y0+y)*width+x0:][:w], m.values, window)
			m.columns.remove(m.ranks[y*cols:][:cols])
		}
		return
	}
	m.set = room(m.set, (n+63)/64+1)
	for x := range w {
		clear(m.set)
		m.word, m.below = 0, 0
		total := 0
		if n == rows*cols {
			total = window * window
			for y := range window - 1 {
				m.add(m.ranks[y*cols+x:][:window])
			}
			for y := range h {
				m.add(m.ranks[(y+window-1)*cols+x:][:window])
				dst[(y0+y)*width+x0+x] = m.values[m.member(total/2)]
				m.remove(m.ranks[y*cols+x:][:window])
			}
			continue
		}
		for y := range window - 1 {
			total += m.addNumbers(m.ranks[y*cols+x:][:window], n)
		}
		for y := range h {
			total += m.addNumbers(m.ranks[(y+window-1)*cols+x:][:window], n)
			dst[(y0+y)*width+x0+x] = m.middle(total)
			total -= m.removeNumbers(m.ranks[y*cols+x:][:window], n)
		}
	}
}

// rank ranks the pixels of a tile that are numbers, and returns their number. Other pixels get the rank MaxUint32.
func (m *PlaneMedian) rank(src []float32, rows, cols, wide int) (n int) {
	size := rows * cols
	m.pairs, m.spare = room(m.pairs, size), room(m.spare, size)
	m.ranks, m.values = room(m.ranks, size), room(m.values, size)
	for y := range rows {
		for x, f := range src[y*wide:][:cols] {
			i := y*cols + x
			m.ranks[i] = math.MaxUint32
			if f == f {
				m.pairs[n] = uint64(sortKey(f))<<32 | uint64(i)
				n++
			}
		}
	}
	m.sort(n)
	for rank, p := range m.pairs[:n] {
		m.ranks[uint32(p)] = uint32(rank)
		m.values[rank] = keyValue(uint32(p >> 32))
	}
	return n
}

// sort sorts the first n pairs by their keys, digit by digit from the lowest. Digits in which all keys agree cost a
// count only.
func (m *PlaneMedian) sort(n int) {
	const digit = 11
	for shift := uint(32); shift < 64; shift += digit {
		var counts [1 << digit]uint32
		pairs := m.pairs[:n]
		for _, p := range pairs {
			counts[p>>shift&(1<<digit-1)]++
		}
		if n > 0 && counts[pairs[0]>>shift&(1<<digit-1)] == uint32(n) {
			continue
		}
		sum := uint32(0)
		for i, c := range counts {
			counts[i] = sum
			sum += c
		}
		spare := m.spare[:n]
		for _, p := range pairs {
			d := p >> shift & (1<<digit - 1)
			spare[counts[d]] = p
			counts[d]++
		}
		m.pairs, m.spare = m.spare, m.pairs
	}
}

// add puts ranks into the set.
func (m *PlaneMedian) add(ranks []uint32) {
	set, word, below := m.set, int32(m.word), int32(0)
	for _, r := range ranks {
		w := r >> 6
		set[w] |= 1 << (r & 63)
		below -= (int32(w) - word) >> 31
	}
	m.below += int(below)
}

// remove takes ranks out of the set.
func (m *PlaneMedian) remove(ranks []uint32) {
	set, word, below := m.set, int32(m.word), int32(0)
	for _, r := range ranks {
		w := r >> 6
		set[w] &^= 1 << (r & 63)
		below += (int32(w) - word) >> 31
	}
	m.below += int(below)
}

// addNumbers puts the ranks below n into the set and returns their number.
func (m *PlaneMedian) addNumbers(ranks []uint32, n int) (count int) {
	for i, r := range ranks {
		if r < uint32(n) {
			m.add(ranks[i : i+1])
			count++
		}
	}
	return count
}

// removeNumbers takes the ranks below n out of the set and returns their number.
func (m *PlaneMedian) removeNumbers(ranks []uint32, n int) (count int) {
	for i, r := range ranks {
		if r < uint32(n) {
			m.remove(ranks[i : i+1])
			count++
		}
	}
	return count
}

// member returns the member of the set at a place of its order, which exists.
func (m *PlaneMedian) member(place int) int {
	set, word, below := m.set, m.word, m.below
	for below > place {
		word--
		below -= bits.OnesCount64(set[word])
	}
	for {
		c := bits.OnesCount64(set[word])
		if below+c > place {
			break
		}
		below += c
		word++
	}
	m.word, m.below = word, below
	left := set[word]
	for range place - below {
		left &= left - 1
	}
	return word<<6 | bits.TrailingZeros64(left)
}

// middle returns the median of the set's total members.
func (m *PlaneMedian) middle(total int) float32 {
	if total == 0 {
		return float32(math.NaN())
	}
	a := m.values[m.member((total-1)/2)]
	if total%2 == 1 {
		return a
	}
	b := m.values[m.member(total/2)]
	return float32((float64(a) + float64(b)) / 2)
}
