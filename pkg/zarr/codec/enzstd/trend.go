package enzstd

import "math"

// A Trend remembers, from block to block, which match finder works best. Every few blocks it has the
// beginning of a block encoded with all finders and keeps the best for the following ones, until results
// differ from the expectation. The zero value is ready for a new frame.
type Trend struct {
	Bytes bool // elements are single bytes: there are no words to look for

	blocks int // until the next review
	how    manner
	noise  int // bits of a byte coded by its frequency, in 256ths, at the last review
}

// manner is a way of finding matches.
type manner uint8

const (
	searching manner = iota // by the level's finder
	words4                  // by findWords
	words8
	quiet // by findSparse: hardly anything repeats
)

const (
	reviewEvery  = 8        // blocks
	searchTrial  = 16 << 10 // bytes
	wordsTrial   = 8 << 10  // words
	wordsGlimpse = 1 << 10

	// Sizes are in thousandths of the size without matches, where bytes are coded by their frequencies alone.
	worthwhile = 970  // a block is searched if that leaves less
	slower     = 1050 // words are found so much faster than other matches that they may take a twentieth more

	// Estimates of the bits of a sequence without those of its distance, in 256ths.
	searchBits = 6 * 256
	wordsBits  = 3 * 256 // of one word without literals
)

// find fills e.seqs and e.lits for the block from at to end.
func (e *Encoder) find(t *Trend, src []byte, at, end int) {
	e.seqs, e.lits = e.seqs[:0], e.buffer[:0]
	anchor, i := at, at
	if t.blocks == 0 && end-at > searchTrial && !e.params.rawLiterals {
		t.blocks = reviewEvery
		anchor, i = e.review(t, src, at, end)
		if t.how == searching && e.unprimed > 0 {
			e.primeSearch(src, end)
		}
	}
	t.blocks = max(0, t.blocks-1)
	switch t.how {
	case words4, words8:
		anchor = e.findWords(src, anchor, i, end, t.how.size())
		if len(e.lits)+end-anchor > (end-at)/4 {
			t.blocks = 0
		}
	case quiet:
		found := len(e.seqs)
		if anchor = e.findSparse(src, anchor, i, end); len(e.seqs) > found {
			t.blocks = 0
		}
	default:
		anchor = e.search(src, anchor, i, end)
		if t.noise > 0 && e.estimate(t.noise*(end-at), src[anchor:end], attempt{}) > (1000+worthwhile)/2 {
			t.blocks = 0
		}
	}
	if len(e.seqs) == 0 {
		e.lits = src[at:end]
		return
	}
	e.lits = append(e.lits, src[anchor:end]...)
}

// review encodes the beginning of the block from at to end with all finders, keeps the best and records it in
// t. It returns the position of the literals behind the last match and the next position.
func (e *Encoder) review(t *Trend, src []byte, at, end int) (anchor, i int) {
	best := attempt{how: quiet, size: worthwhile, anchor: at, i: at}
	a := attempt{how: searching, i: at + searchTrial}
	a.anchor = e.search(src, at, at, a.i)
	all := coded(src[at:a.i])
	t.noise = all / (a.i - at)
	e.end(&a, all, src[a.anchor:a.i])
	if a.size < best.size {
		best = a
		best.size = best.size * slower / 1000
	}
	if !t.Bytes && (e.params.words || best.how == searching) {
		for _, how := range [...]manner{words4, words8} {
			if a := e.tryWords(how, src, at, end); a.size < best.size {
				best = a
			}
		}
	}
	t.how = best.how
	e.seqs = append(e.seqs[:0], e.seqs[best.seqs:best.seqsEnd]...)
	e.lits = append(e.lits[:0], e.lits[best.lits:best.litsEnd]...)
	return best.anchor, best.i
}

// An attempt is the beginning of a block encoded in one way. Its sequences and literals are parts of Encoder.seqs and
// Encoder.lits.
type attempt struct {
	how           manner
	size          int // in thousandths of that without matches
	anchor, i     int
	seqs, seqsEnd int
	lits, litsEnd int
}

// end closes the attempt a, whose last literals are rest, and estimates its size. all is the size without matches.
func (e *Encoder) end(a *attempt, all int, rest []byte) {
	a.size = e.estimate(all, rest, *a)
	a.seqsEnd, a.litsEnd = len(e.seqs), len(e.lits)
}

// tryWords encodes the beginning of the block from at to end by findWords, unless that finds next to nothing at once.
func (e *Encoder) tryWords(how manner, src []byte, at, end int) attempt {
	size := how.size()
	a := attempt{how: how, i: min(at+wordsGlimpse*size, end), seqs: len(e.seqs), lits: len(e.lits)}
	a.anchor = e.findWords(src, at, at, a.i, size)
	if len(e.lits)-a.lits+a.i-a.anchor > (a.i-at)*31/32 {
		a.size = math.MaxInt
		return a
	}
	glimpse := a.i
	a.i = min(at+wordsTrial*size, end)
	a.anchor = e.findWords(src, a.anchor, glimpse, a.i, size)
	e.end(&a, coded(src[at:a.i]), src[a.anchor:a.i])
	return a
}

// size returns the length of words.
func (m manner) size() int {
	if m == words8 {
		return 8
	}
	return 4
}

// coded returns the size of all slices together when bytes are coded by their frequencies, in 256ths of a bit. In a
// Huffman code none takes less than one bit.
func coded(slices ...[]byte) int {
	var (
		c      [4][256]uint32
		counts [256]uint32
		n      int
	)
	for _, s := range slices {
		add(&c, s)
		n += len(s)
	}
	if n == 0 {
		return 0
	}
	sum(&counts, &c)
	const bit = 256
	size, all := uint64(0), log2(uint32(n))
	for _, c := range counts {
		if c > 0 {
			size += uint64(c) * uint64(max(bit, all-min(all, log2(c))))
		}
	}
	return int(size)
}

// estimate returns the size of the sequences and literals since the beginning of a, and of the literals rest, in
// thousandths of all.
func (e *Encoder) estimate(all int, rest []byte, a attempt) int {
	if all == 0 {
		return 0
	}
	word := uint32(0)
	if a.how != searching {
		word = uint32(a.how.size())
	}
	bits := coded(e.lits[a.lits:], rest)
	for _, s := range e.seqs[a.seqs:] {
		each := searchBits
		if s.length == word && s.literals == 0 {
			each = wordsBits
		}
		bits += int(log2(s.offset)) + each
	}
	return bits * 1000 / all
}

// search finds matches from i to end by the level's finder.
func (e *Encoder) search(src []byte, anchor, i, end int) int {
	switch e.params.find {
	case fast:
		return e.findFast(src, anchor, i, end)
	case double:
		return e.findDouble(src, anchor, i, end)
	}
	return e.findLazy(src, anchor, i, end)
}
