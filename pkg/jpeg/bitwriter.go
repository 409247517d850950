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

// codes holds the codes of DC and AC symbols.
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

// flush writes the first 32 of n bits.
func (w *bitWriter) flush() {
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

// finish fills the last byte with ones and returns the bytes written.
func (w *bitWriter) finish() []byte {
	fill := -w.n & 7
	w.acc = w.acc<<fill | (1<<fill - 1)
	for w.n += fill; w.n > 0; w.n -= 8 {
		w.stuffed(byte(w.acc >> (w.n - 8)))
	}
	out := w.out
	w.out = nil
	return out
}

// put appends the code of a symbol whose last bits are the size of v, and v, to the bits in acc, of which there are n,
// fewer than 32.
func put(acc uint64, n uint, c code, v int32, size uint) (uint64, uint) {
	v += v >> 31 & (1<<size - 1)
	return acc<<(uint(c.length)+size) | uint64(c.bits)<<size | uint64(v), n + uint(c.length) + size
}

func sizeOf(v int32) uint {
	sign := v >> 31
	return uint(bits.Len32(uint32((v ^ sign) - sign)))
}

// block writes a block of which the difference of the DC coefficient to that of the block before is diff.
func (w *bitWriter) block(c *[64]int16, diff int32, t *codes) {
	var left uint64 // which coefficients are not 0
	for k := 1; k < 64; k++ {
		left |= uint64(uint32(-int32(uint16(c[zigzag[k]&63])))>>31) << k
	}
	size := sizeOf(diff)
	acc, n := put(w.acc, w.n, t[0][size&15], diff, size)
	for k := 0; ; {
		if n >= 32 {
			w.acc, w.n = acc, n
			w.flush()
			n = w.n
		}
		if left == 0 {
			if k < 63 {
				acc, n = put(acc, n, t[1][0], 0, 0) // the end of the block
			}
			break
		}
		next := bits.TrailingZeros64(left)
		run := next - k - 1
		if run >= 16 {
			acc, n = put(acc, n, t[1][0xF0], 0, 0) // 16 zeros
			k += 16
			continue
		}
		v := int32(c[zigzag[next]&63])
		size := sizeOf(v)
		acc, n = put(acc, n, t[1][uint8(uint(run)<<4|size)], v, size)
		k, left = next, left&(left-1)
	}
	if w.acc, w.n = acc, n; n >= 32 {
		w.flush()
	}
}
