package jpegxr

import (
	"encoding/binary"
	"math"
)

// output makes pixels of the values of a row of macroblocks.
type output struct {
	dst    []byte
	stride int
	lines  [3][]int32 // luma and, at full width, chroma
	half   [2][]int32 // chroma as it is

	offset   int32 // added to luma before values are shifted
	down, up uint  // shifts
}

func (o *output) prepare(d *Decoder, dst []byte, stride int) {
	o.dst, o.stride = dst, stride
	width := 16 * d.columns
	for p := range d.planes {
		o.lines[p] = grown(o.lines[p], width)
	}
	for i := range o.half {
		o.half[i] = grown(o.half[i], width/2)
	}
	o.down, o.up, o.offset = 0, 0, 0
	if d.scaled {
		o.down, o.offset = 3, 3
	}
	switch d.Format {
	case Gray8, BGR24:
		o.offset += 128 << o.down
	case Gray16, BGR48:
		if d.scaled {
			o.offset++
		}
		o.up = d.shift
		o.offset += 1 << 15 >> d.shift << o.down
	}
}

// emit makes the pixels of row y of macroblocks, for which the next row must have been transformed.
func (d *Decoder) emit(y int) {
	o := &d.out
	for r := range 16 {
		at := 16*y + r - d.top
		if at < 0 || at >= d.Height {
			continue
		}
		for p := range d.planes {
			t := &d.parts[p]
			switch {
			case t.wide == 4:
				t.blocks.line16(o.lines[p], t.blocks.row(4*y+r/4), r%4)
			case t.high == 4:
				t.blocks.line16(o.half[0], t.blocks.row(4*y+r/4), r%4)
				widen(o.lines[p], o.half[0])
			default:
				d.line420(t, y, r)
				widen(o.lines[p], o.half[0])
			}
		}
		to := o.dst[at*o.stride:][:d.Width*d.Format.Size()]
		var v [3][]int32
		for p := range d.planes {
			v[p] = o.lines[p][d.left:][:d.Width]
		}
		if d.Format.Channels() == 3 {
			o.color(to, v[0], v[1], v[2], d)
		} else {
			o.gray(to, v[0], d)
		}
	}
}

// line420 makes line r of a row of macroblocks of 4:2:0 chroma, at half width.
func (d *Decoder) line420(t *part, y, r int) {
	a, b := d.out.half[0], d.out.half[1]
	k := r / 2
	t.blocks.line16(a, t.blocks.row(2*y+k/4), k%4)
	if k++; r%2 == 0 || k == 8 && y == d.rows-1 {
		return
	}
	t.blocks.line16(b, t.blocks.row(2*y+k/4), k%4)
	for x := range a {
		a[x] = (a[x] + b[x] + 1) >> 1
	}
}

// widen doubles the width of a line of chroma.
func widen(to, from []int32) {
	v := from[0]
	for i, next := range from[1:] {
		to[2*i], to[2*i+1] = v, (v+next+1)>>1
		v = next
	}
	to[len(to)-2], to[len(to)-1] = v, v
}

// line16 puts row r of the values of a row of blocks into a line.
func (g *grid) line16(to, row []int32, r int) {
	a := row[int(lifting[4*r])*g.stride:][:g.n]
	b := row[int(lifting[4*r+1])*g.stride:][:g.n]
	c := row[int(lifting[4*r+2])*g.stride:][:g.n]
	d := row[int(lifting[4*r+3])*g.stride:][:g.n]
	for x := range a {
		q := (*[4]int32)(to[4*x:])
		q[0], q[1], q[2], q[3] = a[x], b[x], c[x], d[x]
	}
}

// gray makes a row of grey pixels.
func (o *output) gray(to []byte, y []int32, d *Decoder) {
	switch d.Format {
	case Gray8:
		for x, v := range y {
			to[x] = o.value8(v + o.offset)
		}
	case Gray16:
		for x, v := range y {
			binary.LittleEndian.PutUint16(to[2*x:], o.value16(v+o.offset))
		}
	default:
		for x, v := range y {
			binary.LittleEndian.PutUint32(to[4*x:], d.float((v+o.offset)>>o.down))
		}
	}
}

// color makes a row of colour pixels.
func (o *output) color(to []byte, y, u, v []int32, d *Decoder) {
	for x := range y {
		g := y[x] + o.offset
		r, b := g, g
		if u != nil {
			r, b = -u[x], v[x]
			g -= r >> 1
			r += g - (b+1)>>1
			b += r
		}
		switch d.Format {
		case BGR24:
			p := (*[3]byte)(to[3*x:])
			p[0], p[1], p[2] = o.value8(b), o.value8(g), o.value8(r)
		case BGR48:
			p := to[6*x:][:6]
			binary.LittleEndian.PutUint16(p, o.value16(b))
			binary.LittleEndian.PutUint16(p[2:], o.value16(g))
			binary.LittleEndian.PutUint16(p[4:], o.value16(r))
		default:
			p := to[12*x:][:12]
			binary.LittleEndian.PutUint32(p, d.float(b>>o.down))
			binary.LittleEndian.PutUint32(p[4:], d.float(g>>o.down))
			binary.LittleEndian.PutUint32(p[8:], d.float(r>>o.down))
		}
	}
}

func (o *output) value8(v int32) uint8 {
	return uint8(min(max(v>>(o.down&31), 0), math.MaxUint8))
}

func (o *output) value16(v int32) uint16 {
	return uint16(min(max(v>>(o.down&31)<<(o.up&31), 0), math.MaxUint16))
}

// float makes the bits of a float of 32 bits of a value: above the mantissa's bits is the exponent.
func (f *file) float(v int32) uint32 {
	one := int32(1) << f.shift
	sign := v >> 31
	v = v ^ sign - sign
	e, m := int32(uint32(v)>>f.shift), v&(one-1)|one
	if e == 0 { // without the leading one
		m, e = m^one, 1
	}
	e += 127 - f.bias
	for m < one && e > 1 && m > 0 {
		e--
		m <<= 1
	}
	if m < one {
		e = 0
	} else {
		m ^= one
	}
	return uint32(sign)&(1<<31) | uint32(e<<23) | uint32(m<<(23-f.shift))
}
