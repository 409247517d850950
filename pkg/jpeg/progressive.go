package jpeg

import (
	"context"
	"errors"
	"fmt"
)

// scans decodes a frame of several scans: keeps the coefficients of all of them, and makes pixels in the end. The first
// scan's header has been read; its data begin at src[pos].
func (d *Decoder) scans(ctx context.Context, src []byte, pos int) error {
	f, w := &d.parser.frame, &d.window
	for i := range f.n {
		c := &f.comps[i]
		c.kept = grown(c.kept, 64*c.paddedX*f.mcusY*c.v)
		clear(c.kept)
		for k := range c.exact {
			c.exact[k] = notSent
		}
	}
	for {
		if err := d.scan.follows(f.progressive); err != nil {
			return fmt.Errorf("byte %d: %w", pos, err)
		}
		if err := d.quantize(); err != nil {
			return err
		}
		w.open(src, pos)
		if err := d.oneScan(ctx); err != nil {
			return err
		}
		for !w.last { // what is left over in front of the next marker
			w.p = w.end
			w.fill()
		}
		if w.at == len(src) && f.complete() { // as many writers leave it
			break
		}
		sos, next, err := d.parser.untilScan(src, w.at)
		if err != nil {
			return err
		}
		if sos == nil {
			break
		}
		pos = next
		if err := d.readScan(sos); err != nil {
			return fmt.Errorf("byte %d: %w", pos, err)
		}
	}
	return d.reconstruct(ctx)
}

// complete reports whether all bits of all coefficients were sent.
func (f *frame) complete() bool {
	for i := range f.n {
		for _, low := range f.comps[i].exact {
			if low != 0 {
				return false
			}
		}
	}
	return true
}

// follows checks that a scan sends only what was not sent before, and records it as sent. This bounds the
// number of scans of a frame.
func (s *scan) follows(progressive bool) error {
	if s.first > s.last || s.last > 63 || s.low > 13 || s.first == 0 && s.last > 0 && progressive || s.first > 0 && s.n > 1 || s.high > 0 && s.low != s.high-1 {
		return fmt.Errorf("a scan of coefficients %d to %d, bits %d to %d, of %d components", s.first, s.last, s.high, s.low, s.n)
	}
	before := int8(s.high)
	if s.high == 0 {
		before = notSent
	}
	for i := range s.n {
		c := s.comps[i].component
		if s.first > 0 && c.exact[0] == notSent {
			return errors.New("a scan of AC coefficients in front of that of the DC coefficient")
		}
		for k := s.first; k <= s.last; k++ {
			if c.exact[k] != before {
				return fmt.Errorf("coefficient %d is sent in the wrong order, or twice", k)
			}
			c.exact[k] = int8(s.low)
		}
	}
	return nil
}

// oneScan decodes the data of a scan.
func (d *Decoder) oneScan(ctx context.Context) error {
	f, s, w := &d.parser.frame, &d.scan, &d.window
	nx, ny := f.mcusX, f.mcusY
	if s.n == 1 { // an MCU is a block
		nx, ny = ceil(s.comps[0].width, 8), ceil(s.comps[0].height, 8)
	}
	left := d.parser.restart
	for y := range ny {
		if err := ctx.Err(); err != nil {
			return err
		}
		for x := range nx {
			if d.parser.restart > 0 {
				if left == 0 {
					if err := s.restarted(w, y*nx+x, d.parser.restart); err != nil {
						return inRow(y, err)
					}
					left = d.parser.restart
				}
				left--
			}
			w.ready()
			err := d.keptMCU(x, y)
			if err != nil || w.overrun() {
				return inRow(y, d.fault(err))
			}
		}
	}
	return nil
}

