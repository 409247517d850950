package enzstd

import (
	"encoding/binary"
	"slices"
)

// A sequence is a number of literals and the match behind them.
type sequence struct {
	literals uint32
	length   uint32
	offset   uint32 // from finders: distance; from code on: the value that is written, 1 to 3 for repeated distances
}

// The three kinds of symbols that a sequence is written with.
const (
	literalLengths = iota
	offsets
	matchLengths
	kinds
)

const minMatch = 3 // least match length of the format

// Codes of the least lengths; the others follow from the highest bit.
var literalCodes, matchCodes = func() (l [64]uint8, m [128]uint8) {
	fill := func(codes []uint8, first uint8, bits []uint8) {
		at := 0
		for i, b := range bits {
			for range 1 << b {
				if at < len(codes) {
					codes[at] = first + uint8(i)
					at++
				}
			}
		}
	}
	for i := range 16 {
		l[i] = uint8(i)
	}
	for i := range 32 {
		m[i] = uint8(i)
	}
	fill(l[16:], 16, literalBits[16:25])
	fill(m[32:], 32, matchBits[32:43])
	return
}()

// Bits that follow each code of a length (RFC 8878, 3.1.1.3.2.1.1).
var (
	literalBits = [36]uint8{16: 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	matchBits   = [53]uint8{32: 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
)

func literalCode(n uint32) uint8 {
	if n < 64 {
		return literalCodes[n]
	}
	return uint8(highBit(n) + 19)
}

// matchCode returns the code of a length above minMatch by n.
func matchCode(n uint32) uint8 {
	if n < 128 {
		return matchCodes[n]
	}
	return uint8(highBit(n) + 36)
}

// predefined are the tables that every decoder has (RFC 8878, 3.1.1.3.2.2).
var predefined = func() (t [kinds]fseTable) {
	for k, norm := range [kinds][]int16{
		literalLengths: {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1},
		offsets:        {1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1},
		matchLengths: {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
			1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1},
	} {
		t[k].log = [kinds]uint{6, 5, 6}[k]
		t[k].symbols = copy(t[k].norm[:], norm)
		t[k].build()
	}
	return
}()

// single is the table of a symbol that is the only one: it writes nothing.
var single = func() (t fseTable) {
	t.states[0], t.states[1] = 1, 1
	return
}()

// Ways to describe a table, as they are written.
const (
	modePredefined = iota
	modeRLE
	modeCompressed
	modeRepeat
)

// sequencer writes the sequences of one block after the other.
type sequencer struct {
	codes  [kinds][]uint8
	counts [kinds][64]uint32
	slots  [kinds][2]fseTable
	last   [kinds]*fseTable // of slots, what the last compressed block used; nil if that was none of these
	used   [kinds]*fseTable // by the block at hand
}

// code turns the distances of seqs into the values that are written, and finds and counts the codes. repeats are the last three
// distances, before and after.
func (q *sequencer) code(seqs []sequence, repeats *[3]uint32) {
	n := len(seqs)
	for k := range q.codes {
		q.codes[k] = slices.Grow(q.codes[k][:0], n)[:n]
	}
	clear(q.counts[:])
	ll, of, ml := q.codes[literalLengths], q.codes[offsets][:n], q.codes[matchLengths][:n]
	r0, r1, r2 := repeats[0], repeats[1], repeats[2]
	for i := range ll {
		s := &seqs[i]
		d, none := s.offset, uint32(0)
		if s.literals == 0 {
			none = 1 // the last distance can't be meant: the values begin with the one before it
		}
		switch {
		case d == r0 && none == 0:
			s.offset = 1
		case d == r1:
			s.offset = 2 - none
			r0, r1 = d, r0
		default:
			s.offset = d + 3
			if d == r2 {
				s.offset = 3 - none
			} else if none == 1 && d == r0-1 {
				s.offset = 3
			}
			r0, r1, r2 = d, r0, r1
		}
		l, o, m := literalCode(s.literals), uint8(highBit(s.offset)), matchCode(s.length-minMatch)
		ll[i], of[i], ml[i] = l, o, m
		q.counts[literalLengths][l&63]++
		q.counts[offsets][o&63]++
		q.counts[matchLengths][m&63]++
	}
	*repeats = [3]uint32{r0, r1, r2}
}

// appendSection appends the sequences section of seqs, which have been coded, to dst. It fails if that would be longer than dst has
// room for.
func (q *sequencer) appendSection(dst []byte, seqs []sequence) (_ []byte, ok bool) {
	switch n := len(seqs); {
	case n < 128:
		dst = append(dst, byte(n))
	case n < 0x7f00:
		dst = append(dst, byte(n>>8+128), byte(n))
	default:
		dst = append(dst, 255, byte(n-0x7f00), byte((n-0x7f00)>>8))
	}
	if len(seqs) == 0 {
		return dst, true
	}
	modes := len(dst)
	dst = append(dst, 0)
	for k := range kinds {
		var mode byte
		mode, dst = q.table(k, dst, len(seqs))
		dst[modes] |= mode << (6 - 2*k)
	}
	return q.appendBits(dst, seqs)
}

// table chooses the table for the symbols of a kind, of which there are n, and appends its description.
func (q *sequencer) table(k int, dst []byte, n int) (mode byte, _ []byte) {
	counts := q.counts[k][:]
	for counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	most := counts[len(counts)-1]
	for _, c := range counts {
		most = max(most, c)
	}
	if most == uint32(n) && n > 2 {
		q.used[k] = &single
		return modeRLE, append(dst, byte(len(counts)-1))
	}
	const bit = 256
	mode, best := byte(modePredefined), ^uint64(0)
	q.used[k] = &predefined[k]
	if cost, ok := predefined[k].bits(counts); ok {
		best = cost
	}
	if q.last[k] != nil {
		if cost, ok := q.last[k].bits(counts); ok && cost <= best {
			mode, best, q.used[k] = modeRepeat, cost, q.last[k]
		}
	}
	if most == uint32(n) { // two of a symbol without a predefined code
		if best > 8*bit {
			q.used[k] = &single
			return modeRLE, append(dst, byte(len(counts)-1))
		}
		return mode, dst
	}
	least := entropy(counts, uint32(n))
	if least+16*bit >= best { // no description is that short
		return mode, dst
	}
	t := &q.slots[k][0]
	if q.last[k] == t {
		t = &q.slots[k][1]
	}
	t.log = min(max(5, highBit(uint32(n))-2, highBit(uint32(len(counts)))+1), [kinds]uint{9, 8, 9}[k])
	t.normalize(counts, uint32(n))
	described := t.appendHeader(dst)
	if cost, _ := t.bits(counts); cost+uint64(len(described)-len(dst))*8*bit >= best {
		return mode, dst
	}
	t.build()
	q.used[k] = t
	return modeCompressed, described
}

// keep remembers the tables of a block that was written.
func (q *sequencer) keep() {
	for k, t := range q.used {
		if t == &single || t == &predefined[k] {
			t = nil
		}
		q.last[k] = t
	}
}

// appendBits appends the states and lengths of seqs, the last first.
func (q *sequencer) appendBits(dst []byte, seqs []sequence) ([]byte, bool) {
	n := len(seqs)
	out, at := dst[len(dst):cap(dst)], 0
	ll, of, ml := q.codes[literalLengths][:n], q.codes[offsets][:n], q.codes[matchLengths][:n]
	lt, ot, mt := q.used[literalLengths], q.used[offsets], q.used[matchLengths]
	ls, os, ms := lt.start(ll[n-1]), ot.start(of[n-1]), mt.start(ml[n-1])
	acc, have := uint64(0), uint(0)
	for i := n - 1; ; {
		if len(out)-at < 32 {
			return dst, false
		}
		// up to 16 + 16 bits of lengths, 31 of a distance, 9 + 9 + 8 of states
		l, o, m := ll[i], of[i], ml[i]
		s := &seqs[i]
		bits := uint(literalBits[l])
		acc |= uint64(s.literals) & (1<<bits - 1) << (have & 63)
		have += bits
		if have > 48 {
			binary.LittleEndian.PutUint64(out[at:], acc)
			at += int(have >> 3)
			acc >>= have & 56
			have &= 7
		}
		bits = uint(matchBits[m])
		acc |= uint64(s.length-minMatch) & (1<<bits - 1) << (have & 63)
		have += bits
		if uint(o)+have > 63 {
			binary.LittleEndian.PutUint64(out[at:], acc)
			at += int(have >> 3)
			acc >>= have & 56
			have &= 7
		}
		acc |= uint64(s.offset) & (1<<(o&63) - 1) << (have & 63)
		have += uint(o)
		binary.LittleEndian.PutUint64(out[at:], acc)
		at += int(have >> 3)
		acc >>= have & 56
		have &= 7
		if i == 0 {
			break
		}
		i--
		move := ot.moves[of[i]]
		bits = uint(os+move.deltaBits) >> 16
		acc |= uint64(os) & (1<<(bits&63) - 1) << (have & 63)
		have += bits
		os = uint32(ot.states[int32(os>>(bits&31))+move.deltaState])
		move = mt.moves[ml[i]]
		bits = uint(ms+move.deltaBits) >> 16
		acc |= uint64(ms) & (1<<(bits&63) - 1) << (have & 63)
		have += bits
		ms = uint32(mt.states[int32(ms>>(bits&31))+move.deltaState])
		move = lt.moves[ll[i]]
		bits = uint(ls+move.deltaBits) >> 16
		acc |= uint64(ls) & (1<<(bits&63) - 1) << (have & 63)
		have += bits
		ls = uint32(lt.states[int32(ls>>(bits&31))+move.deltaState])
	}
	w := bitWriter{out: dst[:len(dst)+at], acc: acc, n: have}
	w.add(uint64(ms&(1<<mt.log-1)), mt.log)
	w.add(uint64(os&(1<<ot.log-1)), ot.log)
	w.add(uint64(ls&(1<<lt.log-1)), lt.log)
	return w.close(), true
}
