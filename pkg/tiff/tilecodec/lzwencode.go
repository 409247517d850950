package tilecodec

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	lzwHashBits = 15
	lzwHashSize = 1 << lzwHashBits

	// lzwLastCode is the number of entries at which the encoder resets its table. Like libtiff, it stops one short of
	// the decoder's table size.
	lzwLastCode = lzwCodes - 2
)

// lzwEncoder finds the code of a string and a byte behind it in a hash table. An entry has the string's code in bits 20
// to 31, the byte in bits 12 to 19 and the code of both in the low 12 bits, which is never 0.
type lzwEncoder struct {
	table [lzwHashSize]uint32
}

// lzwStep leads from an occupied index to the next; it is odd, so that all indices are reached.
const lzwStep = 1237

// lzwSpread has an index of the hash table for each byte. Codes that get the same byte fall to different places around
// it.
var lzwSpread = func() (t [256]uint32) {
	for b := range t {
		t[b] = uint32(b) * 0x9e3779b1 >> (32 - lzwHashBits)
	}
	return t
}()

// lzwBound returns the number of bytes that n bytes become at most: 12 bits each, and the codes in between.
func lzwBound(n int) int { return n + n/2 + n/1024 + 16 }

// lzwWriter packs codes into bytes.
type lzwWriter struct {
	dst   []byte
	at    int    // next byte of dst
	word  uint64 // bits that are not in dst yet, highest first; their number is below 8 between two codes
	count uint
}

func (w *lzwWriter) put(code uint32, width uint) {
	w.count += width
	w.word |= uint64(code) << ((64 - w.count) & 63)
	binary.BigEndian.PutUint64(w.dst[w.at:], w.word)
	w.at += int(w.count >> 3)
	w.word <<= w.count &^ 7 & 63
	w.count &= 7
}

// encode appends the stream of src to dst.
func (e *lzwEncoder) encode(dst, src []byte) []byte {
	w := lzwWriter{dst: slices.Grow(dst, lzwBound(len(src))+8), at: len(dst)}
	w.dst = w.dst[:cap(w.dst)]
	w.put(lzwClear, lzwMinWidth)
	next, width := uint32(lzwFirst), uint(lzwMinWidth)
	for len(src) > 0 {
		if next == lzwFirst {
			clear(e.table[:])
		}
		n, code, free := e.longest(src)
		src = src[n:]
		w.put(code, width)
		next++ // for what is now the string of the next code, and what the decoder adds when it reads that
		width = max(lzwMinWidth, uint(bits.Len32(next)))
		if next == lzwLastCode && len(src) > 0 {
			w.put(lzwClear, lzwMaxWidth)
			next, width = lzwFirst, lzwMinWidth
		} else if len(src) > 0 {
			e.table[free] = (code<<8|uint32(src[0]))<<lzwMaxWidth | (next - 1)
		}
	}
	w.put(lzwEnd, width)
	if w.count > 0 {
		w.at++
	}
	return w.dst[:w.at]
}

// longest finds the longest string of the table that src begins with, and returns its length, its code, and the index
// of the table where the entry belongs that adds the next byte to it.
func (e *lzwEncoder) longest(src []byte) (n int, code, free uint32) {
	code = uint32(src[0])
	for i, b := range src[1:] {
		key := code<<8 | uint32(b)
		h := (lzwSpread[b] ^ code) & (lzwHashSize - 1)
		for {
			entry := e.table[h]
			if entry == 0 {
				return i + 1, code, h
			}
			if entry>>lzwMaxWidth == key {
				code = entry & (lzwCodes - 1)
				break
			}
			h = (h + lzwStep) & (lzwHashSize - 1)
		}
	}
	return len(src), code, 0
}
