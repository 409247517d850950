package inflate

import "math/bits"

// Huffman decoding tables.
//
// A code word is looked up by the next bits of the stream, first bit lowest. The primary table is indexed by the next
// litBits or distBits bits; a longer code word leads to a subtable, indexed by the bits after those. Every entry is
// self-contained, so that one load says everything about a symbol:
//
//	bits 0…5    bits to drop from the stream: the code word, and with it the extra bits of a length or distance
//	bit  7      match: length and distance in one entry
//	bits 8…11   bits of the code word alone: shifting the stream right by these gives the extra bits
//	bit  14     exception: bit 12 with it is a link to a subtable, bit 13 the end of a block,
//	            neither a code without meaning
//	bit  15     literal
//	bits 16…31  literal: the byte; length: the base; link: index of the subtable;
//	            distance: the symbol in bits 24…28; match: that, and length-3 in bits 16…23
//
// A link has the primary bits in bits 0…5 and the bits that index the subtable in bits 8…11.
const (
	litBits  = 11
	distBits = 9

	maxCodeLen = 15

	entryBits     = 0x3f // mask of the number of bits to drop
	entryMatch    = 1 << 7
	entryExcept   = 1 << 14
	entryLiteral  = 1 << 15
	entryValue    = 16 // shift of the value
	entryLink     = entryExcept | 1<<12
	entryEnd      = entryExcept | 1<<13
	entryUnused   = entryExcept
	entrySymbol   = 24 // shift of the distance symbol of a match
	entryWord     = 8  // shift of the bits of the code word
	entryWordMask = 63 // mask after that shift: what a shift count keeps anyway; bits 12 and 13 are 0 where it is used
)

// A complete code with a subtable of 2^k entries needs at least k+1 code words in it, and codes with fewer words are
// only allowed where they need no subtable. So all subtables together take at most symbols/(k+1)·2^k entries with the
// largest k there is: 288/5·16 behind 11 primary bits, 32/7·64 behind 9.
const (
	litEntries  = 1<<litBits + 288/5*16 + 16
	distEntries = 1<<distBits + 32/7*64 + 64
)

type tables struct {
	lit  [litEntries]uint32
	dist [distEntries]uint32
}

// symbols in the order of the code: what a table entry says apart from the code word's length.
var (
	litSymbols             = litSymbolTable()
	distSymbols, distBases = distSymbolTable()
	lenSymbols             = lenSymbolTable()
)

// RFC 1951, 3.2.5: literals, end of block, lengths 3 … 258.
func litSymbolTable() (t [288]uint32) {
	for i := range 256 {
		t[i] = entryLiteral | uint32(i)<<entryValue
	}
	t[256] = entryEnd
	base := uint32(3)
	for i := range uint32(28) {
		extra := max(i/4, 1) - 1
		t[257+i] = base<<entryValue | extra
		base += 1 << extra
	}
	t[285] = 258 << entryValue
	t[286], t[287] = entryUnused, entryUnused
	return t
}

// RFC 1951, 3.2.5: distances 1 … 32768, and the lowest of every symbol.
func distSymbolTable() (t, bases [32]uint32) {
	base := uint32(1)
	for i := range uint32(30) {
		extra := max(i/2, 1) - 1
		t[i] = i<<entrySymbol | extra
		bases[i] = base
		base += 1 << extra
	}
	t[30], t[31] = entryUnused, entryUnused
	return t, bases
}

// RFC 1951, 3.2.7: the alphabet of code lengths.
func lenSymbolTable() (t [19]uint32) {
	for i := range t {
		t[i] = uint32(i) << entryValue
	}
	return t
}

