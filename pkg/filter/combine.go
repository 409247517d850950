package filter

import "fmt"

// Combine computes one row from several: dst[x] = Σ taps[k]·src[k·stride+x] for x < len(dst), in F, with
// rounded products that are added in increasing k. The sum begins with the first product; without taps the
// result is zero.
func Combine[F float32 | float64](dst, src []F, stride int, taps []F) {
	if len(taps) == 0 {
		clear(dst)
		return
	}
	combine(dst, src, stride, taps, false)
}

// AddCombine continues a sum in dst: dst[x] = dst[x] + taps[0]·src[x] + taps[1]·src[stride+x] + …, from left
// to right. A Combine cut anywhere into one Combine and several AddCombines gives the same bits.
func AddCombine[F float32 | float64](dst, src []F, stride int, taps []F) {
	if len(taps) > 0 {
		combine(dst, src, stride, taps, true)
	}
}

func combine[F float32 | float64](dst, src []F, stride int, taps []F, add bool) {
	n := len(dst)
	if n == 0 {
		return
	}
	if stride < 0 || (len(taps)-1)*stride+n > len(src) {
		panic(fmt.Sprintf("filter: %d rows of %d, %d apart, in %d elements", len(taps), n, stride, len(src)))
	}
	done := 0
	if d, ok := any(dst).([]float32); ok {
		done = combineVector(d, any(src).([]float32), stride, any(taps).([]float32), add)
	}
	if done == n {
		return
	}
	d := dst[done:]
	for k, t := range taps {
		s := src[k*stride+done:][:len(d)]
		if k == 0 && !add {
			for x, v := range s {
				d[x] = t * v
			}
			continue
		}
		for x, v := range s {
			d[x] += F(t * v)
		}
	}
}

// Transpose sets dst[c·dstStride+r] = src[r·srcStride+c] for r < rows, c < columns.
func Transpose(dst, src []float32, rows, columns, dstStride, srcStride int) {
	if rows == 0 || columns == 0 {
		return
	}
	_, _ = dst[(columns-1)*dstStride+rows-1], src[(rows-1)*srcStride+columns-1]
	doneRows, doneColumns := transposeVector(dst, src, rows, columns, dstStride, srcStride)
	for r := range rows {
		from := 0
		if r < doneRows {
			from = doneColumns
		}
		for c := from; c < columns; c++ {
			dst[c*dstStride+r] = src[r*srcStride+c]
		}
	}
}
