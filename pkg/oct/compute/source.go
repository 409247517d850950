package compute

import (
	"fmt"

	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
)

// A Source streams the tiles of a mosaic grid to the host or to a device. That of [InHand] streams nothing: a [Feed] is
// given tiles.
type Source struct {
	mosaic  *oct.Mosaic
	res     *oct.Resources
	planes  *transfer.PlaneReader   // to the host
	whole   *transfer.Columns       // likewise, tiles as a whole
	columns *transfer.DeviceColumns // to a device
	piece   int                     // bytes of planes that are computed on at a time, of tiles in hand
}

// readBytes returns the host memory that streaming takes.
func (s *Source) readBytes() int64 {
	if s.planes == nil {
		return int64(s.piece)
	}
	return s.planes.Bytes()
}

// NewSource plans the reading of a mosaic. Reading is counted in the meter count.
func NewSource(m *oct.Mosaic, res *oct.Resources, count *meter.Meter) (s *Source, err error) {
	s = &Source{mosaic: m, res: res}
	if res.Device != nil {
		s.columns, err = transfer.NewDeviceColumns(m, res, count)
		return s, err
	}
	s.planes = transfer.NewPlaneReader(m, transfer.PlanesPiece, count)
	return s, nil
}

// Whole allows tiles to be loaded at once in their full depth.
func (s *Source) Whole(count *meter.Meter) (err error) {
	if s.columns == nil {
		s.whole, err = transfer.NewColumns(s.mosaic, count)
	}
	return err
}

// InBands makes tiles whose planes are larger than a core's cache stream in bands of rows, if the storage allows
// it.
func (s *Source) InBands() {
	if s.planes != nil {
		s.planes.InBands(transfer.PlanesPiece)
	}
}

// Pixels returns the maximum number of pixels of a part.
func (s *Source) Pixels() int64 { return int64(s.rows()) * int64(s.mosaic.Chunk[2]) }

// MostParts returns the maximum number of parts of a tile.
func (s *Source) MostParts() int64 {
	return int64((s.mosaic.Chunk[1] + s.rows() - 1) / s.rows())
}

// rows returns the maximum number of rows of a part.
func (s *Source) rows() int {
	switch {
	case s.columns != nil:
		return s.columns.Rows
	case s.planes != nil:
		return s.planes.Rows
	}
	return s.mosaic.Chunk[1]
}

// Parts returns the rectangles in which a tile is streamed, each in its full depth: the tile itself, or bands of
// rows if its planes are too large.
func (s *Source) Parts(tile oct.Rectangle) (parts []oct.Rectangle) {
	for y := tile.Y0; y < tile.Y1; y += s.rows() {
		parts = append(parts, oct.Rect(y, min(y+s.rows(), tile.Y1), tile.X0, tile.X1))
	}
	return parts
}

// pieces describes, for messages, the part of the mosaic that a worker loads at a time.
func (s *Source) pieces() string {
	if s.columns != nil {
		return s.columns.Pieces()
	}
	return fmt.Sprintf("tiles of %v voxels", s.mosaic.Tile())
}
