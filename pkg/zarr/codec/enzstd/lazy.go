package enzstd

import (
	"encoding/binary"
	"math/bits"

	"strata/pkg/zarr/codec/internal/match"
)

// Positions are kept in rows of 16, the newest instead of the oldest, with a tag of each: 8 more bits of the hash, of
// which all 16 are compared at once.
const (
	rowLog  = 4
	rowSize = 1 << rowLog
)

// row returns the row of a hash, and which of its entries is the newest.
func (e *Encoder) row(h uint64) (places *[rowSize]uint32, tags *[rowSize]uint8, head *uint8) {
	row := int(h >> 8)
	at := row << rowLog
	return (*[rowSize]uint32)(e.table[at:]), (*[rowSize]uint8)(e.tags[at:]), &e.heads[row]
}

// catchUp adds the positions before i that are not there yet, of many some at either end.
func (e *Encoder) catchUp(src []byte, i int) {
	const most, first, last = 384, 96, 32
	k := e.inserted
	e.inserted = i
	if i-k > most {
		e.insert(src, k, k+first)
		k = i - last
	}
	e.insert(src, k, i)
}

// insert adds the positions from i to end.
func (e *Encoder) insert(src []byte, i, end int) {
	bytes, log, base := e.params.minMatch, e.params.log-rowLog+8, e.base
	for ; i < end; i++ {
		h := hash(match.Load64(src, i), bytes, log)
		places, tags, newest := e.row(h)
		head := (*newest - 1) & (rowSize - 1)
		*newest = head
		tags[head] = uint8(h)
		places[head] = uint32(i + base)
	}
}

// longest returns the longest match of more than 3 bytes at i, the nearest of them, and adds i; all before i have been
// added.
func (e *Encoder) longest(src []byte, i, low, end int) (n, distance int) {
	h := hash(match.Load64(src, i), e.params.minMatch, e.params.log-rowLog+8)
	places, tags, newest := e.row(h)
	head := *newest
	mask := equalBytes(binary.LittleEndian.Uint64(tags[:8]), uint8(h)) | equalBytes(binary.LittleEndian.Uint64(tags[8:]), uint8(h))<<8
	mask = (mask>>head | mask<<(rowSize-head)) & (1<<rowSize - 1) // the newest first
	n = 3
	tail := match.Load32(src, i) // of n+1 bytes, the last
	for k := e.params.attempts; mask != 0 && k > 0; k-- {
		c := int(places[(bits.TrailingZeros32(mask)+int(head))&(rowSize-1)]) - e.base
		mask &= mask - 1
		if c < low {
			break
		}
		if match.Load32(src, c+n-3) != tail {
			continue
		}
		if m := match.Length(src, i, c, end); m > n {
			n, distance = m, i-c
			if i+n+1 > end {
				break
			}
			tail = match.Load32(src, i+n-3)
		}
	}
	head = (head - 1) & (rowSize - 1)
	*newest = head
	tags[head] = uint8(h)
	places[head] = uint32(i + e.base)
	e.inserted = i + 1
	return n, distance
}

// equalBytes returns which of the 8 bytes of v are b, as bits; above the first, there may be others.
func equalBytes(v uint64, b uint8) uint32 {
	const ones = 0x0101010101010101
	v ^= uint64(b) * ones
	v = (v - ones) & ^v & (ones << 7)
	return uint32(v >> 7 * 0x0102040810204080 >> 56)
}

// findLazy compares several candidates for each position, and looks p.depth positions further for a better match.
// Positions from i to end are looked at; the literals behind the last match begin at anchor before and at the returned
// position after.
func (e *Encoder) findLazy(src []byte, anchor, i, end int) int {
	p := &e.params
	low := max(0, end-p.window)
	last := end - 9
	r0, r1 := e.recent[0], e.recent[1]
	for i = max(i, 1); i <= last; {
		n, d, start := 0, 0, i
		if r0 <= i+1-low && match.Load32(src, i+1) == match.Load32(src, i+1-r0) {
			n, d, start = 4+match.Length(src, i+5, i+5-r0, end), r0, i+1
		}
		if n == 0 || p.depth > 0 {
			e.catchUp(src, i)
			if m, found := e.longest(src, i, low, end); m > max(n, 3) {
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
			if r0 <= i-low && d != r0 && match.Load32(src, i) == match.Load32(src, i-r0) {
				m := 4 + match.Length(src, i+4, i+4-r0, end)
				if 3*m > 3*n-int(highBit(uint32(d+3)))+depth {
					n, d, start = m, r0, i
				}
			}
			e.catchUp(src, i)
			m, found := e.longest(src, i, low, end)
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
		for i <= last && r1 <= i-low && match.Load32(src, i) == match.Load32(src, i-r1) {
			n := 4 + match.Length(src, i+4, i+4-r1, end)
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
