package enzstd

import "bytes"

const (
	blockMax = 128 << 10 // most bytes that a block decodes to (RFC 8878, 3.1.1.2.4)

	// fourStreams is the number of literals from which they are written in four streams, which decoders read at the
	// same time.
	fourStreams = 256
)

// Kinds of blocks, and of literals.
const (
	blockRaw = iota
	blockRLE
	blockCompressed

	literalsRaw        = 0
	literalsRLE        = 1
	literalsCompressed = 2
	literalsTreeless   = 3 // with the last block's code
)

// appendBlock appends the block that decodes to src, from sequences and literals already found, to dst.
func (e *Encoder) appendBlock(dst, src []byte, last bool) []byte {
	if len(src) > 0 && bytes.Equal(src[1:], src[:len(src)-1]) {
		return append(appendBlockHeader(dst, blockRLE, len(src), last), src[0])
	}
	repeats := e.repeats
	farthest := e.sequencer.code(e.seqs, &repeats)
	body := dst[len(dst):cap(dst)]
	if len(body) < 2*blockMax {
		if e.out == nil {
			e.out = make([]byte, 2*blockMax)
		}
		body = e.out
	}
	body, ok := e.appendLiterals(body[:3], len(e.seqs))
	if ok = ok && len(body) < len(src); ok {
		body, ok = e.sequencer.appendSection(body, e.seqs)
	}
	n := len(body) - 3
	if !ok || n > len(src)-minGain(len(src)) {
		return append(appendBlockHeader(dst, blockRaw, len(src), last), src...)
	}
	e.repeats, e.farthest = repeats, max(e.farthest, int(farthest))
	if len(e.seqs) > 0 {
		e.sequencer.keep()
	}
	e.huff.keep()
	appendBlockHeader(body[:0], blockCompressed, n, last)
	return append(dst, body...) // in place, if it is
}

// minGain returns how many of n bytes compression must save to be worth decoding.
func minGain(n int) int { return n>>6 + 2 }

func appendBlockHeader(dst []byte, kind, size int, last bool) []byte {
	h := kind<<1 | size<<3
	if last {
		h |= 1
	}
	return append(dst, byte(h), byte(h>>8), byte(h>>16))
}

// literalCoder writes the literals of one block after the other.
type literalCoder struct {
	tables     [2]huffTable
	last, used *huffTable // of the last compressed block that had one, and of the block at hand
	room       [512]byte  // for the description of a table
}

func (c *literalCoder) keep() { c.last = c.used }

// appendLiterals appends the literals section.
func (e *Encoder) appendLiterals(dst []byte, sequences int) ([]byte, bool) {
	lits, c := e.lits, &e.huff
	c.used = c.last
	if len(lits) < 32 || e.params.rawLiterals && sequences > 0 {
		return appendRawLiterals(dst, lits), true
	}
	if e.params.rawLiterals {
		return dst, false
	}
	var counts [256]uint32
	frequencies(&counts, lits)
	most, symbols := uint32(0), 0
	for _, n := range counts {
		most = max(most, n)
		if n > 0 {
			symbols++
		}
	}
	if symbols == 1 {
		return append(appendLiteralsHeader(dst, literalsRLE, len(lits), 0), lits[0]), true
	}
	if most <= uint32(len(lits)>>7)+4 { // next to random
		return appendRawLiterals(dst, lits), true
	}
	return c.appendCompressed(dst, lits, &counts)
}

// appendCompressed appends literals with the given frequencies in the best available code, or raw if there is
// none.
func (c *literalCoder) appendCompressed(dst, lits []byte, counts *[256]uint32) ([]byte, bool) {
	fresh := &c.tables[0]
	if c.last == fresh {
		fresh = &c.tables[1]
	}
	fresh.build(counts)
	header, ok := fresh.appendHeader(c.room[:0])
	kind, best := literalsCompressed, len(lits)
	if ok {
		n, _ := fresh.size(counts)
		best = n + len(header)
	}
	t := fresh
	if c.last != nil {
		if n, ok := c.last.size(counts); ok && n <= best {
			kind, best, t, header = literalsTreeless, n, c.last, nil
		}
	}
	if best >= len(lits)-minGain(len(lits)) {
		return appendRawLiterals(dst, lits), true
	}
	start := len(dst)
	dst = appendLiteralsHeader(dst, kind, len(lits), 0)
	body := len(dst)
	dst = append(dst, header...)
	if len(lits) < fourStreams {
		dst = t.appendStream(dst, lits)
	} else {
		dst = t.appendFour(dst, lits)
	}
	if len(dst)-body >= len(lits) {
		return appendRawLiterals(dst[:start], lits), true
	}
	appendLiteralsHeader(dst[:start], kind, len(lits), len(dst)-body)
	c.used = t
	return dst, true
}

func appendRawLiterals(dst, lits []byte) []byte {
	return append(appendLiteralsHeader(dst, literalsRaw, len(lits), 0), lits...)
}

// appendLiteralsHeader appends the header of a literals section of size literals, whose encoded form has coded bytes if
// there is one. Its length does not depend on that.
func appendLiteralsHeader(dst []byte, kind, size, coded int) []byte {
	if kind < literalsCompressed {
		switch {
		case size < 1<<5:
			return append(dst, byte(kind|size<<3))
		case size < 1<<12:
			return append(dst, byte(kind|1<<2|size<<4), byte(size>>4))
		}
		return append(dst, byte(kind|3<<2|size<<4), byte(size>>4), byte(size>>12))
	}
	switch {
	case size < fourStreams:
		h := kind | size<<4 | coded<<14
		return append(dst, byte(h), byte(h>>8), byte(h>>16))
	case size < 1<<10:
		h := kind | 1<<2 | size<<4 | coded<<14
		return append(dst, byte(h), byte(h>>8), byte(h>>16))
	case size < 1<<14:
		h := kind | 2<<2 | size<<4 | coded<<18
		return append(dst, byte(h), byte(h>>8), byte(h>>16), byte(h>>24))
	}
	h := uint64(kind|3<<2) | uint64(size)<<4 | uint64(coded)<<22
	return append(dst, byte(h), byte(h>>8), byte(h>>16), byte(h>>24), byte(h>>32))
}
