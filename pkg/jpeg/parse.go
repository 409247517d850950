package jpeg

import (
	"errors"
	"fmt"
)

// Markers of T.81, table B.1.
const (
	markSOF0  = 0xC0
	markSOF1  = 0xC1
	markSOF2  = 0xC2
	markDHT   = 0xC4
	markDAC   = 0xCC
	markSOF15 = 0xCF
	markRST0  = 0xD0
	markRST7  = 0xD7
	markSOI   = 0xD8
	markEOI   = 0xD9
	markSOS   = 0xDA
	markDQT   = 0xDB
	markDNL   = 0xDC
	markDRI   = 0xDD
	markAPP0  = 0xE0
	markAPP14 = 0xEE
	markTEM   = 0x01
)

// component is one of a frame. With sampling factors below the largest ones it has fewer samples than the frame.
type component struct {
	id            byte
	quant         byte
	h, v          int // sampling factors
	width, height int // samples
	expand        expansion
	scale         [64]uint16 // its quantization table, if scaled
	scaled        bool

	// Where its samples are put: the strip has ring rows, those of this row of MCUs and of the one before.
	strip        []byte
	stride, ring int

	// Where its scans are more than one, its coefficients are kept: blocks of 64, paddedX in a row.
	kept    []int16
	paddedX int
	exact   [64]int8 // which bit of each coefficient, in the order of the stream, was sent last; notSent: none
}

const notSent = -1

type frame struct {
	width, height, n int
	comps            [4]component
	progressive      bool
	jfif             bool
	adobe            int // -1: no marker
	hmax, vmax       int
	mcusX, mcusY     int
}

// parser reads marker segments.
type parser struct {
	frame   frame
	restart int     // MCUs between restart markers, 0: none
	tables  *tables // nil: they are skipped
}

// segment returns the marker at pos, the content of its segment, and the position behind the segment.
func segment(src []byte, pos int) (marker byte, body []byte, next int, err error) {
	start := pos
	for pos < len(src) && src[pos] == 0xFF {
		pos++ // markers may have more than one in front
	}
	switch {
	case pos == len(src):
		return 0, nil, 0, fmt.Errorf("byte %d: the stream ends where a marker should be", start)
	case pos == start || src[pos] == 0:
		return 0, nil, 0, fmt.Errorf("byte %d: no marker where one should be", start)
	}
	marker = src[pos]
	pos++
	if marker == markTEM || marker >= markRST0 && marker <= markEOI {
		return marker, nil, pos, nil
	}
	if len(src)-pos < 2 {
		return 0, nil, 0, fmt.Errorf("byte %d: the stream ends in marker %02X", start, marker)
	}
	n := int(src[pos])<<8 | int(src[pos+1])
	if n < 2 || n > len(src)-pos {
		return 0, nil, 0, fmt.Errorf("byte %d: marker %02X has a length of %d, %d bytes are left", start, marker, n, len(src)-pos)
	}
	return marker, src[pos+2 : pos+n], pos + n, nil
}

// begin checks that src begins with SOI and returns the position behind it.
func begin(src []byte) (int, error) {
	if len(src) < 2 || src[0] != 0xFF || src[1] != markSOI {
		return 0, errors.New("no JPEG stream: it does not begin with FF D8")
	}
	return 2, nil
}

// firstScan reads a stream up to its first scan and returns that scan's header and the position behind it.
func (p *parser) firstScan(src []byte) (sos []byte, pos int, err error) {
	p.frame.n, p.frame.adobe, p.frame.jfif, p.restart = 0, -1, false, 0
	if pos, err = begin(src); err != nil {
		return nil, 0, err
	}
	sos, pos, err = p.untilScan(src, pos)
	if err == nil && sos == nil {
		err = fmt.Errorf("byte %d: the stream ends without a scan", pos)
	}
	if err == nil && p.frame.n == 0 {
		err = fmt.Errorf("byte %d: a scan without a frame", pos)
	}
	return sos, pos, err
}

// untilScan reads segments until a scan's header, which it returns, or the end of the image, where sos is nil. pos is
// behind it.
func (p *parser) untilScan(src []byte, pos int) (sos []byte, next int, err error) {
	for {
		marker, body, next, err := segment(src, pos)
		if err != nil {
			return nil, 0, err
		}
		switch {
		case marker == markSOS:
			if len(body) == 0 { // so that nil is the end
				return nil, 0, fmt.Errorf("byte %d: an empty scan header", pos)
			}
			return body, next, nil
		case marker == markEOI:
			return nil, next, nil
		}
		if err := p.segment(marker, body); err != nil {
			return nil, 0, fmt.Errorf("byte %d: %w", pos, err)
		}
		pos = next
	}
}

