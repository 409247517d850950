package enzstd

import "strata/pkg/zarr/codec/internal/match"

// findDouble looks at two candidates for each position: one by 8 bytes, which makes long matches, and one by fewer.
// Positions from i to end are looked at; the literals behind the last match begin at anchor before and at the returned
// position after.
func (e *Encoder) findDouble(src []byte, anchor, i, end int) int {
	p := &e.params
	long, short, base := e.table[:1<<p.log], e.short[:1<<p.shortLog], e.base
	longLog, shortLog, bytes := p.log, p.shortLog, p.minMatch
	low := max(0, end-p.window)
	last := end - 9 // position that is looked at
	r0, r1 := e.recent[0], e.recent[1]
	for i = max(i, 1); i <= last; {
		v := match.Load64(src, i)
		hl, hs := hash(v, 8, longLog), hash(v, bytes, shortLog)
		cl, cs := int(long[hl])-base, int(short[hs])-base
		long[hl], short[hs] = uint32(i+base), uint32(i+base)
		start, n, c := i, 0, 0
		switch {
		case r0 <= i-low && uint32(v>>8) == match.Load32(src, i+1-r0):
			i++
			n = 4 + match.Length(src, i+4, i+4-r0, end)
			e.emit(src, anchor, i, n, r0)
			goto found
		case cl >= low && v == match.Load64(src, cl):
			n, c = 8+match.Length(src, i+8, cl+8, end), cl
		case cs >= low && uint32(v) == match.Load32(src, cs):
			n, c = 4+match.Length(src, i+4, cs+4, end), cs
			v = match.Load64(src, i+1)
			hl = hash(v, 8, longLog)
			cl = int(long[hl]) - base
			long[hl] = uint32(i + 1 + base)
			if cl >= low && v == match.Load64(src, cl) {
				if m := 8 + match.Length(src, i+9, cl+8, end); m > n {
					i++
					n, c = m, cl
				}
			}
		default:
			i += 1 + (i-anchor)>>8
			continue
		}
		for i > anchor && c > low && src[i-1] == src[c-1] {
			i--
			c--
			n++
		}
		r0, r1 = i-c, r0
		e.emit(src, anchor, i, n, r0)
	found:
		i += n
		anchor = i
		if i > last {
			break
		}
		for _, k := range [2]int{start + 2, i - 2} {
			v := match.Load64(src, k)
			long[hash(v, 8, longLog)] = uint32(k + base)
			short[hash(v, bytes, shortLog)] = uint32(k + base)
		}
		for i <= last && r1 <= i-low && match.Load32(src, i) == match.Load32(src, i-r1) {
			n := 4 + match.Length(src, i+4, i+4-r1, end)
			v := match.Load64(src, i)
			long[hash(v, 8, longLog)] = uint32(i + base)
			short[hash(v, bytes, shortLog)] = uint32(i + base)
			r0, r1 = r1, r0
			e.emit(src, i, i, n, r0)
			i += n
			anchor = i
		}
	}
	e.recent = [2]int{r0, r1}
	return anchor
}
