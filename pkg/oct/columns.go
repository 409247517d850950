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
}

func newColumns[T dtype.Element](m *mosaic, res Resources) (*columns[T], error) {
	a := m.image.Levels[0].Array.With(zarr.Workers(1), zarr.Meter(res.Meter))
	src, err := zarrsource.New(a, zarrsource.Tile(m.tile()...))
	if err != nil {
		return nil, err
	}
	return &columns[T]{mosaic: m, array: a, scratch: src.ScratchBytes()}, nil
}

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
	raw  []byte
	data []T // of what was read last, C order
}

func newTileBuffer[T dtype.Element](bytes int64) (*tileBuffer[T], error) {
	b, err := mem.Alloc(int(bytes))
	if err != nil {
		return nil, fmt.Errorf("memory for a tile: %w", err)
	}
	return &tileBuffer[T]{raw: b}, nil
}

func (v *tileBuffer[T]) free() { mem.Free(v.raw) }

// read brings planes z0 … z1−1 of a part of the mosaic into memory.
func (c *columns[T]) read(ctx context.Context, v *tileBuffer[T], z0, z1 int, r rectangle) error {
	bytes := (z1 - z0) * r.area() * c.mosaic.dtype.Size()
	v.data = dtype.Slice[T](v.raw[:bytes])
	err := c.array.Read(ctx, zarr.Region{Start: []int{z0, r.y0, r.x0}, Shape: []int{z1 - z0, r.height(), r.width()}}, v.raw[:bytes])
	if errors.Is(err, fs.ErrPermission) {
		return inputError{err} // a chunk that may not be read; of the output it would be another matter
	}
	return err
}
