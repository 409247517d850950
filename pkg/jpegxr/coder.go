package jpegxr

import "fmt"

// coder is the state of the entropy decoder of a tile; there is one for each column of tiles.
type coder struct {
	quantizers
	bitsLP, bitsHP uint // of the number that chooses a quantizer
	stepDC         [3]int32
	stepLP, stepHP [16][3]int32
	flex           bool      // there are flexbits
	trim           uint      // of them that are not there
	readers        [4]reader // of the bands; in spatial order the first reads all

	levelDC                   [2]adaptive // of luma and chroma
	lowpass, highpass         runLevel
	pattern, block            adaptive // coded block patterns: which groups, and which blocks in a group
	scanLP, scanH, scanV      scan
	modelDC, modelLP, modelHP model
	noneLP, allLP             int // how often no plane, and all planes, had LP coefficients
	patterns                  [2]patternModel
}

// open begins the tile with the given number.
func (d *Decoder) open(c *coder, number int) error {
	n := d.bands()
	c.trim, c.flex = 0, d.lacks < lacksFlexbits
	for i := range n {
		if d.packets[number*n+i] < 0 {
			c.flex, c.readers[i] = false, reader{}
			continue
		}
		r := &c.readers[i]
		*r = d.reader(d.packets[number*n+i])
		if d.ready(r); r.bits(24) != 1 {
			return fmt.Errorf("byte %d: no packet, which begins with 00 00 01, for band %d of tile %d", d.packets[number*n+i], i, number)
		}
		r.bits(8)
		if d.trimmed && i == d.flexBand() {
			c.trim = uint(r.bits(4))
		}
	}
	c.reset(d.color)
	c.quantizers = d.quantizers
	c.bitsLP, c.bitsHP = 0, 0
	lp, hp := &c.readers[0], &c.readers[0]
	if d.frequency {
		lp, hp = &c.readers[1], &c.readers[2]
	}
	if c.tileDC {
		c.dc = d.readIndices(&c.readers[0])
	}
	if c.tileLP {
		c.nLP, c.bitsLP = d.readChoice(lp, &c.lp, []indices{c.dc})
	}
	if c.tileHP {
		c.nHP, c.bitsHP = d.readChoice(hp, &c.hp, c.lp[:c.nLP])
	}
	for p := range d.planes {
		low := 1 // step of DC and LP; those of chroma are doubled later
		if p > 0 {
			low = 0
		}
		c.stepDC[p] = d.step(c.dc[p], low)
		for i := range c.nLP {
			c.stepLP[i][p] = d.step(c.lp[i][p], low)
		}
		for i := range c.nHP {
			c.stepHP[i][p] = d.step(c.hp[i][p], 1)
		}
	}
	return nil
}

// flexBand returns the index, among a tile's packets, of the packet that says how many flexbits are trimmed.
func (d *Decoder) flexBand() int {
	if d.frequency {
		return 3
	}
	return 0
}

// readChoice reads the quantizers of a band, or copies those of the coarser band. It returns their number, and the
// number of bits by which a macroblock chooses one.
func (d *Decoder) readChoice(r *reader, to *[16]indices, coarser []indices) (n int, bits uint) {
	if r.flag() {
		return copy(to[:], coarser), 0
	}
	n = int(r.bits(4)) + 1
	for i := range n {
		to[i] = d.readIndices(r)
	}
	for _, limit := range []int{2, 4, 6, 10} {
		if n >= limit {
			bits++
		}
	}
	return n, bits
}

// model gives the number of bits of the coefficients of luma and chroma that are sent uncoded.
type model struct {
	bits  [2]uint
	state [2]int
}

// Weights of the numbers of coefficients of luma and, by the colours inside, of chroma, in sixteenths.
type weights struct {
	luma   int
	chroma [4]int
}

var (
	weightsDC = weights{240 * 16, [4]int{0, 120 * 16, 120 * 16, 120 * 16}}
	weightsLP = weights{12 * 16, [4]int{0, 37 * 16, 18 * 16, 6 * 16}}
	weightsHP = weights{1 * 16, [4]int{0, 2 * 16, 1 * 16, 8}}
)

// update looks at the numbers of coefficients that a macroblock had in luma and chroma.
func (m *model) update(color int, w *weights, luma, chroma int) {
	m.move(0, luma*w.luma>>4)
	if color != grey {
		m.move(1, chroma*w.chroma[color]>>4)
	}
}

func (m *model) move(i, n int) {
	const target, most = 70, 8
	d := (n - target) >> 2
	switch {
	case d <= -8:
		m.state[i] += max(d+4, -16)
		if m.state[i] < -most {
			if m.bits[i] == 0 {
				m.state[i] = -most
			} else {
				m.state[i], m.bits[i] = 0, m.bits[i]-1
			}
		}
	case d >= 8:
		m.state[i] += min(d-4, 15)
		if m.state[i] > most {
			if m.bits[i] == 15 {
				m.state[i] = most
			} else {
				m.state[i], m.bits[i] = 0, m.bits[i]+1
			}
		}
	}
}

// reset begins a tile.
func (c *coder) reset(color int) {
	t := theCoding()
	c.levelDC[0].reset(t.level)
	c.levelDC[1].reset(t.level)
	c.lowpass.reset(t)
	c.highpass.reset(t)
	c.pattern.reset(t.pattern)
	c.block.reset(t.grey)
	if color != grey {
		c.block.reset(t.color)
	}
	c.scanLP, c.scanH, c.scanV = orderH, orderH, orderV
	c.modelDC, c.modelLP, c.modelHP = model{bits: [2]uint{8, 8}}, model{bits: [2]uint{4, 4}}, model{}
	c.noneLP, c.allLP = 1, 1
	c.patterns = [2]patternModel{{few: -4, many: 4}, {few: -4, many: 4}}
}
