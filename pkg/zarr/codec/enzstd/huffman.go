package enzstd

import (
	"encoding/binary"
	"slices"
)

const huffMaxBits = 11 // longest code of a literal (RFC 8878, 4.2.1)

// A huffTable has the code of each literal.
type huffTable struct {
	codes   [256]huffCode
	lengths [256]uint8 // 0: no code
	last    int        // greatest literal that has a code
	longest uint       // code
}

// huffCode is a code, at the top, and its length in the lowest byte.
type huffCode uint64

// histogram counts the bytes of src.
func histogram(counts *[256]uint32, src []byte) {
	var c [4][256]uint32
	add(&c, src)
	sum(counts, &c)
}

// add counts the bytes of src in four tables, so that equal neighbours do not wait for each other.
func add(c *[4][256]uint32, src []byte) {
	for ; len(src) >= 8; src = src[8:] {
		v := binary.LittleEndian.Uint64(src)
		c[0][byte(v)]++
		c[1][byte(v>>8)]++
		c[2][byte(v>>16)]++
		c[3][byte(v>>24)]++
		c[0][byte(v>>32)]++
		c[1][byte(v>>40)]++
		c[2][byte(v>>48)]++
		c[3][byte(v>>56)]++
	}
	for _, b := range src {
		c[0][b]++
	}
}

func sum(counts *[256]uint32, c *[4][256]uint32) {
	for i := range counts {
		counts[i] = c[0][i] + c[1][i] + c[2][i] + c[3][i]
	}
}

// frequencies counts the bytes of src, or estimates how often they occur where all of them do: so it is with noise, in
// which a quarter of many shows as much as all.
func frequencies(counts *[256]uint32, src []byte) {
	const least, piece, absent = 32 << 10, 512, 4
	if len(src) < least {
		histogram(counts, src)
		return
	}
	var c [4][256]uint32
	for k := 0; 4*(k+1)*piece <= len(src); k++ {
		at := 4*k*piece + k*328%(3*piece) // at another place in each quarter, lest it be the same columns of an image
		add(&c, src[at:at+piece])
	}
	sum(counts, &c)
	missing := 0
	for i, n := range counts {
		if n == 0 {
			missing++
		}
		counts[i] = 4 * max(n, 1)
	}
	if missing > absent {
		histogram(counts, src)
	}
}

// huffNode is a literal, or the sum of two nodes, while the code is built.
type huffNode struct {
	count  uint32
	parent uint16
	depth  uint8
	symbol uint8
}

// build makes the code for literals of these frequencies, of which at least two are not 0.
func (t *huffTable) build(counts *[256]uint32) {
	var nodes [512]huffNode
	var order [256]uint32 // counts, at most blockMax, and literals
	n := 0
	for s, c := range counts {
		t.lengths[s] = 0
		if c > 0 {
			order[n] = c<<8 | uint32(s)
			n++
			t.last = s
		}
	}
	slices.Sort(order[:n])
	leaves := nodes[:n]
	for i := range leaves {
		leaves[i] = huffNode{count: order[i] >> 8, symbol: uint8(order[i])}
	}
	// both leaves and sums become greater: the least two are at the front of one or the other
	leaf, sum := 0, n
	for end := n; end < 2*n-1; end++ {
		for range 2 {
			least := &leaf
			if leaf == n || sum < end && nodes[sum].count < nodes[leaf].count {
				least = &sum
			}
			nodes[end].count += nodes[*least].count
			nodes[*least].parent = uint16(end)
			*least++
		}
	}
	for i := 2*n - 3; i >= 0; i-- {
		nodes[i].depth = nodes[nodes[i].parent].depth + 1
	}
	limit(leaves)
	t.longest = 0
	for _, l := range leaves {
		t.lengths[l.symbol] = l.depth
		t.longest = max(t.longest, uint(l.depth))
	}
	t.assign()
}

