package enzstd

// A sequence is a number of literals and the match behind them; once it is coded, what is written of it.
type sequence struct {
	literals uint32 // coded: the bits behind the codes of both lengths
	length   uint32 // coded: the codes of literal length, offset and match length, and the number of those bits, a byte each
	offset   uint32 // distance; coded: the value that stands for it
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
	literalBits = [64]uint8{16: 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	matchBits   = [64]uint8{32: 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
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

// Ways to describe a table, with their values in the format.
const (
	modePredefined = iota
	modeRLE
	modeCompressed
	modeRepeat
)

// sequencer writes the sequences of one block after the other.
type sequencer struct {
	counts [kinds][64]uint32
	slots  [kinds][2]fseTable
	last   [kinds]*fseTable // of slots, what the last compressed block used; nil if that was none of these
	used   [kinds]*fseTable // by the block at hand
}

// code replaces seqs by their coded form and counts the codes. repeats holds the last three distances, before
// and after. It returns the greatest distance.
func (q *sequencer) code(seqs []sequence, repeats *[3]uint32) (farthest uint32) {
	clear(q.counts[:])
	r0, r1, r2 := repeats[0], repeats[1], repeats[2]
	for i := range seqs {
		s := &seqs[i]
		d, none := s.offset, uint32(0)
		farthest = max(farthest, d)
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
		length, o := s.length-minMatch, highBit(s.offset)
		if s.literals < 16 && length < 32 { // the codes say all
			q.counts[literalLengths][s.literals]++
			q.counts[offsets][o&63]++
			q.counts[matchLengths][length]++
			s.length = s.literals | uint32(o)<<8 | length<<16
			s.literals = 0
			continue
		}
		l, m := literalCode(s.literals), matchCode(length)
		q.counts[literalLengths][l&63]++
		q.counts[offsets][o&63]++
		q.counts[matchLengths][m&63]++
		lb, mb := literalBits[l&63], matchBits[m&63]
		s.literals = s.literals&(1<<lb-1) | length&(1<<mb-1)<<lb
		s.length = uint32(l) | uint32(o)<<8 | uint32(m)<<16 | uint32(lb+mb)<<24
	}
	*repeats = [3]uint32{r0, r1, r2}
	return farthest
}

// appendSection appends the sequences section of seqs, which have been coded, to dst. It fails if dst has too
// little room.
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
