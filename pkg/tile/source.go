package tile

import (
	"context"

	"strata/pkg/dtype"
)

// Source reads an image that is stored in tiles, so that a [Loader] works with any file format. Axes are
// ordered from slowest to fastest; every []int has one number per axis. Results must not change during the
// life of a loader, and LoadTile must be safe for concurrent use.
type Source interface {
	// Levels returns the number of pyramid levels, at least 1; level 0 is the finest.
	Levels() int
	// Shape returns the size of a level in pixels.
	Shape(level int) []int
	// TileShape returns the size of the level's tiles. The image size need not be a multiple of it.
	TileShape(level int) []int
	// DimensionNames returns the names of the axes, such as "z", "y", "x".
	DimensionNames() []string
	// DownScale returns the factor by which a level is coarser than level 0.
	DownScale(level int) float64
	// DType returns the type of the pixels that LoadTile writes.
	DType() dtype.Type
	// LoadTile writes the pixels of one tile to dst, in C order and native byte order. dst has room for a
	// whole tile: at the far edges of the image a tile keeps the row length of a whole one, and the content
	// of the part outside the image is never used.
	LoadTile(ctx context.Context, level int, index []int, dst []byte) error
}

// BoxSource is a Source that can load part of a tile into a strided layout, so that a tile goes straight to
// its place in a view.
type BoxSource interface {
	Source
	// Parts reports whether loading some planes of a tile costs only their share, because the tiles of the
	// level have the same layout in file and memory. Planes are counted along the first axis on which a tile
	// is longer than one pixel.
	Parts(level int) bool
	// LoadBox writes the pixels of a box that begins at pixel start of a tile, like LoadTile, but with
	// neighbours along axis a strides[a] bytes apart. It must not change the bytes between pixels.
	LoadBox(ctx context.Context, level int, index, start, shape []int, dst []byte, strides []int) error
}

// Image implements Source, except for LoadTile, for sources with one level; embed it.
type Image struct {
	Size  []int      // pixels per axis
	Tile  []int      // pixels of a tile per axis
	Names []string   // axis names, one per axis
	Type  dtype.Type // of the pixels that LoadTile writes
}

// Levels returns 1.
func (m Image) Levels() int { return 1 }

// Shape returns m.Size.
func (m Image) Shape(int) []int { return m.Size }

// TileShape returns m.Tile.
func (m Image) TileShape(int) []int { return m.Tile }

// DimensionNames returns m.Names.
func (m Image) DimensionNames() []string { return m.Names }

// DownScale returns 1.
func (m Image) DownScale(int) float64 { return 1 }

// DType returns m.Type.
func (m Image) DType() dtype.Type { return m.Type }
