package jpegxr

// lifting has the places of the pixels of a block, in raster order, in the order that the transforms work in.
var lifting = [16]uint8{0, 1, 5, 4, 2, 3, 7, 6, 10, 11, 15, 14, 8, 9, 13, 12}

// places holds the positions of a block's coefficients in that order.
var places = [16]uint8{0, 5, 1, 6, 10, 12, 8, 14, 2, 4, 3, 7, 9, 13, 11, 15}

// part holds two rows of macroblocks of one plane of the image.
type part struct {
	wide, high  int  // blocks in a macroblock
	shift       uint // log2 of their number
	round       int32
	double      bool // DCs, behind the second-level transform
	now, before []known

	// Rows of blocks, twice high, each of which has the values of place p of block x at p*stride+x.
	blocks grid
	// The same of DCs: rows of macroblocks. Those of planes with 4×4 blocks are transposed, so that the filter, which
	// is not symmetric, fits.
	dcs grid
	at  [16]int // where the DC of a block is in dcs
}

// grid is a ring buffer of rows of blocks.
type grid struct {
	rows   [][]int32
	memory []int32
	stride int
	n      int  // blocks in a row
	across bool // transposed
}

func (g *grid) row(y int) []int32 { return g.rows[y%len(g.rows)] }

func (g *grid) prepare(rows, n, places int) {
	// Room for a vector behind the last block, in an odd number of the cache's lines: so the places of all rows fall
	// into different ones.
	const line = 16
	g.n, g.stride = n, (n+8+line-1)/line*line
	if g.stride/line%2 == 0 {
		g.stride += line
	}
	g.memory = grown(g.memory, rows*places*g.stride)
	g.rows = grown(g.rows, rows)
	for i := range g.rows {
		g.rows[i] = g.memory[i*places*g.stride:][:places*g.stride]
	}
}

// grown returns n elements in the memory of s if they fit, otherwise in new memory. Their content is undefined.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// prepare takes memory for the image.
func (d *Decoder) prepare(dst []byte, stride int) {
	d.contexts = grown(d.contexts, len(d.tileX)-1)
	for p := range d.planes {
		t := &d.parts[p]
		t.wide, t.high, t.shift, t.round = 4, 4, 4, 0
		if p > 0 && d.color == color422 {
			t.wide, t.shift, t.round = 2, 3, 1
		} else if p > 0 && d.color == color420 {
			t.wide, t.high, t.shift, t.round = 2, 2, 2, 1
		}
		t.double = d.scaled && p > 0
		t.now, t.before = grown(t.now, d.columns), grown(t.before, d.columns)
		t.blocks.prepare(2*t.high, d.columns*t.wide, 16)
		t.dcs.prepare(2, d.columns, 16)
		t.dcs.across = t.wide*t.high == 16
		for i := range t.wide * t.high {
			t.at[i] = i * t.dcs.stride
			if t.dcs.across {
				t.at[i] = int(lifting[i%4*4+i/4]) * t.dcs.stride
			}
		}
	}
	d.mb = macroblock{}
	d.out.prepare(d, dst, stride)
}

// store puts a macroblock's coefficients, times their steps, where the transforms want them, and clears them.
func (t *part) store(c *coder, m *macroblock, p, y int) {
	dcs := t.dcs.row(y)
	lp := &m.lp[p]
	dcs[m.x] = lp[0] * c.stepDC[p]
	step := c.stepLP[m.indexLP][p]
	for i := 1; i < t.wide*t.high; i++ {
		at := i
		if t.dcs.across {
			at = int(places[i%4*4+i/4])
		}
		dcs[at*t.dcs.stride+m.x] = lp[i] * step
	}
	hp := &m.hp[p]
	for by := range t.high {
		row := t.blocks.row(y*t.high + by)[m.x*t.wide:]
		for k := 1; k < 16; k++ {
			to := row[int(places[k])*t.blocks.stride:]
			from := hp[k<<t.shift+by*t.wide:]
			if t.wide == 4 {
				*(*[4]int32)(to) = *(*[4]int32)(from)
			} else {
				*(*[2]int32)(to) = *(*[2]int32)(from)
			}
		}
	}
	*hp = [256]int32{}
}
