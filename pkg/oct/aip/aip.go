// Package aip is the stage that projects a mosaic grid along z: the mean of each A-line.
package aip

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/tile"
	"strata/pkg/tile/zarrsource"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Run writes the average intensity projection of a mosaic grid (z, y, x):
//
//	out[y, x] = mean over z of in[z, y, x]
//
// as a 2-D float32 OME-Zarr image (axes y, x; chunks: the tile's; voxel size:
// the input's), and to png, unless it is nil, as a 16-bit greyscale PNG between
// the percentiles 0.1 and 99.9 of its numbers. Sums are float64 in increasing z,
// divided once and rounded once to float32. NaN and infinite voxels stay in the
// mean; they are counted in the meter.
//
// Each worker takes a chunk column, reads it in pieces that stay in the cache
// where the storage allows it, and needs memory for one piece and two planes.
func Run(ctx context.Context, in *ngff.Image, out store.Writer, layout oct.Layout, png io.Writer, res oct.Resources) (*ngff.Image, error) {
	m, err := oct.OpenMosaic(in)
	if err != nil {
		return nil, err
	}
	switch m.DType {
	case dtype.Uint8:
		return aip[uint8](ctx, m, out, layout, png, res)
	case dtype.Int8:
		return aip[int8](ctx, m, out, layout, png, res)
	case dtype.Uint16:
		return aip[uint16](ctx, m, out, layout, png, res)
	case dtype.Int16:
		return aip[int16](ctx, m, out, layout, png, res)
	case dtype.Uint32:
		return aip[uint32](ctx, m, out, layout, png, res)
	case dtype.Int32:
		return aip[int32](ctx, m, out, layout, png, res)
	case dtype.Uint64:
		return aip[uint64](ctx, m, out, layout, png, res)
	case dtype.Int64:
		return aip[int64](ctx, m, out, layout, png, res)
	case dtype.Float32:
		return aip[float32](ctx, m, out, layout, png, res)
	default:
		return aip[float64](ctx, m, out, layout, png, res)
	}
}

