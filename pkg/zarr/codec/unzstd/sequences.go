package unzstd

import (
	"encoding/binary"
	"math/bits"
)

// sequencer is the state of decoding the sequences of one block. loop_amd64.s knows the places of its fields.
//
// The bits are read from the end of src to its front. The position is kept as the number of bits in front of it, and a
// word that ends there is loaded whenever bits are needed, rather than kept and refilled: loads do not wait for each
// other. No word of 8 bytes that is loaded begins before src: a frame header, a block header and a literals header come
// before the bits.
type sequencer struct {
	entries  [3][tableSize]entry // by literalLengths, offsets, matchLengths
	src      *byte
	position int // in bits
	floor    int // position at which all bits are read
	states   [3]uint64
	count    int   // sequences left
	dst      *byte // what the frame decodes to
	n        int   // bytes of it that are there
	end      int   // bytes that may be there after this block
	literals *byte
	lit      int // literals taken
	size     int // literals there are, with literalsSlack bytes behind them
	repeats  [3]int

	// the sequence at hand: so many literals, then so many bytes from so far back
	run, length, offset int
}

// word returns the bits in front of position at its top, at least 57 of them.
func word(src []byte, position int) uint64 {
	k := (position+7)>>3 - 8
	return binary.LittleEndian.Uint64(src[k:k+8]) << (uint(8*k+64-position) & 63)
}

// top returns the first bits of w.
func top(w uint64, bits uint) int { return int(w >> 1 >> (63 - bits&63)) }

// sequences decodes the sequences section at src[at:] and carries the sequences out: literals from literals, which has
// literalsSlack bytes behind the real ones, and matches from what dst has of the frame so far (n bytes).
func (d *Decoder) sequences(dst []byte, n int, src []byte, at int, literals []byte, limit int) (int, error) {
	begin := at
	count := int(src[at])
	at++
	switch {
	case count == 255 && len(src)-at >= 2:
		count = int(binary.LittleEndian.Uint16(src[at:])) + 0x7f00
		at += 2
	case count >= 128 && count < 255 && len(src)-at >= 1:
		count = (count-128)<<8 | int(src[at])
		at++
	case count >= 128:
		return 0, corrupt(at, "sequence count is truncated")
	}
	if at == len(src) {
		return 0, corrupt(at, "sequence modes are missing")
	}
	modes := src[at]
	at++
	if modes&3 != 0 {
		return 0, corrupt(at-1, "reserved mode bits are set")
	}
	var err error
	for i := range d.tables {
		if at, err = d.readTable(i, modes>>(6-2*i)&3, src, at); err != nil {
			return 0, err
		}
	}
	if at == len(src) || src[len(src)-1] == 0 {
		return 0, corrupt(len(src), "bits of the sequences have no end mark")
	}
	s := &d.sequencer
	s.src, s.floor, s.position = &src[0], 8*at, 8*(len(src)-1)+bits.Len8(src[len(src)-1])-1
	w := word(src, s.position)
	for i := range s.states {
		s.states[i] = uint64(top(w, d.tables[i].log))
		w <<= d.tables[i].log
		s.position -= int(d.tables[i].log)
	}
	if s.position < s.floor {
		return 0, corrupt(at, "bits of the sequences are truncated")
	}
	s.count, s.n, s.end = count, n, min(len(dst), n+limit)
	if len(dst) > 0 {
		s.dst = &dst[0]
	}
	s.literals, s.lit, s.size = &literals[0], 0, len(literals)-literalsSlack
	for s.count > 0 {
		switch s.many(dst, src, literals) {
		case decode:
			if !s.next(src) {
				return 0, corrupt(at, "bits of the sequences are truncated")
			}
			fallthrough
		case execute:
			if err := s.execute(dst, literals, begin); err != nil {
				return 0, err
			}
			s.count--
		}
	}
	if s.position != s.floor {
		return 0, corrupt(at, "%d bits of the sequences are left over", s.position-s.floor)
	}
	rest := s.size - s.lit
	if rest > s.end-s.n {
		return 0, s.overrun(dst, begin)
	}
	copy(dst[s.n:], literals[s.lit:s.size])
	s.src, s.dst, s.literals = nil, nil, nil
	return s.n + rest, nil
}

