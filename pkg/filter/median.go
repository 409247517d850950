package filter

import (
	"strata/pkg/dtype"
)

// MedianFilter replaces every voxel of a volume (z, y, x) by the exact median of the window around it, for
// all types; floats are ordered −Inf … +Inf, NaN. It does not handle edges: the input contains every voxel of
// the windows, including those beyond an image. It owns scratch memory and serves one goroutine.
type MedianFilter[T dtype.Element] struct {
	window [3]int
	bytes  func(shape [3]int) int64
	apply  func(dst, src []byte, shape [3]int)
}

// networkMost is the size in bytes of the largest window whose median a sorting network finds faster than a
// sliding histogram: for 16-bit voxels 21×21 (BenchmarkMedian).
const networkMost = 1 << 10

// NewMedianFilter returns a filter with a window of an odd number of voxels along (z, y, x).
func NewMedianFilter[T dtype.Element](window [3]int) *MedianFilter[T] {
	for _, n := range window {
		if n < 1 || n%2 == 0 {
			panic("filter: a median of windows without a middle")
		}
	}
	m := &MedianFilter[T]{window: window}
	switch dtype.Of[T]().Size() {
	case 1:
		m.apply, m.bytes = medianOf[uint8](window)
	case 2:
		m.apply, m.bytes = medianOf[uint16](window)
	case 4:
		m.apply, m.bytes = medianOf[uint32](window)
	default:
		m.apply, m.bytes = medianOf[uint64](window)
	}
	return m
}

func medianOf[U uint8 | uint16 | uint32 | uint64](window [3]int) (apply func(dst, src []byte, shape [3]int), bytes func(shape [3]int) int64) {
	if window[0]*window[1]*window[2]*dtype.Of[U]().Size() <= networkMost {
		m := newNetworkMedian[U](window)
		return func(dst, src []byte, shape [3]int) { m.apply(dtype.Slice[U](dst), dtype.Slice[U](src), shape) }, m.bytes
	}
	m := &histogramMedian[U]{window: window}
	return func(dst, src []byte, shape [3]int) { m.apply(dtype.Slice[U](dst), dtype.Slice[U](src), shape) }, m.bytes
}

// Bytes returns the scratch memory needed for volumes of the given shape.
func (m *MedianFilter[T]) Bytes(shape [3]int) int64 { return m.bytes(shape) }

// Apply filters a volume: dst has shape (z, y, x), src the radius more on either side of each axis. Both are
// in C order and do not overlap. It overwrites src.
func (m *MedianFilter[T]) Apply(dst, src []T, shape [3]int) {
	voxels, wide := 1, 1
	for d, n := range shape {
		voxels *= n
		wide *= n + m.window[d] - 1
	}
	dst, src = dst[:voxels], src[:wide]
	toKeys(src)
	m.apply(dtype.Bytes(dst), dtype.Bytes(src), shape)
	fromKeys(dst)
}

// toKeys makes unsigned integers of elements, in place, that are in the same order.
func toKeys[T dtype.Element](v []T) {
	b := dtype.Bytes(v)
	switch any(v).(type) {
	case []int8:
		flip(dtype.Slice[uint8](b))
	case []int16:
		flip(dtype.Slice[uint16](b))
	case []int32:
		flip(dtype.Slice[uint32](b))
	case []int64:
		flip(dtype.Slice[uint64](b))
	case []float32:
		floatsToKeys(dtype.Slice[uint32](b), infinite)
	case []float64:
		floatsToKeys(dtype.Slice[uint64](b), infinite64)
	}
}

// floatsToKeys turns the bits of floats into keys; infinite is the bits of infinity.
func floatsToKeys[U uint32 | uint64](keys []U, infinite U) {
	high := ^(^U(0) >> 1)
	for i, k := range keys {
		switch {
		case k&^high > infinite:
			keys[i] = ^U(0)
		case k&high != 0:
			keys[i] = ^k
		default:
			keys[i] = k | high
		}
	}
}

// keysToFloats inverts floatsToKeys.
func keysToFloats[U uint32 | uint64](keys []U) {
	high := ^(^U(0) >> 1)
	for i, k := range keys {
		if k&high != 0 {
			keys[i] = k &^ high
		} else {
			keys[i] = ^k
		}
	}
}

// infinite64 is the bits of a float64's infinity; larger magnitudes are no numbers.
const infinite64 = 0x7ff << 52

