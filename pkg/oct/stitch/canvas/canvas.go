// Package canvas puts the tiles of a mosaic, whose places are known, onto the canvas of a slice, and writes it.
//
// A canvas is written in columns of units (chunks, or shards): a column is what lies above each other in z. [New] plans the
// work for the memory that there is; [Assembly.Write] does it on the machine of the resources.
package canvas

import (
	"strata/pkg/oct"
)

// Place is where a tile lies on the canvas.
type Place struct {
	oct.Rectangle            // its voxels on the canvas
	Frac          [2]float32 // what is missing to its exact position (y, x), within ±0.5; 0 for placement by whole voxels
}

// Canvas says where the tiles of a mosaic go, and how they are put together there.
type Canvas struct {
	Mosaic   *oct.Mosaic
	Places   []Place // of the mosaic's tiles, row by row; empty where there is none
	Size     [2]int  // (y, x)
	Blending Blending
	Seams    SeamSums // what tiles say differently is added here; nil: it is not asked for
	Coded    bool     // the output is compressed
	Res      oct.Resources
}

// extent returns where the mosaic stores tile t.
func (c *Canvas) extent(t int) oct.Rectangle {
	_, nx := c.Mosaic.Tiles()
	return c.Mosaic.Extent(t/nx, t%nx)
}
