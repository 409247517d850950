package kernels

import (
	"encoding/binary"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
)

// Cell is a box of pixels, in a column of the output, that the same tiles cover, with a tile's contribution
// to it. Pitches and strides are in elements, from row to row and from plane to plane.
type Cell struct {
	Voxels gpu.Span // voxels of the output's type, from the box's first pixel of the first plane
	Pitch  int
	Stride int64

	// Mean holds running means of type [FuseType]. Before and After hold, as float32 per pixel of the box, the sums of
	// weights without and with this tile. Before and After must be separate memory, since some blocks of a launch read
	// one while others write the other. All three are empty for a cell that only one tile covers.
	Mean          gpu.Span
	MeanPitch     int
	MeanStride    int64
	Before, After gpu.Span

	Y, X, NY, NX int // in the tile
	Do           CellWork
}

// CellWork selects what is done to the voxels of a cell.
type CellWork int

const (
	CellSample CellWork = 1 << iota // uses the tile's voxels
	CellBlend                       // blends them with existing running means
	CellStore                       // last tile: stores the rounded result in the voxels
	CellCopy                        // the tile is the only one: its voxels are copied unchanged
)

// CellBytes is the size of a cell in a table.
const CellBytes = 80

// PutCell writes entry i of a table of cells.
func PutCell(table []byte, i int, c *Cell) {
	b := table[i*CellBytes:][:CellBytes]
	mean := c.Mean
	if mean.Bytes() == 0 {
		mean = c.Voxels // an address that is one; nothing is read there
	}
	for k, v := range []uint64{c.Voxels.Address(), mean.Address(), c.Before.Address(), c.After.Address(), uint64(c.Stride), uint64(c.MeanStride)} {
		binary.LittleEndian.PutUint64(b[8*k:], v)
	}
	for k, v := range []int{c.Pitch, c.MeanPitch, c.Y, c.X, c.NY, c.NX, int(c.Do), 0} {
		binary.LittleEndian.PutUint32(b[48+4*k:], uint32(v))
	}
}

// SeamState is the size of a seam's sums: 8 float64, initially zero. They are the number of voxels, the sums
// of |a−b|, a, b, a², b² and ab, with a and b relative to an offset, and the offset.
const SeamState = 64

// SeamBytes is the size of a seam in a table.
const SeamBytes = 16

// PutSeam writes entry i of a table of seams: its sums, and its cells in a table of cells.
func PutSeam(table []byte, i int, sums gpu.Span, first, count int) {
	b := table[i*SeamBytes:][:SeamBytes]
	binary.LittleEndian.PutUint64(b, sums.Address())
	binary.LittleEndian.PutUint32(b[8:], uint32(first))
	binary.LittleEndian.PutUint32(b[12:], uint32(count))
}

// Tile holds planes of a tile (z, y, x) of a type, without gaps.
type Tile struct {
	At             gpu.Span
	Type           dtype.Type
	Planes, NY, NX int
	// Behind is the distance, within ±0.5 px along y and x, by which the tile lies behind the place where its
	// voxels are put.
	Behind [2]float32
}

// FuseType returns the type for blending voxels of a type: float32 if it represents all of them exactly,
// otherwise float64.
func FuseType(t dtype.Type) dtype.Type {
	switch t {
	case dtype.Uint8, dtype.Int8, dtype.Uint16, dtype.Int16, dtype.Float32:
		return dtype.Float32
	}
	return dtype.Float64
}

// planesEach is the number of planes that a thread of [Fuse] processes with the same weights.
const planesEach = 16

// Fuse queues the addition of a tile to cells, given as a table of n; most is the number of pixels of the
// largest. It shifts as filter.Between, blends as filter.Blend and rounds as dtype.ConvertSlice, with the
// same bits except those of a NaN. weights holds a float32 per pixel of the tile; if empty, all are 1. A
// tile's share in a mean is its weight over the sum of the weights so far; with choose, the pixel comes
// entirely from the tile of the largest weight, the first of equal ones.
func Fuse(s *gpu.Stream, t Tile, cells gpu.Span, n, most int, weights gpu.Span, choose bool) error {
	k, err := typed(s, "fuse", "fuse", t.Type)
	if err != nil {
		return err
	}
	only := bit(choose)
	g := blocks(int64(most))
	g.grid[1] = upTo((t.Planes + planesEach - 1) / planesEach)
	for i := 0; i < n; i += mostBlocks {
		g.grid[2] = min(n-i, mostBlocks)
		s.Launch(k, g.grid, g.block, t.At, cells.From(CellBytes*int64(i), CellBytes*int64(g.grid[2])), weights, only, int32(t.Planes), int32(t.NY), int32(t.NX), t.Behind[0], t.Behind[1])
	}
	return nil
}

// Seams queues the addition of every fourth plane to the sums of n seams: the voxels of the tile against the
// running means of a seam's cells, which are those of one other tile. The tile's first plane is z0 of its
// depth. The sums have the same bits as on the CPU; planes are processed in pieces of the given number,
// counted from plane 0 of the depth, and within these cell by cell.
func Seams(s *gpu.Stream, t Tile, cells, seams gpu.Span, n, z0, piece int) error {
	return queueTyped(s, "fuse", "seams", t.Type, shape{gpu.Dim{n, 1, 1}, gpu.Dim{blockSize, 1, 1}},
		t.At, cells, seams, int32(z0), int32(piece), int32(t.Planes), int32(t.NY), int32(t.NX), t.Behind[0], t.Behind[1])
}
