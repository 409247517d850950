//go:build !noasm

package filter

//go:noescape
func network8AVX2(rows *uint8, stride, n int, pairs *[2]uint32, count int)

//go:noescape
func network16AVX2(rows *uint16, stride, n int, pairs *[2]uint32, count int)

//go:noescape
func network32AVX2(rows *uint32, stride, n int, pairs *[2]uint32, count int)

// networkVector puts rows of values of up to 32 bits through a network, if it can.
func networkVector[U uint8 | uint16 | uint32 | uint64](w *network, rows []U, stride, n int) bool {
	if !useAVX2 {
		return false
	}
	pairs, count := &w.pairs[0], len(w.pairs)
	switch r := any(rows).(type) {
	case []uint8:
		_ = r[(w.wires-1)*stride+rowStride(n, 1)-1]
		network8AVX2(&r[0], stride, n, pairs, count)
	case []uint16:
		_ = r[(w.wires-1)*stride+rowStride(n, 2)-1]
		network16AVX2(&r[0], 2*stride, 2*n, pairs, count)
	case []uint32:
		_ = r[(w.wires-1)*stride+rowStride(n, 4)-1]
		network32AVX2(&r[0], 4*stride, 4*n, pairs, count)
	default:
		return false
	}
	return true
}
