package ngffgpu

import (
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/gpu/kernels"
	"strata/pkg/ngff"
)

// rank is the number of dimensions that this package works on, t, c, z, y and x: images of
// fewer are padded in front with axes of length 1.
const rank = 5

const axisZ = rank - 3

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

// layout is how level 0 of an image is stored.
type layout struct {
	shape, chunk point
	size         int // bytes of an element
	kind         dtype.Type
	fill         []byte // of an element
	chunkBytes   int64  // of the elements of a chunk
	inOrder      bool   // elements are stored as they lie in memory
	encoded      bool   // by codecs
	halved       [rank]bool
	levels       int
}

func layoutOf(out *ngff.Writer) layout {
	a := out.Array(0)
	l := layout{
		shape: padded(a.Shape(), 1), chunk: padded(a.Chunks(), 1), kind: a.DType(), size: a.DType().Size(), fill: a.Fill(),
		inOrder: a.Order() == 'C' && !a.BigEndian(), encoded: len(a.Codecs()) > 0, levels: out.Levels(),
	}
	l.chunkBytes = int64(l.chunk.volume()) * int64(l.size)
	if l.levels > 1 {
		for d, n := range padded(out.Array(1).Shape(), 1) {
			l.halved[d] = n != l.shape[d]
		}
	}
	return l
}

// raw reports whether chunks are stored as their elements.
func (l *layout) raw() bool { return l.inOrder && !l.encoded }

// clipped is the shape of the largest tile of a shape in the image.
func (l *layout) clipped(shape []int) []int {
	c := slices.Clone(shape)
	for d := range c {
		c[d] = min(c[d], l.shape[rank-len(c)+d])
	}
	return c
}

// tileBytes is how many bytes the elements of a tile take.
func (l *layout) tileBytes(shape []int) int64 {
	return int64(padded(shape, 1).volume()) * int64(l.size)
}

// belowBytes is how many bytes the part of level 1 takes that is made of a tile.
func (l *layout) belowBytes(shape []int) int64 {
	if l.levels < 2 {
		return 0
	}
	n := int64(l.size)
	for d, s := range padded(shape, 1) {
		if l.halved[d] {
			s /= 2
		}
		n *= int64(s)
	}
	return n
}

// volumes is a tile as what follows each other in one volume (z, y, x) for the halving of
// y, x and perhaps z.
func (l *layout) volumes(shape []int) (v [3]int, z bool) {
	p := padded(shape, 1)
	return [3]int{p[0] * p[1] * p[2], p[3], p[4]}, l.halved[axisZ]
}

// halves reports whether the device makes level 1 of a tile that makes its part alone.
func (l *layout) halves(shape []int) bool {
	if l.levels < 2 {
		return true
	}
	switch l.kind {
	case dtype.Bool, dtype.Float16, dtype.Complex64, dtype.Complex128:
		return false
	}
	p := padded(shape, 1)
	return !l.halved[axisZ] || p[axisZ]%2 == 0 || p[0]*p[1] == 1
}

// tapBytes is the device memory that the halving of a tile takes beside what it makes.
func (l *layout) tapBytes(shape []int) int64 {
	if l.levels < 2 || !l.halves(shape) {
		return 0
	}
	v, z := l.volumes(shape)
	return kernels.DownsamplerBytes(v, z, l.kind)
}

// grid is how many chunks a tile has.
func (l *layout) grid(shape []int) (g point) {
	for d, n := range padded(shape, 1) {
		g[d] = (n + l.chunk[d] - 1) / l.chunk[d]
	}
	return g
}

// gathers reports whether chunks of tiles of that shape, or of what is left of them at the
// far edges, do not lie in the tile as they are stored.
func (l *layout) gathers(shape []int) bool {
	for d, n := range l.shape {
		if n%l.chunk[d] != 0 {
			return true
		}
	}
	return !l.inRow(padded(shape, 1)) || l.chunkBytes%16 != 0 && l.grid(shape).volume() > 1
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
