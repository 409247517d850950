package unzstd

import (
	"encoding/binary"
	"math/bits"
)

// sequences decodes the sequences section at src[at:] and carries the sequences out: literals from d.literals, matches from what dst
// has of the frame so far (n bytes).
//
// The bits are read from the end of src to its front. The position is kept as the number of bits in front of it, and a word that
// ends there is loaded whenever bits are needed, rather than kept and refilled: loads do not wait for each other.
func (d *Decoder) sequences(dst []byte, n int, src []byte, at, limit int) (int, error) {
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
	// No word of 8 bytes that is loaded begins before src: a frame header, a block header and a literals header come before the bits.
	floor := 8 * at
	position := 8*(len(src)-1) + bits.Len8(src[len(src)-1]) - 1

	// word has the next bits at its top, at least 57 of them
	word := func(position int) uint64 {
		k := (position+7)>>3 - 8
		return binary.LittleEndian.Uint64(src[k:k+8]) << (uint(8*k+64-position) & 63)
	}
	ll, of, ml := &d.tables[literalLengths], &d.tables[offsets], &d.tables[matchLengths]
	w := word(position)
	llState := w >> 1 >> (63 - ll.log)
	w <<= ll.log
	ofState := w >> 1 >> (63 - of.log)
	w <<= of.log
	mlState := w >> 1 >> (63 - ml.log)
	if position -= int(ll.log + of.log + ml.log); position < floor {
		return 0, corrupt(at, "bits of the sequences are truncated")
	}
	r0, r1, r2 := d.repeats[0], d.repeats[1], d.repeats[2]
	literals := d.literals
	lit, size := 0, len(literals)-literalsSlack
	end := min(len(dst), n+limit) // of the block

	for ; count > 0; count-- {
		le, oe, me := ll.entries[llState%tableSize], of.entries[ofState%tableSize], ml.entries[mlState%tableSize]
		sum := le + oe + me
		extra, next := sum.extra(), sum.bits()
		w := word(position)
		position -= int(extra)
		states := w << extra // the bits of the next states, if they are in the word
		if extra+next > 57 {
			if position < floor {
				return 0, corrupt(at, "bits of the sequences are truncated")
			}
			states = word(position)
		}
		v := w
		offset := oe.base() + int(v>>1>>(63-oe.extra()&63))
		v <<= oe.extra() & 63
		if extra > 57 {
			v = word(position + int(extra-oe.extra()))
		}
		length := me.base() + int(v>>1>>(63-me.extra()&63))
		v <<= me.extra() & 63
		run := le.base() + int(v>>1>>(63-le.extra()&63))
		if count > 1 {
			position -= int(next)
			llState = le.next() + states>>1>>(63-le.bits()&63)
			mlState = me.next() + states<<(le.bits()&63)>>1>>(63-me.bits()&63)
			ofState = oe.next() + states<<((le.bits()+me.bits())&63)>>1>>(63-oe.bits()&63)
		}
		if position < floor {
			return 0, corrupt(at, "bits of the sequences are truncated")
		}

		if offset > 3 {
			offset -= 3
			r0, r1, r2 = offset, r0, r1
		} else {
			// one of the last offsets; without literals before it, the first would be pointless and means something else
			if run == 0 {
				offset++
			}
			switch offset {
			case 1:
				offset = r0
			case 2:
				offset = r1
				r0, r1 = r1, r0
			case 3:
				offset = r2
				r0, r1, r2 = r2, r0, r1
			default:
				offset = r0 - 1
				r0, r1, r2 = offset, r0, r1
			}
		}

		if run > size-lit {
			return 0, corrupt(begin, "sequence takes %d literals, there are %d", run, size-lit)
		}
		if run+length > end-n {
			return 0, d.overrun(dst, end, begin)
		}
		if run <= 16 && len(dst)-n >= 16 {
			*(*[16]byte)(dst[n:]) = *(*[16]byte)(literals[lit:])
		} else {
			copy(dst[n:n+run], literals[lit:])
		}
		lit += run
		n += run
		if offset > n || offset <= 0 {
			return 0, corrupt(begin, "match reaches %d bytes back, there are %d", offset, n)
		}
		from := n - offset
		switch {
		case offset >= length:
			if length <= 16 && offset >= 16 && len(dst)-n >= 16 {
				*(*[16]byte)(dst[n:]) = *(*[16]byte)(dst[from:])
			} else {
				copy(dst[n:n+length], dst[from:])
			}
		case length <= 16:
			for i := range length {
				dst[n+i] = dst[from+i]
			}
		default:
			// the match repeats itself: what is there already doubles with each copy
			for done := 0; done < length; {
				done += copy(dst[n+done:n+length], dst[from:n+done])
			}
		}
		n += length
	}
	if position != floor {
		return 0, corrupt(at, "%d bits of the sequences are left over", position-floor)
	}
	rest := size - lit
	if rest > end-n {
		return 0, d.overrun(dst, end, begin)
	}
	copy(dst[n:], literals[lit:size])
	d.repeats = [3]int{r0, r1, r2}
	return n + rest, nil
}

// overrun is the error for a block that decodes to more than it may, or than there is room for.
func (d *Decoder) overrun(dst []byte, end, at int) error {
	if end == len(dst) {
		return tooLong(len(dst))
	}
	return corrupt(at, "block decodes to more than a block may")
}
