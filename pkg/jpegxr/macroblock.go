package jpegxr

import "errors"

var (
	errBlock     = errors.New("coefficients go beyond the end of a block")
	errQuantizer = errors.New("there is no quantizer of that number")
)

// macroblock holds the coefficients of the macroblock that is being decoded.
type macroblock struct {
	x                int
	left, above      bool // there is one, in the tile
	restart, adapt   bool // counts of scans begin anew in front, codes adapt behind
	indexLP, indexHP int
	lp               [3][16]int32  // DC and LP in raster order
	hp               [3][256]int32 // coefficient k of block b at k<<shift|b, in raster order
	from             direction     // of the prediction of HP
}

// direction is the side that a prediction comes from.
type direction int

const (
	fromLeft direction = iota
	fromAbove
	fromBoth
	fromNone
)

// known holds the coefficients of a plane of a macroblock from which following macroblocks are predicted.
type known struct {
	dc      int32
	row     [3]int32 // first row of LP, of 4:2:2 that of both halves
	column  [3]int32 // first column; of 4:2:2 also what the halves differ by
	pattern uint32
	indexLP int
}

// readIndex reads the number of a quantizer.
func readIndex(r *reader, bits uint) int {
	if bits == 0 || !r.flag() {
		return 0
	}
	return int(r.bits(bits)) + 1
}

// readDC reads the DC coefficients.
func (d *Decoder) readDC(c *coder, r *reader, m *macroblock) error {
	m.indexLP, m.indexHP = 0, 0
	if !d.frequency && d.lacks != lacksLowpass {
		m.indexLP = readIndex(r, c.bitsLP)
		if d.lacks != lacksHighpass {
			m.indexHP = readIndex(r, c.bitsHP)
		}
	}
	var n [2]int
	large := uint(7)
	if d.color != grey {
		large = uint(r.code(theCoding().dc))
	} else if !r.flag() {
		large = 0
	}
	for p := range d.planes {
		k, v := min(p, 1), int32(0)
		if large>>(2-p)&1 != 0 {
			v = r.level(&c.levelDC[k]) - 1
			n[k]++
		}
		b := c.modelDC.bits[k]
		v = v<<b | int32(r.bits(b))
		if v != 0 && r.flag() {
			v = -v
		}
		m.lp[p] = [16]int32{v}
	}
	c.modelDC.update(d.color, &weightsDC, n[0], n[1])
	if d.lacks == lacksLowpass && m.adapt {
		c.levelDC[0].adapt()
		c.levelDC[1].adapt()
	}
	return c.chosen(m)
}

// chosen checks the numbers of quantizers.
func (c *coder) chosen(m *macroblock) error {
	if c.bitsHP == 0 && c.nHP > 1 {
		m.indexHP = m.indexLP
	}
	if m.indexLP >= c.nLP || m.indexHP >= c.nHP {
		return errQuantizer
	}
	return nil
}

// readLP reads the LP coefficients.
func (d *Decoder) readLP(c *coder, r *reader, m *macroblock) error {
	if d.frequency {
		m.indexLP = readIndex(r, c.bitsLP)
		if err := c.chosen(m); err != nil {
			return err
		}
	}
	if m.restart {
		c.scanLP.restart()
	}
	var n [2]int
	subsampled := d.color == color420 || d.color == color422
	has := c.planesLP(r, d.color)
	for p := range d.planes {
		k := min(p, 1)
		b := c.modelLP.bits[k]
		if subsampled && p > 0 {
			if err := d.readChromaLP(c, r, m, has>>1&1 != 0, b, &n[1]); err != nil {
				return err
			}
			break
		}
		if has>>p&1 != 0 {
			some, end := c.lowpass.decode(r.data, r.pos, k, 1, &c.scanLP, m.lp[p][:], 0, 0, 1<<b)
			if some == 0 {
				return errBlock
			}
			n[k], r.pos = n[k]+some, end
		}
		if b > 0 {
			r.pos = flexbits(r.data, r.pos, m.lp[p][:], 0, 0, b, 1)
		}
	}
	c.modelLP.update(d.color, &weightsLP, n[0], n[1])
	if m.adapt {
		c.levelDC[0].adapt()
		c.levelDC[1].adapt()
		c.lowpass.adapt()
	}
	return nil
}

// refine adds n bits to a coefficient, and a sign if it had none.
func (r *reader) refine(v *int32, n uint) {
	f := int32(r.bits(n))
	switch {
	case *v > 0:
		*v = *v<<n + f
	case *v < 0:
		*v = *v<<n - f
	case f != 0 && r.flag():
		*v = -f
	default:
		*v = f
	}
}

