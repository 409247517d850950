// Package resample changes the voxel size of a mosaic grid. It is the pipeline's resample stage; [Run] does all of
// it.
package resample

import (
	"context"
	"fmt"
	"iter"
	"time"

	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Options configures [Run].
type Options struct {
	Resolution [3]float64 // voxel size of the output along (z, y, x), µm
	// Prefetch is the number of tiles in flight, being read or computed, if the storage is slower than the workers.
	// The actual number is at least that of the workers, and limited by memory.
	Prefetch int
	// Corner samples a tile from its first voxel to its last, and always states Resolution as the voxel size, as
	// linumpy does.
	Corner bool
}

// Voxel returns the voxel size (z, y, x) that one number for all axes, or three, mean.
func Voxel(um []float64) ([3]float64, error) {
	switch len(um) {
	case 1:
		return [3]float64{um[0], um[0], um[0]}, nil
	case 3:
		return [3]float64(um), nil
	}
	return [3]float64{}, fmt.Errorf("has %d numbers: give one, or three for z, y and x", len(um))
}

// Run resamples a mosaic grid (z, y, x) to another voxel size, tile by tile, and writes it as an OME-Zarr image of
// the same data type with the resampled tile as chunk (stages specification, resample).
//
// An axis of n voxels becomes one of m = max(1, n·voxel size/resolution, rounded half to even). If it shrinks, it
// is first blurred by a Gaussian with sigma (n/m−1)/2 voxels, truncated at 4 sigma, with the edge voxel repeated
// beyond the edge. It is then sampled linearly at (i+½)·n/m − ½, clamped to the first and last voxel. The
// output's voxel size is exactly n/m times the mosaic's, so that distances are preserved. Tiles are separate
// exposures: nothing crosses their borders. Partial tiles at the far edges are sampled at the same spacing and
// follow the whole ones.
//
// With Corner, samples lie at i·(n−1)/(m−1), also in partial tiles, whose m follows from their own n, and the
// voxel size is nominal: at a resolution of 10 µm, 36 voxels of 2 µm become 7 that are 11.67 µm apart (256
// voxels: 51, 10.2 µm apart).
//
// Run computes in float32; integers are rounded half to even and clamped. A NaN or infinite voxel makes those
// output voxels non-finite whose filter covers it, up to 2·n/m voxels away, and no others; those of the input are
// counted in the meter.
//
// Planes are filtered as they arrive from raw chunks and from chunks decoded block by block; other chunks are
// decoded whole. A tile in flight needs memory for the encoded chunk, the decoded piece and the resampled tile.
func Run(ctx context.Context, in *ngff.Image, out store.Writer, to Options, layout oct.Layout, res oct.Resources) (*ngff.Image, error) {
	p, err := open(in, out, to, layout, res)
	if err != nil {
		return nil, err
	}
	p.reading = &meter.Meter{}
	if p.source, err = compute.NewSource(p.mosaic, &p.res, p.reading); err != nil {
		return nil, err
	}
	plan := p.plan(res.Mem / 4)
	plan.Ahead = compute.ReadAhead{Pieces: max(1, to.Prefetch), Slow: p.waits}
	if res.Device == nil { // on a device, once there is an output
		if _, err := plan.Check(); err != nil {
			return nil, err
		}
	}
	if err := p.create(ctx, plan, layout); err != nil {
		return nil, err
	}
	defer plan.Output.To.Abort()
	defer p.account()
	next, stop := iter.Pull(ngff.TileOrder(p.grid.shape(), p.grid.tile(), p.mosaic.Image.Axes))
	defer stop()
	ny, nx := p.mosaic.Tiles()
	host := compute.Side[[]int, compute.Resizer]{Plan: plan, Do: p.resample}
	err = compute.RunBoth(ctx, host, ny*nx, next, func(res oct.Resources, mem int64) (compute.Side[[]int, compute.Resizer], error) {
		return p.join(res, mem, plan)
	})
	if err != nil {
		return nil, err
	}
	return p.close(ctx, plan)
}

// join returns a device's side of the resampling, beside the host's plan.
func (p *resampler) join(res oct.Resources, mem int64, host *compute.Plan) (side compute.Side[[]int, compute.Resizer], err error) {
	on := *p
	on.res = res
	if on.source, err = compute.NewSource(p.mosaic, &on.res, res.Meter); err != nil {
		return side, err
	}
	plan := on.plan(0)
	plan.Memory.Host, plan.Output = mem, host.Output
	return compute.Side[[]int, compute.Resizer]{Plan: plan, Do: on.resample}, nil
}

// Feed returns [Run] for a mosaic whose tiles another stage has in hand. in describes the mosaic; its voxels are not
// read. The same bytes are written. Options.Prefetch has no effect.
func Feed(ctx context.Context, in *ngff.Image, out store.Writer, to Options, layout oct.Layout, res oct.Resources) (*compute.Feed, error) {
	p, err := open(in, out, to, layout, res)
	if err != nil {
		return nil, err
	}
	p.source = compute.InHand(p.mosaic, &p.res)
	plan := p.plan(res.Mem / oct.FeedShare)
	plan.NonFinite = func(int64) {} // who has the tiles counts them
	if err := p.create(ctx, plan, layout); err != nil {
		return nil, err
	}
	y, x := p.grid.axes[1], p.grid.axes[2]
	do := func(w compute.Resizer, tile oct.Rectangle) {
		p.resample(w, []int{0, tile.Y0 / y.tile * y.out, tile.X0 / x.tile * x.out})
	}
	return compute.NewFeed(plan, do, func(ctx context.Context) (*ngff.Image, error) { return p.close(ctx, plan) }), nil
}

// open starts the resampling of a mosaic.
func open(in *ngff.Image, out store.Writer, to Options, layout oct.Layout, res oct.Resources) (*resampler, error) {
	m, err := oct.OpenMosaic(in)
	if err != nil {
		return nil, err
	}
	g, err := newRegrid(m, to, "--"+layout.Prefix+"resolution")
	if err != nil {
		return nil, err
	}
	return &resampler{mosaic: m, grid: g, out: out, res: res}, nil
}

// create starts the output.
func (p *resampler) create(ctx context.Context, plan *compute.Plan, layout oct.Layout) (err error) {
	m, g := p.mosaic, p.grid
	plan.Output.To, err = oct.Create(ctx, p.out, layout, ngff.ImageSpec{
		Format: m.Format(), Name: m.Image.Name, Shape: g.shape(), DType: m.DType,
		Axes: m.Axes(), Scale: g.scale, Translation: g.translation, Chunks: g.tile(), Budget: p.res.Mem - plan.Memory.Host, Omero: m.Image.Omero.WithoutWindows(),
		Attributes: oct.ScanAttributes(m.Image),
	}, g.tile(), p.res)
	return err
}

// close completes the output.
func (p *resampler) close(ctx context.Context, plan *compute.Plan) (*ngff.Image, error) {
	if err := plan.Output.To.Close(ctx); err != nil {
		return nil, err
	}
	return ngff.Open(ctx, p.out, "", zarr.Workers(p.res.Workers), zarr.Meter(p.res.Meter))
}

// resampler holds the state of a running resampling.
type resampler struct {
	mosaic  *oct.Mosaic
	grid    *regrid
	out     store.Writer
	res     oct.Resources
	source  *compute.Source
	reading *meter.Meter // of the input
}

// slowStorage is the read rate in bytes per second below which a tile waits for its storage. A worker reads faster
// than that from a cache or a good disk; more tiles at a time would then only evict each other from the
// processor's cache.
const slowStorage = 1 << 30

// plan returns the workers' plan without its output. The pyramid gets the given bytes of memory, or more if a chunk
// needs it.
func (p *resampler) plan(pyramid int64) *compute.Plan {
	m, g := p.mosaic, p.grid
	result := int64(m.DType.Size()) // bytes
	for _, n := range g.tile() {
		result *= int64(n)
	}
	pyramid = max(pyramid, 2*result+16<<10) // room to remake a chunk
	return &compute.Plan{
		What: fmt.Sprintf("resampling tiles of %v voxels to %v", m.Tile(), g.tile()), Source: p.source,
		Operator: &compute.Resizing{Tile: [3]int(g.tile()), Weights: g.weights},
		Memory:   compute.Memory{Host: p.res.Mem - pyramid}, Output: compute.Output{Tile: g.tile()},
	}
}

// waits reports whether tiles wait for their storage.
func (p *resampler) waits() bool {
	busy := p.reading.Busy(meter.Read).Seconds()
	return busy > 0.01 && float64(p.reading.BytesRead()) < busy*slowStorage
}

// account adds the cost of reading to the meter of the run.
func (p *resampler) account() {
	for _, phase := range meter.Phases() {
		p.res.Meter.Since(phase, time.Now().Add(-p.reading.Busy(phase)))
	}
	p.res.Meter.AddRead(p.reading.BytesRead())
}

// resample resamples the tile whose result begins at start, and writes it.
func (p *resampler) resample(w compute.Resizer, start []int) {
	y, ny, outY, outNY := p.grid.axes[1].span(start[1] / p.grid.axes[1].out)
	x, nx, outX, outNX := p.grid.axes[2].span(start[2] / p.grid.axes[2].out)
	result := w.Resize(oct.Rect(y, y+ny, x, x+nx))
	w.Write([]int{0, outY, outX}, []int{p.grid.axes[0].length(), outNY, outNX}, result)
}
