package enzstd

// A Trend remembers, from block to block, how matches are found best. The zero value knows nothing.
type Trend struct {
	blocks int // until the next review
	how    manner
	noise  int // bits that a byte takes when it is coded by its frequency, in 256ths, at the last review
}

type manner uint8

const (
	searching manner = iota // by the level's finder
	words                   // by findWords
	quiet                   // by findSparse: hardly anything repeats
)

const (
	reviewEvery  = 8 // blocks
	searchTrial  = 16 << 10
	wordsTrial   = 32 << 10
	wordsGlimpse = 4 << 10

	least = 30 // thousandths that matches have to gain

	// bits that a sequence takes besides those of its distance, about, in 256ths
	searchBits = 6 * 256
	wordsBits  = 3 * 256 // no literals, and all of one length
)

// find fills e.seqs and e.lits for the block from at to end.
func (e *Encoder) find(t *Trend, src []byte, at, end int) {
	e.seqs, e.lits = e.seqs[:0], e.buffer[:0]
	anchor, i := at, at
	if t.blocks == 0 && end-at > searchTrial && !e.params.rawLiterals {
		t.blocks = reviewEvery
		anchor, i = e.review(t, src, at, end)
	}
	t.blocks = max(0, t.blocks-1)
	switch t.how {
	case words:
		anchor = e.findWords(src, anchor, i, end)
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
		if t.noise > 0 && gain(t.noise, end-at, e.seqs, searchBits) < least/2 {
			t.blocks = 0
		}
	}
	if len(e.seqs) == 0 {
		e.lits = src[at:end]
		return
	}
	e.lits = append(e.lits, src[anchor:end]...)
}

// review encodes the beginning of the block from at to end by findWords and by the level's finder, and decides for one of them, or for
// neither. It returns how far that has come, in the finders' words.
func (e *Encoder) review(t *Trend, src []byte, at, end int) (anchor, i int) {
	byWords, anchor, i := e.tryWords(src, at, end)
	seqs, lits := len(e.seqs), len(e.lits)
	to := at + searchTrial
	other := e.search(src, at, at, to)
	t.noise = perByte(src[at:to])
	bySearch := gain(t.noise, to-at, e.seqs[seqs:], searchBits)
	t.how = quiet
	switch {
	case max(byWords, bySearch) < least:
		e.seqs, e.lits = e.seqs[:0], e.lits[:0]
		return at, at
	case byWords >= bySearch:
		t.how = words
		e.seqs, e.lits = e.seqs[:seqs], e.lits[:lits]
		return anchor, i
	}
	t.how = searching
	e.seqs = append(e.seqs[:0], e.seqs[seqs:]...)
	e.lits = append(e.lits[:0], e.lits[lits:]...)
	return other, to
}

// tryWords encodes the beginning of a block by findWords, unless that finds nothing at once, and returns what is gained and how far it
// has come.
func (e *Encoder) tryWords(src []byte, at, end int) (gained, anchor, i int) {
	if !e.params.words {
		return 0, at, at
	}
	i = at + wordsGlimpse
	if anchor = e.findWords(src, at, at, i); len(e.lits)+i-anchor > wordsGlimpse*31/32 {
		return 0, anchor, i
	}
	to := min(at+wordsTrial, end)
	anchor = e.findWords(src, anchor, i, to)
	return gain(perByte(src[at:to]), to-at, e.seqs, wordsBits), anchor, to
}

// perByte returns how many bits a byte of src takes when it is coded by its frequency, in 256ths.
func perByte(src []byte) int {
	var counts [256]uint32
	histogram(&counts, src)
	return int(entropy(counts[:], uint32(len(src)))) / len(src)
}

// gain returns what sequences save, in thousandths, of the bits that n bytes take at noise 256ths each, if each takes
// so many besides those of its distance.
func gain(noise, n int, seqs []sequence, each int) int {
	matched, bits := 0, 0
	for _, s := range seqs {
		matched += int(s.length)
		bits += int(log2(s.offset)) + each
	}
	if noise == 0 {
		return 0
	}
	return (noise*matched - bits) * 1000 / (noise * n)
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
