package jpeg

import (
	"context"
	"errors"
	"fmt"
)

// Decoder decodes streams one after the other and reuses its memory. The zero value is ready; only one
// goroutine at a time may use it.
type Decoder struct {
	parser parser
	tables tables
	window window
	scan   scan

	blocks  [2]coefficients // of which waiting wait for the DCT; the others are 0
	waiting int
	places  [2]place

	expanders [4]expander
	rows      [4][]byte
	mix       mix
	session   *session // with the library, where that decodes
	dst       []byte
	stride    int
	done      int // rows in dst
}

// place locates the samples of a block.
type place struct {
	dst    []byte
	stride int
	quant  *[64]uint16
}

// Decode decodes the stream src into dst, whose rows are c.Stride bytes apart, and returns how many rows it
// wrote: the height of the frame, which may be less than c.Height. It leaves the rows below unchanged. tables
// is an abbreviated stream (T.81, B.5; TIFF's tag JPEGTables) with quantization and Huffman tables for src to
// use where it defines none; nil if there are none. A frame whose width or number of components differ from
// c, or that is higher, is refused before memory is allocated. Decode checks ctx between rows of MCUs. With
// an error, rows is the number written before.
func (d *Decoder) Decode(ctx context.Context, dst, tables, src []byte, c Config) (rows int, err error) {
	d.done = 0
	err = d.decode(ctx, dst, tables, src, c)
	d.dst, d.window.src = nil, nil // which are the caller's
	if err != nil {
		err = fmt.Errorf("jpeg: %w", err)
	}
	return d.done, err
}

func (d *Decoder) decode(ctx context.Context, dst, tables, src []byte, c Config) error {
	p := &d.parser
	p.tables = &d.tables
	d.tables.forget()
	if tables != nil {
		if err := p.readTables(tables); err != nil {
			return err
		}
	}
	sos, pos, err := p.firstScan(src)
	if err != nil {
		return err
	}
	if d.stride, err = c.check(&p.frame, dst); err != nil {
		return err
	}
	if err := d.readScan(sos); err != nil {
		return fmt.Errorf("byte %d: %w", pos, err)
	}
	d.dst = dst
	return d.pixels(ctx, tables, src, pos, c.Color)
}

// pixels decodes the frame, whose first scan's data begin at src[pos].
func (d *Decoder) pixels(ctx context.Context, tables, src []byte, pos int, color Color) error {
	f := &d.parser.frame
	if f.progressive || d.scan.n < f.n {
		d.prepare(color)
		return d.scans(ctx, src, pos)
	}
	if err := d.quantize(); err != nil {
		return err
	}
	if ok, err := d.byLibrary(ctx, tables, src, color); ok || err != nil {
		if ok {
			d.done = f.height
		}
		return err
	}
	d.prepare(color)
	d.window.open(src, pos)
	return d.sequential(ctx)
}

// prepare allocates the memory between the entropy decoder and dst.
func (d *Decoder) prepare(color Color) {
	f := &d.parser.frame
	for i := range f.n {
		c := &f.comps[i]
		c.ring, c.stride = 16*c.v, (8*c.paddedX+31)&^31+slack
		c.strip = grown(c.strip, c.ring*c.stride)
		e := &d.expanders[i]
		e.out = grown(e.out, f.width+slack)
		e.sums = grown(e.sums, margin+f.width/2+1+slack)
	}
	d.mix = mixOf(f, color)
	d.waiting = 0
	clear(d.blocks[:]) // of what an error has left
}

// grown returns n elements in the memory of s if they fit, otherwise in new memory. Their content is undefined.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// quantize gives the components of a scan the quantization tables that are defined now, unless an earlier scan has.
func (d *Decoder) quantize() error {
	for i := range d.scan.n {
		c := d.scan.comps[i].component
		if c.scaled {
			continue
		}
		if !d.tables.quantDefined[c.quant] {
			return fmt.Errorf("quantization table %d is not defined", c.quant)
		}
		c.scale, c.scaled = d.tables.quant[c.quant], true
	}
	return nil
}

// sequential decodes the only scan of a frame.
func (d *Decoder) sequential(ctx context.Context) error {
	f, s, w := &d.parser.frame, &d.scan, &d.window
	left := d.parser.restart
	for y := range f.mcusY {
		if err := ctx.Err(); err != nil {
			return err
		}
		for x := range f.mcusX {
			if d.parser.restart > 0 {
				if left == 0 {
					if err := s.restarted(w, y*f.mcusX+x, d.parser.restart); err != nil {
						return inRow(y, err)
					}
					left = d.parser.restart
				}
				left--
			}
			w.ready()
			if err := d.mcu(x, y&1); err != nil {
				return inRow(y, err)
			}
		}
		d.flush()
		d.emit(y)
	}
	return nil
}

