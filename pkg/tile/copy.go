package tile

import "strata/pkg/dtype"

// copyBox copies a box of the given shape. Both sides are addressed by their
// first element and their strides in elements; a negative stride on a side
// reverses that axis.
func copyBox[T dtype.Element](dst []T, dstOff int, dstStrides []int, src []T, srcOff int, srcStrides []int, shape []int) {
	n := len(shape)
	for _, s := range shape {
		if s <= 0 {
			return
		}
	}
	// the run: trailing axes that are contiguous on both sides
	run, a := 1, n-1
	for ; a >= 0 && dstStrides[a] == run && srcStrides[a] == run; a-- {
		run *= shape[a]
	}
	outer := a + 1
	if outer == 0 {
		copy(dst[dstOff:dstOff+run], src[srcOff:srcOff+run])
		return
	}
	// the innermost of the outer axes is a plain loop, the others count
	last := outer - 1
	rows, ds, ss := shape[last], dstStrides[last], srcStrides[last]
	index := make([]int, last, 8)
	for {
		d, s := dstOff, srcOff
		if run == 1 {
			for range rows {
				dst[d] = src[s]
				d, s = d+ds, s+ss
			}
		} else {
			for range rows {
				copy(dst[d:d+run], src[s:s+run])
				d, s = d+ds, s+ss
			}
		}
		a := last - 1
		for ; a >= 0; a-- {
			dstOff, srcOff = dstOff+dstStrides[a], srcOff+srcStrides[a]
			if index[a]++; index[a] < shape[a] {
				break
			}
			dstOff, srcOff = dstOff-shape[a]*dstStrides[a], srcOff-shape[a]*srcStrides[a]
			index[a] = 0
		}
		if a < 0 {
			return
		}
	}
}

// fillBox sets a box of the given shape to v.
func fillBox[T dtype.Element](dst []T, off int, strides, shape []int, v T) {
	for _, s := range shape {
		if s <= 0 {
			return
		}
	}
	run, a := 1, len(shape)-1
	for ; a >= 0 && strides[a] == run; a-- {
		run *= shape[a]
	}
	index := make([]int, a+1, 8)
	for {
		row := dst[off : off+run]
		row[0] = v
		for n := 1; n < run; n *= 2 {
			copy(row[n:], row[:n])
		}
		k := a
		for ; k >= 0; k-- {
			off += strides[k]
			if index[k]++; index[k] < shape[k] {
				break
			}
			off -= shape[k] * strides[k]
			index[k] = 0
		}
		if k < 0 {
			return
		}
	}
}
