package tile

import (
	"fmt"
	"slices"
)

// Geometry gives the position of a view in its image. All quantities are per axis and in pixels of the view's
// level unless they are tile numbers.
type Geometry struct {
	Level int
	Index []int // of the central tile

	Image     []int // shape of the level
	ViewShape []int // tile + 2·radius: the same for every view of a level
	TileShape []int
	Radius    []int // position of the central tile's first pixel in the view

	MinPos, MaxPos   []int // part of the image that the view shows, half open
	Front, Back      []int // border: positions before and after that part
	MinTile, MaxTile []int // tiles that the view needs, half open
	TileReal         []int // pixels of the central tile that lie in the image
	ViewReal         []int // MaxPos - MinPos
}

// newGeometry applies the rules to the view around tile index of an image of
// the given shape.
func newGeometry(level int, shape, tile, radius, index []int) Geometry {
	n := len(shape)
	block := make([]int, 9*n)
	cut := func() []int {
		s := block[:n:n]
		block = block[n:]
		return s
	}
	g := Geometry{
		Level: level, Index: slices.Clone(index), Image: shape, TileShape: tile, Radius: radius,
		ViewShape: cut(), MinPos: cut(), MaxPos: cut(), Front: cut(), Back: cut(),
		MinTile: cut(), MaxTile: cut(), TileReal: cut(), ViewReal: cut(),
	}
	for a := range n {
		t, r, i := tile[a], radius[a], index[a]
		rings := ceilDiv(r, t)
		g.ViewShape[a] = t + 2*r
		g.MinPos[a] = max(i*t-r, 0)
		g.MaxPos[a] = min((i+1)*t+r, shape[a])
		g.Front[a] = max(r-i*t, 0)
		g.ViewReal[a] = g.MaxPos[a] - g.MinPos[a]
		g.Back[a] = max(g.ViewShape[a]-g.Front[a]-g.ViewReal[a], 0)
		g.MinTile[a] = max(i-rings, 0)
		g.MaxTile[a] = min(i+rings+1, ceilDiv(shape[a], t))
		g.TileReal[a] = min((i+1)*t, shape[a]) - i*t
	}
	return g
}

// Tiles returns the number of tiles that the view consists of, without the additional ones that a border
// needs.
func (g Geometry) Tiles() int {
	n := 1
	for a := range g.MinTile {
		n *= g.MaxTile[a] - g.MinTile[a]
	}
	return n
}

// Whole reports whether the image covers the whole view, so that it has no border.
func (g Geometry) Whole() bool {
	for a := range g.Front {
		if g.Front[a] > 0 || g.Back[a] > 0 {
			return false
		}
	}
	return true
}

// grid returns the number of tiles per axis.
func grid(shape, tile []int) []int {
	g := make([]int, len(shape))
	for a := range g {
		g[a] = ceilDiv(shape[a], tile[a])
	}
	return g
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func product(v []int) int {
	n := 1
	for _, x := range v {
		n *= x
	}
	return n
}

// stridesOf returns the C-order strides, in elements, of an array of that shape.
func stridesOf(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for a := len(shape) - 1; a >= 0; a-- {
		s[a] = n
		n *= shape[a]
	}
	return s
}

// linear returns the C-order number of index in a grid.
func linear(grid, index []int) int {
	n := 0
	for a := range grid {
		n = n*grid[a] + index[a]
	}
	return n
}

// inGrid returns an error that explains what is wrong with an index.
func inGrid(grid, index []int) error {
	if len(index) != len(grid) {
		return fmt.Errorf("index %v has %d axes (the image has %d)", index, len(index), len(grid))
	}
	for a, i := range index {
		if i < 0 || i >= grid[a] {
			return fmt.Errorf("index %v is outside the grid of %v tiles", index, grid)
		}
	}
	return nil
}

// next moves index on by one in C order within [lo, hi) and reports whether
// it is still inside.
func next(index, lo, hi []int) bool {
	for a := len(index) - 1; a >= 0; a-- {
		if index[a]++; index[a] < hi[a] {
			return true
		}
		index[a] = lo[a]
	}
	return false
}
