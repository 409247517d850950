package jpegxr

import "math/bits"

// patternModel describes how coded block patterns of luma or chroma are predicted.
type patternModel struct {
	state     int // 0 from neighbours, 1 not at all, 2 all ones
	few, many int
}

// Bits of groups of four blocks, of which one is set, two, or three.
var (
	twoOf4   = [8]uint32{3, 3, 5, 5, 6, 9, 10, 12} // by 3 bits
	pairsOf4 = [4]uint32{5, 6, 9, 10}
	threeOf4 = [4]uint32{7, 11, 13, 14}
)

// ones reads which of four bits are set, of which n are.
func (r *reader) ones(n int) uint32 {
	switch n {
	case 1:
		return 1 << r.bits(2)
	case 2:
		v := r.bits(2)
		if v < 2 {
			return twoOf4[2*v]
		}
		return twoOf4[2*v+r.bits(1)]
	case 3:
		return 0xf ^ 1<<r.bits(2)
	case 4:
		return 0xf
	}
	return 0
}

// group reads which blocks of a group have luma, and which chroma planes have something in it.
func (c *coder) group(r *reader) (luma, chroma uint32) {
	v := r.symbol(&c.block) + 1
	if v >= 6 {
		switch {
		case r.flag():
			chroma = 1
		case r.flag():
			chroma = 2
		default:
			chroma = 3
		}
		if v == 9 && !r.flag() {
			if v++; !r.flag() {
				v++
			}
		}
		v -= 6
	}
	switch v {
	case 1:
		luma = 1 << r.bits(2)
	case 2:
		luma = 3 << (2 * r.bits(1))
	case 3:
		luma = pairsOf4[r.bits(2)]
	case 4:
		luma = threeOf4[r.bits(2)]
	case 5:
		luma = 0xf
	}
	return luma, chroma
}

// readPatterns reads the differences of the coded block patterns of a macroblock.
func (c *coder) readPatterns(r *reader, color int) (p [3]uint32) {
	groups := r.ones(r.symbol(&c.pattern))
	for i := range uint(4) {
		if groups>>i&1 == 0 {
			continue
		}
		luma, chroma := c.group(r)
		p[0] |= luma << (4 * i)
		for k := range 2 {
			if chroma>>k&1 == 0 {
				continue
			}
			switch color {
			case color444:
				p[k+1] |= r.ones(r.code(theCoding().chroma)+1) << (4 * i)
			case color422: // a column of two blocks
				v := uint32(5)
				if r.flag() {
					v = 1
				} else if r.flag() {
					v = 4
				}
				p[k+1] |= v << (i + i&2)
			case color420:
				p[k+1] |= 1 << i
			}
		}
	}
	return p
}

// predict undoes the prediction of the pattern of a plane of n blocks from that of the macroblocks at the left and,
// where there is none, above. The blocks of patterns of 16 lie in groups of 2×2.
func (m *patternModel) predict(p uint32, n int, left, above *uint32) uint32 {
	switch m.state {
	case 0:
		p ^= neighbour(n, left, above)
		switch n {
		case 16:
			p ^= p << 1 & 0x2
			p ^= p << 3 & 0x10
			p ^= p << 1 & 0x20
			p ^= p & 0x33 << 2
			p ^= p & 0xcc << 6
			p ^= p & 0x3300 << 2
		default:
			p ^= p << 1 & 2
			for row := 3; row < 1<<(n-2); row <<= 2 {
				p ^= p & uint32(row) << 2
			}
		}
	case 2:
		p ^= 1<<n - 1
	}
	const usual = 3
	ones := bits.OnesCount32(p) * 16 / n
	m.few = min(max(m.few+ones-usual, -16), 15)
	m.many = min(max(m.many+16-ones-usual, -16), 15)
	switch {
	case m.few < 0 && m.few < m.many:
		m.state = 1
	case m.few < 0 || m.many < 0:
		m.state = 2
	default:
		m.state = 0
	}
	return p
}

// neighbour returns the bit of the block beside the first one.
func neighbour(n int, left, above *uint32) uint32 {
	beside, over := 1, n-2 // of 2 columns
	if n == 16 {
		beside, over = 5, 10
	}
	switch {
	case left != nil:
		return *left >> beside & 1
	case above != nil:
		return *above >> over & 1
	}
	return 1
}
