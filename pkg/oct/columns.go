package oct

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/tile/zarrsource"
	"strata/pkg/zarr"
)

// columns reads tiles in their full depth, each worker into memory of its own.
type columns[T dtype.Element] struct {
	mosaic  *mosaic
	array   *zarr.Array
	scratch int64 // bytes that reading a tile takes besides the tile
	blocks  bool  // chunks may be decoded in parts
}

func newColumns[T dtype.Element](m *mosaic, res Resources) (*columns[T], error) {
	a := m.image.Levels[0].Array.With(zarr.Workers(1), zarr.Meter(res.Meter))
	src, err := zarrsource.New(a, zarrsource.Tile(m.tile()...))
	if err != nil {
		return nil, err
	}
	return &columns[T]{mosaic: m, array: a, scratch: src.ScratchBytes(), blocks: a.InBlocks()}, nil
}

// whole reports whether chunks are decoded whole, of which only some planes are wanted.
func (c *columns[T]) whole() bool { return len(c.array.Codecs()) > 0 && !c.blocks }

// tile is the shape (z, y, x) of a whole tile in its full depth.
func (m *mosaic) tile() []int { return []int{m.shape[0], m.chunk[1], m.chunk[2]} }

// tileBytes is the size of a whole tile in its full depth.
func (m *mosaic) tileBytes() int64 {
	return int64(m.shape[0]) * int64(m.chunk[1]) * int64(m.chunk[2]) * int64(m.dtype.Size())
}

// extent is where tile (i, j) lies.
func (m *mosaic) extent(i, j int) rectangle {
	y, x := i*m.chunk[1], j*m.chunk[2]
	return rectangle{y, min(y+m.chunk[1], m.shape[1]), x, min(x+m.chunk[2], m.shape[2])}
}

// rectangle is a part of a mosaic's plane: y0 ≤ y < y1, x0 ≤ x < x1.
type rectangle struct{ y0, y1, x0, x1 int }

func (r rectangle) height() int { return r.y1 - r.y0 }
func (r rectangle) width() int  { return r.x1 - r.x0 }
func (r rectangle) area() int   { return r.height() * r.width() }

func (r rectangle) and(s rectangle) rectangle {
	return rectangle{max(r.y0, s.y0), min(r.y1, s.y1), max(r.x0, s.x0), min(r.x1, s.x1)}
}

// tileBuffer is the memory of one worker.
type tileBuffer[T dtype.Element] struct {
	raw    []byte
	data   []T    // of what was read last, C order
	start  int    // where in raw data begins
	planes []byte // some planes of a chunk of which others are not wanted
}

func newTileBuffer[T dtype.Element](bytes int64) (*tileBuffer[T], error) {
	b, err := mem.Alloc(int(bytes))
	if err != nil {
		return nil, fmt.Errorf("memory for a tile: %w", err)
	}
	return &tileBuffer[T]{raw: b}, nil
}

func (v *tileBuffer[T]) free() { mem.Free(v.raw) }

// read brings planes z0 … z1−1 of a part of the mosaic into memory, and as little
// else as their storage allows. A buffer with room for a whole tile spares copies.
func (c *columns[T]) read(ctx context.Context, v *tileBuffer[T], z0, z1 int, r rectangle) error {
	plane := r.area() * c.mosaic.dtype.Size()
	chunk, depth := c.mosaic.chunk, c.mosaic.shape[0]
	inOne := r.y0/chunk[1] == (r.y1-1)/chunk[1] && r.x0/chunk[2] == (r.x1-1)/chunk[2]
	inFront := r.y0%chunk[1] == 0 && r.x0%chunk[2] == 0
	v.start = 0
	if c.whole() && chunk[0] == depth && inOne && inFront && len(v.raw) >= z1*plane {
		// decoded where they lie, those before z0 as well
		v.start = z0 * plane
		v.data = dtype.Slice[T](v.raw[v.start : z1*plane])
		return readable(c.array.ReadFront(ctx, zarr.Region{Start: []int{0, r.y0, r.x0}, Shape: []int{z1, r.height(), r.width()}}, v.raw))
	}
	v.data = dtype.Slice[T](v.raw[:(z1-z0)*plane])
	for z := z0; z < z1; {
		n := z1 - z
		end := min((z/chunk[0]+1)*chunk[0], depth) // of this chunk
		some := c.blocks && inOne && (z%chunk[0] > 0 || z1 < end)
		switch {
		case some:
			n = min(z1, end) - z
		case c.blocks && inOne && z1 < depth:
			n -= n % chunk[0] // whole ones first
		}
		region := zarr.Region{Start: []int{z, r.y0, r.x0}, Shape: []int{n, r.height(), r.width()}}
		to := v.raw[(z-z0)*plane : (z-z0+n)*plane]
		var err error
		if some {
			err = c.readPlanes(ctx, v, region, plane, to)
		} else {
			err = c.array.Read(ctx, region, to)
		}
		if err != nil {
			return readable(err)
		}
		z += n
	}
	return nil
}

// readable makes a chunk that may not be read an error of the input; of the output
// it would be another matter.
func readable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return inputError{err}
	}
	return err
}

// readPlanes reads some planes of one chunk, in blocks that stay in the cache.
func (c *columns[T]) readPlanes(ctx context.Context, v *tileBuffer[T], region zarr.Region, plane int, to []byte) error {
	if n := max(plane, planesPiece); len(v.planes) < n {
		v.planes = make([]byte, n)
	}
	return c.array.ReadPlanes(ctx, region, v.planes[:max(1, planesPiece/plane)*plane], func(first int, planes []byte) error {
		copy(to[first*plane:], planes)
		return nil
	})
}
