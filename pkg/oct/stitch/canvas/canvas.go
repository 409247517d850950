// Package canvas assembles the tiles of a mosaic at known places on the canvas of a slice, and writes it.
//
// A canvas is written in columns of units (chunks or shards) that are stacked along z. [New] prepares the work
// within a memory budget; [Assembly.Write] does it on the host or on the device of the resources.
package canvas

import (
	"strata/pkg/oct"
)

// Place is a tile's place on the canvas.
type Place struct {
	oct.Rectangle            // its voxels on the canvas
	Frac          [2]float32 // offset (y, x) of the exact position from it, within ±0.5; 0 if placed by whole voxels
}

// Canvas describes where the tiles of a mosaic go and how they are blended.
type Canvas struct {
	Mosaic   *oct.Mosaic
	Places   []Place // of the mosaic's tiles, row by row; empty if there is no tile
	Size     [2]int  // (y, x)
	Blending Blending
	Seams    SeamSums // accumulates the differences between tiles; nil: not wanted
	Coded    bool     // the output is compressed
	Res      oct.Resources
}

// extent returns the rectangle of tile t in the mosaic.
func (c *Canvas) extent(t int) oct.Rectangle {
	_, nx := c.Mosaic.Tiles()
	return c.Mosaic.Extent(t/nx, t%nx)
}