// planesLP reads which planes have LP coefficients. Both chroma planes of 4:2:0 and 4:2:2 count as one.
func (c *coder) planesLP(r *reader, color int) uint32 {
	var planes uint
	switch color {
	case grey:
		return r.bits(1)
	case color444:
		planes = 3
	default:
		planes = 2
	}
	all := uint32(1)<<planes - 1
	var has uint32
	if c.noneLP <= 0 || c.allLP < 0 {
		if r.flag() {
			has = 1
			if k := r.bits(planes - 1); k != 0 {
				has = 2*k + r.bits(1)
			}
		}
		if c.allLP < c.noneLP {
			has = all - has
		}
	} else {
		has = r.bits(planes)
	}
	count := func(n *int, met bool) {
		if *n++; met {
			*n -= 4
		}
		*n = min(max(*n, -8), 7)
	}
	count(&c.allLP, has == all)
	count(&c.noneLP, has == 0)
	return has
}

// Places of LP coefficients of 4:2:2 chroma, in the order of the bits.
var places422 = [7]int{4, 1, 2, 3, 5, 6, 7}

// readChromaLP reads the LP coefficients of both chroma planes of 4:2:0 and 4:2:2.
func (d *Decoder) readChromaLP(c *coder, r *reader, m *macroblock, some bool, b uint, n *int) error {
	blocks := d.parts[1].wide * d.parts[1].high
	if some {
		var mixed [16]int32 // U and V by turns
		order, start := orderFixed, 18-2*blocks
		var end int
		if *n, end = c.lowpass.decode(r.data, r.pos, 1, start, &order, mixed[:], 0, 0, 1); *n == 0 {
			return errBlock
		}
		r.pos = end
		for i, v := range mixed[start:] {
			place := i/2 + 1
			if d.color == color422 {
				place = places422[i/2]
			}
			m.lp[1+i&1][place] = v
		}
	}
	if b > 0 {
		for i := 1; i < blocks; i++ {
			r.refine(&m.lp[1][i], b)
			r.refine(&m.lp[2][i], b)
		}
	}
	return nil
}

// Luma blocks in the order of the bits: groups of 2×2.
var (
	orderLuma   = [16]uint8{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}
	orderChroma = [16]uint8{0, 1, 2, 3, 4, 5, 6, 7}
)

// readHP reads the HP coefficients and flexbits, and undoes their prediction.
func (d *Decoder) readHP(c *coder, r, fr *reader, m *macroblock) error {
	if d.frequency {
		m.indexHP = readIndex(r, c.bitsHP)
		if err := c.chosen(m); err != nil {
			return err
		}
	}
	if m.restart {
		c.scanH.restart()
		c.scanV.restart()
	}
	m.from = d.directionHP(m)
	order := &c.scanH
	if m.from == fromAbove {
		order = &c.scanV
	}
	patterns := c.readPatterns(r, d.color)
	d.predictPatterns(c, m, &patterns)
	var n [2]int
	for p := range d.planes {
		some, ok := d.readBlocks(c, r, fr, m, p, patterns[p], order)
		if !ok {
			return errBlock
		}
		n[min(p, 1)] += some
	}
	c.modelHP.update(d.color, &weightsHP, n[0], n[1])
	if m.adapt {
		c.pattern.adapt()
		c.block.adapt()
		c.highpass.adapt()
	}
	return nil
}

// readBlocks reads the blocks of a plane. It returns the number of coefficients, and false if they do not fit.
func (d *Decoder) readBlocks(c *coder, r, fr *reader, m *macroblock, p int, pattern uint32, order *scan) (n int, ok bool) {
	t, k := &d.parts[p], min(p, 1)
	b := c.modelHP.bits[k]
	flex := uint(max(int(b)-int(c.trim), 0))
	if !c.flex {
		flex = 0
	}
	step := c.stepHP[m.indexHP][p]
	blocks := &orderLuma
	if t.wide*t.high < 16 {
		blocks = &orderChroma
	}
	hp := m.hp[p][:]
	pos, data := r.pos, r.data
	for _, at := range blocks[:t.wide*t.high] {
		if pattern&1 != 0 {
			some, end := c.highpass.decode(data, pos, k, 1, order, hp, t.shift, uint(at), step<<b)
			if some == 0 {
				return 0, false
			}
			n, pos = n+some, end
		}
		pattern >>= 1
		if flex == 0 {
			continue
		}
		if r == fr {
			pos = flexbits(data, pos, hp, t.shift, uint(at), flex, step<<c.trim)
		} else {
			fr.pos = flexbits(fr.data, fr.pos, hp, t.shift, uint(at), flex, step<<c.trim)
		}
	}
	r.pos = pos
	if n > 0 || flex > 0 {
		m.predictHP(t, p)
	}
	return n, true
}