func inRow(y int, err error) error { return fmt.Errorf("row %d of MCUs: %w", y, err) }

// restarted continues after the restart marker in front of an MCU.
func (s *scan) restarted(w *window, mcu, interval int) error {
	s.skip = 0
	for i := range s.comps {
		s.comps[i].pred = 0
	}
	return w.restart(mcu/interval - 1)
}

var errBeyond = errors.New("a run of zeros beyond the end of a block")

// mcu decodes MCU x of a row, whose samples go to the first or second half of the strips.
func (d *Decoder) mcu(x, half int) error {
	w := &d.window
	for i := range d.scan.n {
		sc := &d.scan.comps[i]
		c := sc.component
		for v := range c.v {
			at := (half*c.v+v)*8*c.stride + x*c.h*8
			for range c.h {
				if err := d.block(sc, place{c.strip[at:], c.stride, &c.scale}); err != nil {
					return d.fault(err)
				}
				at += 8
			}
		}
	}
	if w.overrun() {
		return d.fault(nil)
	}
	return nil
}

// fault describes the fault of the data just read.
func (d *Decoder) fault(err error) error {
	w := &d.window
	if w.overrun() || w.last && w.left() < 16 && err == errCode {
		return fmt.Errorf("byte %d: the entropy-coded data end early", w.at)
	}
	return fmt.Errorf("byte %d: %w", w.offset(), err)
}

var errCode = errors.New("no Huffman code")

// decodeBlock decodes a block of a sequential scan; only says that it has no AC coefficients.
func (w *window) decodeBlock(c *coefficients, sc *scanComponent) (only bool, err error) {
	var k int
	if haveBMI2 {
		k = blockBMI2(w, c, sc.dc, sc.ac, &sc.pred)
	} else {
		k = blockScalar(w, c, sc.dc, sc.ac, &sc.pred)
	}
	switch {
	case k == endOfBlock+1:
		return true, nil
	case k == 64 || k > endOfBlock:
		return false, nil
	case k == badCode:
		return false, errCode
	}
	return false, errBeyond
}

// block decodes a block and its samples, which may have to wait for another block.
func (d *Decoder) block(sc *scanComponent, p place) error {
	c := &d.blocks[d.waiting]
	only, err := d.window.decodeBlock(c, sc)
	if err != nil {
		return err
	}
	d.samples(c, only, p)
	return nil
}

// samples makes the samples of c, which is the first of d.blocks that does not wait.
func (d *Decoder) samples(c *coefficients, only bool, p place) {
	switch {
	case only:
		idctDC(p.dst, p.stride, c[0], p.quant[0])
		c[0] = 0
	case !haveAVX2:
		idctScalar(p.dst, p.stride, c, p.quant)
	case d.waiting == 0:
		d.places[0], d.waiting = p, 1
	default:
		d.pair(d.places[0], p)
	}
}

// pair makes the samples of both blocks.
func (d *Decoder) pair(a, b place) {
	_, _ = a.dst[7*a.stride+7], b.dst[7*b.stride+7]
	idct2AVX2(&a.dst[0], a.stride, &b.dst[0], b.stride, &d.blocks, a.quant, b.quant)
	d.waiting = 0
}

// flush makes the samples of a block that still waits.
func (d *Decoder) flush() {
	if d.waiting == 1 {
		var none [64]byte
		d.pair(d.places[0], place{none[:], 8, d.places[0].quant})
	}
}

// emit puts the rows of pixels into dst for which row y of MCUs was the last that they needed.
func (d *Decoder) emit(y int) {
	f := &d.parser.frame
	end := (y + 1) * 8 * f.vmax
	for i := range f.n {
		if f.comps[i].expand.needsBelow() {
			end = (y+1)*8*f.vmax - 1
			break
		}
	}
	if y == f.mcusY-1 {
		end = f.height
	}
	for ; d.done < end; d.done++ {
		for i := range f.n {
			d.rows[i] = d.expanders[i].row(f, &f.comps[i], d.done)
		}
		d.mix(d.dst[d.done*d.stride:], &d.rows, f.width)
	}
}
