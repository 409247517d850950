// Package aip projects a mosaic grid along z: each output pixel is the mean of an A-line. It is the pipeline's aip
// stage; [Run] does all of it.
package aip

import (
	"context"
	"fmt"
	"io"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Run writes the average intensity projection of a mosaic grid (z, y, x),
//
//	out[y, x] = mean over z of in[z, y, x]
//
// as a 2-D float32 OME-Zarr image with axes y and x, the tiles as chunks and the input's voxel size. Unless png is
// nil, it also writes a 16-bit greyscale PNG that spans the percentiles 0.1 to 99.9. Sums are float64 in
// increasing z, divided once and rounded once to float32. NaN and infinite voxels stay in the mean and are counted
// in the meter.
//
// Each worker processes one chunk column at a time. It reads the column in pieces that fit the cache if the
// storage allows it, and needs memory for one piece and two planes. On a device each tile is uploaded once; its
// mean in stored form and 8 bytes come back, or the raw mean if png is not nil. A device that is coming joins the host.
func Run(ctx context.Context, in *ngff.Image, out store.Writer, layout oct.Layout, png *Picture, res oct.Resources) (*ngff.Image, error) {
	p, err := open(in, out, png, res)
	if err != nil {
		return nil, err
	}
	if p.source, err = compute.NewSource(p.mosaic, &p.res, res.Meter); err != nil {
		return nil, err
	}
	p.source.InBands()
	p.pyramid = res.Mem / 4
	if err := p.create(ctx, layout); err != nil {
		return nil, err
	}
	defer p.writer.Abort()
	ny, nx := p.mosaic.Tiles()
	host := compute.Side[oct.Rectangle, compute.Projector]{Plan: p.plan(), Do: p.project}
	if err := compute.RunBoth(ctx, host, ny*nx, p.mosaic.EachTile(), p.join); err != nil {
		return nil, err
	}
	return p.close(ctx)
}

// join returns a device's side of the projection.
func (p *projection) join(res oct.Resources, mem int64) (side compute.Side[oct.Rectangle, compute.Projector], err error) {
	on := *p
	on.res = res
	if on.source, err = compute.NewSource(p.mosaic, &on.res, res.Meter); err != nil {
		return side, err
	}
	plan := on.plan()
	plan.Memory.Host = mem
	return compute.Side[oct.Rectangle, compute.Projector]{Plan: plan, Do: on.project}, nil
}

// Feed returns [Run] for a mosaic whose tiles another stage has in hand. in describes the mosaic; its voxels are not
// read. The same bytes are written.
func Feed(ctx context.Context, in *ngff.Image, out store.Writer, layout oct.Layout, png *Picture, res oct.Resources) (*compute.Feed, error) {
	p, err := open(in, out, png, res)
	if err != nil {
		return nil, err
	}
	p.source = compute.InHand(p.mosaic, &p.res)
	pixels := int64(p.mosaic.Chunk[1]) * int64(p.mosaic.Chunk[2])
	p.pyramid = max(res.Mem/oct.FeedShare, 8*pixels+16<<10) // room to remake a chunk
	if err := p.create(ctx, layout); err != nil {
		return nil, err
	}
	plan := p.plan()
	plan.NonFinite = func(int64) {} // who has the tiles counts them
	return compute.NewFeed(plan, p.project, p.close), nil
}

// open starts the projection of a mosaic.
func open(in *ngff.Image, out store.Writer, png *Picture, res oct.Resources) (*projection, error) {
	m, err := oct.OpenMosaic(in)
	if err != nil {
		return nil, err
	}
	p := &projection{mosaic: m, out: out, res: res, png: png}
	if png != nil {
		p.range16 = filter.NewQuantiles(oct.PNGPercentiles[:]...)
	}
	return p, nil
}

// create starts the output.
func (p *projection) create(ctx context.Context, layout oct.Layout) (err error) {
	m := p.mosaic
	p.writer, err = oct.Create(ctx, p.out, layout, ngff.ImageSpec{
		Format: m.Format(), Name: m.Image.Name, Shape: m.Shape[1:], DType: dtype.Float32,
		Axes: m.Axes()[1:], Scale: m.Image.Levels[0].Scale[1:], Chunks: m.Chunk[1:], Budget: p.pyramid, Omero: m.Image.Omero.WithoutWindows(),
	}, m.Chunk[1:], p.res)
	return err
}

// close completes the output, and draws the picture.
func (p *projection) close(ctx context.Context) (*ngff.Image, error) {
	if err := p.writer.Close(ctx); err != nil {
		return nil, err
	}
	result, err := ngff.Open(ctx, p.out, "", zarr.Workers(p.res.Workers), zarr.Meter(p.res.Meter))
	if err != nil {
		return nil, err
	}
	if p.png != nil {
		if err := p.picture(ctx, p.png, result); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// Picture is the destination of a projection's PNG, and whether a scale bar in µm follows below its last row.
type Picture struct {
	To       io.Writer
	ScaleBar bool
}

// projection holds the state of a running projection.
type projection struct {
	mosaic  *oct.Mosaic
	out     store.Writer
	res     oct.Resources
	source  *compute.Source
	pyramid int64 // bytes of memory for the pyramid levels below level 0
	writer  *ngff.Writer
	png     *Picture          // nil: no PNG
	range16 *filter.Quantiles // likewise
}

// Indices of a worker's blocks.
const (
	sums = iota // float64, of a part of a tile
	mean        // float32, of a tile
)

func (p *projection) plan() *compute.Plan {
	m := p.mosaic
	pixels := int64(m.Chunk[1]) * int64(m.Chunk[2])
	plan := &compute.Plan{
		What: fmt.Sprintf("projecting chunks of %v voxels", m.Chunk), Source: p.source,
		Memory: compute.Memory{Host: p.res.Mem - p.pyramid, Blocks: []int64{sums: 8 * p.source.Pixels(), mean: 4 * pixels}},
		Output: compute.Output{To: p.writer, Tile: m.Chunk[1:]},
	}
	if p.range16 != nil {
		plan.Output.Look = func(b []byte) { p.range16.Add(dtype.Slice[float32](b)) }
	}
	return plan
}

// project computes the mean of a tile and writes it.
func (p *projection) project(w compute.Projector, tile oct.Rectangle) {
	depth := p.mosaic.Shape[0]
	for _, part := range p.source.Parts(tile) {
		pixels := part.Area()
		sums := w.Block(sums).From(0, 8*int64(pixels))
		w.Stream(part, func(z, n int, planes compute.Block) { w.AddPlanes(sums, planes, n, pixels, z == 0) })
		w.Mean(w.Block(mean).From(4*int64(part.Y0-tile.Y0)*int64(tile.Width()), 4*int64(pixels)), sums, depth, pixels)
	}
	mean := w.Block(mean).From(0, 4*int64(tile.Area()))
	w.Write([]int{tile.Y0, tile.X0}, []int{tile.Height(), tile.Width()}, mean)
}

// picture writes the PNG from the stored projection: it reads all values once for the exact percentiles, then once
// more row by row.
func (p *projection) picture(ctx context.Context, png *Picture, im *ngff.Image) error {
	p.range16.Refine()
	a, pixel := im.Levels[0].Array, 0.0
	if png.ScaleBar {
		pixel = im.VoxelSize[1]
	}
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
	return oct.WritePNG(ctx, png.To, a, rows, p.range16.Value(0), p.range16.Value(1), pixel)
}
