package enzstd

// hash returns log bits of a hash of the first bytes of v.
func hash(v uint64, bytes, log uint) uint64 {
	return v << ((64 - 8*bytes) & 63) * 0x9fb21c651e98df25 >> (64 - log&63)
}

// emit adds a sequence: the literals from anchor to i, then a match of n bytes from distance back.
func (e *Encoder) emit(src []byte, anchor, i, n, distance int) {
	const most = 16 // literals that are copied without asking how many
	k, lits := i-anchor, e.lits
	if k <= most && anchor+most <= len(src) && len(lits)+most <= cap(lits) {
		*(*[most]byte)(lits[len(lits) : len(lits)+most]) = [most]byte(src[anchor : anchor+most])
		e.lits = lits[:len(lits)+k]
	} else {
		e.lits = append(lits, src[anchor:i]...)
	}
	e.seqs = append(e.seqs, sequence{uint32(k), uint32(n), uint32(distance)})
}

// clear forgets all positions.
func (e *Encoder) clear() {
	clear(e.table)
	clear(e.short)
	clear(e.tags)
	clear(e.words)
	clear(e.sparse)
}

// sized returns a table of n entries, from *t if that is enough.
func sized[T any](t *[]T, n int) []T {
	if cap(*t) < n {
		*t = make([]T, n)
	}
	*t = (*t)[:n]
	return *t
}

// resize makes the tables that the settings need.
func (e *Encoder) resize() {
	p := &e.params
	sized(&e.table, 1<<p.log)
	switch p.find {
	case double:
		sized(&e.short, 1<<p.shortLog)
	case lazy:
		sized(&e.tags, 1<<p.log)
		sized(&e.heads, 1<<(p.log-rowLog))
	}
}
