package jpeg

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

const (
	windowBytes = 16 << 10
	// mcuBytes is more than the data of an MCU can be: 10 blocks of 64 codes of 16 bits with numbers of 15.
	mcuBytes = 10*64*31/8 + 16
)

// window holds a piece of a segment of entropy-coded data, without the stuffed zero bytes, and reads bits from it.
// Before an MCU, ready makes sure that all of it is there, so that nothing has to be checked while its bits are read.
// Behind the end of the segment are zeros; after an MCU, overrun says whether they were used.
type window struct {
	acc  uint64 // the next bits, from the top
	n    int    // how many are sure
	p    int    // the next byte of buf; those before it are in acc
	end  int    // how many bytes of buf are data
	last bool   // the segment ends at end
	base int    // bytes of the segment before buf
	from int    // where the segment begins in src
	at   int    // the next byte of src
	src  []byte
	buf  [windowBytes + mcuBytes + 16]byte
}

// open starts reading the segment that begins at src[at].
func (w *window) open(src []byte, at int) {
	w.src, w.at, w.from, w.base = src, at, at, 0
	w.acc, w.n, w.p, w.end, w.last = 0, 0, 0, 0, false
}

// ready fills the window for an MCU.
func (w *window) ready() {
	if w.end-w.p < mcuBytes && !w.last {
		w.fill()
	}
}

func (w *window) fill() {
	w.base += w.p
	w.end = copy(w.buf[:], w.buf[w.p:w.end])
	w.p = 0
	for w.end < windowBytes {
		s := w.src[w.at:min(len(w.src), w.at+windowBytes-w.end)]
		i := bytes.IndexByte(s, 0xFF)
		if i < 0 {
			i = len(s)
		}
		w.end += copy(w.buf[w.end:], s[:i])
		w.at += i
		if w.last = w.at == len(w.src); w.last {
			break
		}
		if i == len(s) {
			continue
		}
		if w.at+1 < len(w.src) && w.src[w.at+1] == 0xFF { // may be repeated in front of a marker
			w.at++
			continue
		}
		if w.last = w.at+1 == len(w.src) || w.src[w.at+1] != 0; w.last {
			break
		}
		w.buf[w.end] = 0xFF
		w.end++
		w.at += 2
	}
	if w.last {
		clear(w.buf[w.end:][:mcuBytes+16])
	}
}

// refill makes at least 56 bits sure.
func (w *window) refill() {
	w.acc |= binary.BigEndian.Uint64(w.buf[w.p:]) >> (w.n & 63)
	w.p += (63 - w.n) >> 3
	w.n |= 56
}

// take returns the next n bits, up to 16.
func (w *window) take(n int) int32 {
	if w.n < 16 {
		w.refill()
	}
	v := int32(w.acc >> 1 >> (63 - n))
	w.acc <<= n
	w.n -= n
	return v
}

// symbol decodes the next symbol, of which -1 is none.
func (w *window) symbol(h *huffman) int {
	if w.n < 16 {
		w.refill()
	}
	s, length := h.find(uint32(w.acc >> 48))
	if length == 0 {
		return -1
	}
	w.acc <<= length
	w.n -= int(length)
	return int(s)
}

// left returns the number of unread bits of the segment within the window. It is negative if more bits were read than
// exist.
func (w *window) left() int { return 8*(w.end-w.p) + w.n }

// overrun reports whether more bits were read than exist.
func (w *window) overrun() bool { return w.last && w.left() < 0 }

// offset returns the position in src of the next byte to read.
func (w *window) offset() int {
	k := w.base + w.p - w.n/8
	at := w.from
	for at < len(w.src) && at < w.at && k > 0 {
		if w.src[at] == 0xFF && at+1 < len(w.src) {
			if w.src[at+1] != 0xFF {
				at, k = at+2, k-1
				continue
			}
			k++ // not data
		}
		at, k = at+1, k-1
	}
	return min(at, w.at)
}

// restart continues after a restart marker. The marker must come next, and have number i modulo 8.
func (w *window) restart(i int) error {
	for !w.last && w.end-w.p < 16 {
		w.fill()
	}
	switch {
	case !w.last || w.left() >= 8:
		return fmt.Errorf("byte %d: data left over in front of restart marker %d", w.offset(), i&7)
	case len(w.src)-w.at < 2:
		return fmt.Errorf("byte %d: the stream ends where restart marker %d should be", w.at, i&7)
	case w.src[w.at+1] != byte(markRST0+i&7):
		return fmt.Errorf("byte %d: marker %02X where restart marker %d should be", w.at, w.src[w.at+1], i&7)
	}
	w.open(w.src, w.at+2)
	return nil
}
