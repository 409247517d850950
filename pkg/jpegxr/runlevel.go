package jpegxr

// runLevel has the codes of runs and levels of a band.
type runLevel struct {
	first  [2]adaptive    // of luma and chroma
	next   [2][2]adaptive // by whether all coefficients so far followed at once
	level  [2]adaptive
	coding *coding
}

func (c *runLevel) reset(t *coding) {
	c.coding = t
	for i := range 2 {
		c.first[i].reset(t.first)
		c.next[i][0].reset(t.next)
		c.next[i][1].reset(t.next)
		c.level[i].reset(t.level)
	}
}

func (c *runLevel) adapt() {
	for i := range 2 {
		c.first[i].adapt()
		c.next[i][0].adapt()
		c.next[i][1].adapt()
		c.level[i].adapt()
	}
}

// decode decodes the coefficients of a block from bit pos of data on. The first coefficient is at scan position place
// or later. A coefficient at position p in the block is multiplied by step and stored in to[p<<shift|at]. decode
// returns the number of coefficients, or 0 if they exceed the block, and the position behind them.
func (c *runLevel) decode(data []byte, pos int, chroma, place int, s *scan, to []int32, shift, at uint, step int32) (n, end int) {
	a := &c.first[chroma&1]
	w := window(data, pos)
	e := &a.table[uint8(w>>56)]
	a.disc += e.delta
	follows, large, near := e.symbol>>2, e.symbol>>1&1, e.symbol&1 // follows: 1 at once, 2 behind zeros
	dense := near & follows
	w <<= e.length & 63
	pos += int(e.length)
	for {
		sign := int32(int64(w) >> 63)
		w <<= 1
		pos++
		v := step
		if large != 0 {
			a := &c.level[dense&1]
			e := &a.table[uint8(w>>56)]
			a.disc += e.delta
			w <<= e.length & 63
			pos += int(e.length)
			if v *= int32(e.symbol); e.symbol == 0 {
				r := reader{data: data, pos: pos}
				v = step * r.escape()
				pos = r.pos
				w = window(data, pos)
			}
		}
		v = v ^ sign - sign
		if n == 0 && near == 0 { // the run in front of the first coefficient comes behind it
			e := &c.coding.runs[(15-place)&15][uint8(w>>56)]
			pos += int(e.length)
			place += int(e.symbol)
		}
		if place > 15 {
			return 0, pos
		}
		s.count(place, to, shift, at, v)
		n++
		if follows == 0 {
			return n, pos
		}
		w = window(data, pos)
		place++
		if follows == 2 {
			if place > 14 {
				return 0, pos
			}
			e := &c.coding.runs[(15-place)&15][uint8(w>>56)]
			w <<= e.length & 63
			pos += int(e.length)
			place += int(e.symbol)
		}
		var symbol uint8
		if place < 14 {
			a := &c.next[chroma&1][dense&1]
			e := &a.table[uint8(w>>56)]
			a.disc += e.delta
			w <<= e.length & 63
			pos += int(e.length)
			symbol = e.symbol
		} else {
			if place > 15 {
				return 0, pos
			}
			e := &c.coding.ends[place-14][uint8(w>>56)]
			w <<= e.length & 63
			pos += int(e.length)
			symbol = e.symbol
		}
		large, follows = symbol&1, symbol>>1
		dense &= follows
	}
}

// scan is an adaptive order of places: each with how often there was a coefficient, in the bits above the lowest 8.
type scan [16]uint32

const scanned = 1 << 8 // once

var (
	orderH = scan{0, 1, 4, 5, 2, 8, 6, 9, 3, 12, 10, 7, 13, 11, 14, 15} // also of LP
	orderV = scan{0, 4, 8, 5, 1, 12, 9, 6, 2, 13, 3, 15, 7, 10, 14, 11}
	// orderFixed never changes.
	orderFixed = func() (s scan) {
		for i := range s {
			s[i] = uint32(16-i)<<20 | uint32(i)
		}
		return s
	}()
)

// restart sets the counts back, not the order.
func (s *scan) restart() {
	s[0] = 32767*scanned | s[0]&0xff
	for i := 1; i < 16; i++ {
		s[i] = uint32(34-2*i)*scanned | s[i]&0xff
	}
}

// count puts a coefficient where it belongs, and counts it.
func (s *scan) count(place int, to []int32, shift, at uint, v int32) {
	q := s[place&15]
	to[q&0xff<<(shift&7)|uint32(at)] = v
	q += scanned
	if p := s[(place-1)&15]; q|0xff > p|0xff {
		q, s[(place-1)&15] = p, q
	}
	s[place&15] = q
}

// flexbits reads n more bits of each of the 15 coefficients of a block, and returns the position behind them. A
// coefficient that is 0 has a sign behind its bits, unless they are 0.
func flexbits(data []byte, pos int, to []int32, shift, at uint, n uint, step int32) int {
	const never = 1<<64 - 1
	none := uint64(1)<<((64-n)&63) - 1 // at most this: the bits are 0
	each := 57 / (int(n) + 1)
	for i := 1; i < 16; {
		w := window(data, pos)
		last := min(i+each, 16)
		pos += int(n) * (last - i)
		for ; i < last; i++ {
			p := &to[uint(i)<<(shift&7)|at]
			v := *p
			f := int32(w >> ((64 - n) & 63))
			short := w << (n & 63)
			limit, sign := uint64(never), v>>31
			if v == 0 {
				limit = none
			}
			if v == 0 {
				sign = int32(int64(short) >> 63)
			}
			*p = v + (f*step ^ sign - sign)
			more := 0
			if w > limit {
				more = 1
			}
			w = short << more
			pos += more
		}
	}
	return pos
}