func aip[T dtype.Element](ctx context.Context, m *oct.Mosaic, out store.Writer, layout oct.Layout, png io.Writer, res oct.Resources) (*ngff.Image, error) {
	p, err := planAIP[T](m, res)
	if err != nil {
		return nil, err
	}
	defer p.loader.Close()
	w, err := oct.Create(ctx, out, layout, ngff.ImageSpec{
		Format: m.Format(), Name: m.Image.Name, Shape: m.Shape[1:], DType: dtype.Float32,
		Axes: m.Axes()[1:], Scale: m.Image.Levels[0].Scale[1:], Chunks: m.Chunk[1:], Budget: p.pyramidMem,
	}, m.Chunk[1:], res)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	p.writer = w
	if png != nil {
		p.range16 = filter.NewQuantiles(oct.PNGPercentiles[:]...)
	}
	run, workers := p.work, p.workers
	if res.Device != nil {
		if run, workers, err = p.onDevice(); err != nil {
			return nil, err
		}
	}
	g, gctx := work.WithContext(ctx)
	var next atomic.Int64
	for range workers {
		g.Go(func() error { return run(gctx, &next) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := w.Close(ctx); err != nil {
		return nil, err
	}
	result, err := ngff.Open(ctx, out, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter))
	if err != nil {
		return nil, err
	}
	if png != nil {
		if err := p.picture(ctx, png, result.Levels[0].Array); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// projection is a running AIP.
type projection[T dtype.Element] struct {
	mosaic     *oct.Mosaic
	res        oct.Resources
	loader     *tile.Loader[T]
	writer     *ngff.Writer
	workers    int
	pyramidMem int64
	range16    *filter.Quantiles // nil: no PNG
}

// aipPiece is how much of a raw chunk a worker reads at a time: small enough
// to stay in a core's cache between the read and the sum, large enough that the
// system call does not count.
const aipPiece = 512 << 10

// planAIP decides the pieces and how many workers fit in memory.
func planAIP[T dtype.Element](m *oct.Mosaic, res oct.Resources) (*projection[T], error) {
	p := &projection[T]{mosaic: m, res: res, pyramidMem: res.Mem / 4}
	a := m.Image.Levels[0].Array
	src, err := zarrsource.New(a, zarrsource.PieceBytes(aipPiece), zarrsource.Meter(res.Meter))
	if err != nil {
		return nil, err
	}
	t := src.TileShape(0)
	if rows := m.Chunk[1]; rows < m.Shape[1] && rows%t[1] != 0 || t[2] != m.Chunk[2] {
		// pieces of which a column has no whole number: its planes stay whole
		t = []int{t[0], rows, m.Chunk[2]}
		if src, err = zarrsource.New(a, zarrsource.Tile(t...), zarrsource.Meter(res.Meter)); err != nil {
			return nil, err
		}
	}
	// a view, the sums over its planes and the mean of the column
	view := int64(t[0]) * int64(t[1]) * int64(t[2]) * int64(m.DType.Size())
	each := view + int64(t[1])*int64(t[2])*8 + int64(m.Chunk[1])*int64(m.Chunk[2])*4
	each += src.ScratchBytes()
	avail := res.Mem - p.pyramidMem
	if each > avail {
		return nil, fmt.Errorf("%s: projecting chunks of %v voxels needs %d MiB of buffers, --mem grants %d MiB", m.Where, m.Chunk, (each*4/3)>>20+1, res.Mem>>20)
	}
	p.workers = int(min(int64(res.Workers), avail/each))
	p.loader, err = tile.New[T](src, tile.Inline(), tile.ViewsAvailable(p.workers))
	return p, err
}

// work projects chunk columns until none is left. Where a plane of the tile is
// larger than a piece, the column is walked through in bands of rows.
func (p *projection[T]) work(ctx context.Context, next *atomic.Int64) error {
	c := &column[T]{projection: p, piece: p.loader.TileShape(0), depth: p.loader.Grid(0)[0]}
	c.acc = make([]float64, c.piece[1]*c.piece[2])
	c.mean = make([]float32, p.mosaic.Chunk[1]*p.mosaic.Chunk[2])
	defer c.release()
	ny, nx := p.mosaic.Tiles()
	for {
		i := int(next.Add(1) - 1)
		if i >= ny*nx {
			return nil
		}
		if err := c.project(ctx, i/nx, i%nx); err != nil {
			return err
		}
	}
}

// column is a worker's memory for one chunk column after the other.
type column[T dtype.Element] struct {
	*projection[T]
	view  *tile.View[T]
	piece []int // shape of a view
	depth int   // views along z
	acc   []float64
	mean  []float32
}

// load brings the next piece into the worker's view.
func (c *column[T]) load(ctx context.Context, index ...int) (err error) {
	if c.view == nil {
		c.view, err = c.loader.View(ctx, 0, index)
	} else if err = c.loader.Reload(ctx, c.view, index); err != nil {
		c.view = nil // Reload released it
	}
	return oct.Readable(err)
}

func (c *column[T]) release() {
	if c.view != nil {
		_ = c.view.Release() // once, by its only owner
	}
}

// project makes the mean of chunk column (i, j), of a partial column what lies
// in the image, and writes it.
func (c *column[T]) project(ctx context.Context, i, j int) error {
	m := c.mosaic
	y, x := i*m.Chunk[1], j*m.Chunk[2]
	ny, nx := min(m.Chunk[1], m.Shape[1]-y), min(m.Chunk[2], m.Shape[2]-x)
	mean := c.mean[:ny*nx]
	for row := 0; row < ny; row += c.piece[1] {
		clear(c.acc)
		for k := range c.depth {
			if err := c.load(ctx, k, (y+row)/c.piece[1], j); err != nil {
				return err
			}
			start := time.Now()
			planes := min(c.piece[0], m.Shape[0]-k*c.piece[0])
			c.res.Meter.AddNonFinite(filter.AddPlanes(c.acc, c.view.Data()[:planes*len(c.acc)]))
			c.res.Meter.Since(meter.Compute, start)
			c.res.Done(int64(planes * min(c.piece[1], ny-row) * nx * m.DType.Size()))
		}
		start := time.Now()
		for r := row; r < min(row+c.piece[1], ny); r++ {
			filter.Mean(mean[r*nx:(r+1)*nx], c.acc[(r-row)*c.piece[2]:], m.Shape[0])
		}
		c.res.Meter.Since(meter.Compute, start)
	}
	if c.range16 != nil {
		c.range16.Add(mean)
	}
	return c.writer.WriteTile(ctx, []int{y, x}, []int{ny, nx}, dtype.Bytes(mean))
}

// picture makes the PNG from the stored projection: once more through its
// numbers for the exact percentiles, then row by row.
func (p *projection[T]) picture(ctx context.Context, dst io.Writer, a *zarr.Array) error {
	p.range16.Refine()
	ny, nx := a.Shape()[0], a.Shape()[1]
	rows := oct.BandRows(a, p.res.Mem)
	v := make([]float32, rows*nx)
	for y := 0; y < ny; y += rows {
		n := min(rows, ny-y)
		if err := a.Read(ctx, zarr.Region{Start: []int{y, 0}, Shape: []int{n, nx}}, dtype.Bytes(v[:n*nx])); err != nil {
			return err
		}
		p.range16.Add(v[:n*nx])
	}
	return oct.WritePNG(ctx, dst, a, rows, p.range16.Value(0), p.range16.Value(1))
}
