package jpeg

import (
	"encoding/binary"
	"fmt"
)

// Options set how an image is encoded.
type Options struct {
	Quality     int    // 1 to 100, as libjpeg scales it; 0: 75
	Color       Color  // ToRGB: converts RGB to YCbCr; AsStored: keeps the components
	Subsampling [2]int // luma samples for each of the colour differences, across and down: 1,1 (which 0,0 means too), 2,1 or 2,2
	Abbreviated bool   // without quantization and Huffman tables, which Tables returns
}

// plan holds the meaning of options for an image.
type plan struct {
	n      int // components
	h, v   int // sampling factors of the first component; the others have 1
	tables int // sets of tables: for luma, and for the colour differences
	quant  [2][64]uint16
}

func (o Options) plan(components int) (p plan, err error) {
	p = plan{n: components, h: max(o.Subsampling[0], 1), v: max(o.Subsampling[1], 1), tables: 1}
	if o.Color == ToRGB && components == 3 {
		p.tables = 2
	}
	quality := o.Quality
	if quality == 0 {
		quality = 75
	}
	switch s := [2]int{p.h, p.v}; {
	case components != 1 && components != 3 && components != 4:
		return p, fmt.Errorf("%d components, encoded are 1, 3 and 4", components)
	case quality < 1 || quality > 100:
		return p, fmt.Errorf("quality %d, possible are 1 to 100", quality)
	case s != [2]int{1, 1} && s != [2]int{2, 1} && s != [2]int{2, 2}:
		return p, fmt.Errorf("subsampling by %d, %d, possible are 1,1, 2,1 and 2,2", s[0], s[1])
	case s != [2]int{1, 1} && p.tables == 1:
		return p, fmt.Errorf("subsampling by %d, %d, of components that are not colour differences", s[0], s[1])
	}
	percent := 200 - 2*quality
	if quality < 50 {
		percent = 5000 / quality
	}
	for t := range p.tables {
		for i, q := range annexK[t] {
			p.quant[t][i] = uint16(max(1, min((int(q)*percent+50)/100, 255)))
		}
	}
	return p, nil
}

// Tables returns the abbreviated stream of tables (T.81, B.5) that [Encoder.Encode] leaves out of abbreviated
// streams with the same options, the content of TIFF's tag JPEGTables. It returns nil for options that Encode
// refuses.
func Tables(o Options, components int) []byte {
	p, err := o.plan(components)
	if err != nil {
		return nil
	}
	return append(p.appendTables([]byte{0xFF, markSOI}), 0xFF, markEOI)
}

func (p *plan) appendTables(dst []byte) []byte {
	for t := range p.tables {
		dst = append(dst, 0xFF, markDQT, 0, 67, byte(t))
		for k := range 64 {
			dst = append(dst, byte(p.quant[t][zigzag[k]]))
		}
	}
	for t := range p.tables {
		for class, spec := range annexKCodes[t] {
			dst = append(dst, 0xFF, markDHT)
			dst = binary.BigEndian.AppendUint16(dst, uint16(3+len(spec)))
			dst = append(append(dst, byte(class<<4|t)), spec...)
		}
	}
	return dst
}

// Encoder encodes images one after the other and reuses its memory. The zero value is ready; only one
// goroutine at a time may use it.
type Encoder struct {
	plan
	width, height int
	planes        [4]plane
	out           bitWriter
}

// plane holds a component's samples of a row of MCUs.
type plane struct {
	samples []byte
	all     []byte // before they were averaged, as many as pixels; samples, if they are not
	stride  int
	h, v    int
	blocksX int // that cover its samples; an MCU may have more
	blocksY int
	table   int
	dc      int32
	divide  divisors

	coefficients []int16 // blocks of 64, stride/8 in a row
}

// Encode encodes an image with adjacent rows of width*components bytes as a baseline stream. It returns the
// stream in dst's memory if that suffices and otherwise in new memory. The stream declares its colours as
// libjpeg understands them without a JFIF marker: three components are YCbCr unless an Adobe marker says
// otherwise.
func (e *Encoder) Encode(dst, src []byte, width, height, components int, o Options) ([]byte, error) {
	var err error
	if e.plan, err = o.plan(components); err == nil {
		switch {
		case width < 1 || width > 65535 || height < 1 || height > 65535:
			err = fmt.Errorf("an image of %d×%d pixels, possible are 1 to 65535", width, height)
		case len(src) < width*height*components:
			err = fmt.Errorf("%d bytes for an image of %d×%d pixels of %d components", len(src), width, height, components)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("jpeg: %w", err)
	}
	e.width, e.height = width, height
	e.prepare()
	dst = append(dst[:0], 0xFF, markSOI)
	if e.n > 1 && e.tables == 1 {
		dst = append(dst, 0xFF, markAPP14, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 0)
	}
	if !o.Abbreviated {
		dst = e.appendTables(dst)
	}
	e.out.start(e.appendHeaders(dst))
	for y := range ceil(height, 8*e.v) {
		e.load(src, 8*e.v*y)
		for i := range e.n {
			e.planes[i].transform()
		}
		for x := range ceil(width, 8*e.h) {
			e.mcu(x, y)
		}
	}
	return append(e.out.finish(), 0xFF, markEOI), nil
}

// prepare takes memory for a row of MCUs.
func (e *Encoder) prepare() {
	for i := range e.n {
		p := &e.planes[i]
		p.h, p.v, p.table, p.dc = 1, 1, 0, 0
		if i == 0 {
			p.h, p.v = e.h, e.v
		} else {
			p.table = e.tables - 1
		}
		p.blocksX, p.blocksY = ceil(e.width*p.h, 8*e.h), ceil(e.height*p.v, 8*e.v)
		p.stride = 8 * p.h * ceil(e.width, 8*e.h)
		if p.samples = grown(p.samples, 8*p.v*p.stride+8); p.h == e.h {
			p.all = p.samples
		} else {
			p.all = grown(p.all, 8*e.v*e.planes[0].stride)
		}
		p.coefficients = grown(p.coefficients, 64*(p.v*p.stride/8+1))
		p.divide.set(&e.quant[p.table])
	}
}

func (e *Encoder) appendHeaders(dst []byte) []byte {
	dst = append(dst, 0xFF, markSOF0, 0, byte(8+3*e.n), 8, byte(e.height>>8), byte(e.height), byte(e.width>>8), byte(e.width), byte(e.n))
	for i := range e.n {
		p := &e.planes[i]
		dst = append(dst, byte(i+1), byte(p.h<<4|p.v), byte(p.table))
	}
	dst = append(dst, 0xFF, markSOS, 0, byte(6+2*e.n), byte(e.n))
	for i := range e.n {
		dst = append(dst, byte(i+1), byte(e.planes[i].table*0x11))
	}
	return append(dst, 0, 63, 0)
}

// mcu encodes MCU x of row y. Blocks beyond the image have the DC coefficient of the one before and nothing else.
func (e *Encoder) mcu(x, y int) {
	var none [64]int16
	for i := range e.n {
		p := &e.planes[i]
		codes := &standardCodes[p.table]
		for v := range p.v {
			for h := range p.h {
				bx, c := x*p.h+h, &none
				if bx < p.blocksX && y*p.v+v < p.blocksY {
					c = (*[64]int16)(p.coefficients[64*(v*p.stride/8+bx):])
				} else {
					none[0] = int16(p.dc)
				}
				e.out.block(c, int32(c[0])-p.dc, codes)
				p.dc = int32(c[0])
			}
		}
	}
}
