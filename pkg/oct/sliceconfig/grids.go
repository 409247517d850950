package sliceconfig

import (
	"fmt"
	"math"
	"slices"

	"strata/pkg/oct"
)

// A Grid is the grid of tiles that a slice was scanned in.
type Grid struct {
	Slice int
	Tiles [2]int     // along y and x
	Tile  [3]int     // voxels of a tile (z, y, x)
	Voxel [3]float64 // micrometres (z, y, x)
}

// GridOf returns the grid of a slice's mosaic.
func GridOf(slice int, m *oct.Mosaic) Grid {
	ny, nx := m.Tiles()
	g := Grid{Slice: slice, Tiles: [2]int{ny, nx}, Tile: [3]int{m.Shape[0], m.Chunk[1], m.Chunk[2]}}
	copy(g.Voxel[:], m.Image.VoxelSize)
	return g
}

// sameVoxel is the maximum relative difference of voxel sizes that count as equal, as in package stack.
const sameVoxel = 1e-3

// sameTile reports whether two grids have tiles and voxels of the same size.
func (g *Grid) sameTile(o *Grid) bool {
	for d := range 3 {
		if math.Abs(g.Voxel[d]-o.Voxel[d]) > sameVoxel*math.Abs(o.Voxel[d]) {
			return false
		}
	}
	return g.Tile == o.Tile
}

func (g *Grid) same(o *Grid) bool { return g.Tiles == o.Tiles && g.sameTile(o) }

// differs describes how a grid differs from the grid of most slices, o.
func (g *Grid) differs(o *Grid) string {
	switch {
	case g.Tiles != o.Tiles:
		return fmt.Sprintf("%d × %d tiles, where those of most slices are %d × %d", g.Tiles[0], g.Tiles[1], o.Tiles[0], o.Tiles[1])
	case g.Tile != o.Tile:
		return fmt.Sprintf("tiles of %d × %d × %d voxels, where those of most slices are %d × %d × %d", g.Tile[0], g.Tile[1], g.Tile[2], o.Tile[0], o.Tile[1], o.Tile[2])
	}
	return fmt.Sprintf("voxels of %.6g × %.6g × %.6g µm, where those of most slices are %.6g × %.6g × %.6g µm", g.Voxel[0], g.Voxel[1], g.Voxel[2], o.Voxel[0], o.Voxel[1], o.Voxel[2])
}

// CompareGrids finds slices whose grid differs from that of most slices; of two grids that are equally common, the one
// of the earlier slices counts. A fault is Lasting if only the number of tiles differs and does so in several slices up
// to the last, or from the first on: the operator then adapted it to the specimen. Faults are in the order of the
// grids.
func CompareGrids(grids []Grid) (out []Fault) {
	var usual *Grid
	most := 0
	for i := range grids {
		n := 0
		for k := range grids {
			if grids[i].same(&grids[k]) {
				n++
			}
		}
		if n > most {
			usual, most = &grids[i], n
		}
	}
	other := func(g *Grid) bool { return !g.same(usual) }
	first, last := 0, len(grids)
	for first < len(grids) && other(&grids[first]) && grids[first].sameTile(usual) {
		first++
	}
	for last > first && other(&grids[last-1]) && grids[last-1].sameTile(usual) {
		last--
	}
	for i := range grids {
		g := &grids[i]
		if !other(g) {
			continue
		}
		f := Fault{Slice: g.Slice, Name: FaultGrid, Text: g.differs(usual)}
		switch {
		case i < first && first > 1:
			f.Lasting = true
			f.Text += "; so have all slices before it"
		case i >= last && len(grids)-last > 1:
			f.Lasting = true
			f.Text += "; so have all slices behind it"
		}
		out = append(out, f)
	}
	return out
}

// Merge adds faults of slices that have none to a list.
func Merge(all, more []Fault) []Fault {
	for _, f := range more {
		if !slices.ContainsFunc(all, func(known Fault) bool { return known.Slice == f.Slice }) {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b Fault) int { return a.Slice - b.Slice })
	return all
}
