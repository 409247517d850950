package rawtiles

import (
	"fmt"
	"math"
)

// Grid says where the tiles of a slice lie.
type Grid struct {
	Origin [2]int // smallest numbers (x, y) in the names
	Size   [2]int // places along x and y
	Tiles  []int  // by place, y fastest: the index of the tile, or −1 where there is none
}

// Place returns the place (x, y) of a tile.
func (g *Grid) Place(t Tile) (x, y int) { return t.X - g.Origin[0], t.Y - g.Origin[1] }

// At returns the index of the tile at a place, or −1.
func (g *Grid) At(x, y int) int { return g.Tiles[x*g.Size[1]+y] }

// Missing returns the names of the tiles that are missing from the grid, at most n, and how many there are.
func (g *Grid) Missing(id, n int) (names []string, all int) {
	for i, k := range g.Tiles {
		if k >= 0 {
			continue
		}
		if all++; all <= n {
			names = append(names, fmt.Sprintf("tile_x%02d_y%02d_z%02d", g.Origin[0]+i/g.Size[1], g.Origin[1]+i%g.Size[1], id))
		}
	}
	return names, all
}

// sparse is the maximum number of places of a grid for each tile, beyond a few: more is a name gone wrong.
const sparse, few = 16, 1024

// Grid arranges the tiles by the numbers in their names. Two tiles of one place are an error.
func (s *Slice) Grid() (*Grid, error) {
	g := &Grid{Origin: [2]int{math.MaxInt, math.MaxInt}}
	for _, t := range s.Tiles {
		g.Origin = [2]int{min(g.Origin[0], t.X), min(g.Origin[1], t.Y)}
	}
	for _, t := range s.Tiles {
		x, y := g.Place(t)
		g.Size = [2]int{max(g.Size[0], x+1), max(g.Size[1], y+1)}
	}
	if places := g.Size[0] * g.Size[1]; places > sparse*len(s.Tiles)+few {
		return nil, fmt.Errorf("slice %02d: %d tiles in a grid of %d × %d places: a number in a name is wrong (last tile: %s)",
			s.ID, len(s.Tiles), g.Size[0], g.Size[1], s.Tiles[len(s.Tiles)-1].Path)
	}
	g.Tiles = make([]int, g.Size[0]*g.Size[1])
	for i := range g.Tiles {
		g.Tiles[i] = -1
	}
	for k, t := range s.Tiles {
		x, y := g.Place(t)
		if other := g.At(x, y); other >= 0 {
			return nil, fmt.Errorf("%s and %s are both the tile at x %d, y %d of slice %02d", s.Tiles[other].Path, t.Path, t.X, t.Y, s.ID)
		}
		g.Tiles[x*g.Size[1]+y] = k
	}
	return g, nil
}
