package filter

import (
	"slices"

	"strata/pkg/dtype"
)

// histogramMedian finds the medians of large windows: a histogram of the window slides along X. It counts values of
// 8 and 16 bits, and of wider ones their ranks among those of the volume.
type histogramMedian[U uint8 | uint16 | uint32 | uint64] struct {
	window [3]int
	levels [6][]uint32 // counts of values, then of groups of them, of groups of groups …
	depth  int         // levels that are counted
	values []U         // those of the volume in their order, each once; nil where they are counted themselves
	ranks  []uint32
}

// groupBits is the number of bits of a value that each level of the histogram drops.
const groupBits = 6

func (m *histogramMedian[U]) narrow() bool { return dtype.Of[U]().Size() <= 2 }

func (m *histogramMedian[U]) bytes(shape [3]int) int64 {
	size := dtype.Of[U]().Size()
	if m.narrow() {
		return 4 << (8 * size) * 65 / 64
	}
	voxels := int64(1)
	for d, n := range shape {
		voxels *= int64(n + m.window[d] - 1)
	}
	return voxels * int64(size+4+5) // values, ranks, counts with those of the groups
}

func (m *histogramMedian[U]) apply(dst, src []U, shape [3]int) {
	if m.narrow() {
		m.count(1 << (8 * dtype.Of[U]().Size()))
		slide(m, src, shape, func(i, rank int) { dst[i] = U(rank) })
		return
	}
	m.values = append(m.values[:0], src...)
	slices.Sort(m.values)
	m.values = slices.Compact(m.values)
	m.ranks = room(m.ranks, len(src))
	for i, v := range src {
		k, _ := slices.BinarySearch(m.values, v)
		m.ranks[i] = uint32(k)
	}
	m.count(len(m.values))
	slide(m, m.ranks, shape, func(i, rank int) { dst[i] = m.values[rank] })
}

// count makes room for the counts of n values, all 0.
func (m *histogramMedian[U]) count(n int) {
	for m.depth = 0; m.depth == 0 || n > 1; m.depth++ {
		m.levels[m.depth] = room(m.levels[m.depth], n)
		clear(m.levels[m.depth])
		n = (n + 1<<groupBits - 1) >> groupBits
	}
}

// slide moves the window over a volume of ranks and passes on the rank of each median.
func slide[R uint8 | uint16 | uint32 | uint64, U uint8 | uint16 | uint32 | uint64](m *histogramMedian[U], src []R, shape [3]int, tell func(i, rank int)) {
	height, width := shape[1]+m.window[1]-1, shape[2]+m.window[2]-1
	middle := uint32(m.window[0]*m.window[1]*m.window[2]) / 2
	// what lies in column x of the window that begins at (z, y) comes or goes
	column := func(z, y, x int, by uint32) {
		for k := range m.window[0] {
			at := ((z+k)*height+y)*width + x
			for range m.window[1] {
				rank := src[at]
				for _, counts := range m.levels[:m.depth] {
					counts[rank] += by
					rank >>= groupBits
				}
				at += width
			}
		}
	}
	i := 0
	for z := range shape[0] {
		for y := range shape[1] {
			for x := range m.window[2] - 1 {
				column(z, y, x, 1)
			}
			for x := range shape[2] {
				column(z, y, x+m.window[2]-1, 1)
				tell(i, m.at(middle))
				column(z, y, x, ^uint32(0))
				i++
			}
			for x := range m.window[2] - 1 {
				column(z, y, shape[2]+x, ^uint32(0))
			}
		}
	}
}

// at returns the value with the given rank among the counted ones.
func (m *histogramMedian[U]) at(place uint32) int {
	group := 0
	for k := m.depth - 1; k >= 0; k-- {
		group <<= groupBits
		counts := m.levels[k]
		for ; place >= counts[group]; group++ {
			place -= counts[group]
		}
	}
	return group
}
