package ngffgpu

import (
	"strata/pkg/dtype"
	"strata/pkg/gpu/kernels"
	"strata/pkg/ngff"
)

// rank is the number of dimensions that this package works on, t, c, z, y and x: images of
// fewer are padded in front with axes of length 1.
const rank = 5

// point is an index or a size along each axis.
type point [rank]int

func (p point) volume() int {
	n := 1
	for _, v := range p {
		n *= v
	}
	return n
}

// padded puts one number per dimension at the end of a point.
func padded(v []int, fill int) (p point) {
	for d := range p {
		p[d] = fill
	}
	copy(p[rank-len(v):], v)
	return p
}

// layout describes how level 0 of an image is stored.
type layout struct {
	full, chunk point // shapes
	size        int   // bytes of an element
	kind        dtype.Type
	fill        []byte // of an element
	chunkBytes  int64  // of the elements of a chunk
	inOrder     bool   // elements are stored as they lie in memory
	encoded     bool   // by codecs
	halved      [rank]bool
	levels      int
}

func layoutOf(out *ngff.Writer) layout {
	a := out.Array(0)
	l := layout{
		full: padded(a.Shape(), 1), chunk: padded(a.Chunks(), 1), kind: a.DType(), size: a.DType().Size(), fill: a.Fill(),
		inOrder: a.Order() == 'C' && !a.BigEndian(), encoded: len(a.Codecs()) > 0, levels: out.Levels(),
	}
	l.chunkBytes = int64(l.chunk.volume()) * int64(l.size)
	if l.levels > 1 {
		for d, n := range padded(out.Array(1).Shape(), 1) {
			l.halved[d] = n != l.full[d]
		}
	}
	return l
}

// halves reports whether the device makes parts of level 1.
func (l *layout) halves() bool {
	if l.levels < 2 {
		return true
	}
	return l.kind.IsNumber() && l.kind != dtype.Float16
}

// bytes returns how many bytes the elements of a box take.
func (l *layout) bytes(shape []int) int64 {
	return int64(padded(shape, 1).volume()) * int64(l.size)
}

// clipped returns the shape of the largest tile of a shape in the image.
func (l *layout) clipped(shape []int) point {
	c := padded(shape, 1)
	for d := range c {
		c[d] = min(c[d], l.full[d])
	}
	return c
}

// grid returns how many chunks a tile has.
func (l *layout) grid(tile point) (g point) {
	for d, n := range tile {
		g[d] = (n + l.chunk[d] - 1) / l.chunk[d]
	}
	return g
}

// inRow reports whether whole chunks lie one behind the other in a tile.
func (l *layout) inRow(tile point) bool {
	d := rank - 1
	for d > 0 && tile[d] == l.chunk[d] {
		d--
	}
	// chunks are cut along axis d; before it they have length 1
	for d--; d >= 0; d-- {
		if l.chunk[d] != 1 {
			return false
		}
	}
	return true
}

// partBytes returns the most that the parts of a chunk take that go to level 1, and their tables.
func (l *layout) partBytes() (parts, tables int64) {
	if l.levels < 2 {
		return 0, 0
	}
	made, taps, even := int64(l.size), int64(0), l.kind != dtype.Uint64 && l.kind != dtype.Int64
	for d, n := range l.chunk {
		n = min(n, l.full[d])
		if !l.halved[d] {
			made *= int64(n)
			continue
		}
		made *= int64(n+1) / 2
		taps += int64(n+1) / 2
		if l.full[d]%2 == 0 && l.chunk[d]%2 == 0 {
			even = even && l.full[d]%l.chunk[d] == 0
			continue
		}
		even = false
		if l.chunk[d] < l.full[d] { // seams at both ends
			strip := l.chunkBytes / int64(l.chunk[d])
			parts += 2 * aligned(strip)
			tables += kernels.ScatterTable(2)
		}
	}
	if !even {
		tables += aligned(tapBytes * taps)
	}
	return parts + aligned(made), tables
}

// tapBytes is the size of one sample of an axis of level 1 in a table of [kernels.Halving].
const tapBytes = 24
