package comparison

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"strata/pkg/oct"
	"strata/pkg/oct/stitch"
	"strata/pkg/smallfile"
)

// Places says where the tiles of a stitched image lie, as stitch --save_positions writes it.
type Places struct {
	Name   string
	Voxel  [2]float64 // µm (y, x); 0: not stated
	Tile   [2]int     // px
	Grid   [2]int
	Origin [2]int                // position of the image's first pixel
	At     map[[2]int][2]float64 // by (i, j): the tile's first pixel; without empty tiles
}

// farthest bounds positions, px.
const farthest = 1e9

// ReadPlaces reads the file of stitch --save_positions. name is the file's name in errors.
func ReadPlaces(r io.Reader, name string) (*Places, error) {
	b, err := smallfile.All(r, name)
	if err != nil {
		return nil, err
	}
	var s stitch.Result
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, smallfile.JSONError(name, b, err)
	}
	p := &Places{Name: name, Voxel: s.Voxel, Tile: s.Tile, Grid: s.Grid, Origin: s.Origin, At: map[[2]int][2]float64{}}
	if min(p.Tile[0], p.Tile[1], p.Grid[0], p.Grid[1]) <= 0 || max(p.Tile[0], p.Tile[1], p.Grid[0], p.Grid[1]) > farthest {
		return nil, fmt.Errorf("%s: tile_px is %v and tiles %v: want a file of stitch --save_positions", name, p.Tile, p.Grid)
	}
	for i, t := range s.Tiles {
		for d, v := range t.Position {
			if !(math.Abs(v) < farthest) || t.Tile[d] < 0 || t.Tile[d] >= p.Grid[d] || max(p.Origin[d], -p.Origin[d]) > farthest {
				return nil, fmt.Errorf("%s:%d: positions[%d]: tile %v at %v px: want a place in a grid of %v tiles", name, smallfile.JSONLine(b, "positions"), i, t.Tile, t.Position, p.Grid)
			}
		}
		if !t.Empty {
			p.At[t.Tile] = t.Position
		}
	}
	return p, nil
}

// box returns the pixels of a tile in the image.
func (p *Places) box(tile [2]int) (r oct.Rectangle, ok bool) {
	at, ok := p.At[tile]
	y, x := int(math.RoundToEven(at[0]))-p.Origin[0], int(math.RoundToEven(at[1]))-p.Origin[1]
	return oct.Rect(y, y+p.Tile[0], x, x+p.Tile[1]), ok
}

// seam is an overlap of two neighbours.
type seam struct {
	oct.Rectangle
	vertical bool // the tiles lie beside each other
}

// seams returns the overlaps of neighbours in the image.
func (p *Places) seams() (out []seam) {
	for i := range p.Grid[0] {
		for j := range p.Grid[1] {
			a, ok := p.box([2]int{i, j})
			if !ok {
				continue
			}
			for d, next := range [][2]int{{i + 1, j}, {i, j + 1}} {
				b, ok := p.box(next)
				if o := a.And(b); ok && !o.Empty() {
					out = append(out, seam{o, d == 1})
				}
			}
		}
	}
	return out
}

// steps returns bands around lines that are step px apart, on a plane of a size, where nothing says where tiles lie: 25
// px to both sides, as linumpy looks for them, and no line within 30 px of the far edge.
func steps(size [2]int, step int) (out []seam) {
	const half, edge = 25, 30
	for x := step; x < size[1]-edge; x += step {
		out = append(out, seam{oct.Rect(0, size[0], max(0, x-half), min(size[1], x+half)), true})
	}
	for y := step; y < size[0]-edge; y += step {
		out = append(out, seam{oct.Rect(max(0, y-half), min(size[0], y+half), 0, size[1]), false})
	}
	return out
}