// readTables reads an abbreviated stream of tables (T.81, B.5).
func (p *parser) readTables(src []byte) error {
	pos, err := begin(src)
	for err == nil && pos < len(src) {
		start := pos
		var marker byte
		var body []byte
		if marker, body, pos, err = segment(src, pos); err != nil {
			break
		}
		switch marker {
		case markEOI:
			return nil
		case markDQT, markDHT: // a restart interval would end with the stream
			if err = p.segment(marker, body); err != nil {
				err = fmt.Errorf("byte %d: %w", start, err)
			}
		case markSOS, markSOF0, markSOF1, markSOF2:
			err = fmt.Errorf("byte %d: marker %02X in a stream of tables", start, marker)
		}
	}
	if err != nil {
		return fmt.Errorf("tables: %w", err)
	}
	return nil
}

func (p *parser) segment(marker byte, body []byte) error {
	switch {
	case marker == markDHT:
		if p.tables != nil {
			return p.tables.huffman(body)
		}
	case marker == markDQT:
		if p.tables != nil {
			return p.tables.quantization(body)
		}
	case marker == markDRI:
		if len(body) != 2 {
			return fmt.Errorf("a restart interval of %d bytes", len(body))
		}
		p.restart = int(body[0])<<8 | int(body[1])
	case marker == markSOF0 || marker == markSOF1 || marker == markSOF2:
		return p.frame.read(marker, body)
	case marker == markDAC || marker > markDHT && marker <= markSOF15 && marker&7 != 0 && marker&8 != 0:
		return fmt.Errorf("arithmetic coding (marker %02X), which is not supported", marker)
	case marker == 0xC3 || marker == 0xC5 || marker == 0xC6 || marker == 0xC7:
		return fmt.Errorf("a lossless or hierarchical frame (marker %02X), which is not supported", marker)
	case marker == markDNL:
		return errors.New("the number of lines behind the scan (DNL), which is not supported")
	case marker == markSOI:
		return errors.New("a second start of image")
	case marker >= markRST0 && marker <= markRST7:
		return errors.New("a restart marker outside a scan")
	case marker == markAPP0:
		if len(body) >= 5 && string(body[:5]) == "JFIF\x00" {
			p.frame.jfif = true
		}
	case marker == markAPP14:
		if len(body) >= 12 && string(body[:5]) == "Adobe" {
			p.frame.adobe = int(body[11])
		}
	}
	return nil // APPn, COM, and what later versions may add
}

// read reads a frame header (T.81, B.2.2).
func (f *frame) read(marker byte, body []byte) error {
	if f.n != 0 {
		return errors.New("a second frame")
	}
	if len(body) < 6 {
		return fmt.Errorf("a frame header of %d bytes", len(body))
	}
	n := int(body[5])
	switch {
	case body[0] != 8:
		return fmt.Errorf("samples of %d bits, supported are 8", body[0])
	case n != 1 && n != 3 && n != 4:
		return fmt.Errorf("%d components, supported are 1, 3 and 4", n)
	case len(body) != 6+3*n:
		return fmt.Errorf("a frame header of %d bytes for %d components", len(body), n)
	}
	f.height, f.width = int(body[1])<<8|int(body[2]), int(body[3])<<8|int(body[4])
	if f.height == 0 || f.width == 0 {
		return fmt.Errorf("a frame of %d×%d pixels", f.width, f.height)
	}
	f.progressive = marker == markSOF2
	f.hmax, f.vmax = 1, 1
	for i := range n {
		c := &f.comps[i]
		b := body[6+3*i:]
		c.id, c.h, c.v, c.quant = b[0], int(b[1]>>4), int(b[1]&15), b[2]
		if c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 || c.quant > 3 {
			return fmt.Errorf("component %d: sampling factors %d×%d, quantization table %d", i, c.h, c.v, c.quant)
		}
		if n == 1 {
			c.h, c.v = 1, 1 // alone, it has all samples whatever it says
		}
		f.hmax, f.vmax = max(f.hmax, c.h), max(f.vmax, c.v)
	}
	f.n = n
	f.mcusX, f.mcusY = ceil(f.width, 8*f.hmax), ceil(f.height, 8*f.vmax)
	for i := range n {
		c := &f.comps[i]
		c.width, c.height = ceil(f.width*c.h, f.hmax), ceil(f.height*c.v, f.vmax)
		c.paddedX = f.mcusX * c.h
		c.expand, c.scaled = f.expansionOf(c), false
	}
	return nil
}

// isYCC reports whether the first three components are luma and colour differences, as libjpeg decides it.
func (f *frame) isYCC() bool {
	switch {
	case f.n == 4:
		return f.adobe == 2
	case f.n != 3:
		return false
	case f.jfif:
		return true
	case f.adobe >= 0:
		return f.adobe != 0
	}
	return f.comps[0].id != 'R' || f.comps[1].id != 'G' || f.comps[2].id != 'B'
}

func ceil(a, b int) int { return (a + b - 1) / b }
