package tilecodec

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unsafe"
)

// Codes of LZW (TIFF 6.0, section 13): below lzwClear a code is a byte, from lzwFirst on a string of the table.
const (
	lzwClear = 256
	lzwEnd   = 257
	lzwFirst = 258

	lzwMinWidth = 9
	lzwMaxWidth = 12
	lzwCodes    = 1 << lzwMaxWidth
)

// lzwString is an entry of the decoder's table. Every string of the table stands in the output already, at the place
// where it was first put together, so that an entry need not have its bytes. Short strings have them nevertheless,
// because most are short, and to write a register is quicker than to read what was written a moment ago.
//
//	up to 7 bytes: the bytes, first one lowest; the length in bits 56 to 63
//	longer:        the first byte; the length in bits 8 to 23; the place in the output in bits 24 to 55;
//	               bits 56 to 63 are 0
type lzwString uint64

const (
	lzwShort     = 7 // longest string whose bytes are in the entry
	lzwLengthAt  = 56
	lzwMaxOutput = 1<<32 - 1
)

func (s lzwString) first() lzwString { return s & 0xff }

func (s lzwString) length() int {
	if n := s >> lzwLengthAt; n != 0 {
		return int(n)
	}
	return int(s >> 8 & 0xffff)
}

// longer returns the string s, which ends before the place end in the output, extended by the first byte of
// next.
func (s lzwString) longer(end int, next lzwString) lzwString {
	if n := s >> lzwLengthAt; n-1 < lzwShort-1 {
		return s + 1<<lzwLengthAt + next.first()<<(n*8&63)
	}
	n := s.length()
	return s.first() | lzwString(n+1)<<8 | lzwString(end-n)<<24
}

// lzwDecoder is the state between two codes. src is either as TIFF 6.0 wants it, or, when old, as libtiff wrote it
// before that was settled: codes begin at the lowest bit of a byte, and become wider one code later.
type lzwDecoder struct {
	src, dst []byte
	old      bool
	pos, out int       // bits of src, bytes of dst
	width    int       // bits of the next code
	next     int       // the next entry of the table
	last     lzwString // the string of the last code, with which dst ends; 0 after lzwClear
	table    [lzwCodes]lzwString
}

// lzwPiece is the number of bytes decoded between two checks of the context.
const lzwPiece = 256 << 10

// decode decodes src to dst and returns the number of bytes. It ends when dst is full, at the code for the end, or at
// the end of src.
func (d *lzwDecoder) decode(ctx context.Context, dst, src []byte) (n int, err error) {
	if len(dst) > lzwMaxOutput {
		return 0, fmt.Errorf("LZW: %d bytes to decode, at most %d are supported", len(dst), lzwMaxOutput)
	}
	d.src, d.dst = src, dst
	d.old = len(src) > 1 && src[0] == 0 && src[1]&1 != 0
	d.pos, d.out = 0, 0
	d.clear()
	if d.table[0] == 0 {
		for i := range lzwClear {
			d.table[i] = lzwString(i) | 1<<lzwLengthAt
		}
	}
	look := 0
	for done := false; !done && err == nil; {
		if d.out >= look {
			if err := ctx.Err(); err != nil {
				return d.out, err
			}
			look = d.out + lzwPiece
		}
		if d.last != 0 && !d.old {
			d.fast(min(look, len(dst)))
		}
		done, err = d.step()
	}
	d.src, d.dst = nil, nil
	return d.out, err
}

func (d *lzwDecoder) clear() { d.width, d.next, d.last = lzwMinWidth, lzwFirst, 0 }

// code reads a code; !ok when src ends before it does.
func (d *lzwDecoder) code() (code int, ok bool) {
	if d.pos+d.width > 8*len(d.src) {
		return 0, false
	}
	var b [4]byte
	copy(b[:], d.src[d.pos>>3:])
	if d.old {
		code = int(binary.LittleEndian.Uint32(b[:]) >> (d.pos & 7) & (1<<d.width - 1))
	} else {
		code = int(binary.BigEndian.Uint32(b[:]) << (d.pos & 7) >> (32 - d.width))
	}
	d.pos += d.width
	return code, true
}