// keptMCU decodes an MCU of a frame with several scans into the kept coefficients.
func (d *Decoder) keptMCU(x, y int) error {
	s := &d.scan
	for i := range s.n {
		sc := &s.comps[i]
		h, v := sc.h, sc.v
		if s.n == 1 {
			h, v = 1, 1
		}
		for by := range v {
			for bx := range h {
				at := 64 * ((y*v+by)*sc.paddedX + x*h + bx)
				if err := d.keptBlock(sc, sc.kept[at:at+64]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// keptBlock decodes the part of a block that the current scan contains.
func (d *Decoder) keptBlock(sc *scanComponent, b []int16) error {
	s, w := &d.scan, &d.window
	switch {
	case !d.parser.frame.progressive:
		c := &d.blocks[0]
		_, err := w.decodeBlock(c, sc)
		copy(b, c[:64])
		clear(c[:])
		return err
	case s.first > 0 && s.high == 0:
		return w.firstAC(b, sc.ac, s)
	case s.first > 0:
		return w.refineAC(b, sc.ac, s)
	case s.high > 0:
		b[0] |= int16(w.take(1) << s.low)
		return nil
	}
	size := w.symbol(sc.dc)
	if size < 0 {
		return errCode
	}
	sc.pred += w.number(size)
	b[0] = int16(sc.pred << s.low)
	return nil
}

// number reads a number of n bits, of which those without the top bit are negative (T.81, F.2.2.1).
func (w *window) number(n int) int32 {
	v := w.take(n)
	if n > 0 && v < 1<<(n-1) {
		v += 1 - 1<<n
	}
	return v
}

// run reads the length of an end-of-band run: the number of blocks, this one included, without further coefficients in
// this scan.
func (w *window) run(r int) int { return 1<<r + int(w.take(r)) }

// firstAC decodes the first bits of a block's AC coefficients (T.81, G.1.2.2).
func (w *window) firstAC(b []int16, h *huffman, s *scan) error {
	if s.skip > 0 {
		s.skip--
		return nil
	}
	for k := s.first; k <= s.last; k++ {
		symbol := w.symbol(h)
		if symbol < 0 {
			return errCode
		}
		r, size := symbol>>4, symbol&15
		if size == 0 && r < 15 {
			s.skip = w.run(r) - 1
			return nil
		}
		if k += r; k > s.last {
			return errBeyond
		}
		b[zigzag[k]] = int16(w.number(size) << s.low)
	}
	return nil
}

// refineAC decodes one more bit of each of a block's AC coefficients (T.81, G.1.2.3).
func (w *window) refineAC(b []int16, h *huffman, s *scan) error {
	k, bit := s.first, int16(1)<<s.low
	for s.skip == 0 && k <= s.last {
		symbol := w.symbol(h)
		if symbol < 0 {
			return errCode
		}
		r, size, v := symbol>>4, symbol&15, int16(0)
		switch {
		case size == 1:
			if v = bit; w.take(1) == 0 {
				v = -bit
			}
		case size > 1:
			return fmt.Errorf("a new coefficient of %d bits in a scan that sends one", size)
		case r < 15:
			s.skip = w.run(r)
			continue
		}
		for k <= s.last { // r coefficients that are 0 so far lie in front of the new one
			if c := &b[zigzag[k]]; *c != 0 {
				w.refine(c, bit)
			} else if r--; r < 0 {
				*c = v
				break
			}
			k++
		}
		if k > s.last && v != 0 {
			return errBeyond
		}
		k++
	}
	if s.skip > 0 {
		for ; k <= s.last; k++ {
			if c := &b[zigzag[k]]; *c != 0 {
				w.refine(c, bit)
			}
		}
		s.skip--
	}
	return nil
}

// refine reads the next bit of a coefficient that is not 0.
func (w *window) refine(c *int16, bit int16) {
	switch {
	case w.take(1) == 0:
	case *c > 0:
		*c |= bit
	default:
		*c -= bit
	}
}

// reconstruct makes pixels of the coefficients of all scans.
func (d *Decoder) reconstruct(ctx context.Context) error {
	f := &d.parser.frame
	for i := range f.n {
		if f.comps[i].exact[0] == notSent {
			return fmt.Errorf("component %d has no scan", i)
		}
	}
	for y := range f.mcusY {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range f.n {
			c := &f.comps[i]
			for v := range c.v {
				kept := c.kept[64*(y*c.v+v)*c.paddedX:]
				strip := c.strip[(y&1*c.v+v)*8*c.stride:]
				for x := range c.paddedX {
					b := &d.blocks[d.waiting]
					copy(b[:64], kept[64*x:])
					d.samples(b, false, place{strip[8*x:], c.stride, &c.scale})
				}
			}
		}
		d.flush()
		d.emit(y)
	}
	return nil
}
