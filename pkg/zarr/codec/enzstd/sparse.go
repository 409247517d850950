package enzstd

import "strata/pkg/zarr/codec/internal/match"

const (
	sparseStep  = 128
	sparseLog   = 15 // of entries
	sparseLeast = 32 // bytes that a match has to have
)

// findSparse examines one position in sparseStep, from i to end, to notice content that begins to repeat. It
// returns the position of the literals behind the last match.
func (e *Encoder) findSparse(src []byte, anchor, i, end int) int {
	table, base := (*[1 << sparseLog]uint32)(sized(&e.sparse, 1<<sparseLog)), e.base
	low := max(0, end-e.params.window)
	for i = (i + sparseStep - 1) &^ (sparseStep - 1); i+sparseLeast <= end; i += sparseStep {
		v := match.Load64(src, i)
		h := hash(v, 8, sparseLog)
		c := int(table[h]) - base
		table[h] = uint32(i + base)
		if c < low || match.Load64(src, c) != v {
			continue
		}
		n := match.Length(src, i, c, end)
		if n < sparseLeast {
			continue
		}
		start := i
		for start > anchor && c > low && src[start-1] == src[c-1] {
			start--
			c--
			n++
		}
		e.emit(src, anchor, start, n, start-c)
		anchor = start + n
		i = (anchor - 1) &^ (sparseStep - 1)
	}
	return anchor
}
