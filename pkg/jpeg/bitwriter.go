package jpeg

import (
	"encoding/binary"
	"math/bits"
)

// code is the Huffman code of a symbol.
type code struct {
	bits   uint16
	length uint8
}

// codes are those of DC and AC symbols.
type codes [2][256]code

// standardCodes are the codes of T.81, K.3, for luma and for colour differences.
var standardCodes = func() (all [2]codes) {
	for t := range all {
		for class, spec := range annexKCodes[t] {
			next, k := uint16(0), 16
			for length := range 16 {
				for range spec[length] {
					all[t][class][spec[k]] = code{next, uint8(length + 1)}
					next++
					k++
				}
				next <<= 1
			}
		}
	}
	return all
}()

// bitWriter appends entropy-coded data to out.
type bitWriter struct {
	out []byte
	acc uint64 // the last n bits that were written
	n   uint
}

func (w *bitWriter) start(out []byte) { *w = bitWriter{out: out} }

// write writes the last n bits of v, up to 32; the others are 0.
func (w *bitWriter) write(v uint32, n uint) {
	w.acc = w.acc<<n | uint64(v)
	if w.n += n; w.n < 32 {
		return
	}
	w.n -= 32
	four := uint32(w.acc >> w.n)
	if (four&^(four+0x01010101))&0x80808080 == 0 { // no byte is FF, nor is taken for it
		w.out = binary.BigEndian.AppendUint32(w.out, four)
		return
	}
	for shift := 24; shift >= 0; shift -= 8 {
		w.stuffed(byte(four >> shift))
	}
}

// stuffed writes a byte, and a 0 behind FF.
func (w *bitWriter) stuffed(b byte) {
	w.out = append(w.out, b)
	if b == 0xFF {
		w.out = append(w.out, 0)
	}
}

// finish fills the last byte with ones and returns what was written.
func (w *bitWriter) finish() []byte {
	if fill := -w.n & 7; fill > 0 {
		w.write(1<<fill-1, fill)
	}
	for ; w.n > 0; w.n -= 8 {
		w.stuffed(byte(w.acc >> (w.n - 8)))
	}
	out := w.out
	w.out = nil
	return out
}

// number writes the code of symbol, whose last 4 bits are how many bits v has, and these bits.
func (w *bitWriter) number(c code, v int32, size uint) {
	if v < 0 {
		v += 1<<size - 1
	}
	w.write(uint32(c.bits)<<size|uint32(v), uint(c.length)+size)
}

func sizeOf(v int32) uint { return uint(bits.Len32(uint32(max(v, -v)))) }

// block writes a block of which the difference of the DC coefficient to that of the block before is diff.
func (w *bitWriter) block(c *coefficients, diff int32, t *codes) {
	size := sizeOf(diff)
	w.number(t[0][size], diff, size)
	run := 0
	for k := 1; k < 64; k++ {
		v := int32(c[zigzag[k]])
		if v == 0 {
			run++
			continue
		}
		for ; run >= 16; run -= 16 {
			zeros := t[1][0xF0]
			w.write(uint32(zeros.bits), uint(zeros.length))
		}
		size := sizeOf(v)
		w.number(t[1][uint(run)<<4|size], v, size)
		run = 0
	}
	if run > 0 {
		end := t[1][0]
		w.write(uint32(end.bits), uint(end.length))
	}
}
