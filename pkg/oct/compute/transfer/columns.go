package transfer

import (
	"context"
	"fmt"

	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/tile/zarrsource"
	"strata/pkg/zarr"
)

// Columns reads tiles in their full depth. Each worker reads into its own [TileBuffer].
type Columns struct {
	Mosaic  *oct.Mosaic
	array   *zarr.Array
	Scratch int64 // bytes that reading a tile takes besides the tile
	blocks  bool  // chunks may be decoded in parts
}

// NewColumns plans the reading of a mosaic. Reading is counted in the meter count.
func NewColumns(m *oct.Mosaic, count *meter.Meter) (*Columns, error) {
	a := m.Image.Levels[0].Array.With(zarr.Workers(1), zarr.Meter(count))
	src, err := zarrsource.New(a, zarrsource.Tile(m.Tile()...))
	if err != nil {
		return nil, err
	}
	return &Columns{Mosaic: m, array: a, Scratch: src.ScratchBytes(), blocks: a.InBlocks()}, nil
}

// Whole reports whether chunks must be decoded whole even if only some planes are wanted.
func (c *Columns) Whole() bool { return len(c.array.Codecs()) > 0 && !c.blocks }

// A TileBuffer holds the voxels that one worker reads.
type TileBuffer struct {
	Raw    []byte
	Data   []byte // result of the latest Read, in C order
	Start  int    // offset of Data in Raw
	planes []byte // some planes of a chunk that is read partially
}

// NewTileBuffer allocates a buffer of the given size. Free releases it.
func NewTileBuffer(bytes int64) (*TileBuffer, error) {
	b, err := mem.Alloc(int(bytes))
	if err != nil {
		return nil, fmt.Errorf("memory for a tile: %w", err)
	}
	return &TileBuffer{Raw: b}, nil
}

// Free releases the memory.
func (v *TileBuffer) Free() {
	if v != nil {
		mem.Free(v.Raw)
	}
}

// Read reads planes z0 … z1−1 of a rectangle into v.Data, and as little else as the storage allows. A buffer
// with room for a whole tile saves copies.
func (c *Columns) Read(ctx context.Context, v *TileBuffer, z0, z1 int, r oct.Rectangle) error {
	plane := r.Area() * c.Mosaic.DType.Size()
	chunk, depth := c.Mosaic.Chunk, c.Mosaic.Shape[0]
	inOne := r.Y0/chunk[1] == (r.Y1-1)/chunk[1] && r.X0/chunk[2] == (r.X1-1)/chunk[2]
	inFront := r.Y0%chunk[1] == 0 && r.X0%chunk[2] == 0
	v.Start = 0
	if c.Whole() && chunk[0] == depth && inOne && inFront && len(v.Raw) >= z1*plane {
		// decoded where they lie, those before z0 as well
		v.Start = z0 * plane
		v.Data = v.Raw[v.Start : z1*plane]
		return oct.Readable(c.array.ReadFront(ctx, zarr.Region{Start: []int{0, r.Y0, r.X0}, Shape: []int{z1, r.Height(), r.Width()}}, v.Raw))
	}
	v.Data = v.Raw[:(z1-z0)*plane]
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
		region := zarr.Region{Start: []int{z, r.Y0, r.X0}, Shape: []int{n, r.Height(), r.Width()}}
		to := v.Raw[(z-z0)*plane : (z-z0+n)*plane]
		var err error
		if some {
			err = c.readPlanes(ctx, v, region, plane, to)
		} else {
			err = c.array.Read(ctx, region, to)
		}
		if err != nil {
			return oct.Readable(err)
		}
		z += n
	}
	return nil
}

// readPlanes reads some planes of one chunk, in blocks that fit the cache.
func (c *Columns) readPlanes(ctx context.Context, v *TileBuffer, region zarr.Region, plane int, to []byte) error {
	if n := max(plane, PlanesPiece); len(v.planes) < n {
		v.planes = make([]byte, n)
	}
	return c.array.ReadPlanes(ctx, region, v.planes[:max(1, PlanesPiece/plane)*plane], func(first int, planes []byte) error {
		copy(to[first*plane:], planes)
		return nil
	})
}
