package unzstd

import "encoding/binary"

// loop does what sequenceLoop does, and in the same way.
//
// The bits of a sequence, at most 56 of them, are cut out of one word side by side, not one after the other: from how
// many bits each field has follows where it is. What the next sequence waits for is then only a load, the sum of the
// numbers of bits, a shift, a mask and an addition. As no sequence takes more bits, and only long ones make more than
// 32 bytes, the ends of the bits and of the output are looked at once for many sequences.
func (s *sequencer) loop(dst, src, literals []byte) int {
	position, n, lit, states := s.position, s.n, s.lit, s.states
	how, left := done, 0
	for {
		if left <= 0 {
			if left = min(s.count-1, (position-s.floor)>>6, (s.end-n)>>5); left <= 0 {
				if s.count > 1 {
					how = decode
				}
				left = 0
				break
			}
			s.count -= left
		}
		le, oe, me := s.entries[literalLengths][states[literalLengths]%tableSize], s.entries[offsets][states[offsets]%tableSize],
			s.entries[matchLengths][states[matchLengths]%tableSize]
		all := uint64(le+oe+me) & 0xff
		if all > 56 {
			how = decode
			break
		}
		w, x := binary.LittleEndian.Uint64(src[position>>3-7:]), uint64(position)|^uint64(7)
		position -= int(all)
		rest := x - all
		states[offsets] = oe.next() + field(w, rest, oe.bits())
		rest += uint64(oe.bits())
		states[matchLengths] = me.next() + field(w, rest, me.bits())
		rest += uint64(me.bits())
		states[literalLengths] = le.next() + field(w, rest, le.bits())
		x -= uint64(oe.extra())
		value := 1<<(oe.extra()&63) | field(w, x, oe.extra())
		run, length := le.base(), me.base()
		if (le+me)>>56 != 0 {
			x -= uint64(me.extra())
			length += int(field(w, x, me.extra()))
			x -= uint64(le.extra())
			run += int(field(w, x, le.extra()))
		}
		s.run = run
		offset := s.repeat(int(value))
		if !s.copies(dst[:s.end], literals, n, lit, run, length, offset) {
			s.length, s.offset = length, offset
			how = execute
			break
		}
		n += run + length
		lit += run
		left--
		if run > 16 || length > 16 {
			s.count += left
			left = 0
		}
	}
	s.count += left
	s.position, s.n, s.lit, s.states = position, n, lit, states
	return how
}

// field returns so many bits of w from the place that the low six bits of at say.
func field(w, at uint64, bits uint) uint64 { return w >> (at & 63) & (1<<(bits&63) - 1) }

// copies copies run literals, then length bytes from offset bytes back, to dst[n:], which ends where a block may. It
// returns false if that needs more care.
func (s *sequencer) copies(dst, literals []byte, n, lit, run, length, offset int) bool {
	from := n + run - offset
	long := run > 16 || length > 16
	if lit+run > s.size || from < 0 || offset < 16 && (long || offset == 0) || long && n+run+length+32 > len(dst) {
		return false
	}
	*(*[16]byte)(dst[n:]) = *(*[16]byte)(literals[lit:])
	if run > 16 {
		copy(dst[n+16:n+run], literals[lit+16:])
	}
	n += run
	switch {
	case offset < 16:
		for i := range length {
			dst[n+i] = dst[from+i]
		}
	case length <= 16:
		*(*[16]byte)(dst[n:]) = *(*[16]byte)(dst[from:])
	default:
		for k := 0; k < length; k += 16 {
			*(*[16]byte)(dst[n+k:]) = *(*[16]byte)(dst[from+k:])
		}
	}
	return true
}
