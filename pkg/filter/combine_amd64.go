//go:build !noasm

package filter

//go:noescape
func combineAVX2(dst, src *float32, n, stride int, taps *float32, count, add int)

//go:noescape
func transpose8AVX2(dst, src *float32, blocks, dstStride, srcStride int)

// combineVector computes the leading multiple of 8 elements of a row and returns their number.
func combineVector(dst, src []float32, stride int, taps []float32, add bool) (done int) {
	n := len(dst) &^ 7
	if !useAVX2 || n == 0 {
		return 0
	}
	begun := 0
	if add {
		begun = 1
	}
	combineAVX2(&dst[0], &src[0], n, 4*stride, &taps[0], len(taps), begun)
	return n
}

// transposeVector transposes the blocks of 8 × 8 elements and returns how many rows and columns they cover.
func transposeVector(dst, src []float32, rows, columns, dstStride, srcStride int) (doneRows, doneColumns int) {
	doneRows, doneColumns = rows&^7, columns&^7
	if !useAVX2 || doneRows == 0 || doneColumns == 0 {
		return 0, 0
	}
	for r := 0; r < doneRows; r += 8 {
		transpose8AVX2(&dst[r], &src[r*srcStride], doneColumns/8, 4*dstStride, 4*srcStride)
	}
	return doneRows, doneColumns
}
