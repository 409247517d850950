package enzstd

import (
	"encoding/binary"
	"math/bits"
)

// Positions are kept in rows of 16, the newest instead of the oldest, with a tag of each: 8 more bits of the hash, of which all 16
// are compared at once.
const (
	rowLog  = 4
	rowSize = 1 << rowLog
)

// insert adds position i.
func (e *Encoder) insert(src []byte, i int) {
	h := hash(load64(src, i), e.params.minMatch, e.params.log-rowLog+8)
	row := int(h >> 8)
	head := (e.heads[row] - 1) & (rowSize - 1)
	e.heads[row] = head
	at := row<<rowLog | int(head)
	e.tags[at] = uint8(h)
	e.table[at] = uint32(i + e.base)
}

// catchUp adds the positions before i that are not there yet, of many some at either end.
func (e *Encoder) catchUp(src []byte, i int) {
	const most, first, last = 384, 96, 32
	if i-e.inserted > most {
		for end := e.inserted + first; e.inserted < end; e.inserted++ {
			e.insert(src, e.inserted)
		}
		e.inserted = i - last
	}
	for ; e.inserted < i; e.inserted++ {
		e.insert(src, e.inserted)
	}
}

// longest returns the longest match of more than n bytes at i, the nearest of them; n if there is none.
func (e *Encoder) longest(src []byte, i, low, end, n int) (length, distance int) {
	v := load64(src, i)
	h := hash(v, e.params.minMatch, e.params.log-rowLog+8)
	row := int(h >> 8)
	at := row << rowLog
	tags, places := e.tags[at:at+rowSize], e.table[at:at+rowSize]
	head := e.heads[row]
	mask := equalBytes(binary.LittleEndian.Uint64(tags), uint8(h)) | equalBytes(binary.LittleEndian.Uint64(tags[8:]), uint8(h))<<8
	mask = (mask>>head | mask<<(rowSize-head)) & (1<<rowSize - 1) // the newest first
	for k := e.params.attempts; mask != 0 && k > 0; k-- {
		j := (bits.TrailingZeros32(mask) + int(head)) & (rowSize - 1)
		mask &= mask - 1
		c := int(places[j]) - e.base
		if c < low {
			break
		}
		if i+n+1 > end || load32(src, c+n-3) != load32(src, i+n-3) {
			continue
		}
		if m := matching(src, i, c, end); m > n {
			n, distance = m, i-c
		}
	}
	return n, distance
}

// equalBytes returns which of the 8 bytes of v are b, as bits; above the first, there may be others.
func equalBytes(v uint64, b uint8) uint32 {
	const ones = 0x0101010101010101
	v ^= uint64(b) * ones
	v = (v - ones) & ^v & (ones << 7)
	return uint32(v >> 7 * 0x0102040810204080 >> 56)
}

// findLazy compares several candidates for each position, and looks p.depth positions further for a better match. Positions from i
// to end are looked at; the literals behind the last match begin at anchor before and at the returned position after.
func (e *Encoder) findLazy(src []byte, anchor, i, end int) int {
	p := &e.params
	low := max(0, end-p.window)
	last := end - 9
	r0, r1 := e.recent[0], e.recent[1]
	for i = max(i, 1); i <= last; {
		n, d, start := 0, 0, i
		if r0 <= i+1-low && load32(src, i+1) == load32(src, i+1-r0) {
			n, d, start = 4+matching(src, i+5, i+5-r0, end), r0, i+1
		}
		if n == 0 || p.depth > 0 {
			e.catchUp(src, i)
			if m, found := e.longest(src, i, low, end, 3); m > max(n, 3) {
				n, d, start = m, found, i
			}
		}
		if n < 4 {
			step := 1 + (i-anchor)>>8
			i += step
			if step > 8 { // hardly anything is found here: not all of it has to be remembered
				e.inserted = i
			}
			continue
		}
		for depth := 0; depth < p.depth && i < last; {
			i++
			depth++
			if r0 <= i-low && d != r0 && load32(src, i) == load32(src, i-r0) {
				m := 4 + matching(src, i+4, i+4-r0, end)
				if 3*m > 3*n-int(highBit(uint32(d+3)))+depth {
					n, d, start = m, r0, i
				}
			}
			e.catchUp(src, i)
			m, found := e.longest(src, i, low, end, 3)
			if m > 3 && 4*m-int(highBit(uint32(found+3))) > 4*n-cost(d, r0)+1+3*depth {
				n, d, start = m, found, i
				depth = 0
			}
		}
		if d != r0 {
			for start > anchor && start-d > low && src[start-1] == src[start-d-1] {
				start--
				n++
			}
			r0, r1 = d, r0
		}
		e.emit(src, anchor, start, n, d)
		i = start + n
		anchor = i
		for i <= last && r1 <= i-low && load32(src, i) == load32(src, i-r1) {
			n := 4 + matching(src, i+4, i+4-r1, end)
			r0, r1 = r1, r0
			e.emit(src, i, i, n, r0)
			i += n
			anchor = i
		}
	}
	e.recent = [2]int{r0, r1}
	return anchor
}

// cost returns the bits of a distance, about.
func cost(d, r0 int) int {
	if d == r0 {
		return 0
	}
	return int(highBit(uint32(d + 3)))
}
