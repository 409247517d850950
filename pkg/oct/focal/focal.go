// Package focal removes the curvature of the focal plane from a mosaic grid. It is the pipeline's focal stage;
// [Run] does all of it.
package focal

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/filter/basic"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute"
	"strata/pkg/oct/surface"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Options configures how [Run] finds the curvature.
type Options struct {
	SigmaXY float64 // size of the mean filter along Y and X, px
	SigmaZ  float64 // of the derivative of Gaussian along Z, voxels
	Log     bool    // search in the logarithm, ln(v)

	// Correction is a correction saved by an earlier run: (y, x) in voxels, of the tile's shape. If it is set, nothing
	// is estimated.
	Correction *ngff.Image
	// Maps receives the maps; nil: none are saved.
	Maps *Maps
}

// Maps holds the destinations of what [Run] finds. Each map is saved as a float32 OME-Zarr image (y, x) and as a
// 16-bit greyscale PNG that spans the percentiles 0.1 to 99.9. With a saved correction, only Correction is
// written.
type Maps struct {
	Depth      MapTarget // interface depth z0 of the mosaic plane, voxels
	FlatField  MapTarget // of the tile
	Correction MapTarget // of the tile, voxels
}

// MapTarget holds the destinations of one map.
type MapTarget struct {
	Image store.Writer
	PNG   io.Writer
}

// Run removes the focal-plane curvature from a mosaic grid (z, y, x) and writes the result as an OME-Zarr image of
// the same type, grid and chunks (stages specification, focal):
//
// 1. Find the depth z0(y, x) of the tissue interface, with a mean filter that reaches across tile borders.
// 2. Estimate what the z0/Z of all whole tiles have in common: a flat-field F, by BaSiC.
// 3. Compute corr = (F − 1)·mean(z0), with the mean over the mosaic plane.
// 4. Roll every A-line circularly along Z by −corr, linearly interpolated in float32; integers are rounded half
// to even and clamped. Partial tiles use the leading part of corr.
//
// NaN and infinite voxels count as 0 in the search and spread to the two voxels interpolated from them; they are
// counted in the meter, with a warning. A volume without any gradient has its interface at the first plane. With a
// single whole tile, all relief is taken for curvature, with a warning.
//
// Run reads the mosaic twice, tile by tile, or once with a saved correction. A worker needs memory for a tile and
// its encoded form; the estimate takes 192 KiB a tile.
func Run(ctx context.Context, in *ngff.Image, out store.Writer, c Options, layout oct.Layout, res oct.Resources) (*ngff.Image, error) {
	m, err := oct.OpenMosaic(in)
	if err != nil {
		return nil, err
	}
	if err := surface.CheckSearch(c.SigmaXY, c.SigmaZ); err != nil {
		return nil, err
	}
	switch m.DType {
	case dtype.Uint32, dtype.Int32, dtype.Uint64, dtype.Int64, dtype.Float64:
		res.Warnf("%s: %v voxels are interpolated in float32, which has 24 significant bits", m.Where, m.DType)
	}
	if c.Correction == nil {
		res.Coming = res.Coming.Pass(2)
	}
	// what cannot be written is said before anything is read
	r, err := planRoll(ctx, m, out, layout, res)
	if err != nil {
		return nil, err
	}
	defer r.plan.Output.To.Abort()
	var corr []float32
	if c.Correction != nil {
		corr, err = readCorrection(ctx, m, c.Correction)
		if err == nil && c.Maps != nil {
			err = saveTileMap(ctx, m, c.Maps.Correction, "correction", corr, layout, res)
		}
	} else {
		corr, err = estimate(ctx, m, c, layout, res)
	}
	if err != nil {
		return nil, err
	}
	if err := r.run(ctx, corr); err != nil {
		return nil, err
	}
	if err := r.plan.Output.To.Close(ctx); err != nil {
		return nil, err
	}
	if n := r.nonFinite.Load(); n > 0 {
		res.Meter.AddNonFinite(n)
		res.Warnf("%s: %d voxels are NaN or infinite: the interface was searched as if they were 0, and they stay in the output", m.Where, n)
	}
	return ngff.Open(ctx, out, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter))
}

