package stitch

import (
	"fmt"
	"math"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/canvas"
)

// grid is the geometry of a mosaic's tiles along y and x.
type grid struct {
	ny, nx int    // tiles
	tile   [2]int // voxels of a whole tile
	shape  [2]int // of the mosaic

	recorded [][2]float64 // positions of the mosaic's tiles; nil: given by overlap and grid
	absent   []bool       // places without a tile; nil: none
}

// gridOf returns the grid of a mosaic's tiles.
func gridOf(m *oct.Mosaic) grid {
	g := grid{tile: [2]int{m.Chunk[1], m.Chunk[2]}, shape: [2]int{m.Shape[1], m.Shape[2]}, recorded: m.Recorded, absent: m.Absent}
	g.ny, g.nx = m.Tiles()
	return g
}

// extent returns the number of voxels (y, x) of tile (i, j), which is less than a whole tile at the far edges.
func (g *grid) extent(i, j int) [2]int {
	return [2]int{min(g.tile[0], g.shape[0]-i*g.tile[0]), min(g.tile[1], g.shape[1]-j*g.tile[1])}
}

// has reports whether there is a tile at place t.
func (g *grid) has(t int) bool { return g.absent == nil || !g.absent[t] }

// nominal returns the position in px at which M puts tile (i, j): M·(i·h·(1−o), j·w·(1−o)), or M times
// its recorded position.
func (g *grid) nominal(m affine.Matrix, overlap float64, i, j int) [2]float64 {
	y, x := float64(i)*float64(g.tile[0])*(1-overlap), float64(j)*float64(g.tile[1])*(1-overlap)
	if g.recorded != nil {
		y, x = g.recorded[i*g.nx+j][0], g.recorded[i*g.nx+j][1]
	}
	return [2]float64{float64(m[0][0]*y) + float64(m[0][1]*x), float64(m[1][0]*y) + float64(m[1][1]*x)}
}

const (
	// maxSparse is the maximum ratio of the canvas's area to the total area of the tiles.
	maxSparse = 64
	// largeSlice is the size in bytes from which the maximum ratio is sparseLarge: anything beyond can only be a
	// mistake.
	largeSlice, sparseLarge = 1 << 40, 8
)

// canvas puts tiles at positions rounded to whole voxels (half to even), or with interpolate at the exact ones, on
// the smallest canvas that holds them. origin is the position of the canvas's first voxel; column is the size in
// bytes of a pixel in all planes. Places without a tile stay empty.
func (g *grid) canvas(where string, positions [][2]float64, interpolate bool, column int) (places []canvas.Place, origin, size [2]int, err error) {
	places = make([]canvas.Place, len(positions))
	lo, hi := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	covered := 0.0
	for k, p := range positions {
		if !g.has(k) {
			continue
		}
		n := g.extentOf(k)
		covered += float64(n[0]) * float64(n[1])
		for d := range 2 {
			r := math.RoundToEven(p[d])
			lo[d], hi[d] = min(lo[d], r), max(hi[d], r+float64(n[d]))
		}
	}
	area := (hi[0] - lo[0]) * (hi[1] - lo[1])
	bytes := area * float64(column)
	if !(area <= maxSparse*covered) || bytes > largeSlice && area > sparseLarge*covered {
		return nil, origin, size, oct.BadInput("%s: these positions need a canvas of %.0f × %.0f voxels per plane, %.3g TiB in all, %.0f times what the tiles have: check %s",
			where, hi[0]-lo[0], hi[1]-lo[1], bytes/(1<<40), area/covered, g.source())
	}
	for d := range 2 {
		if math.Abs(lo[d]) > math.MaxInt32 || math.Abs(hi[d]) > math.MaxInt32 {
			return nil, origin, size, oct.BadInput("%s: tile positions from %.0f to %.0f along %c are out of range", where, lo[d], hi[d], "yx"[d])
		}
		origin[d], size[d] = int(lo[d]), int(hi[d]-lo[d])
	}
	for k, p := range positions {
		if !g.has(k) {
			continue
		}
		n := g.extentOf(k)
		y, x := math.RoundToEven(p[0]), math.RoundToEven(p[1])
		places[k].Rectangle = oct.Rect(0, n[0], 0, n[1]).Moved(int(y)-origin[0], int(x)-origin[1])
		if interpolate {
			places[k].Frac = [2]float32{float32(p[0] - y), float32(p[1] - x)}
		}
	}
	return places, origin, size, nil
}

// source names the flags that determine the tiles' positions.
func (g *grid) source() string {
	if g.recorded != nil {
		return "--positions and --transform"
	}
	return "--overlap and --transform"
}

// distance names, for a message, the flag that determines the distance of tiles.
func (g *grid) distance(overlap float64) string {
	if g.recorded != nil {
		return "--positions"
	}
	return fmt.Sprintf("--overlap %g", overlap)
}

// neighbouring returns the pairs of tiles that should touch: neighbours in the grid, or those that overlap at
// their recorded positions.
func (g *grid) neighbouring(m affine.Matrix) ([]pair, error) {
	if g.recorded != nil {
		return g.overlappingPairs(m)
	}
	return g.pairs(), nil
}

// apart returns the number of pairs with a gap between them.
func apart(places []canvas.Place, pairs []pair) (gaps int) {
	for _, n := range pairs {
		if p, q := places[n.a], places[n.b]; q.X0 > p.X1 || q.X1 < p.X0 || q.Y0 > p.Y1 || q.Y1 < p.Y0 {
			gaps++
		}
	}
	return gaps
}

// TileSize returns the size (y, x) of the tiles of a mosaic grid in pixels.
func TileSize(in *ngff.Image) (tile [2]int) {
	shape, chunk := in.Levels[0].Array.Shape(), in.Levels[0].Array.Chunks()
	for d := range tile {
		k := len(shape) - 2 + d
		tile[d] = min(shape[k], chunk[k])
	}
	return tile
}
