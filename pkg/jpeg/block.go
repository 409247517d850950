package jpeg

// coefficients holds the coefficients of a block, row by row, and behind them a place for surplus ones.
type coefficients [128]int16

// badCode is the end of a block with bits that no code begins with.
const badCode = -1

// blockScalar decodes a block of a sequential scan into c, whose coefficients are 0, and returns where it ended: 64
// behind the last coefficient; more than endOfBlock where a code ended it (endOfBlock+1 when there is only DC); other
// positions are errors, and so is badCode, for bits that no code begins with. It adds the DC difference to *pred.
func blockScalar(w *window, c *coefficients, dc, ac *huffman, pred *int32) int {
	acc, n, p := w.acc, w.n, w.p
	h := dc
	for k := 0; ; {
		if n < 32 {
			b := w.buf[p : p+8 : p+8]
			acc |= (uint64(b[0])<<56 | uint64(b[1])<<48 | uint64(b[2])<<40 | uint64(b[3])<<32 |
				uint64(b[4])<<24 | uint64(b[5])<<16 | uint64(b[6])<<8 | uint64(b[7])) >> (n & 63)
			p += (63 - n) >> 3
			n |= 56
		}
		e := h.look[acc>>(64-lookBits)]
		if e == 0 {
			s, length := h.find(uint32(acc >> 48))
			if length == 0 {
				w.acc, w.n, w.p = acc, n, p
				return badCode
			}
			e = entry(length, s, h == dc)
		}
		size := e >> 8 & 63
		// The number: its top bit is 0 for negative ones, which are one less than that bit would make them.
		t := acc << (e >> 16 & 63)
		v := int32(t>>1>>(63-size)) + int32(^(int64(t)>>63))&(1-1<<size)
		acc <<= e & 63
		n -= int(e & 255)
		k += int(e >> 24)
		if h == dc {
			*pred += v
			v = *pred
			h = ac
		}
		c[zigzag[uint8(k-1)]&127] = int16(v)
		if k >= 64 {
			w.acc, w.n, w.p = acc, n, p
			return k
		}
	}
}
