package enzstd

import "encoding/binary"

// A stateWriter writes coded sequences from the last to the first: of each the new states of the three tables, but of
// the last, whose codes the states begin with, then the bits of its lengths and of its offset. states_amd64.s knows its
// fields.
type stateWriter struct {
	seqs   []sequence // left to be written
	dst    []byte
	at     int // bytes of dst
	acc    uint64
	bits   uint64 // of acc, up to 7
	tables [kinds]*fseTable
	states [kinds]uint64
}

const stateSlack = 32 // bytes of dst that one sequence may take

// appendBits appends the part of a sequences section behind the tables. It fails if dst has too little room.
func (q *sequencer) appendBits(dst []byte, seqs []sequence) ([]byte, bool) {
	w := stateWriter{seqs: seqs, dst: dst[len(dst):cap(dst)], tables: q.used}
	for k, t := range w.tables {
		w.states[k] = uint64(t.start(uint8(seqs[len(seqs)-1].length >> (8 * k))))
	}
	if !w.lengths() {
		return dst, false
	}
	w.write(haveBMI2)
	if len(w.seqs) > 0 {
		return dst, false
	}
	b := bitWriter{out: dst[:len(dst)+w.at], acc: w.acc, n: uint(w.bits)}
	for _, k := range [kinds]int{matchLengths, offsets, literalLengths} {
		b.add(w.states[k]&(1<<w.tables[k].log-1), w.tables[k].log)
	}
	return b.close(), true
}

// writeScalar writes sequences until none is left, or no room.
func (w *stateWriter) writeScalar() {
	for len(w.seqs) > 0 {
		codes := w.seqs[len(w.seqs)-1].length
		w.state(offsets, codes>>8&0xff)
		w.state(matchLengths, codes>>16&0xff)
		w.state(literalLengths, codes&0xff)
		if !w.lengths() {
			return
		}
	}
}

// state writes the bits that lead from the state of table k to that of code c.
func (w *stateWriter) state(k int, c uint32) {
	t := w.tables[k]
	state, m := w.states[k], t.moves[c]
	bits := uint64(uint32(state)+m.deltaBits) >> 16
	w.acc |= state & (1<<bits - 1) << (w.bits & 63)
	w.bits += bits
	w.states[k] = uint64(t.states[int32(state>>bits)+m.deltaState])
}

// lengths writes the bits of the last remaining sequence, and whole bytes. It fails if there is too little
// room.
func (w *stateWriter) lengths() bool {
	if len(w.dst)-w.at < stateSlack {
		return false
	}
	s := &w.seqs[len(w.seqs)-1]
	w.seqs = w.seqs[:len(w.seqs)-1]
	offset, lengths := uint64(s.length>>8&0xff), uint64(s.length>>24)
	if offset+lengths > 64-(7+9+9+8)-1 { // more than there is room for in any case
		w.flush()
		w.acc |= uint64(s.literals) << w.bits
		w.bits += lengths
		w.flush()
		lengths = 0
	} else {
		w.acc |= uint64(s.literals) << (w.bits & 63)
	}
	w.bits += lengths
	w.acc |= uint64(s.offset) & (1<<offset - 1) << (w.bits & 63)
	w.bits += offset
	w.flush()
	return true
}

func (w *stateWriter) flush() {
	binary.LittleEndian.PutUint64(w.dst[w.at:], w.acc)
	w.at += int(w.bits >> 3)
	w.acc >>= w.bits & 56
	w.bits &= 7
}
