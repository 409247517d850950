// Package npy reads and writes the headers of NumPy's .npy files, so that
// arrays can be streamed past them.
//
//	npy.WriteHeader(w, npy.Header{Type: dtype.Float32, Shape: []int{3, 4}})
//	// … then 3·4·4 bytes, little endian, C order
//
//	h, err := npy.ReadHeader(r)
//	// … then h.Bytes() bytes from r
//
// Format: NumPy Enhancement Proposal 1 and numpy.lib.format, versions 1.0 to 3.0.
package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"strata/pkg/dtype"
)

// Header describes the data that follow it in the file.
type Header struct {
	Type      dtype.Type
	BigEndian bool   // elements have their most significant byte first
	Fortran   bool   // the first axis is the fastest
	Shape     []int  // empty: a single element
	Time      string // of Int64 that are dates or times, written as such: numpy's type string without byte order, "M8[ns]"
}

const magic = "\x93NUMPY"

// Bytes returns the number of bytes of the array after the header, or an error if it overflows an int.
func (h Header) Bytes() (int, error) {
	n := h.Type.Size()
	for _, s := range h.Shape {
		if s < 0 || (s > 0 && n > math.MaxInt/s) {
			return 0, fmt.Errorf("npy: shape %v is too large", h.Shape)
		}
		n *= s
	}
	return n, nil
}

// WriteHeader writes a header of version 1.0 (2.0 if the shape is very long),
// padded so that the data begin at a multiple of 64 bytes.
func WriteHeader(w io.Writer, h Header) error {
	descr := h.Type.Typestr()
	if h.Time != "" && h.Type == dtype.Int64 {
		descr = "<" + strings.ReplaceAll(h.Time, "μ", "u") // as numpy spells it
	}
	if descr == "" {
		return fmt.Errorf("npy: no type string for %v", h.Type)
	}
	if h.BigEndian && h.Type.Size() > 1 {
		descr = ">" + descr[1:]
	}
	order := "False"
	if h.Fortran {
		order = "True"
	}
	shape := make([]string, len(h.Shape))
	for i, n := range h.Shape {
		shape[i] = strconv.Itoa(n)
	}
	tuple := strings.Join(shape, ", ")
	if len(shape) == 1 {
		tuple += ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr, order, tuple)
	prefix := []byte(magic + "\x01\x00")
	size := func(digits int) int { return (len(magic) + 2 + digits + len(text) + 1 + 63) / 64 * 64 }
	total := size(2)
	if n := total - len(prefix) - 2; n <= math.MaxUint16 {
		prefix = binary.LittleEndian.AppendUint16(prefix, uint16(n))
	} else {
		total = size(4)
		prefix[len(magic)] = 2
		prefix = binary.LittleEndian.AppendUint32(prefix, uint32(total-len(prefix)-4))
	}
	pad := total - len(prefix) - len(text) - 1
	_, err := w.Write(append(append(prefix, text...), strings.Repeat(" ", pad)+"\n"...))
	return err
}

// maxHeader bounds the memory that a header can ask for: numpy itself refuses
// to parse more than 10,000 characters.
const maxHeader = 1 << 16

// ReadHeader reads a header and leaves r at the first byte of the array.
func ReadHeader(r io.Reader) (Header, error) {
	var fixed [len(magic) + 2]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return Header{}, fmt.Errorf("npy: header is cut off: %w", err)
	}
	if string(fixed[:len(magic)]) != magic {
		return Header{}, fmt.Errorf("npy: begins with %q (must be %q)", fixed[:len(magic)], magic)
	}
	digits := 4
	switch major := fixed[len(magic)]; major {
	case 1:
		digits = 2
	case 2, 3:
	default:
		return Header{}, fmt.Errorf("npy: version %d (known: 1 to 3)", major)
	}
	var length [4]byte
	if _, err := io.ReadFull(r, length[:digits]); err != nil {
		return Header{}, fmt.Errorf("npy: header is cut off: %w", err)
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxHeader {
		return Header{}, fmt.Errorf("npy: header of %d bytes (at most %d)", n, maxHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return Header{}, fmt.Errorf("npy: header is cut off: %w", err)
	}
	return parse(text)
}

// parse reads the header's Python dictionary: three keys, in any order.
func parse(text []byte) (Header, error) {
	p := &parser{rest: bytes.TrimSpace(text)}
	var h Header
	seen := map[string]bool{}
	if !p.skip('{') {
		return h, p.fail("does not begin with {")
	}
	for !p.skip('}') {
		key, ok := p.quoted()
		if !ok || !p.skip(':') {
			return h, p.fail("a quoted key and a colon are expected")
		}
		if seen[key] {
			return h, p.fail("has %q twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			s, ok := p.quoted()
			if !ok {
				return h, p.fail("descr is not a string: only plain element types are known")
			}
			if strings.HasPrefix(s, "=") {
				s = "<" + s[1:]
			}
			var err error
			if h.Type, h.BigEndian, err = dtype.ParseTypestr(s); err != nil {
				return h, fmt.Errorf("npy: %w", err)
			}
		case "fortran_order":
			switch {
			case p.word("True"):
				h.Fortran = true
			case !p.word("False"):
				return h, p.fail("fortran_order is neither True nor False")
			}
		case "shape":
			if h.Shape, ok = p.tuple(); !ok {
				return h, p.fail("shape is not a tuple of lengths")
			}
		default:
			return h, p.fail("has the unknown key %q", key)
		}
		if !p.skip(',') {
			if !p.skip('}') {
				return h, p.fail("a comma or } is expected")
			}
			break
		}
	}
	if len(seen) != 3 {
		return h, p.fail("descr, fortran_order and shape are expected, %d of them are there", len(seen))
	}
	if len(p.rest) != 0 {
		return h, p.fail("has text after the }")
	}
	_, err := h.Bytes()
	return h, err
}

type parser struct{ rest []byte }

func (p *parser) fail(format string, args ...any) error {
	at := p.rest
	if len(at) > 20 {
		at = at[:20]
	}
	return fmt.Errorf("npy: header %s, at %q", fmt.Sprintf(format, args...), at)
}

func (p *parser) skip(c byte) bool {
	p.rest = bytes.TrimLeft(p.rest, " \t\n")
	if len(p.rest) == 0 || p.rest[0] != c {
		return false
	}
	p.rest = bytes.TrimLeft(p.rest[1:], " \t\n")
	return true
}

func (p *parser) word(w string) bool {
	if !bytes.HasPrefix(p.rest, []byte(w)) {
		return false
	}
	p.rest = p.rest[len(w):]
	return true
}

func (p *parser) quoted() (string, bool) {
	if len(p.rest) == 0 || (p.rest[0] != '\'' && p.rest[0] != '"') {
		return "", false
	}
	end := bytes.IndexByte(p.rest[1:], p.rest[0])
	if end < 0 {
		return "", false
	}
	s := string(p.rest[1 : 1+end])
	p.rest = p.rest[end+2:]
	return s, true
}

func (p *parser) tuple() ([]int, bool) {
	if !p.skip('(') {
		return nil, false
	}
	shape := []int{}
	for !p.skip(')') {
		i := 0
		for i < len(p.rest) && p.rest[i] >= '0' && p.rest[i] <= '9' {
			i++
		}
		n, err := strconv.Atoi(string(p.rest[:i]))
		if err != nil {
			return nil, false
		}
		p.rest = p.rest[i:]
		shape = append(shape, n)
		if !p.skip(',') {
			return shape, p.skip(')')
		}
	}
	return shape, true
}
