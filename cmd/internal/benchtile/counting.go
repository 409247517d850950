package benchtile

import (
	"context"
	"sync/atomic"

	"strata/pkg/tile"
)

// counting is a source that counts the loads from it.
type counting struct {
	tile.BoxSource
	level int
	grid  []int
	loads []atomic.Int32 // of the middle pixel of each tile
	bytes atomic.Int64
	where func() (string, error) // the tiles lie, in the words of a request to another program
}

func newCounting(src tile.BoxSource, level int) *counting {
	c := &counting{BoxSource: src, level: level}
	n := 1
	for a, t := range src.TileShape(level) {
		c.grid = append(c.grid, (src.Shape(level)[a]+t-1)/t)
		n *= c.grid[a]
	}
	c.loads = make([]atomic.Int32, n)
	return c
}

func (c *counting) LoadTile(ctx context.Context, level int, index []int, dst []byte) error {
	c.count(index, make([]int, len(index)), c.TileShape(level))
	return c.BoxSource.LoadTile(ctx, level, index, dst)
}

func (c *counting) LoadBox(ctx context.Context, level int, index, start, shape []int, dst []byte, strides []int) error {
	c.count(index, start, shape)
	return c.BoxSource.LoadBox(ctx, level, index, start, shape, dst, strides)
}

func (c *counting) count(index, start, shape []int) {
	n, middle := 0, true
	for a, t := range c.TileShape(c.level) {
		n = n*c.grid[a] + index[a]
		middle = middle && start[a] <= t/2 && t/2 < start[a]+shape[a]
	}
	if middle {
		c.loads[n].Add(1)
	}
	c.bytes.Add(int64(volume(shape) * c.DType().Size()))
}

// again returns how many tiles were loaded more than once since the last call, and how many bytes they have.
func (c *counting) again() (tiles int, bytes int64) {
	for i := range c.loads {
		if c.loads[i].Swap(0) > 1 {
			tiles++
		}
	}
	return tiles, c.bytes.Swap(0)
}

func volume(shape []int) int {
	n := 1
	for _, x := range shape {
		n *= x
	}
	return n
}