// estimate returns the correction, in the first pass over the mosaic.
func estimate(ctx context.Context, m *oct.Mosaic, c Options, layout oct.Layout, res oct.Resources) ([]float32, error) {
	whole := (m.Shape[1] / m.Chunk[1]) * (m.Shape[2] / m.Chunk[2])
	if whole == 1 {
		res.Warnf("%s: there is only one whole tile: the relief of its tissue is removed as if it were curvature", m.Where)
	}
	images := int64(whole) * basic.Size * basic.Size * 4
	if need := images + basic.Memory(whole); need > res.Mem {
		return nil, res.TooLittle(need, "%s: the flat-field of %d tiles", m.Where, whole)
	}
	d := &depths{mosaic: m, all: surface.NewDepths(m.Shape[0], c.SigmaXY), images: make([]float32, images/4), open: map[[2]int]*depthTile{}}
	ny, nx := m.Tiles()
	reserved := images + int64(2*min(ny, nx)+2)*4*int64(m.Chunk[1])*int64(m.Chunk[2]) // tiles that wait for neighbours
	if c.Maps != nil {
		var err error
		budget := max(res.Mem/16, 16*int64(m.Chunk[1])*int64(m.Chunk[2])+64<<10)
		reserved += budget
		if d.writer, err = createMap(ctx, c.Maps.Depth.Image, mapSpec(m, "interface depth", m.Shape[1:], budget), layout.Levels, layout, res); err != nil {
			return nil, err
		}
		defer d.writer.Abort()
	}
	search := filter.InterfaceSearch{SigmaXY: c.SigmaXY, SigmaZ: c.SigmaZ, Log: c.Log}
	if err := surface.FindInterfaces(ctx, m, search, res, reserved, true, d.take, nil); err != nil {
		return nil, err
	}
	if d.all.Noise() {
		res.Warnf("%s: %s: what is taken for curvature is none", m.Where, surface.NoiseText)
	}
	start := time.Now()
	solver := basic.Approximate()
	solver.Each = res.Each(ctx)
	common, err := solver.FlatField(d.images)
	if err != nil {
		return nil, err
	}
	field := make([]float32, m.Chunk[1]*m.Chunk[2])
	basic.Enlarge(field, common.Pixels, m.Chunk[1], m.Chunk[2])
	mean := float64(d.sum.Load()) / (float64(m.Shape[1]) * float64(m.Shape[2]))
	corr := make([]float32, len(field))
	for i, f := range field {
		corr[i] = float32(float64(f-1) * mean)
	}
	res.Meter.Since(meter.Compute, start)
	if c.Maps == nil {
		return corr, nil
	}
	if err := d.writer.Close(ctx); err != nil {
		return nil, err
	}
	if err := mapPicture(ctx, c.Maps.Depth, res); err != nil {
		return nil, err
	}
	if err := saveTileMap(ctx, m, c.Maps.FlatField, "flat-field", field, layout, res); err != nil {
		return nil, err
	}
	return corr, saveTileMap(ctx, m, c.Maps.Correction, "correction", corr, layout, res)
}

// depths collects the interface depths of the tiles.
type depths struct {
	mosaic *oct.Mosaic
	all    *surface.Depths
	images []float32    // whole tiles' z0/Z at BaSiC's working size
	sum    atomic.Int64 // of all z0
	writer *ngff.Writer // nil: no map

	mu   sync.Mutex
	open map[[2]int]*depthTile
}

// depthTile holds the interface depths of a tile until they are complete.
type depthTile struct {
	depth []float32
	left  int // A-lines missing
}

