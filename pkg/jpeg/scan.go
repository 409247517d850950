package jpeg

import "fmt"

// scan holds the content of a scan header (T.81, B.2.3).
type scan struct {
	n           int
	comps       [4]scanComponent
	first, last int // coefficients
	high, low   int // bits that were sent before, and that are left for later
	skip        int // blocks of a progressive scan that have no more coefficients
}

type scanComponent struct {
	*component
	dc, ac *huffman
	pred   int32
}

// readScan reads a scan header and compares it with the frame, and with what earlier scans have sent.
func (d *Decoder) readScan(body []byte) error {
	f, s := &d.parser.frame, &d.scan
	n := int(body[0])
	if n < 1 || n > f.n || len(body) != 4+2*n {
		return fmt.Errorf("a scan header of %d bytes for %d components of %d", len(body), n, f.n)
	}
	b := body[1+2*n:]
	*s = scan{n: n, first: int(b[0]), last: int(b[1]), high: int(b[2] >> 4), low: int(b[2] & 15)}
	blocks := 0
	for i := range n {
		sc := &s.comps[i]
		if sc.component = f.byID(body[1+2*i], s.comps[:i]); sc.component == nil {
			return fmt.Errorf("a scan of component %d, which the frame has not, or twice", body[1+2*i])
		}
		blocks += sc.h * sc.v
		dc, ac := body[2+2*i]>>4, body[2+2*i]&15
		if dc > 3 || ac > 3 {
			return fmt.Errorf("a scan with Huffman tables %d and %d", dc, ac)
		}
		sc.dc, sc.ac = &d.tables.huff[0][dc], &d.tables.huff[1][ac]
		if !f.progressive || s.first == 0 && s.high == 0 {
			if !sc.dc.defined {
				return fmt.Errorf("DC Huffman table %d is not defined", dc)
			}
		}
		if !f.progressive || s.first > 0 {
			if !sc.ac.defined {
				return fmt.Errorf("AC Huffman table %d is not defined", ac)
			}
		}
	}
	if n > 1 && blocks > 10 {
		return fmt.Errorf("an MCU of %d blocks, at most 10 may be", blocks)
	}
	if !f.progressive {
		s.first, s.last, s.high, s.low = 0, 63, 0, 0 // some encoders leave them 0
	}
	return nil
}

// byID returns the component with the identifier that a scan header names. It skips components that the scan already
// has, since some encoders give all components the same identifier.
func (f *frame) byID(id byte, taken []scanComponent) *component {
next:
	for i := range f.n {
		c := &f.comps[i]
		if c.id != id {
			continue
		}
		for _, t := range taken {
			if t.component == c {
				continue next
			}
		}
		return c
	}
	return nil
}
