package transfer

import (
	"context"

	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/zarr"
)

// PlaneReader reads the tiles of a mosaic, its chunk columns, plane by plane in
// increasing z: raw chunks in pieces and chunks that are decoded in blocks block
// by block, so that a plane is in the cache when it is handed over and a decoded
// chunk is never whole in memory; other chunks whole.
type PlaneReader struct {
	mosaic *oct.Mosaic
	array  *zarr.Array
	raw    bool // chunks may be read in parts
	blocks bool // chunks may be decoded in parts
	Rows   int  // of a tile that are read at a time; only InBands changes it
	piece  int  // planes of them that the buffer holds
}

// PlanesPiece is how many bytes of planes are read at a time where that may be
// chosen: they stay in a core's cache, and the system call does not count.
const PlanesPiece = 512 << 10

// NewPlaneReader plans the reading of a mosaic by goroutines of the caller's, at most
// so many bytes at a time where that may be chosen; what it costs is counted in the
// meter.
func NewPlaneReader(m *oct.Mosaic, bytes int, count *meter.Meter) *PlaneReader {
	p := &PlaneReader{mosaic: m, array: m.Image.Levels[0].Array.With(zarr.Workers(1), zarr.Meter(count)), piece: m.Chunk[0], Rows: m.Chunk[1]}
	p.raw = len(p.array.Codecs()) == 0 && p.array.Order() == 'C'
	p.blocks = p.array.InBlocks() && len(p.array.Shape()) == 3
	if p.raw || p.blocks {
		p.piece = min(p.piece, max(1, bytes/p.plane()))
	}
	return p
}

// InBands lets tiles be read in bands of rows, where a plane of all of them has more than so many bytes and that may be chosen.
func (p *PlaneReader) InBands(bytes int) {
	if p.raw && p.plane() > bytes {
		p.Rows, p.piece = max(1, bytes/(p.plane()/p.Rows)), 1
	}
}

// plane is the bytes of a plane of a whole tile, or of a band of it.
func (p *PlaneReader) plane() int {
	return p.Rows * p.mosaic.Chunk[2] * p.mosaic.DType.Size()
}

// Buffer is the size of the buffer that read needs.
func (p *PlaneReader) Buffer() int { return p.piece * p.plane() }

// Bytes is the memory that a reader takes: the buffer, and what decoding takes.
func (p *PlaneReader) Bytes() int64 {
	return int64(p.Buffer()) + p.array.ScratchBytes(true)
}

// Read hands over all planes of the tile at (y, x) of ny × nx voxels, or of a band of it, some at a
// time in increasing z, in C order. They are the taker's until it returns.
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
