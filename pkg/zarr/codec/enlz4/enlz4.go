// Package enlz4 compresses to the LZ4 block format (doc/lz4_Block_format.md of the lz4 project). It makes one
// pass with one match candidate per position and skips more positions the longer it finds no match.
package enlz4

import (
	"encoding/binary"

	"strata/pkg/zarr/codec/internal/match"
)

const (
	tableLog    = 12 // 4096 positions of 4 bytes: half of a first-level cache
	minMatch    = 4
	window      = 1<<16 - 1
	lastLits    = 5  // a block ends with literals, at least so many
	lastMatch   = 12 // no match begins nearer to the end
	patience    = 6  // log of the positions that are looked at until the steps grow
	runInToken  = 15 // lengths from here on continue behind the token
	copyAtLeast = 16 // literals that are copied without asking how many
)

// An Encoder compresses blocks with a reusable table of positions. Its zero value is ready; it serves one
// goroutine at a time.
type Encoder struct {
	table [1 << tableLog]uint32
}

// Bound returns the most bytes that n bytes are encoded to.
func Bound(n int) int { return n + n/255 + 16 }

// Encode compresses src, which must be shorter than 2 GiB, to dst and returns the length, or 0 if dst is too
// short; [Bound] bytes always suffice. Acceleration starts at 1; each step skips more positions: faster and
// larger, as in LZ4_compress_fast.
func (e *Encoder) Encode(dst, src []byte, acceleration int) int {
	clear(e.table[:])
	w := writer{dst: dst, src: src}
	slowness := max(1, min(acceleration, 1<<16)) << patience
	end := len(src) - lastLits
	for i := 1; ; {
		// the next position with a match
		var c int
		for tried := slowness; ; tried++ {
			if i > len(src)-lastMatch {
				return w.rest()
			}
			v := match.Load64(src, i)
			at := &e.table[hash(v)]
			c = int(*at)
			*at = uint32(i)
			if uint32(v) == match.Load32(src, c) && i-c <= window {
				break
			}
			i += tried >> patience
		}
		for i > w.anchor && c > 0 && src[i-1] == src[c-1] {
			i--
			c--
		}
		// that match, and those that follow it at once
		for {
			n := minMatch + match.Length(src, i+minMatch, c+minMatch, end)
			if !w.sequence(i, n, i-c) {
				return 0
			}
			if i += n; i > len(src)-lastMatch {
				return w.rest()
			}
			e.table[hash(match.Load64(src, i-2))] = uint32(i - 2)
			v := match.Load64(src, i)
			at := &e.table[hash(v)]
			c = int(*at)
			*at = uint32(i)
			if uint32(v) != match.Load32(src, c) || i-c > window {
				break
			}
		}
		i++
	}
}

// writer writes sequences.
type writer struct {
	dst, src []byte
	n        int // bytes of dst
	anchor   int // the first byte of src that is not written
}

// sequence writes the literals up to i and a match there of n bytes from distance back; false: dst is too short.
func (w *writer) sequence(i, n, distance int) bool {
	literals, match := i-w.anchor, n-minMatch
	at, dst := w.n, w.dst
	if at+1+literals+literals/255+1+2+match/255+1 > len(dst) {
		return false
	}
	token := at
	at++
	dst[token] = byte(min(literals, runInToken)<<4 | min(match, runInToken))
	if literals <= copyAtLeast-2 && at+copyAtLeast <= len(dst) && w.anchor+copyAtLeast <= len(w.src) {
		*(*[copyAtLeast]byte)(dst[at:]) = [copyAtLeast]byte(w.src[w.anchor:])
		at += literals
	} else {
		at = run(dst, at, literals)
		at += copy(dst[at:], w.src[w.anchor:i])
	}
	binary.LittleEndian.PutUint16(dst[at:], uint16(distance))
	w.n = run(dst, at+2, match)
	w.anchor = i + n
	return true
}

// rest writes the remaining bytes as literals and returns the length of the block, or 0 if dst is too short.
func (w *writer) rest() int {
	literals := len(w.src) - w.anchor
	more := 0
	if literals >= runInToken {
		more = (literals-runInToken)/255 + 1
	}
	if w.n+1+more+literals > len(w.dst) {
		return 0
	}
	w.dst[w.n] = byte(min(literals, runInToken) << 4)
	at := run(w.dst, w.n+1, literals)
	return at + copy(w.dst[at:], w.src[w.anchor:])
}

// run writes the part of a length that does not fit into a token.
func run(dst []byte, at, length int) int {
	if length < runInToken {
		return at
	}
	for length -= runInToken; length >= 255; length -= 255 {
		dst[at] = 255
		at++
	}
	dst[at] = byte(length)
	return at + 1
}

// hash returns a hash of the first 5 bytes of v: those that begin with them are likelier to be long matches.
func hash(v uint64) uint64 { return v << 24 * 889523592379 >> (64 - tableLog) }