// limit shortens codes that are longer than huffMaxBits and lengthens others in return. Leaves become more frequent
// from the first to the last, and their codes shorter, before and after.
func limit(leaves []huffNode) {
	if leaves[0].depth <= huffMaxBits {
		return
	}
	// each code takes a share of all that there can be; shares are counted in those of the longest
	share := func(depth uint8) int { return 1 << (huffMaxBits - depth) }
	over := -share(0)
	var first [huffMaxBits + 1]int // leaf of each depth
	for i := len(leaves) - 1; i >= 0; i-- {
		leaves[i].depth = min(leaves[i].depth, huffMaxBits)
		over += share(leaves[i].depth)
		first[leaves[i].depth] = i
	}
	for over > 0 { // lengthen where the share that becomes free costs least
		best, gain := -1, 0.0
		for depth := 1; depth < huffMaxBits; depth++ {
			i := first[depth]
			if i == len(leaves) || int(leaves[i].depth) != depth {
				continue // there is none
			}
			if g := float64(share(uint8(depth+1))) / float64(leaves[i].count); g > gain {
				best, gain = i, g
			}
		}
		l := &leaves[best]
		first[l.depth]++
		l.depth++
		if d := l.depth; leaves[first[d]].depth != d {
			first[d] = best
		}
		over -= share(l.depth)
	}
	for i := len(leaves) - 1; over < 0; i = (i + len(leaves) - 1) % len(leaves) { // shorten the most frequent that what is left is enough for
		for leaves[i].depth > 1 && -over >= share(leaves[i].depth) {
			over += share(leaves[i].depth)
			leaves[i].depth--
		}
	}
}

// assign numbers the codes: those of one length in the order of their literals, behind the longer ones.
func (t *huffTable) assign() {
	var number, next [huffMaxBits + 2]uint32
	for _, l := range t.lengths[:t.last+1] {
		number[l]++
	}
	code := uint32(0)
	for l := t.longest; l > 0; l-- {
		next[l] = code
		code = (code + number[l]) >> 1
	}
	for s, l := range t.lengths {
		t.codes[s] = 0
		if l > 0 {
			t.codes[s] = huffCode(uint64(next[l])<<(64-l) | uint64(l))
			next[l]++
		}
	}
}

// size returns the bytes that the streams of literals of these frequencies take, about; none if t has no code for one.
func (t *huffTable) size(counts *[256]uint32) (n int, ok bool) {
	bits := uint64(0)
	for s, c := range counts {
		if c > 0 && t.lengths[s] == 0 {
			return 0, false
		}
		bits += uint64(c) * uint64(t.lengths[s])
	}
	return int(bits/8) + 1, true
}

// appendHeader appends the description of the code (RFC 8878, 4.2.1). It fails if there is none, as for 256
// codes of one length.
func (t *huffTable) appendHeader(dst []byte) (_ []byte, ok bool) {
	var weights [256]uint8
	for s, l := range t.lengths[:t.last] { // the last one's follows from the others
		if l > 0 {
			weights[s] = uint8(t.longest + 1 - uint(l))
		}
	}
	start := len(dst)
	dst = append(dst, 0)
	if coded, ok := appendWeights(dst, weights[:t.last]); ok {
		if n := len(coded) - start - 1; n < 128 && (n < (t.last+1)/2 || t.last > 128) {
			coded[start] = byte(n)
			return coded, true
		}
	}
	if t.last > 128 {
		return dst[:start], false
	}
	dst[start] = byte(127 + t.last)
	for s := 0; s < t.last; s += 2 {
		dst = append(dst, weights[s]<<4|weights[s+1])
	}
	return dst, true
}

// appendWeights appends weights in FSE, by two states in turn.
func appendWeights(dst []byte, weights []uint8) ([]byte, bool) {
	var counts [huffMaxBits + 2]uint32
	for _, w := range weights {
		counts[w]++
	}
	if len(weights) < 3 || slices.Max(counts[:]) == uint32(len(weights)) {
		return dst, false
	}
	t := fseTable{log: 6}
	if len(weights) < 32 {
		t.log = 5
	}
	t.normalize(counts[:], uint32(len(weights)))
	dst = t.appendHeader(dst)
	t.build()
	w := bitWriter{out: dst}
	n := len(weights)
	var states [2]uint32
	states[(n-1)&1] = t.start(weights[n-1])
	states[n&1] = t.start(weights[n-2])
	for i := n - 3; i >= 0; i-- {
		states[i&1] = t.encode(&w, states[i&1], weights[i])
	}
	w.add(uint64(states[1]&(1<<t.log-1)), t.log)
	w.add(uint64(states[0]&(1<<t.log-1)), t.log)
	return w.close(), true
}
