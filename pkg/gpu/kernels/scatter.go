package kernels

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"strata/pkg/gpu"
)

// Part copies a box of elements from one place to another; all numbers are in bytes. Elements are adjacent
// along the last dimension, unless it has only one.
type Part struct {
	Shape    []int   // elements
	Src, Dst int64   // offsets of the first element; Src -1: no source, the box is filled
	From, To []int64 // between neighbours along each dimension; of the source 0 and less, too
}

// partBytes is a box in the table that the kernel reads.
const partBytes = 16 * 8

// Strides returns the bytes between neighbours along each dimension of a volume in C order, as a [Part] has
// them.
func Strides(shape []int, size int) []int64 {
	s := make([]int64, len(shape))
	n := int64(size)
	for d := len(shape) - 1; d >= 0; d-- {
		s[d] = n
		n *= int64(shape[d])
	}
	return s
}

// ScatterTable returns the length of the table of [Scatter] for n boxes.
func ScatterTable(n int) int64 { return int64(n) * partBytes }

// rowDims is the maximum number of dimensions of a box in addition to its rows, after contiguous dimensions have been
// merged.
const rowDims = 4

// partRow is a box as the kernel reads it: rows of adjacent bytes in up to rowDims dimensions.
type partRow struct {
	src, dst int64          // offsets of the first byte; src -1: the box is filled
	length   int64          // bytes of a row
	rows     int64          // of the box
	shape    [rowDims]int64 // rows along each dimension
	from, to [rowDims]int64 // bytes between neighbours along each dimension, in the source and in the destination
}

// put writes the row into the kernel's table, in units of so many bytes.
func (r *partRow) put(table []byte, unit int64) {
	src := r.src
	if src >= 0 {
		src /= unit
	}
	fields := [partBytes / 8]int64{src, r.dst / unit, r.length / unit, r.rows}
	for d := range rowDims {
		fields[4+d], fields[4+rowDims+d], fields[4+2*rowDims+d] = r.shape[d], r.from[d]/unit, r.to[d]/unit
	}
	for k, v := range fields {
		binary.LittleEndian.PutUint64(table[8*k:], uint64(v))
	}
}

// Scatter queues the copy of boxes of src to boxes of dst that do not overlap. Boxes without a source get
// fill, the bytes of an element of 1, 2, 4, 8 or 16 bytes. table, in page-locked memory, and onDevice have
// [ScatterTable] bytes and are in use until the stream is waited for.
func Scatter(s *gpu.Stream, dst, src gpu.Span, boxes []Part, fill []byte, table []byte, onDevice gpu.Span) error {
	size := int64(len(fill))
	switch size {
	case 1, 2, 4, 8, 16:
	default:
		return fmt.Errorf("elements of %d bytes: want 1, 2, 4, 8 or 16", size)
	}
	unit := int64(16) // what all numbers are multiples of
	divide := func(n int64) {
		for n%unit != 0 {
			unit /= 2
		}
	}
	divide(int64(dst.Address()))
	list := make([]partRow, 0, len(boxes))
	var longest, most int64
	for _, b := range boxes {
		row, err := b.merge(size, src.Bytes(), dst.Bytes())
		if err != nil {
			return err
		}
		if row.length == 0 || row.rows == 0 {
			continue
		}
		divide(row.dst)
		divide(row.length)
		if row.src >= 0 {
			divide(int64(src.Address()) | row.src)
		}
		for d := range rowDims {
			if row.shape[d] > 1 || d == 0 {
				divide(row.from[d] | row.to[d])
			}
		}
		longest, most = max(longest, row.length), max(most, row.rows)
		list = append(list, row)
	}
	if len(list) == 0 {
		return nil
	}
	if unit < size {
		return fmt.Errorf("elements of %d bytes at places that are multiples of %d", size, unit)
	}
	n := ScatterTable(len(list))
	if int64(len(table)) < n || onDevice.Bytes() < n {
		return fmt.Errorf("a table of %d bytes for %d boxes, of %d on the device", len(table), len(list), onDevice.Bytes())
	}
	for i := range list {
		list[i].put(table[i*partBytes:], unit)
	}
	s.Upload(onDevice, table[:n])
	var value [16]byte
	copy(value[:], bytes.Repeat(fill, int(16/size)))
	w := 4
	for int64(w) < longest/unit && w < blockSize {
		w *= 2
	}
	h := int64(blockSize / w)
	grid := gpu.Dim{int(min((longest/unit+int64(w)-1)/int64(w), math.MaxInt32)), int(min((most+h-1)/h, mostBlocks)), min(len(list), mostBlocks)}
	return queue(s, "scatter", "scatter_"+strconv.FormatInt(unit, 10), shape{grid, gpu.Dim{w, int(h), 1}},
		onDevice, int32(len(list)), src, dst, binary.LittleEndian.Uint64(value[:]), binary.LittleEndian.Uint64(value[8:]))
}

// merge checks a box against the bytes on both sides and returns it as the kernel reads it. It merges contiguous
// dimensions.
func (b *Part) merge(size, src, dst int64) (row partRow, err error) {
	last := len(b.Shape) - 1
	if last < 0 {
		b = &Part{Shape: []int{1}, Src: b.Src, Dst: b.Dst, From: []int64{size}, To: []int64{size}}
		last = 0
	}
	filled := b.Src < 0
	if len(b.To) != len(b.Shape) || !filled && len(b.From) != len(b.Shape) {
		return row, fmt.Errorf("a box of %d dimensions with %d and %d distances", len(b.Shape), len(b.From), len(b.To))
	}
	n, rows, d := size, int64(1), last
	from, fromEnd, toEnd := b.Src, b.Src+size, b.Dst+size
	for k, s := range b.Shape {
		if s == 0 {
			return row, nil
		}
		toEnd += int64(s-1) * b.To[k]
		if !filled {
			fromEnd += max(0, int64(s-1)*b.From[k])
			from += min(0, int64(s-1)*b.From[k])
		}
	}
	if b.Dst < 0 || toEnd > dst || !filled && (from < 0 || fromEnd > src) {
		return row, fmt.Errorf("a box of %v ends at byte %d of %d, its source at %d of %d", b.Shape, toEnd, dst, fromEnd, src)
	}
	for ; d >= 0; d-- {
		if b.Shape[d] > 1 && (b.To[d] != n || !filled && b.From[d] != n) {
			break
		}
		n *= int64(b.Shape[d])
	}
	row = partRow{src: b.Src, dst: b.Dst, length: n, shape: [rowDims]int64{1, 1, 1, 1}}
	for k := rowDims; d >= 0; d-- {
		s := int64(b.Shape[d])
		if s == 1 {
			continue
		}
		if k < rowDims && b.To[d] == row.to[k]*row.shape[k] && (filled || b.From[d] == row.from[k]*row.shape[k]) {
			row.shape[k] *= s // goes on with the dimension behind it
		} else {
			if k--; k < 0 {
				return row, fmt.Errorf("a box of %v: more than %d dimensions", b.Shape, rowDims+1)
			}
			row.shape[k], row.to[k] = s, b.To[d]
			if !filled {
				row.from[k] = b.From[d]
			}
		}
		rows *= s
	}
	if rows > math.MaxInt32 {
		return row, fmt.Errorf("a box of %v has %d rows", b.Shape, rows)
	}
	row.rows = rows
	return row, nil
}
