package transfer

import (
	"context"

	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/zarr"
)

// A PlaneReader reads the tiles of a mosaic, its chunk columns, plane by plane in increasing z. It reads raw
// chunks in pieces and decodes others block by block if possible, so that a plane is in the cache when it is
// handed over and no decoded chunk is whole in memory. Other chunks are decoded whole.
type PlaneReader struct {
	mosaic *oct.Mosaic
	array  *zarr.Array
	raw    bool // chunks can be read in parts
	blocks bool // chunks can be decoded in parts
	Rows   int  // rows of a tile read at a time; changed only by InBands
	piece  int  // planes of them that the buffer holds
}

// PlanesPiece is the number of bytes of planes read at a time if that can be chosen: few enough to stay in a
// core's cache, enough to make the cost of a system call negligible.
const PlanesPiece = 512 << 10

// NewPlaneReader plans the reading of a mosaic in the caller's goroutines, with at most the given number of bytes
// at a time if that can be chosen. Reading is counted in the meter count.
func NewPlaneReader(m *oct.Mosaic, bytes int, count *meter.Meter) *PlaneReader {
	p := &PlaneReader{mosaic: m, array: m.Image.Levels[0].Array.With(zarr.Workers(1), zarr.Meter(count)), piece: m.Chunk[0], Rows: m.Chunk[1]}
	p.raw = len(p.array.Codecs()) == 0 && p.array.Order() == 'C'
	p.blocks = p.array.InBlocks() && len(p.array.Shape()) == 3
	if p.raw || p.blocks {
		p.piece = min(p.piece, max(1, bytes/p.plane()))
	}
	return p
}

// InBands makes the reader read tiles in bands of rows if a plane exceeds the given number of bytes and the
// storage allows it.
func (p *PlaneReader) InBands(bytes int) {
	if p.raw && p.plane() > bytes {
		p.Rows, p.piece = max(1, bytes/(p.plane()/p.Rows)), 1
	}
}

// plane returns the size in bytes of a plane of a whole tile, or of a band of it.
func (p *PlaneReader) plane() int {
	return p.Rows * p.mosaic.Chunk[2] * p.mosaic.DType.Size()
}

// Buffer returns the size of the buffer that Read needs.
func (p *PlaneReader) Buffer() int { return p.piece * p.plane() }

// Bytes returns the memory of a reader: the buffer and the decoder's scratch memory.
func (p *PlaneReader) Bytes() int64 {
	return int64(p.Buffer()) + p.array.ScratchBytes(true)
}

// Read passes all planes of the tile at (y, x) with ny × nx voxels, or of a band of it, to take: some at a time,
// in increasing z and C order. The planes are valid until take returns. Read returns take's error.
func (p *PlaneReader) Read(ctx context.Context, buf []byte, y, ny, x, nx int, take func(planes []byte) error) error {
	depth, chunk := p.mosaic.Shape[0], p.mosaic.Chunk[0]
	for z := 0; z < depth; {
		left := min(depth-z, chunk-z%chunk) // of the chunk
		n := left
		var taken error
		var err error
		if p.blocks {
			r := zarr.Region{Start: []int{z, y, x}, Shape: []int{n, ny, nx}}
			err = p.array.ReadPlanes(ctx, r, buf, func(_ int, planes []byte) error {
				taken = take(planes)
				return taken
			})
		} else {
			n = min(left, p.piece)
			b := buf[:n*ny*nx*p.mosaic.DType.Size()]
			if err = p.array.Read(ctx, zarr.Region{Start: p.mosaic.Index(z, y, x), Shape: p.mosaic.BoxShape(n, ny, nx)}, b); err == nil {
				taken = take(b)
			}
		}
		switch {
		case taken != nil:
			return taken
		case err != nil:
			return oct.Readable(err)
		}
		z += n
	}
	return nil
}
