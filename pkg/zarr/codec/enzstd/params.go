package enzstd

import "math/bits"

// params holds the settings of a level for frames of some size.
type params struct {
	find        finder
	log         uint // of the entries in the (long) table
	shortLog    uint
	minMatch    uint // bytes that are hashed
	attempts    int  // candidates that are compared
	depth       int  // positions behind a match at which a better one is looked for
	step        int  // of the fast finder
	window      int
	words       bool // findWords is tried where search finds nothing
	rawLiterals bool
}

type finder uint8

const (
	fast finder = iota
	double
	lazy
)

var levels = [...]params{
	1: {find: fast, log: 14, minMatch: 7, step: 1, window: 1 << 19},
	2: {find: fast, log: 16, minMatch: 6, step: 1, window: 1 << 20},
	3: {find: double, log: 17, shortLog: 16, minMatch: 5, window: 1 << 21},
	4: {find: double, log: 18, shortLog: 18, minMatch: 5, window: 1 << 21},
	5: {find: lazy, log: 19, minMatch: 5, attempts: 8, depth: 0, window: 1 << 21},
	6: {find: lazy, log: 19, minMatch: 5, attempts: 8, depth: 1, window: 1 << 21},
	7: {find: lazy, log: 20, minMatch: 5, attempts: 16, depth: 1, window: 1 << 21},
	8: {find: lazy, log: 20, minMatch: 5, attempts: 16, depth: 2, window: 1 << 21},
	9: {find: lazy, log: 21, minMatch: 5, attempts: 16, depth: 2, window: 1 << 22},
}

// choose returns the settings of a level for n bytes.
func choose(level, n int) params {
	if level == 0 {
		level = 3
	}
	if level == 4 && n <= 256<<10 {
		level = 5
	}
	p := levels[max(1, min(level, len(levels)-1))]
	if level < 0 {
		p.minMatch, p.step, p.rawLiterals = 6, 1-level, true
	}
	size := uint(bits.Len(uint(max(n, 1<<9))))
	p.log, p.shortLog = min(p.log, size), min(p.shortLog, size)
	if n <= 128<<10 {
		p.minMatch--
	}
	if n <= 256<<10 && p.find == double {
		p.minMatch = 4
	}
	p.minMatch = max(p.minMatch, 4)
	p.words = level >= 2
	return p
}