// fromKeys inverts toKeys.
func fromKeys[T dtype.Element](v []T) {
	b := dtype.Bytes(v)
	switch any(v).(type) {
	case []int8, []int16, []int32, []int64:
		toKeys(v)
	case []float32:
		keysToFloats(dtype.Slice[uint32](b))
	case []float64:
		keysToFloats(dtype.Slice[uint64](b))
	}
}

// flip turns the highest bit of integers over.
func flip[U uint8 | uint16 | uint32 | uint64](v []U) {
	high := ^(^U(0) >> 1)
	for i := range v {
		v[i] ^= high
	}
}

// networkMedian finds the medians of small windows: columns along Z are sorted once for all windows that they lie in,
// merged to sorted planes along Y once for all windows along X, and these to the median.
type networkMedian[U uint8 | uint16 | uint32 | uint64] struct {
	window         [3]int
	z, y, x        *network
	ofY, ofX       []bool // the wires of y and x that count
	columns        []U    // sorted: the rows of those along Z, one set for each of the window's places along Y
	planes, strips []U    // what goes through y, and through x
}

func newNetworkMedian[U uint8 | uint16 | uint32 | uint64](window [3]int) *networkMedian[U] {
	column, plane := window[0], window[0]*window[1]
	m := &networkMedian[U]{window: window, z: mergeLists(column, 1), y: mergeLists(window[1], column), x: mergeLists(window[2], plane)}
	m.ofX = m.x.prune([]int{plane * window[2] / 2})
	m.ofY = m.y.prune(places(m.ofX, plane))
	m.z.prune(places(m.ofY, column))
	return m
}

// places returns the positions, within lists of the given length, at which counts is true for any of the lists.
func places(counts []bool, length int) (out []int) {
	for k := range length {
		for i := k; i < len(counts); i += length {
			if counts[i] {
				out = append(out, k)
				break
			}
		}
	}
	return out
}

// stripBytes is the amount of data that goes through the last network at a time: about the size of a core's
// first-level cache.
const stripBytes = 32 << 10

// rows returns the strides of columns and planes, and of strips, for volumes of that width.
func (m *networkMedian[U]) rows(width int) (wide, strip int) {
	size := dtype.Of[U]().Size()
	strip = min(max(stripBytes/m.x.wires/size, rowBlock/size), 1024/size, width)
	return rowStride(width+m.window[2]-1, size), rowStride(strip, size)
}

func (m *networkMedian[U]) bytes(shape [3]int) int64 {
	wide, strip := m.rows(shape[2])
	return int64(2*m.y.wires*wide+m.x.wires*strip) * int64(dtype.Of[U]().Size())
}

func (m *networkMedian[U]) apply(dst, src []U, shape [3]int) {
	wz, wy := m.window[0], m.window[1]
	width, height := shape[2]+m.window[2]-1, shape[1]+wy-1
	stride, strip := m.rows(shape[2])
	m.columns, m.planes, m.strips = room(m.columns, m.y.wires*stride), room(m.planes, m.y.wires*stride), room(m.strips, m.x.wires*strip)
	for z := range shape[0] {
		for y := range height {
			column := m.columns[y%wy*wz*stride:][:wz*stride]
			for k := range wz {
				copy(column[k*stride:], src[((z+k)*height+y)*width:][:width])
			}
			compare(m.z, column, stride, width)
			if y -= wy - 1; y < 0 {
				continue
			}
			for wire, counts := range m.ofY {
				if counts {
					from := (y+wire/wz)%wy*wz + m.z.order[wire%wz]
					copy(m.planes[wire*stride:], m.columns[from*stride:][:width])
				}
			}
			compare(m.y, m.planes, stride, width)
			row := dst[(z*shape[1]+y)*shape[2]:][:shape[2]]
			for x := 0; x < len(row); x += strip {
				m.medians(row[x:min(x+strip, len(row))], x, stride, strip)
			}
		}
	}
}

// medians computes some medians of a row, beginning at x.
func (m *networkMedian[U]) medians(dst []U, x, stride, strip int) {
	for wire, counts := range m.ofX {
		if counts {
			place := m.y.order[wire%m.y.wires]
			copy(m.strips[wire*strip:], m.planes[place*stride+x+wire/m.y.wires:][:len(dst)])
		}
	}
	compare(m.x, m.strips, strip, len(dst))
	copy(dst, m.strips[m.x.order[m.x.wires/2]*strip:])
}
