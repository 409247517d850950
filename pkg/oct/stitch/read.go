package stitch

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/tile"
	"strata/pkg/tile/zarrsource"
)

// tileReader reads the tiles of a mosaic in pieces along z that have the tile's
// whole planes. Chunks that are stored as they are come in pieces that stay in
// the cache, others chunk by chunk.
type tileReader[T dtype.Element] struct {
	mosaic *oct.Mosaic
	loader *tile.Loader[T]
	planes int   // of a piece
	pieces int   // of a tile
	bytes  int64 // that a worker needs: a piece, and its encoded form
}

// readPiece is how much of a raw chunk is read at a time, unless a plane is
// larger.
const readPiece = 512 << 10

func newTileReader[T dtype.Element](m *oct.Mosaic, workers int, res oct.Resources) (*tileReader[T], error) {
	plane := m.Chunk[1] * m.Chunk[2] * m.DType.Size()
	src, err := pieceSource(m, res.Meter)
	if err != nil {
		return nil, err
	}
	r := &tileReader[T]{mosaic: m, planes: m.Frames.Planes(src.TileShape(0))}
	r.pieces = (m.Shape[0] + r.planes - 1) / r.planes
	r.bytes = int64(r.planes)*int64(plane) + src.ScratchBytes()
	if workers > 0 {
		r.loader, err = tile.New[T](src, tile.Inline(), tile.ViewsAvailable(workers))
	}
	return r, err
}

// pieceSource are the pieces. Of chunks that hold several frames they are one.
func pieceSource(m *oct.Mosaic, count *meter.Meter) (*zarrsource.Source, error) {
	plane := m.Chunk[1] * m.Chunk[2] * m.DType.Size()
	a := m.Image.Levels[0].Array
	cut := zarrsource.PieceBytes(max(readPiece, plane))
	if slices.ContainsFunc(a.Chunks()[:len(m.At)], func(n int) bool { return n > 1 }) {
		cut = zarrsource.Tile(m.BoxShape(m.Chunk[0], m.Chunk[1], m.Chunk[2])...)
	}
	return zarrsource.New(a, cut, zarrsource.Meter(count))
}

// close ends reading. Views have been released before.
func (r *tileReader[T]) close() {
	if r.loader != nil {
		_ = r.loader.Close() // it holds nothing but memory
	}
}

// piece is a worker's memory for one piece after the other.
type piece[T dtype.Element] struct {
	*tileReader[T]
	view *tile.View[T]
	at   [3]int // what it holds: piece, i, j
}

// load brings planes k·planes… of tile (i, j) into memory: n planes of whole tiles'
// rows; of a partial tile the leading part counts.
func (p *piece[T]) load(ctx context.Context, k, i, j int) (data []T, first, n int, err error) {
	index := [3]int{k, i, j}
	switch {
	case p.view == nil:
		p.view, err = p.loader.View(ctx, 0, p.mosaic.Index(k, i, j))
	case p.at != index:
		if err = p.loader.Reload(ctx, p.view, p.mosaic.Index(k, i, j)); err != nil {
			p.view = nil // Reload released it
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		err = oct.InputFault(err) // a chunk that may not be read
	}
	if err != nil {
		return nil, 0, 0, err
	}
	p.at = index
	first = k * p.planes
	return p.view.Data(), first, min(p.planes, p.mosaic.Shape[0]-first), nil
}

func (p *piece[T]) release() {
	if p.view != nil {
		_ = p.view.Release() // once, by its only owner
		p.view = nil
	}
}

// zeros is how many of the first pieces of tile (i, j) hold nothing but zeros: all
// of them where the microscope left it out. It reads until it finds one that does
// not, which stays in memory.
func (p *piece[T]) zeros(ctx context.Context, i, j int) (int, error) {
	n := gridOf(p.mosaic)
	extent := n.extent(i, j)
	for k := range p.pieces {
		data, _, planes, err := p.load(ctx, k, i, j)
		if err != nil {
			return k, err
		}
		if !p.blank(data, planes, extent) {
			return k, nil
		}
	}
	return p.pieces, nil
}

// blank says whether planes of a tile are zero. Minus zero is something.
func (p *piece[T]) blank(data []T, planes int, extent [2]int) bool {
	ny, nx := p.mosaic.Chunk[1], p.mosaic.Chunk[2]
	for z := range planes {
		for y := range extent[0] {
			for _, v := range data[(z*ny+y)*nx:][:extent[1]] {
				if v != 0 || math.Signbit(float64(v)) {
					return false
				}
			}
		}
	}
	return true
}
