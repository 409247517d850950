package enzstd

import "strata/pkg/zarr/codec/internal/match"

// findFast looks at one candidate for each position, and at fewer positions the longer it has found nothing. Positions
// from i to end are looked at; the literals behind the last match begin at anchor before and at the returned position
// after.
func (e *Encoder) findFast(src []byte, anchor, i, end int) int {
	p := &e.params
	table, log, bytes, base := e.table[:1<<p.log], p.log, p.minMatch, e.base
	low := max(0, end-p.window)
	last := end - 9 // position that is looked at
	r0, r1 := e.recent[0], e.recent[1]
	for i = max(i, 1); i <= last; {
		v := match.Load64(src, i)
		h := hash(v, bytes, log)
		c := int(table[h]) - base
		table[h] = uint32(i + base)
		var n int
		switch {
		case r0 <= i-low && uint32(v>>8) == match.Load32(src, i+1-r0):
			i++
			n = 4 + match.Length(src, i+4, i+4-r0, end)
			e.emit(src, anchor, i, n, r0)
		case c >= low && uint32(v) == match.Load32(src, c):
			n = 4 + match.Length(src, i+4, c+4, end)
			for i > anchor && c > low && src[i-1] == src[c-1] {
				i--
				c--
				n++
			}
			r0, r1 = i-c, r0
			e.emit(src, anchor, i, n, r0)
		default:
			i += p.step + (i-anchor)>>8
			continue
		}
		first := i
		i += n
		anchor = i
		if i > last {
			break
		}
		table[hash(match.Load64(src, first+2), bytes, log)] = uint32(first + 2 + base)
		table[hash(match.Load64(src, i-2), bytes, log)] = uint32(i - 2 + base)
		for i <= last && r1 <= i-low && match.Load32(src, i) == match.Load32(src, i-r1) {
			n := 4 + match.Length(src, i+4, i+4-r1, end)
			table[hash(match.Load64(src, i), bytes, log)] = uint32(i + base)
			r0, r1 = r1, r0
			e.emit(src, i, i, n, r0)
			i += n
			anchor = i
		}
	}
	e.recent = [2]int{r0, r1}
	return anchor
}