// build fills table for the code in which symbol i has a code word of lens[i] bits (0: none), by the canonical order of
// RFC 1951, 3.2.2. It returns false if the lengths make no prefix code, or one that leaves bit patterns over, apart
// from the exceptions that zlib makes for short: no code word at all, and a single one of 1 bit. The code words go to
// words, first bit lowest.
func build(table []uint32, primary int, lens []uint8, symbols []uint32, short bool, words *[288]uint16) bool {
	var count [maxCodeLen + 1]int
	for _, l := range lens {
		count[l&15]++
	}
	used := len(lens) - count[0]
	left := 1 // unused code words of the current length
	var first [maxCodeLen + 2]int
	longest := 0
	for l := 1; l <= maxCodeLen; l++ {
		left = left<<1 - count[l]
		if left < 0 {
			return false
		}
		first[l+1] = first[l] + count[l]
		if count[l] > 0 {
			longest = l
		}
	}
	if left > 0 {
		if !short || used > 1 || used == 1 && count[1] != 1 {
			return false
		}
		for i := range table[:1<<primary] {
			table[i] = entryUnused | 1 | 1<<entryWord
		}
		for i, l := range lens {
			if l == 1 {
				words[i] = 0
				for j := 0; j < 1<<primary; j += 2 {
					table[j] = symbols[i] + (1 | 1<<entryWord)
				}
			}
		}
		return true
	}
	var sorted [288]uint16
	next := first
	for i, l := range lens {
		if l != 0 {
			sorted[next[l&15]] = uint16(i)
			next[l&15]++
		}
	}

	// Code words of up to primary bits. The table grows with the length: what is settled so far holds for any next bit.
	word := 0 // bit-reversed
	k := 0
	for l := 1; l <= primary; l++ {
		for range count[l] {
			s := sorted[k]
			table[word] = symbols[s] + uint32(l|l<<entryWord)
			words[s] = uint16(word)
			k++
			word = nextWord(word, l)
		}
		if l < primary {
			copy(table[1<<l:2<<l], table[:1<<l])
		}
	}
	if longest <= primary {
		return true
	}

	// Longer code words: those that share their first bits follow each other.
	end := 1 << primary // of the entries in use
	prefix, sub, subBits := -1, 0, 0
	for l := primary + 1; l <= longest; l++ {
		for n := count[l]; n > 0; n-- {
			if p := word & (1<<primary - 1); p != prefix {
				prefix, sub, subBits = p, end, l-primary
				for room := 1<<subBits - n; room > 0 && primary+subBits < longest; {
					subBits++
					room = room<<1 - count[primary+subBits]
				}
				end += 1 << subBits
				table[p] = entryLink | uint32(sub)<<entryValue | uint32(subBits)<<entryWord | uint32(primary)
			}
			words[sorted[k]] = uint16(word)
			e := symbols[sorted[k]] + uint32((l-primary)|(l-primary)<<entryWord)
			for j := word >> primary; j < 1<<subBits; j += 1 << (l - primary) {
				table[sub+j] = e
			}
			k++
			word = nextWord(word, l)
		}
	}
	return true
}

// joinMatches replaces the entries of lengths by entries of whole matches, wherever the length with its extra bits and
// the code word of the distance fit into the index together. In image data most of them do, and a match takes one step
// of the chain load, shift, mask instead of two. lens and words are those that the literal and length code was built
// from and with.
func (t *tables) joinMatches(lens []uint8, words *[288]uint16) {
	for s := 257; s < min(len(lens), 286); s++ {
		word, extra := uint32(lens[s]), litSymbols[s]&entryBits
		used := word + extra
		if word == 0 || used >= litBits {
			continue
		}
		rest := litBits - used
		for x := range uint32(1) << extra {
			first := uint32(words[s]) | x<<word
			length := litSymbols[s]>>entryValue + x
			e := entryMatch | used | used<<entryWord | (length-3)<<entryValue
			for h := range uint32(1) << rest {
				// Not an exception, and a code word of at most rest bits.
				f := t.dist[h&(1<<distBits-1)]
				p := &t.lit[(first|h<<used)&(1<<litBits-1)]
				v := *p
				if f&(entryExcept|15<<entryWord) <= rest<<entryWord {
					v = e + f
				}
				*p = v
			}
		}
	}
}

// nextWord increments a code word of l bits whose first bit is the lowest.
func nextWord(word, l int) int {
	zeros := word ^ (1<<l - 1)
	if zeros == 0 {
		return word
	}
	top := 1 << (bits.Len(uint(zeros)) - 1)
	return word&(top-1) | top
}
