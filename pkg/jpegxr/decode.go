package jpegxr

import (
	"context"
	"errors"
	"fmt"
)

// Decoder decodes images one after the other and reuses its memory. The zero value is ready; only one
// goroutine at a time may use it.
type Decoder struct {
	file
	contexts []coder // of the columns of tiles
	parts    [3]part
	mb       macroblock
	out      output
}

// Decode decodes the image in the file src into dst, whose rows are stride bytes apart. It refuses an image
// for which dst is too small before it allocates memory. With an error, part of dst may have been written.
// Decode checks ctx between rows of macroblocks.
func (d *Decoder) Decode(ctx context.Context, dst []byte, stride int, src []byte) error {
	err := d.read(src)
	if err == nil {
		err = d.decode(ctx, dst, stride)
	}
	d.forget()
	if err != nil {
		return fmt.Errorf("JPEG XR: %w", err)
	}
	return nil
}

// forget lets go of the caller's memory.
func (d *Decoder) forget() {
	d.src, d.head, d.out.dst = nil, reader{}, nil
	for i := range d.contexts {
		d.contexts[i].readers = [4]reader{}
	}
}

func (d *Decoder) decode(ctx context.Context, dst []byte, stride int) error {
	row := int64(d.Width) * int64(d.Format.Size())
	if int64(stride) < row {
		return fmt.Errorf("%d×%d pixels of %s: a stride of %d bytes for rows of %d", d.Width, d.Height, d.Format, stride, row)
	}
	if int64(len(dst)) < row || (int64(len(dst))-row)/int64(stride) < int64(d.Height-1) {
		return fmt.Errorf("%d×%d pixels of %s: %d bytes of memory for rows %d apart", d.Width, d.Height, d.Format, len(dst), stride)
	}
	// A macroblock has a bit at least for each of DC, LP and HP.
	n, least, data := int64(d.columns)*int64(d.rows), int64(3-max(d.lacks-1, 0)), len(d.src)-d.head.offset()
	if n > 8*int64(data)/least {
		return fmt.Errorf("byte %d: %d bytes for %d macroblocks", d.head.offset(), data, n)
	}
	if err := d.readPackets(); err != nil {
		return err
	}
	d.prepare(dst, stride)
	ty := 0
	for y := range d.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		if y == d.tileY[ty+1] {
			ty++
		}
		if err := d.decodeRow(y, ty); err != nil {
			return err
		}
		for p := range d.planes {
			d.transform(&d.parts[p], y)
		}
		if y > 0 {
			d.emit(y - 1)
		}
	}
	d.emit(d.rows - 1)
	return nil
}

var errEnd = errors.New("the data end early")

// decodeRow decodes row y of macroblocks, which lies in row ty of tiles.
func (d *Decoder) decodeRow(y, ty int) error {
	m := &d.mb
	for p := range d.planes {
		t := &d.parts[p]
		t.now, t.before = t.before, t.now
	}
	m.above = y > d.tileY[ty]
	for tx := range d.contexts {
		c := &d.contexts[tx]
		from, to := d.tileX[tx], d.tileX[tx+1]
		if !m.above {
			if err := d.open(c, ty*len(d.contexts)+tx); err != nil {
				return err
			}
		}
		for m.x = from; m.x < to; m.x++ {
			m.left = m.x > from
			m.restart = (m.x-from)&15 == 0
			m.adapt = m.restart || m.x == to-1
			err := d.macroblock(c, m)
			for i := range d.bands() {
				if r := &c.readers[i]; !d.ready(r) {
					return fmt.Errorf("byte %d: macroblock (%d, %d): %w", len(d.src), m.x, y, errEnd)
				} else if err != nil && i == d.bands()-1 {
					return fmt.Errorf("byte %d: macroblock (%d, %d): %w", r.offset(), m.x, y, err)
				}
			}
			for p := range d.planes {
				d.parts[p].store(c, m, p, y)
			}
		}
	}
	return nil
}

// macroblock decodes a macroblock.
func (d *Decoder) macroblock(c *coder, m *macroblock) error {
	dc, lp, hp, flex := &c.readers[0], &c.readers[0], &c.readers[0], &c.readers[0]
	if d.frequency {
		lp, hp, flex = &c.readers[1], &c.readers[2], &c.readers[3]
	}
	if err := d.readDC(c, dc, m); err != nil {
		return err
	}
	if d.lacks < lacksLowpass {
		if err := d.readLP(c, lp, m); err != nil {
			return err
		}
	}
	d.predictLP(m)
	if d.lacks < lacksHighpass {
		return d.readHP(c, hp, flex, m)
	}
	return nil
}