// take distributes the interface depths of a rectangle over the tiles that it overlaps.
func (d *depths) take(ctx context.Context, r oct.Rectangle, depth []int32, gradient []float32) error {
	d.all.Add(r, depth, gradient)
	var sum int64
	for _, z := range depth {
		sum += int64(z)
	}
	d.sum.Add(sum)
	m := d.mosaic
	for i := r.Y0 / m.Chunk[1]; i*m.Chunk[1] < r.Y1; i++ {
		for j := r.X0 / m.Chunk[2]; j*m.Chunk[2] < r.X1; j++ {
			if err := d.put(ctx, i, j, r, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// put copies a rectangle's depths into tile (i, j) and completes the tile if they were the last.
func (d *depths) put(ctx context.Context, i, j int, r oct.Rectangle, depth []int32) error {
	at := d.mosaic.Extent(i, j)
	d.mu.Lock()
	t := d.open[[2]int{i, j}]
	if t == nil {
		t = &depthTile{make([]float32, at.Area()), at.Area()}
		d.open[[2]int{i, j}] = t
	}
	d.mu.Unlock()
	part := at.And(r)
	for y := part.Y0; y < part.Y1; y++ {
		from := depth[(y-r.Y0)*r.Width()+part.X0-r.X0:][:part.Width()]
		to := t.depth[(y-at.Y0)*at.Width()+part.X0-at.X0:]
		for k, z := range from {
			to[k] = float32(z)
		}
	}
	d.mu.Lock()
	t.left -= part.Area()
	done := t.left == 0
	if done {
		delete(d.open, [2]int{i, j})
	}
	d.mu.Unlock()
	if !done {
		return nil
	}
	return d.complete(ctx, i, j, at, t.depth)
}

// complete writes the depths of a tile to the map. If the tile is whole, it also shrinks them for BaSiC.
func (d *depths) complete(ctx context.Context, i, j int, at oct.Rectangle, depth []float32) error {
	m := d.mosaic
	if d.writer != nil {
		if err := d.writer.WriteTile(ctx, []int{at.Y0, at.X0}, []int{at.Height(), at.Width()}, dtype.Bytes(depth)); err != nil {
			return err
		}
	}
	if at.Height() < m.Chunk[1] || at.Width() < m.Chunk[2] {
		return nil
	}
	for k, z := range depth {
		depth[k] = float32(float64(z) / float64(m.Shape[0]))
	}
	n := basic.Size * basic.Size
	k := i*(m.Shape[2]/m.Chunk[2]) + j // among the whole tiles
	basic.Triangles(m.Chunk[1], m.Chunk[2]).Shrink(d.images[k*n:(k+1)*n], depth, m.Chunk[1], m.Chunk[2])
	return nil
}

// rolling holds the second pass, which moves every A-line by the correction.
type rolling struct {
	mosaic    *oct.Mosaic
	res       oct.Resources
	plan      *compute.Plan
	by        *compute.Rolling // of the plan
	nonFinite atomic.Int64
}

// planRoll plans the second pass and starts the output.
func planRoll(ctx context.Context, m *oct.Mosaic, out store.Writer, layout oct.Layout, res oct.Resources) (*rolling, error) {
	chunk := m.TileBytes()
	if layout.Chunks == nil {
		chunk = chunk / int64(m.Shape[0]) * int64(m.Chunk[0])
	}
	pyramid := max(res.Mem/4, 2*chunk+64<<10)
	r := &rolling{mosaic: m, res: res, by: &compute.Rolling{Chunk: chunk}}
	source, err := compute.NewSource(m, &r.res, res.Meter)
	if err != nil {
		return nil, err
	}
	if err := source.Whole(res.Meter); err != nil {
		return nil, err
	}
	r.plan = r.planOf(source, res.Mem-pyramid, r.by)
	if res.Device == nil {
		r.plan.What += fmt.Sprintf(" tiles of %v voxels", m.Tile())
		left, err := r.plan.Check()
		if err != nil {
			return nil, err
		}
		if res.Coming != nil {
			left /= 2 // for a device that joins
		}
		pyramid += left // a chunk without room is made from stored ones
	}
	piece := m.Tile()
	if len(layout.Chunks) == 3 && layout.Chunks[0] > 0 { // along Z a tile ends with the mosaic
		piece[0] = (piece[0] + layout.Chunks[0] - 1) / layout.Chunks[0] * layout.Chunks[0]
	}
	level := m.Image.Levels[0]
	if r.plan.Output.To, err = oct.Create(ctx, out, layout, ngff.ImageSpec{
		Format: m.Format(), Name: m.Image.Name, Shape: m.Shape[:], DType: m.DType,
		Axes: m.Axes(), Scale: level.Scale, Translation: level.Translation, Chunks: m.Chunk[:], Budget: pyramid, Omero: m.Image.Omero.WithoutWindows(),
		Attributes: oct.ScanAttributes(m.Image),
	}, piece, res); err != nil || res.Device == nil {
		return r, err
	}
	if _, err := r.plan.Check(); err != nil {
		r.plan.Output.To.Abort()
		return nil, err
	}
	return r, nil
}

// planOf returns the plan for the host or a device.
func (r *rolling) planOf(source *compute.Source, mem int64, by *compute.Rolling) *compute.Plan {
	return &compute.Plan{
		What: "rolling", Source: source, Operator: by,
		Memory: compute.Memory{Host: mem}, Output: compute.Output{Tile: r.mosaic.Tile()},
		NonFinite: func(n int64) { r.nonFinite.Add(n) },
	}
}

// run rolls all tiles.
func (r *rolling) run(ctx context.Context, corr []float32) error {
	shifts, free, err := compute.Shared(&r.res, corr)
	if err != nil {
		return err
	}
	defer free()
	r.by.Shifts = shifts
	m := r.mosaic
	next, stop := iter.Pull(ngff.TileOrder(m.Shape[:], m.Tile(), m.Image.Axes))
	defer stop()
	ny, nx := m.Tiles()
	return compute.RunBoth(ctx, compute.Side[[]int, compute.Roller]{Plan: r.plan, Do: r.roll}, ny*nx, next, func(res oct.Resources, mem int64) (compute.Side[[]int, compute.Roller], error) {
		return r.join(res, mem/2, corr) // the pyramid has the other half
	})
}

// roll rolls the tile that begins at start.
func (r *rolling) roll(w compute.Roller, start []int) {
	m := r.mosaic
	w.RollTile(m.Extent(start[1]/m.Chunk[1], start[2]/m.Chunk[2]))
}

// join returns a device's side of the rolling.
func (r *rolling) join(res oct.Resources, mem int64, corr []float32) (side compute.Side[[]int, compute.Roller], err error) {
	source, err := compute.NewSource(r.mosaic, &res, res.Meter)
	if err != nil {
		return side, err
	}
	by := &compute.Rolling{Chunk: r.by.Chunk}
	plan := r.planOf(source, mem, by)
	plan.Output = r.plan.Output
	if by.Shifts, side.Free, err = compute.Shared(&res, corr); err != nil {
		return side, err
	}
	side.Plan, side.Do = plan, r.roll
	return side, nil
}
