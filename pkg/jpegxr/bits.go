package jpegxr

import "encoding/binary"

// margin is more than the bytes of the longest macroblock: three planes of 256 coefficients with codes of at most 60
// and 16 flexbits.
const margin = 16 << 10

// input is the file that readers read.
type input struct {
	src  []byte
	tail []byte // the last bytes of src, and zeros; empty while no reader needs it
	from int    // offset of the tail in src
}

func (in *input) open(src []byte) { in.src, in.tail = src, in.tail[:0] }

// end returns the tail.
func (in *input) end() []byte {
	if len(in.tail) == 0 {
		const kept = margin + 8
		in.tail = grown(in.tail, kept+margin+8)
		in.from = max(len(in.src)-kept, 0)
		clear(in.tail[copy(in.tail, in.src[in.from:]):])
	}
	return in.tail
}

// reader reads bits of an input, from the most significant one.
type reader struct {
	data []byte
	pos  int  // of the next bit in data
	base int  // offset of data in the file
	last bool // data is the tail
}

// reader returns a reader that begins at a byte of the file.
func (in *input) reader(offset int) reader {
	return reader{data: in.src, pos: 8 * offset}
}

// ready prepares r for the bits of a macroblock. It returns false if r has read more than there is.
func (in *input) ready(r *reader) bool {
	if !r.last && r.pos>>3+margin+8 > len(in.src) {
		tail := in.end()
		*r = reader{data: tail, pos: r.pos - 8*in.from, base: in.from, last: true}
	}
	return !r.last || r.pos <= 8*(len(in.src)-in.from)
}

// offset returns where in the file the next bit is.
func (r *reader) offset() int { return r.base + r.pos>>3 }

// window returns the bits from pos on, at least 57, from the most significant one.
func window(data []byte, pos int) uint64 {
	i := pos >> 3
	return binary.BigEndian.Uint64(data[i:i+8]) << (pos & 7)
}

// bits reads n bits, at most 32.
func (r *reader) bits(n uint) uint32 {
	v := window(r.data, r.pos) >> 1 >> ((63 - n) & 63)
	r.pos += int(n)
	return uint32(v)
}

// flag reads a bit.
func (r *reader) flag() bool { return r.bits(1) != 0 }
