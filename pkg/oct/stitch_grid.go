package oct

import (
	"math"

	"strata/pkg/filter"
)

// grid is the geometry of a mosaic's tiles along y and x.
type grid struct {
	ny, nx int    // tiles
	tile   [2]int // voxels of a whole tile
	shape  [2]int // of the mosaic
}

func (m *mosaic) grid() grid {
	g := grid{tile: [2]int{m.chunk[1], m.chunk[2]}, shape: [2]int{m.shape[1], m.shape[2]}}
	g.ny, g.nx = m.tiles()
	return g
}

// extent is the number of voxels (y, x) of tile (i, j): less than a whole tile
// at the far edges.
func (g *grid) extent(i, j int) [2]int {
	return [2]int{min(g.tile[0], g.shape[0]-i*g.tile[0]), min(g.tile[1], g.shape[1]-j*g.tile[1])}
}

// nominal is where M puts tile (i, j): M·(i·h·(1−o), j·w·(1−o)), in px.
func (g *grid) nominal(m Matrix, overlap float64, i, j int) [2]float64 {
	y, x := float64(i)*float64(g.tile[0])*(1-overlap), float64(j)*float64(g.tile[1])*(1-overlap)
	return [2]float64{float64(m[0][0]*y) + float64(m[0][1]*x), float64(m[1][0]*y) + float64(m[1][1]*x)}
}

// place is where a tile lies on the canvas.
type place struct {
	filter.Rect            // its voxels on the canvas
	frac        [2]float32 // what is missing to its exact position, within ±0.5; 0 for placement by whole voxels
}

const (
	// maxSparse is how many times the area of the tiles a canvas may have.
	maxSparse = 64
	// largeSlice is the size, in bytes, from which on it may have sparseLarge times
	// the area: what is beyond can only be a mistake.
	largeSlice, sparseLarge = 1 << 40, 8
)

// canvas puts tiles at positions rounded to whole voxels (half to even), or with
// interpolate at the exact ones, on the smallest canvas that holds them. origin
// is the position of the canvas's first voxel; column is what a pixel has in all
// planes, in bytes.
func (g *grid) canvas(where string, positions [][2]float64, interpolate bool, column int) (places []place, origin, size [2]int, err error) {
	places = make([]place, len(positions))
	var lo, hi [2]float64
	for k, p := range positions {
		n := g.extent(k/g.nx, k%g.nx)
		for d := range 2 {
			r := math.RoundToEven(p[d])
			if k == 0 {
				lo[d], hi[d] = r, r+float64(n[d])
			}
			lo[d], hi[d] = min(lo[d], r), max(hi[d], r+float64(n[d]))
		}
	}
	area, covered := (hi[0]-lo[0])*(hi[1]-lo[1]), float64(g.shape[0])*float64(g.shape[1])
	bytes := area * float64(column)
	if !(area <= maxSparse*covered) || bytes > largeSlice && area > sparseLarge*covered {
		return nil, origin, size, badInput("%s: these positions need a canvas of %.0f × %.0f voxels per plane, %.3g TiB in all, %.0f times what the tiles have: check --overlap and --transform",
			where, hi[0]-lo[0], hi[1]-lo[1], bytes/(1<<40), area/covered)
	}
	for d := range 2 {
		if math.Abs(lo[d]) > math.MaxInt32 || math.Abs(hi[d]) > math.MaxInt32 {
			return nil, origin, size, badInput("%s: tile positions from %.0f to %.0f along %c are out of reach", where, lo[d], hi[d], "yx"[d])
		}
		origin[d], size[d] = int(lo[d]), int(hi[d]-lo[d])
	}
	for k, p := range positions {
		n := g.extent(k/g.nx, k%g.nx)
		y, x := math.RoundToEven(p[0]), math.RoundToEven(p[1])
		places[k].Rect = filter.Rect{Y1: n[0], X1: n[1]}.Moved(int(y)-origin[0], int(x)-origin[1])
		if interpolate {
			places[k].frac = [2]float32{float32(p[0] - y), float32(p[1] - x)}
		}
	}
	return places, origin, size, nil
}

// apart is how many pairs of neighbouring tiles have a gap between them.
func apart(places []place, g grid) (gaps, pairs int) {
	for t, p := range places {
		for _, o := range g.next(t) {
			pairs++
			if q := places[o]; q.X0 > p.X1 || q.X1 < p.X0 || q.Y0 > p.Y1 || q.Y1 < p.Y0 {
				gaps++
			}
		}
	}
	return gaps, pairs
}

// next are the tiles right of a tile and below it.
func (g *grid) next(t int) []int {
	var out []int
	if t%g.nx+1 < g.nx {
		out = append(out, t+1)
	}
	if t/g.nx+1 < g.ny {
		out = append(out, t+g.nx)
	}
	return out
}