// many decodes and executes sequences as far as the loop of this machine does, and returns what is to be done with the
// next.
func (s *sequencer) many(dst, src, literals []byte) (how int) {
	if haveLoop {
		how = sequenceLoop(s)
	} else {
		how = s.loop(dst, src, literals)
	}
	if how == done {
		return decode // the last one
	}
	return how
}

// What is to be done after loop.
const (
	done    = iota // only the last sequence is left
	decode         // decode the next sequence and execute it
	execute        // execute the sequence at hand
)

// next decodes the next sequence and, unless it is the last, the states of the one after it. It returns false if there
// are not enough bits.
func (s *sequencer) next(src []byte) bool {
	le, oe, me := s.entries[literalLengths][s.states[literalLengths]%tableSize], s.entries[offsets][s.states[offsets]%tableSize],
		s.entries[matchLengths][s.states[matchLengths]%tableSize]
	w := word(src, s.position)
	offset := 1<<oe.extra() + top(w, oe.extra())
	s.position -= int(oe.extra())
	if s.position < s.floor {
		return false
	}
	w = word(src, s.position)
	s.length = me.base() + top(w, me.extra())
	w <<= me.extra() & 63
	s.run = le.base() + top(w, le.extra())
	s.position -= int(me.extra() + le.extra())
	if s.position < s.floor {
		return false
	}
	if s.count > 1 {
		w := word(src, s.position)
		s.states[literalLengths] = le.next() + uint64(top(w, le.bits()))
		w <<= le.bits() & 63
		s.states[matchLengths] = me.next() + uint64(top(w, me.bits()))
		w <<= me.bits() & 63
		s.states[offsets] = oe.next() + uint64(top(w, oe.bits()))
		s.position -= int(le.bits() + me.bits() + oe.bits())
	}
	s.offset = s.repeat(offset)
	return s.position >= s.floor
}

// repeat turns an offset value into an offset: 1 to 3 stand for one of the last offsets, in another order when there
// are no literals before the match (RFC 8878, 3.1.1.5).
func (s *sequencer) repeat(value int) int {
	r := &s.repeats
	if value > 3 {
		*r = [3]int{value - 3, r[0], r[1]}
		return r[0]
	}
	if s.run == 0 {
		value++
	}
	switch value {
	case 1:
	case 2:
		*r = [3]int{r[1], r[0], r[2]}
	case 3:
		*r = [3]int{r[2], r[0], r[1]}
	default:
		*r = [3]int{r[0] - 1, r[0], r[1]}
	}
	return r[0]
}

// execute carries the sequence at hand out; begin is the place of the section, for errors.
func (s *sequencer) execute(dst, literals []byte, begin int) error {
	run, length, offset, n := s.run, s.length, s.offset, s.n
	if run > s.size-s.lit {
		return corrupt(begin, "sequence takes %d literals, there are %d", run, s.size-s.lit)
	}
	if run+length > s.end-n {
		return s.overrun(dst, begin)
	}
	if run <= 16 && len(dst)-n >= 16 {
		*(*[16]byte)(dst[n:]) = *(*[16]byte)(literals[s.lit:])
	} else {
		copy(dst[n:n+run], literals[s.lit:])
	}
	s.lit += run
	n += run
	if offset > n || offset <= 0 {
		return corrupt(begin, "match reaches %d bytes back, there are %d", offset, n)
	}
	from := n - offset
	switch {
	case offset >= 16 && length <= 16 && len(dst)-n >= 16:
		*(*[16]byte)(dst[n:]) = *(*[16]byte)(dst[from:])
	case offset >= length:
		copy(dst[n:n+length], dst[from:])
	case length <= 16:
		for i := range length {
			dst[n+i] = dst[from+i]
		}
	default:
		// the match repeats itself: what is there already doubles with each copy
		for k := 0; k < length; {
			k += copy(dst[n+k:n+length], dst[from:n+k])
		}
	}
	s.n = n + length
	return nil
}

// overrun returns the error for a block that decodes to more than it may, or than there is room for.
func (s *sequencer) overrun(dst []byte, at int) error {
	if s.end == len(dst) {
		return tooLong(len(dst))
	}
	return corrupt(at, "block decodes to more than a block may")
}
