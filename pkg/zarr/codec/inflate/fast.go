package inflate

import (
	"encoding/binary"
	"unsafe"
)

// Room that one turn of the fast loop may need: two refills of 8 bytes of src; in dst three literals, one match, and
// what the match's last wide copy writes too much.
const (
	fastIn  = 16
	fastOut = 3 + 258 + 16
)

// fastPiece is the number of bytes that the fast loop decodes between two checks of the context.
const fastPiece = 4 << 20

// Distances below 8 repeat a pattern: periodMask keeps it, periodFill multiplies it into all 8 bytes, and 8 bytes
// stored advance by periodStep, a multiple of the distance.
var (
	periodMask = [8]uint64{0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff}
	periodFill = [8]uint64{0, 0x0101010101010101, 0x0001000100010001, 0x0001000001000001, 0x0000000100000001, 0x0000010000000001,
		0x0001000000000001, 0x0100000000000001}
	periodStep = [8]int{0, 8, 8, 6, 8, 5, 6, 7}
)

func load64(p unsafe.Pointer) uint64 { return binary.LittleEndian.Uint64((*[8]byte)(p)[:]) }

func store64(p unsafe.Pointer, v uint64) { binary.LittleEndian.PutUint64((*[8]byte)(p)[:], v) }

func copy16(dst, src unsafe.Pointer) { *(*[16]byte)(dst) = *(*[16]byte)(src) }

// fast decodes symbols as long as fastIn bytes of input and fastOut bytes of room are left, up to fastPiece bytes; done
// reports the end of the block.
//
// Pointer arithmetic replaces bounds checks: at the head of the loop in+fastIn ≤ len(src) and out+fastOut ≤ len(dst),
// and no more than that is read or written per turn; matches read from dst[start:out] only, apart from up to 15 bytes
// before out+fastOut.
func (d *decoder) fast(t *tables) (done bool, err error) {
	lastIn, lastOut := len(d.src)-fastIn, len(d.dst)-fastOut
	if d.in > lastIn || d.out > lastOut {
		return false, nil
	}
	lastOut = min(lastOut, d.out+fastPiece)
	src, dst := unsafe.Pointer(unsafe.SliceData(d.src)), unsafe.Pointer(unsafe.SliceData(d.dst))
	in, out, start := d.in, d.out, d.start
	buf, count := d.buf, d.count

	// Refill without a branch: all 64 bits of buf are right then. The whole bytes among them are counted, what is left
	// is or-ed again by the next refill.
	buf |= load64(unsafe.Add(src, in)) << (count & 63)
	in += int((63 - count) >> 3)
	count |= 56
	e := t.lit[buf&(1<<litBits-1)]

	for in <= lastIn && out <= lastOut {
		if e&entryLiteral != 0 {
			*(*byte)(unsafe.Add(dst, out)) = byte(e >> entryValue)
			out++
			buf >>= e & entryBits
			count -= uint(e & entryBits)
			e = t.lit[buf&(1<<litBits-1)]
			if e&entryLiteral != 0 {
				*(*byte)(unsafe.Add(dst, out)) = byte(e >> entryValue)
				out++
				buf >>= e & entryBits
				count -= uint(e & entryBits)
				e = t.lit[buf&(1<<litBits-1)]
				if e&entryLiteral != 0 {
					*(*byte)(unsafe.Add(dst, out)) = byte(e >> entryValue)
					out++
					buf >>= e & entryBits
					count -= uint(e & entryBits)
					e = t.lit[buf&(1<<litBits-1)]
					buf |= load64(unsafe.Add(src, in)) << (count & 63)
					in += int((63 - count) >> 3)
					count |= 56
					continue
				}
			}
		}
		var length, distance int
		if e&entryMatch != 0 {
			length = int(e>>entryValue&255) + 3
			distance = int(distBases[e>>entrySymbol&31]) + int(buf&(1<<(e&entryBits)-1)>>(e>>entryWord&entryWordMask))
			buf >>= e & entryBits
			count -= uint(e & entryBits)
			// Two literals and a match take up to 46 of the 64 bits, the next index is there before the refill.
			e = t.lit[buf&(1<<litBits-1)]
		} else {
			buf |= load64(unsafe.Add(src, in)) << (count & 63)
			in += int((63 - count) >> 3)
			count |= 56
			if e&entryExcept != 0 {
				if e&entryLink == entryLink {
					buf >>= litBits
					count -= litBits
					e = t.lit[uint(e>>entryValue)+uint(buf)&(1<<(e>>entryWord&15)-1)]
					if e&entryLiteral != 0 {
						*(*byte)(unsafe.Add(dst, out)) = byte(e >> entryValue)
						out++
						buf >>= e & entryBits
						count -= uint(e & entryBits)
						e = t.lit[buf&(1<<litBits-1)]
						buf |= load64(unsafe.Add(src, in)) << (count & 63)
						in += int((63 - count) >> 3)
						count |= 56
						continue
					}
				}
				if e&entryExcept != 0 {
					buf >>= e & entryBits
					count -= uint(e & entryBits)
					d.in, d.out, d.count, d.buf = in, out, count, buf&(1<<count-1)
					if e&entryEnd == entryEnd {
						return true, nil
					}
					return false, d.corrupt("no such literal or length code")
				}
			}
			length = int(e>>entryValue) + int(buf&(1<<(e&entryBits)-1)>>(e>>entryWord&entryWordMask))
			buf >>= e & entryBits
			count -= uint(e & entryBits)

			e = t.dist[buf&(1<<distBits-1)]
			if e&entryExcept != 0 {
				if e&entryLink == entryLink {
					buf >>= distBits
					count -= distBits
					e = t.dist[uint(e>>entryValue)+uint(buf)&(1<<(e>>entryWord&15)-1)]
				}
				if e&entryExcept != 0 {
					buf >>= e & entryBits
					count -= uint(e & entryBits)
					d.in, d.out, d.count, d.buf = in, out, count, buf&(1<<count-1)
					return false, d.corrupt("no such distance code")
				}
			}
			distance = int(distBases[e>>entrySymbol&31]) + int(buf&(1<<(e&entryBits)-1)>>(e>>entryWord&entryWordMask))
			buf >>= e & entryBits
			count -= uint(e & entryBits)
			// The same with the 48 bits of a length and a distance.
			e = t.lit[buf&(1<<litBits-1)]
		}
		if distance > out-start {
			d.in, d.out, d.count, d.buf = in, out, count, buf&(1<<count-1)
			return false, d.tooFar(distance, out)
		}
		buf |= load64(unsafe.Add(src, in)) << (count & 63)
		in += int((63 - count) >> 3)
		count |= 56

		to := unsafe.Add(dst, out)
		from := unsafe.Add(dst, out-distance)
		out += length
		if distance >= 16 {
			copy16(to, from)
			for length > 16 {
				to, from, length = unsafe.Add(to, 16), unsafe.Add(from, 16), length-16
				copy16(to, from)
			}
		} else if distance >= 8 {
			store64(to, load64(from))
			for length > 8 {
				to, from, length = unsafe.Add(to, 8), unsafe.Add(from, 8), length-8
				store64(to, load64(from))
			}
		} else {
			v := load64(from) & periodMask[distance&7] * periodFill[distance&7]
			store64(to, v)
			for step := periodStep[distance&7]; length > 8; length -= step {
				to = unsafe.Add(to, step)
				store64(to, v)
			}
		}
	}
	d.in, d.out, d.count, d.buf = in, out, count, buf&(1<<count-1)
	return false, nil
}
