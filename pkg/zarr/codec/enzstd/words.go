package enzstd

import "strata/pkg/zarr/codec/internal/match"

// Measurements that are quantized and then stored in a wider type, such as 12 bits in float32, repeat whole words of 4
// or 8 bytes, hardly ever two in a row, and nothing else. Then only the last occurrence of each word has to be known.
// Looking for that alone is faster than a search at each byte, and makes smaller files, because short matches are worth
// their while when they are near.

const wordsLog = 15 // of entries

// findWords matches words of size bytes, 4 or 8, with the last equal one, from position i to end. It returns
// the position of the literals behind the last match.
func (e *Encoder) findWords(src []byte, anchor, i, end, size int) int {
	table, base := (*[1 << wordsLog]uint32)(sized(&e.words, 1<<wordsLog)), e.base
	low := max(0, end-e.params.window)
	mask := ^uint64(0) >> (64 - 8*size)
	for i = (i + size - 1) &^ (size - 1); i+8 <= end; {
		v := match.Load64(src, i)
		h := hash(v, uint(size), wordsLog)
		c := int(table[h]) - base
		table[h] = uint32(i + base)
		if uint(c-low) >= uint(i-low) { // in trials, positions behind i may be there
			i += size
			continue
		}
		n := size
		if x := v ^ match.Load64(src, c); x == 0 {
			n = (8 + match.Length(src, i+8, c+8, end)) &^ (size - 1)
		} else if x&mask != 0 {
			i += size
			continue
		}
		if i > anchor {
			e.lits = append(e.lits, src[anchor:i]...)
		}
		e.seqs = append(e.seqs, sequence{uint32(i - anchor), uint32(n), uint32(i - c)})
		i += n
		anchor = i
	}
	return anchor
}
