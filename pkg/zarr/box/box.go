package box

import (
	"encoding/binary"

	"strata/pkg/dtype"
	"strata/pkg/zarr/codec/shuffle"
)

// A box is a part of a strided array: b starts at its first element, strides
// are in bytes. Functions here trust their callers to have checked the sizes.

// Copy copies a box of elements between two strided layouts. It copies runs that are contiguous on both
// sides (rows, planes or more) at once.
func Copy(dst []byte, dstStrides []int, src []byte, srcStrides, shape []int, size int) {
	// merge dimensions from the last one on while both sides stay contiguous
	run, d := size, len(shape)-1
	for ; d >= 0; d-- {
		if shape[d] == 1 {
			continue
		}
		if dstStrides[d] != run || srcStrides[d] != run {
			break
		}
		run *= shape[d]
	}
	if d < 0 {
		copy(dst[:run], src[:run])
		return
	}
	if run == size && d == len(shape)-1 && d >= 1 {
		copyTransposed(dst, dstStrides, src, srcStrides, shape, size)
		return
	}
	copyRuns(dst, dstStrides[:d+1], src, srcStrides[:d+1], shape[:d+1], run)
}

// copyRuns copies separate runs of bytes.
func copyRuns(dst []byte, dstStrides []int, src []byte, srcStrides, shape []int, run int) {
	n, ds, ss := shape[0], dstStrides[0], srcStrides[0]
	if len(shape) > 1 {
		for i := range n {
			copyRuns(dst[i*ds:], dstStrides[1:], src[i*ss:], srcStrides[1:], shape[1:], run)
		}
		return
	}
	switch run {
	case 1:
		for i := range n {
			dst[i*ds] = src[i*ss]
		}
	case 2:
		for i := range n {
			binary.LittleEndian.PutUint16(dst[i*ds:], binary.LittleEndian.Uint16(src[i*ss:]))
		}
	case 4:
		for i := range n {
			binary.LittleEndian.PutUint32(dst[i*ds:], binary.LittleEndian.Uint32(src[i*ss:]))
		}
	case 8:
		for i := range n {
			binary.LittleEndian.PutUint64(dst[i*ds:], binary.LittleEndian.Uint64(src[i*ss:]))
		}
	default:
		for i := range n {
			copy(dst[i*ds:i*ds+run], src[i*ss:i*ss+run])
		}
	}
}

// copyTransposed copies element by element where the last dimension is not contiguous on both sides. It works
// in squares of the last dimension and the one that is contiguous in the source, so that it uses whole cache
// lines on both sides. Pixels of a few samples are copied by row.
func copyTransposed(dst []byte, dstStrides []int, src []byte, srcStrides, shape []int, size int) {
	last := len(shape) - 1
	fast := last // the dimension along which the side that jumps in the last one is contiguous
	for d := range last {
		if shape[d] > 1 && (srcStrides[d] == size || dstStrides[d] == size) {
			fast = d
		}
	}
	if fast == last {
		copyRuns(dst, dstStrides, src, srcStrides, shape, size)
		return
	}
	copySquares(dst, dstStrides, src, srcStrides, shape, size, 0, fast, last)
}

func copySquares(dst []byte, dstStrides []int, src []byte, srcStrides, shape []int, size, d, fast, last int) {
	if d == fast {
		d++
	}
	if d < last {
		for i := range shape[d] {
			copySquares(dst[i*dstStrides[d]:], dstStrides, src[i*srcStrides[d]:], srcStrides, shape, size, d+1, fast, last)
		}
		return
	}
	if shape[last] < shape[fast] { // the longer loop is the inner one
		fast, last = last, fast
	}
	ds, ss := [2]int{dstStrides[fast], dstStrides[last]}, [2]int{srcStrides[fast], srcStrides[last]}
	n := [2]int{shape[fast], shape[last]}
	if size == 1 && n[0] <= 4 && interleaved(dst, ds, src, ss, n) {
		return
	}
	const side = 32
	for i := 0; i < shape[fast]; i += side {
		n[0] = min(side, shape[fast]-i)
		for j := 0; j < shape[last]; j += side {
			n[1] = min(side, shape[last]-j)
			copyRuns(dst[i*ds[0]+j*ds[1]:], ds[:], src[i*ss[0]+j*ss[1]:], ss[:], n[:], size)
		}
	}
}

// interleaved copies one-byte samples between interleaved pixels and planes, and reports whether the box has
// that form. The first of its two dimensions counts samples.
func interleaved(dst []byte, ds [2]int, src []byte, ss, n [2]int) bool {
	switch {
	case ss == [2]int{1, n[0]} && ds[1] == 1 && ds[0] >= n[1]:
		shuffle.Split(dst, src, n[0], n[1], ds[0])
	case ds == [2]int{1, n[0]} && ss[1] == 1 && ss[0] >= n[1]:
		shuffle.Join(dst, src, n[0], n[1], ss[0])
	default:
		return false
	}
	return true
}

// Fill sets all elements of a box.
func Fill(dst []byte, strides, shape []int, fill []byte) {
	run, d := len(fill), len(shape)-1
	for ; d >= 0; d-- {
		if shape[d] == 1 {
			continue
		}
		if strides[d] != run {
			break
		}
		run *= shape[d]
	}
	fillRuns(dst, strides[:d+1], shape[:d+1], run, fill)
}

func fillRuns(dst []byte, strides, shape []int, run int, fill []byte) {
	if len(shape) == 0 {
		FillRun(dst[:run], fill)
		return
	}
	for i := range shape[0] {
		fillRuns(dst[i*strides[0]:], strides[1:], shape[1:], run, fill)
	}
}

// FillRun repeats fill, by doubling what is there.
func FillRun(dst, fill []byte) {
	if isZero(fill) {
		clear(dst)
		return
	}
	n := copy(dst, fill)
	for n < len(dst) {
		n += copy(dst[n:], dst[:min(n, 4096)])
	}
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// IsFill reports whether b consists of repetitions of fill.
func IsFill(b, fill []byte) bool {
	if len(b) < len(fill) || string(b[:len(fill)]) != string(fill) {
		return false
	}
	// each element equals the one before it
	return string(b[len(fill):]) == string(b[:len(b)-len(fill)])
}

// Contiguous reports whether a box lies in C order without gaps.
func Contiguous(strides, shape []int, size int) bool {
	run := size
	for d := len(shape) - 1; d >= 0; d-- {
		if shape[d] != 1 && strides[d] != run {
			return false
		}
		run *= shape[d]
	}
	return true
}

// SwapBytes reverses the bytes of each unit of 2, 4 or 8 bytes in place.
func SwapBytes(b []byte, unit int) { dtype.SwapBytes(b, b, unit) }
