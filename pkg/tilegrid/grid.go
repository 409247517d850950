package tilegrid

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Grid maps the tiles of a scan to the places of a mosaic grid.
type Grid struct {
	Places [2]int   // rows and columns
	Tiles  [][2]int // row and column of each tile
}

const (
	// apart is the part of a tile's length by which positions differ that belong to two rows, or columns: stage errors
	// are smaller, the steps of a stage larger.
	apart = 0.25
	// sparse is the maximum number of places of a grid per tile, beyond a few.
	sparse, few = 4, 64
)

// NewGrid arranges tiles of one size by their positions (y, x) in the same unit. Tiles whose positions differ
// by less than a quarter of a tile along an axis share a row, or a column. Rows may shift along x; tiles may
// be missing and may overlap in any way. If two tiles would share a place, or most places would be empty
// (pieces of tissue scanned at unrelated positions), the tiles of a row are numbered consecutively along x
// instead, so that every tile has its own place.
func NewGrid(positions [][2]float64, tile [2]float64) (*Grid, error) {
	if len(positions) == 0 {
		return nil, errors.New("there are no tiles")
	}
	if !(min(tile[0], tile[1]) > 0 && !math.IsInf(tile[0]+tile[1], 0)) {
		return nil, fmt.Errorf("tiles of %g × %g: must be positive numbers", tile[0], tile[1])
	}
	var axis [2][]float64
	for k, p := range positions {
		for d, v := range p {
			if v-v != 0 {
				return nil, fmt.Errorf("tile %d: position (%g, %g) is not a number", k, p[0], p[1])
			}
			axis[d] = append(axis[d], v)
		}
	}
	g := &Grid{Tiles: make([][2]int, len(positions))}
	rows, ny := clusters(axis[0], apart*tile[0])
	columns, nx := clusters(axis[1], apart*tile[1])
	g.Places = [2]int{ny, nx}
	taken := map[[2]int]bool{}
	for k := range positions {
		g.Tiles[k] = [2]int{rows[k], columns[k]}
		taken[g.Tiles[k]] = true
	}
	if len(taken) < len(positions) || float64(ny)*float64(nx) > sparse*float64(len(positions))+few {
		g.number(rows, axis[1])
	}
	return g, nil
}

// number gives the tiles of each row the columns 0, 1 … along x.
func (g *Grid) number(rows []int, x []float64) {
	order := sorted(x)
	g.Places[1] = 0
	count := make([]int, g.Places[0])
	for _, k := range order {
		i := rows[k]
		g.Tiles[k] = [2]int{i, count[i]}
		count[i]++
		g.Places[1] = max(g.Places[1], count[i])
	}
}

// clusters numbers groups of values, which are more than gap apart, in increasing order.
func clusters(v []float64, gap float64) (group []int, n int) {
	group = make([]int, len(v))
	order := sorted(v)
	for i, k := range order {
		if i > 0 && v[k]-v[order[i-1]] > gap {
			n++
		}
		group[k] = n
	}
	return group, n + 1
}

// sorted lists the indices of values in increasing order; equal ones keep theirs.
func sorted(v []float64) []int {
	order := make([]int, len(v))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case v[a] < v[b]:
			return -1
		case v[a] > v[b]:
			return 1
		}
		return 0
	})
	return order
}
