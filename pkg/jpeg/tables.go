package jpeg

import (
	"bytes"
	"errors"
	"fmt"
)

// tables holds the tables that a stream, or the abbreviated stream in front of it, has defined so far. A decoding table
// made for an earlier stream is reused if its definition is the same.
type tables struct {
	quant        [4][64]uint16 // natural order
	quantDefined [4]bool
	huff         [2][4]huffman // DC, AC
}

func (t *tables) forget() {
	t.quantDefined = [4]bool{}
	for class := range t.huff {
		for i := range t.huff[class] {
			t.huff[class][i].defined = false
		}
	}
}

// zigzag maps the order of coefficients in the stream to positions in a block, row by row. Coefficients that a damaged
// stream has beyond the last one go to an extra position, as does the end of a block, which adds endOfBlock.
var zigzag = func() (z [256]uint8) {
	for i := range z {
		z[i] = 64
	}
	x, y, up := 0, 0, true
	for i := range 64 {
		z[i] = uint8(8*y + x)
		switch {
		case up && x == 7:
			y, up = y+1, false
		case up && y == 0:
			x, up = x+1, false
		case up:
			x, y = x+1, y-1
		case y == 7:
			x, up = x+1, true
		case x == 0:
			y, up = y+1, true
		default:
			x, y = x-1, y+1
		}
	}
	return z
}()

// quantization reads a DQT segment (T.81, B.2.4.1).
func (t *tables) quantization(body []byte) error {
	for len(body) > 0 {
		precision, id, n := body[0]>>4, body[0]&15, 64
		if precision > 1 || id > 3 {
			return fmt.Errorf("quantization table %d of precision %d", id, precision)
		}
		if precision == 1 {
			n = 128
		}
		if body = body[1:]; len(body) < n {
			return fmt.Errorf("quantization table %d: %d bytes of %d", id, len(body), n)
		}
		for i := range 64 {
			v := uint16(body[i])
			if precision == 1 {
				v = uint16(body[2*i])<<8 | uint16(body[2*i+1])
			}
			t.quant[id][zigzag[i]] = v
		}
		t.quantDefined[id] = true
		body = body[n:]
	}
	return nil
}

const (
	// lookBits is the longest code that one look-up decodes.
	lookBits = 9
	// endOfBlock is how far the end of a block moves the position: beyond the reach of runs of zeros.
	endOfBlock = 128
)

// huffman decodes the symbols of one table.
type huffman struct {
	// look has an entry for all values of the next lookBits bits; 0 where the code is longer, or there is none:
	//
	//	bits 0–7    length of the code and of the number behind it
	//	bits 8–15   length of that number
	//	bits 16–23  length of the code
	//	bits 24–31  how far the position in the block moves: the zeros in front and the coefficient itself
	look [1 << lookBits]uint32
	// limit of a length is the first 16 bits of a stream, taken as a number, that no longer begin with a code of that
	// length or a shorter one.
	limit   [17]uint32
	offset  [17]int32 // added to a code of a length: its symbol's place in symbols
	symbols [256]byte
	defined bool
	spec    [16 + 256]byte // what it was made of
	n       int
}

// huffman reads a DHT segment (T.81, B.2.4.2).
func (t *tables) huffman(body []byte) error {
	for len(body) > 0 {
		class, id := body[0]>>4, body[0]&15
		if class > 1 || id > 3 {
			return fmt.Errorf("the Huffman table %d of class %d", id, class)
		}
		if body = body[1:]; len(body) < 16 {
			return errors.New("a Huffman table that ends early")
		}
		n := 16
		for _, count := range body[:16] {
			n += int(count)
		}
		if n > 16+256 || n > len(body) {
			return fmt.Errorf("the Huffman table %d of class %d: %d codes in %d bytes", id, class, n-16, len(body)-16)
		}
		h := &t.huff[class][id]
		if !bytes.Equal(h.spec[:h.n], body[:n]) {
			h.n = 0 // what is half made is not used again
			if err := h.build(body[:n], class == 0); err != nil {
				return fmt.Errorf("the Huffman table %d of class %d: %w", id, class, err)
			}
			h.n = copy(h.spec[:], body[:n])
		}
		h.defined = true
		body = body[n:]
	}
	return nil
}

// build makes the table of 16 numbers of codes and the symbols (T.81, C.2).
func (h *huffman) build(spec []byte, dc bool) error {
	clear(h.look[:])
	clear(h.symbols[:])
	symbols := h.symbols[:copy(h.symbols[:], spec[16:])]
	code, k := uint32(0), 0
	for length := 1; length <= 16; length++ {
		h.offset[length] = int32(k) - int32(code)
		for range spec[length-1] {
			if code >= 1<<length {
				return fmt.Errorf("more codes of %d bits than there are", length)
			}
			s := symbols[k]
			if dc && s > 15 {
				return fmt.Errorf("a DC difference of %d bits", s)
			}
			if length <= lookBits {
				first := code << (lookBits - length)
				e := entry(uint32(length), s, dc)
				for i := range uint32(1) << (lookBits - length) {
					h.look[first+i] = e
				}
			}
			code++
			k++
		}
		h.limit[length] = code << (16 - length)
		code <<= 1
	}
	return nil
}

// entry returns the entry of look for a symbol. DC symbols are the length of a difference, AC symbols a run
// of zeros and the length of the coefficient behind them, of which length 0 is the end of a block unless the
// run is 15.
func entry(length uint32, symbol byte, dc bool) uint32 {
	size, advance := uint32(symbol&15), uint32(symbol>>4)+1
	if size == 0 && symbol != 0xF0 && !dc {
		advance = endOfBlock
	}
	return length + size | size<<8 | length<<16 | advance<<24
}

// find returns the symbol and length of the code that the 16 bits in next begin with; length 0: there is none.
func (h *huffman) find(next uint32) (symbol byte, length uint32) {
	for length = 1; length <= 16; length++ {
		if next < h.limit[length] {
			return h.symbols[(int32(next>>(16-length))+h.offset[length])&255], length
		}
	}
	return 0, 0
}
