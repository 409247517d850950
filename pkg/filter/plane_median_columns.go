package filter

import "math/bits"

// columnRanks finds medians of windows that slide along X, with tables of each column of the window (after S. Perreault
// and P. Hébert, Median filtering in constant time, IEEE Transactions on Image Processing 16, 2007): how many ranks of
// the column are in each word of a set or before it, in groups of words, and the words. A step along X adds a column's
// counts to those of the window and takes another's away, four counts at a time; only the word in which the median lies
// is put together, from those of all columns.
//
// Counts are 16 bits of a uint64. They are cumulative, so that the place of a rank is the number of counts that do not
// exceed it.
type columnRanks struct {
	words  [rankWords][rankSide]uint64      // members
	fine   [rankGroups][rankSide]fineCounts // in the first 1, 2, … 16 words of a group
	coarse [rankSide]coarseCounts           // in the first 1, 2, … 24 groups
	window coarseCounts                     // coarse, of a window
	part   [rankGroups]fineCounts           // fine, of the window that began at:
	at     [rankGroups]int                  // −1: none
	steps  struct {                         // what a rank adds
		fine   [groupWords]fineCounts
		coarse [rankGroups]coarseCounts
	}
}

const (
	rankSide   = 156 // of a tile with its halo: has at most rankWords·64 pixels
	rankGroups = 24
	groupWords = 16
	rankWords  = rankGroups * groupWords
	fineSums   = groupWords / 4
	coarseSums = rankGroups / 4

	lanes    = 0x0001000100010001
	lanesTop = 0x8000800080008000

	// Windows of fewer pixels, or that leave too little of a tile, slide along Y by their ranks.
	minColumnsRadius = 4
	maxColumnsRadius = 32
)

func newColumnRanks() *columnRanks {
	c := &columnRanks{}
	for b := range c.steps.fine {
		for i := b; i < groupWords; i++ {
			c.steps.fine[b][i/4] += 1 << (i % 4 * 16)
		}
	}
	for b := range c.steps.coarse {
		for i := b; i < rankGroups; i++ {
			c.steps.coarse[b][i/4] += 1 << (i % 4 * 16)
		}
	}
	return c
}

// begin forgets all ranks.
func (c *columnRanks) begin() {
	clear(c.words[:])
	clear(c.fine[:])
	clear(c.coarse[:])
}

// add puts ranks into the columns.
func (c *columnRanks) add(ranks []uint32) {
	for x, r := range ranks[:min(len(ranks), rankSide)] {
		w := r >> 6 % rankWords
		c.words[w][x] |= 1 << (r & 63)
		c.fine[w/groupWords][x].add(&c.steps.fine[w%groupWords])
		c.coarse[x].add(&c.steps.coarse[w/groupWords])
	}
}

// remove takes ranks out of the columns.
func (c *columnRanks) remove(ranks []uint32) {
	for x, r := range ranks[:min(len(ranks), rankSide)] {
		w := r >> 6 % rankWords
		c.words[w][x] &^= 1 << (r & 63)
		c.fine[w/groupWords][x].remove(&c.steps.fine[w%groupWords])
		c.coarse[x].remove(&c.steps.coarse[w/groupWords])
	}
}

// medians looks up the medians of a row of windows of the given width, whose columns hold an odd number of ranks.
func (c *columnRanks) medians(dst, values []float32, width int) {
	c.window = coarseCounts{}
	for x := range width - 1 {
		c.window.add(&c.coarse[x])
	}
	for s := range c.at {
		c.at[s] = -1
	}
	middle := uint64(width) * uint64(width) / 2
	window := c.window
	for x := range dst {
		window.add(&c.coarse[x+width-1])
		group, place := window.find(middle)
		part := c.slide(group, x, width)
		in, place := part.find(place)
		word := group*groupWords + in
		set := union(c.words[word][x : x+width])
		if next := set & (set - 1); place > 0 { // mostly there are one or two
			set = next
		}
		for ; place > 1; place-- {
			set &= set - 1
		}
		dst[x] = values[word<<6|bits.TrailingZeros64(set)]
		window.remove(&c.coarse[x])
	}
}

// slide returns the counts of a group in the window that begins at x.
func (c *columnRanks) slide(group, x, width int) *fineCounts {
	part, columns, at := &c.part[group], &c.fine[group], c.at[group]
	c.at[group] = x
	if at >= 0 && 2*(x-at) <= width {
		for ; at < x; at++ {
			part.add(&columns[at+width])
			part.remove(&columns[at])
		}
		return part
	}
	*part = fineCounts{}
	all := columns[x : x+width]
	for j := range all {
		part.add(&all[j])
	}
	return part
}

// union returns the members of all sets.
func union(sets []uint64) uint64 {
	var a, b, c, d uint64
	for ; len(sets) >= 4; sets = sets[4:] {
		a |= sets[0]
		b |= sets[1]
		c |= sets[2]
		d |= sets[3]
	}
	for _, v := range sets {
		a |= v
	}
	return a | b | c | d
}

// fineCounts and coarseCounts are cumulative counts. Their methods are written out because they are short.
type (
	fineCounts   [fineSums]uint64
	coarseCounts [coarseSums]uint64
)

func (f *fineCounts) add(d *fineCounts) {
	f[0] += d[0]
	f[1] += d[1]
	f[2] += d[2]
	f[3] += d[3]
}

func (f *fineCounts) remove(d *fineCounts) {
	f[0] -= d[0]
	f[1] -= d[1]
	f[2] -= d[2]
	f[3] -= d[3]
}

func (k *coarseCounts) add(d *coarseCounts) {
	k[0] += d[0]
	k[1] += d[1]
	k[2] += d[2]
	k[3] += d[3]
	k[4] += d[4]
	k[5] += d[5]
}

func (k *coarseCounts) remove(d *coarseCounts) {
	k[0] -= d[0]
	k[1] -= d[1]
	k[2] -= d[2]
	k[3] -= d[3]
	k[4] -= d[4]
	k[5] -= d[5]
}

// beyond sets the lowest bit of each count in v that is at most the corresponding count in top. The highest bit of each
// count in top must be set.
func beyond(top, v uint64) uint64 { return (top - v) >> 15 & lanes }

// find returns the part that contains the member with rank place, and the rank within that part.
func (f *fineCounts) find(place uint64) (part int, rest uint64) {
	top := place*lanes | lanesTop
	n := beyond(top, f[0]) + beyond(top, f[1]) + beyond(top, f[2]) + beyond(top, f[3])
	part = int(n * lanes >> 48)
	b := uint(part-1) & (groupWords - 1)
	before := f[b/4] >> (b % 4 * 16) & 0xffff
	if part == 0 {
		before = 0
	}
	return part, place - before
}

// find returns the part that contains the member with rank place, and the rank within that part.
func (k *coarseCounts) find(place uint64) (part int, rest uint64) {
	top := place*lanes | lanesTop
	n := beyond(top, k[0]) + beyond(top, k[1]) + beyond(top, k[2]) + beyond(top, k[3]) + beyond(top, k[4]) + beyond(top, k[5])
	part = int(n * lanes >> 48)
	if part == 0 {
		return 0, place
	}
	b := uint(part - 1)
	return part, place - k[b/4]>>(b%4*16)&0xffff
}