// step decodes one code with all checks; done reports that it was the last one.
func (d *lzwDecoder) step() (done bool, err error) {
	code, ok := d.code()
	if !ok || code == lzwEnd || d.out == len(d.dst) {
		return true, nil
	}
	if code == lzwClear {
		d.clear()
		return false, nil
	}
	s := d.table[code]
	if d.last != 0 {
		switch {
		case code < d.next:
		case code == d.next && code < lzwCodes:
			s = d.last
		default:
			return false, d.corrupt(code)
		}
		if d.next < lzwCodes {
			d.table[d.next] = d.last.longer(d.out, s)
			s = d.table[code]
			d.add()
		}
	} else if code > lzwClear {
		return false, d.corrupt(code)
	}
	d.last = s
	d.emit(s)
	return d.out == len(d.dst), nil
}

func (d *lzwDecoder) corrupt(code int) error {
	return fmt.Errorf("LZW: code %d before its string is known, byte %d of %d", code, (d.pos-d.width)>>3, len(d.src))
}

// add counts a new entry of the table, from which the width of codes follows.
func (d *lzwDecoder) add() {
	d.next++
	limit := 1 << d.width
	if !d.old {
		limit--
	}
	if d.next == limit && d.width < lzwMaxWidth {
		d.width++
	}
}

// emit writes a string, as far as there is room.
func (d *lzwDecoder) emit(s lzwString) {
	n := min(s.length(), len(d.dst)-d.out)
	to := d.dst[d.out : d.out+n]
	d.out += n
	if s>>lzwLengthAt != 0 {
		for i := range to {
			to[i] = byte(s >> (8 * i))
		}
		return
	}
	// The last byte of a string that was completed by this very code is its first, which is written only now.
	at := int(s >> 24)
	k := copy(to, d.dst[at:d.out-n])
	copy(to[k:], to)
}

// Codes that the fast loop takes from one load of 8 bytes, and the room that they may need behind a string: short
// strings are written 8 bytes at a time, long ones 16.
const (
	lzwFastCodes = 4
	lzwFastOut   = lzwFastCodes*8 + 16
)

// fast decodes codes until one needs step: a clear or an end, a string that was not in the table before its code, a
// wider code, or codes near the end of src, or near limit, which is an index of dst. There is a last string.
//
// Pointer arithmetic replaces bounds checks: at the head of the outer loop pos/8+8 ≤ len(src) and out+lzwFastOut ≤
// limit ≤ len(dst), and codes are cut to the 12 bits that the table has entries for. Four short strings advance out by
// at most 28. A long one is written where out+length+lzwFastOut ≤ limit; it lies before out as a whole, though its last
// piece may read up to 15 bytes behind it.
func (d *lzwDecoder) fast(limit int) {
	lastPos, lastOut := 8*(len(d.src)-8), limit-lzwFastOut
	dst, table := unsafe.Pointer(unsafe.SliceData(d.dst)), &d.table
	out, next, last := d.out, uint(d.next), d.last
	width := uint(d.width)
	mask := uint(1)<<width - 1
	for d.pos <= lastPos && out <= lastOut && next < mask-lzwFastCodes {
		v := bits.ReverseBytes64(*(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(d.src)), d.pos>>3))) << (d.pos & 7)
		first, stop := next, next+lzwFastCodes
		for next < stop {
			v = bits.RotateLeft64(v, int(width))
			code := uint(v) & mask
			if code >= next || code-lzwClear <= lzwEnd-lzwClear {
				break
			}
			s := table[code&(lzwCodes-1)]
			table[next&(lzwCodes-1)] = last.longer(out, s)
			if n := int(s >> lzwLengthAt); n != 0 {
				*(*uint64)(unsafe.Add(dst, out)) = uint64(s)
				out += n
			} else {
				n := int(s >> 8 & 0xffff)
				if out+n > lastOut {
					break
				}
				to, from := unsafe.Add(dst, out), unsafe.Add(dst, s>>24)
				out += n
				for ; n > 0; n -= 16 {
					*(*[16]byte)(to) = *(*[16]byte)(from)
					to, from = unsafe.Add(to, 16), unsafe.Add(from, 16)
				}
			}
			last = s
			next++
		}
		d.pos += int(width * (next - first))
		if next != stop {
			break
		}
	}
	d.out, d.next, d.last = out, int(next), last
}
