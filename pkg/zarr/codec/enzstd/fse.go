package enzstd

// An fseTable encodes the symbols of one kind by their frequencies (RFC 8878, 4.1). The encoder's state is a number
// from 1<<log to 2<<log - 1. A symbol writes the lowest bits of the state, as many as bring it into the symbol's range,
// and turns the rest into the next state.
type fseTable struct {
	log     uint
	norm    [maxSymbols]int16 // slots of each symbol; -1 is one slot at the end of the table
	symbols int               // of norm that are used
	states  [1 << maxTableLog]uint16
	moves   [maxSymbols]fseMove
}

// fseMove encodes a symbol: bits = (state + deltaBits) >> 16, state = states[state>>bits + deltaState].
type fseMove struct {
	deltaBits  uint32
	deltaState int32
}

const (
	maxSymbols  = 53 // match length codes, the most there are
	maxTableLog = 9
)

// build makes the encoding table of t.norm[:t.symbols], whose slots add up to 1<<t.log.
func (t *fseTable) build() {
	size := 1 << t.log
	var (
		symbol [1 << maxTableLog]uint8
		next   [maxSymbols]int
		top    = size - 1 // slots behind it belong to symbols of -1
		total  = 0
	)
	for s, n := range t.norm[:t.symbols] {
		next[s] = total
		if n == -1 {
			symbol[top] = uint8(s)
			top--
			n = 1
		}
		t.moves[s] = t.move(int(n), total)
		total += int(n)
	}
	at, step, mask := 0, size>>1+size>>3+3, size-1
	for s, n := range t.norm[:t.symbols] {
		for range n {
			symbol[at] = uint8(s)
			at = (at + step) & mask
			for at > top {
				at = (at + step) & mask
			}
		}
	}
	for i, s := range symbol[:size] {
		t.states[next[s]] = uint16(size + i)
		next[s]++
	}
}

// move returns the encoding step of a symbol with n slots that follow first slots of other symbols.
func (t *fseTable) move(n, first int) fseMove {
	switch n {
	case 0: // costs more than any symbol, and is never encoded
		return fseMove{uint32(t.log+1)<<16 - 1<<t.log, 0}
	case 1:
		return fseMove{uint32(t.log)<<16 - 1<<t.log, int32(first - 1)}
	}
	most := t.log - highBit(uint32(n-1))
	return fseMove{uint32(most)<<16 - uint32(n)<<most, int32(first - n)}
}

// start returns the state that stands for symbol s and comes first, at no cost.
func (t *fseTable) start(s uint8) uint32 {
	m := t.moves[s]
	bits := (m.deltaBits + 1<<15) >> 16
	return uint32(t.states[int32((bits<<16-m.deltaBits)>>bits)+m.deltaState])
}

// encode writes symbol s and returns the next state.
func (t *fseTable) encode(w *bitWriter, state uint32, s uint8) uint32 {
	m := t.moves[s]
	bits := (state + m.deltaBits) >> 16
	w.add(uint64(state&(1<<bits-1)), uint(bits))
	return uint32(t.states[int32(state>>bits)+m.deltaState])
}

// normalize sets t.norm from the frequencies of symbols, of which at least two are not 0 and total is the sum. It
// distributes the 1<<t.log slots so that the symbols take as few bits as they can.
func (t *fseTable) normalize(counts []uint32, total uint32) {
	size := 1 << t.log
	rest := size
	t.symbols = 0
	for s, c := range counts {
		t.norm[s] = 0
		if c == 0 {
			continue
		}
		t.symbols = s + 1
		n := max(1, int((uint64(c)<<t.log+uint64(total)/2)/uint64(total)))
		t.norm[s] = int16(n)
		rest -= n
	}
	// a symbol that occurs c times gains about c/(n+1/2) by a slot besides its n
	for ; rest > 0; rest-- { // one more where it gains most
		best := 0
		for s := range counts {
			if uint64(counts[s])*uint64(2*t.norm[best]+1) > uint64(counts[best])*uint64(2*t.norm[s]+1) {
				best = s
			}
		}
		t.norm[best]++
	}
	for ; rest < 0; rest++ { // one less where it costs least
		best := -1
		for s := range counts {
			if t.norm[s] > 1 && (best < 0 || uint64(counts[s])*uint64(2*t.norm[best]-1) < uint64(counts[best])*uint64(2*t.norm[s]-1)) {
				best = s
			}
		}
		t.norm[best]--
	}
}

// appendHeader appends the description of t.norm (RFC 8878, 4.1.1).
func (t *fseTable) appendHeader(dst []byte) []byte {
	w := bitWriter{out: dst}
	w.add(uint64(t.log-5), 4)
	rest := int32(1) << t.log
	for s := 0; rest > 0; {
		n := int32(t.norm[s])
		s++
		// values up to rest+1 are possible; the lowest are short by a bit
		bits := highBit(uint32(rest+1)) + 1
		short := int32(1)<<bits - 2 - rest
		switch v := n + 1; {
		case v < short:
			w.add(uint64(v), bits-1)
		case v < 1<<(bits-1):
			w.add(uint64(v), bits)
		default:
			w.add(uint64(v+short), bits)
		}
		rest -= max(n, -n)
		if n != 0 {
			continue
		}
		zeros := 0
		for t.norm[s] == 0 {
			s++
			zeros++
		}
		for ; zeros >= 3; zeros -= 3 {
			w.add(3, 2)
		}
		w.add(uint64(zeros), 2)
	}
	return w.pad()
}

// bits returns the cost, in 1/256 bit, of symbols with the given counts; ok is false if t cannot encode one
// of them.
func (t *fseTable) bits(counts []uint32) (cost uint64, ok bool) {
	for s, c := range counts {
		if c == 0 {
			continue
		}
		if s >= t.symbols || t.norm[s] == 0 {
			return 0, false
		}
		n := uint32(max(t.norm[s], -t.norm[s]))
		cost += uint64(c) * uint64(uint32(t.log)<<8-log2(n))
	}
	return cost, true
}

// entropy returns the minimum cost, in 1/256 bit, of symbols with the given frequencies.
func entropy(counts []uint32, total uint32) (cost uint64) {
	all := log2(total)
	for _, c := range counts {
		if c > 0 {
			cost += uint64(c) * uint64(all-min(all, log2(c)))
		}
	}
	return cost
}
