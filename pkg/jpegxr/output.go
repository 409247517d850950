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
	row    []byte     // whole macroblocks

	offset   int32 // added to luma before values are shifted
	down, up uint  // shifts
}

func (o *output) prepare(d *Decoder, dst []byte, stride int) {
	o.dst, o.stride = dst, stride
	const slack = 32 * 4 // of vectors of 8 blocks
	width := 16 * d.columns
	for p := range d.planes {
		o.lines[p] = grown(o.lines[p], width+slack)[:width]
	}
	for i := range o.half {
		o.half[i] = grown(o.half[i], width/2+slack)[:width/2]
	}
	o.row = grown(o.row, (width+slack)*d.Format.Size())
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
	size := d.Format.Size()
	for r := range 16 {
		at := 16*y + r - d.top
		if at < 0 || at >= d.Height {
			continue
		}
		to := o.dst[at*o.stride:][:d.Width*size]
		if d.vectors(y, r) {
			copy(to, o.row[d.left*size:])
			continue
		}
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

// vectors makes row r of the pixels of row y of macroblocks by vector instructions, in o.row. Where there are none for
// the format it makes lines of values, and returns false.
func (d *Decoder) vectors(y, r int) bool {
	o := &d.out
	down, up := int(o.down), int(o.up)
	if haveAVX2 && (d.Format == Gray8 || d.Format == Gray16) {
		g := &d.parts[0].blocks
		v := g.values(g.row(4*y+r/4), r%4)
		if d.Format == Gray8 {
			gray8AVX2(&o.row[0], &v[0][0], &v[1][0], &v[2][0], &v[3][0], len(v[0]), o.offset, down, up)
		} else {
			gray16AVX2(&o.row[0], &v[0][0], &v[1][0], &v[2][0], &v[3][0], len(v[0]), o.offset, down, up)
		}
		return true
	}
	d.line(y, r)
	if !haveAVX2 || d.planes < 3 || d.Format == BGR96Float {
		return false
	}
	a, b, c := o.lines[0], o.lines[1], o.lines[2]
	if d.Format == BGR24 {
		bgr24AVX2(&o.row[0], &a[0], &b[0], &c[0], len(a), o.offset, down, up)
	} else {
		bgr48AVX2(&o.row[0], &a[0], &b[0], &c[0], len(a), o.offset, down, up)
	}
	return true
}

// line makes the lines of row r of the pixels of row y of macroblocks.
func (d *Decoder) line(y, r int) {
	o := &d.out
	for p := range d.planes {
		t := &d.parts[p]
		switch {
		case t.wide == 4:
			t.blocks.line(o.lines[p], t.blocks.row(4*y+r/4), r%4)
		case t.high == 4:
			t.blocks.line(o.half[0], t.blocks.row(4*y+r/4), r%4)
			widen(o.lines[p], o.half[0])
		default:
			d.line420(t, y, r)
			widen(o.lines[p], o.half[0])
		}
	}
}

// line420 makes line r of a row of macroblocks of 4:2:0 chroma, at half width.
func (d *Decoder) line420(t *part, y, r int) {
	a, b := d.out.half[0], d.out.half[1]
	k := r / 2
	t.blocks.line(a, t.blocks.row(2*y+k/4), k%4)
	if k++; r%2 == 0 || k == 8 && y == d.rows-1 {
		return
	}
	t.blocks.line(b, t.blocks.row(2*y+k/4), k%4)
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

// line puts row r of the values of a row of blocks into a line, which has room for 7 blocks more.
func (g *grid) line(to, row []int32, r int) {
	v := g.values(row, r)
	if haveAVX2 {
		line4AVX2(&to[:4*len(v[0])][0], &v[0][0], &v[1][0], &v[2][0], &v[3][0], len(v[0]))
		return
	}
	for x := range g.n {
		q := (*[4]int32)(to[4*x:])
		q[0], q[1], q[2], q[3] = v[0][x], v[1][x], v[2][x], v[3][x]
	}
}

// values returns row r of the values of a row of blocks, of whose number the next multiple of 8 is the length.
func (g *grid) values(row []int32, r int) (v [4][]int32) {
	for i := range v {
		v[i] = row[int(lifting[4*r+i])*g.stride:][:(g.n+7)&^7]
	}
	return v
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
