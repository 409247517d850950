package oct

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
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// FocalCurvature says how [Focal] finds the curvature.
type FocalCurvature struct {
	SigmaXY float64 // size of the mean filter along Y and X, px
	SigmaZ  float64 // of the derivative of Gaussian along Z, voxels
	Log     bool    // search in ln(v)

	// Correction is a correction that an earlier run saved, (y, x) in voxels, of
	// the tile's shape: nothing is estimated then. nil: estimate.
	Correction *ngff.Image
	// Maps is where the maps go; nil: nowhere.
	Maps *FocalMaps
}

// FocalMaps is where [Focal] saves what it found, each as a float32 OME-Zarr
// image (y, x) and as a 16-bit greyscale PNG between the percentiles 0.1 and
// 99.9. With a correction of an earlier run only that is saved.
type FocalMaps struct {
	Depth      MapTarget // interface depth z0 of the mosaic plane, voxels
	FlatField  MapTarget // of the tile
	Correction MapTarget // of the tile, voxels
}

// MapTarget is where one map goes.
type MapTarget struct {
	Image store.Writer
	PNG   io.Writer
}

// Focal takes the focal-plane curvature out of a mosaic grid (z, y, x), and
// writes it as an OME-Zarr image of the same type, grid and chunks (stages
// specification, focal):
//
//  1. The depth z0(y, x) of the tissue interface, with a mean filter that reaches
//     across tile borders.
//  2. What all whole tiles have in common of z0/Z: a flat-field F, by BaSiC.
//  3. corr = (F − 1)·mean(z0), mean over the mosaic plane.
//  4. Every A-line rolled circularly along Z by −corr, linearly interpolated in
//     float32; integers are rounded half to even and clamped. Partial tiles use
//     the leading part of corr.
//
// NaN and infinite voxels count as 0 in the search, and reach the two voxels that
// are interpolated from them; they are counted in the meter, with a warning. A
// volume without any gradient has its interface at the first plane. Of a single
// tile all relief is taken for curvature, with a warning.
//
// The mosaic is read twice, tile by tile, once with a saved correction. A
// worker needs memory for a tile and its encoded form; the estimate takes 448 KiB a tile.
func Focal(ctx context.Context, in *ngff.Image, out store.Writer, c FocalCurvature, layout Layout, res Resources) (*ngff.Image, error) {
	m, err := openMosaic(in)
	if err != nil {
		return nil, err
	}
	switch m.dtype {
	case dtype.Uint8:
		return focal[uint8](ctx, m, out, c, layout, res)
	case dtype.Int8:
		return focal[int8](ctx, m, out, c, layout, res)
	case dtype.Uint16:
		return focal[uint16](ctx, m, out, c, layout, res)
	case dtype.Int16:
		return focal[int16](ctx, m, out, c, layout, res)
	case dtype.Uint32:
		return focal[uint32](ctx, m, out, c, layout, res)
	case dtype.Int32:
		return focal[int32](ctx, m, out, c, layout, res)
	case dtype.Uint64:
		return focal[uint64](ctx, m, out, c, layout, res)
	case dtype.Int64:
		return focal[int64](ctx, m, out, c, layout, res)
	case dtype.Float32:
		return focal[float32](ctx, m, out, c, layout, res)
	default:
		return focal[float64](ctx, m, out, c, layout, res)
	}
}

func focal[T dtype.Element](ctx context.Context, m *mosaic, out store.Writer, c FocalCurvature, layout Layout, res Resources) (*ngff.Image, error) {
	if err := checkSearch(c.SigmaXY, c.SigmaZ); err != nil {
		return nil, err
	}
	switch m.dtype {
	case dtype.Uint32, dtype.Int32, dtype.Uint64, dtype.Int64, dtype.Float64:
		res.warn("%s: %v voxels are interpolated in float32, which has 24 significant bits", m.where, m.dtype)
	}
	// what cannot be written is said before anything is read
	r := planRoll(m, layout, res)
	var pass interface {
		run(ctx context.Context, corr []float32) error
	}
	var err error
	if res.Device == nil {
		if pass, err = rollOnCPU[T](r); err != nil {
			return nil, err
		}
	}
	w, err := r.create(ctx, out, layout)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	if res.Device != nil {
		if pass, err = rollOnDevice(r); err != nil {
			return nil, err
		}
	}
	var corr []float32
	if c.Correction != nil {
		corr, err = readCorrection(ctx, m, c.Correction)
		if err == nil && c.Maps != nil {
			err = saveTileMap(ctx, m, c.Maps.Correction, "correction", corr, layout, res)
		}
	} else {
		corr, err = estimate[T](ctx, m, c, layout, res)
	}
	if err != nil {
		return nil, err
	}
	if err := pass.run(ctx, corr); err != nil {
		return nil, err
	}
	if err := w.Close(ctx); err != nil {
		return nil, err
	}
	if n := r.nonFinite.Load(); n > 0 {
		res.Meter.AddNonFinite(n)
		res.warn("%s: %d voxels are NaN or infinite: the interface was searched as if they were 0, and they stay in the output", m.where, n)
	}
	return ngff.Open(ctx, out, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter))
}

// checkSearch refuses filters that are none, by the names of their flags.
func checkSearch(sigmaXY, sigmaZ float64) error {
	switch {
	case !(sigmaXY >= 0) || sigmaXY > 1<<20:
		return layoutError{fmt.Errorf("--sigma_xy is %v, must be from 0 to %d", sigmaXY, 1<<20)}
	case !(sigmaZ > 0) || sigmaZ > 1<<20:
		return layoutError{fmt.Errorf("--sigma_z is %v, must be above 0, at most %d", sigmaZ, 1<<20)}
	}
	return nil
}

// estimate finds the correction, the first pass over the mosaic.
func estimate[T dtype.Element](ctx context.Context, m *mosaic, c FocalCurvature, layout Layout, res Resources) ([]float32, error) {
	whole := (m.shape[1] / m.chunk[1]) * (m.shape[2] / m.chunk[2])
	if whole == 1 {
		res.warn("%s: a single whole tile: the relief of the tissue is taken for curvature", m.where)
	}
	images := int64(whole) * basic.Size * basic.Size * 4
	if need := images + basic.Memory(whole); need > res.Mem {
		return nil, fmt.Errorf("%s: the flat-field of %d tiles needs %d MiB of buffers, --mem grants %d MiB", m.where, whole, need>>20+1, res.Mem>>20)
	}
	d := &depths{mosaic: m, images: make([]float32, images/4), open: map[[2]int]*depthTile{}}
	ny, nx := m.tiles()
	reserved := images + int64(2*min(ny, nx)+2)*4*int64(m.chunk[1])*int64(m.chunk[2]) // tiles that wait for neighbours
	if c.Maps != nil {
		var err error
		budget := max(res.Mem/16, 16*int64(m.chunk[1])*int64(m.chunk[2])+64<<10)
		reserved += budget
		if d.writer, err = createMap(ctx, m, c.Maps.Depth.Image, "interface depth", m.shape[1:], budget, layout.Levels, layout, res); err != nil {
			return nil, err
		}
		defer d.writer.Abort()
	}
	search := filter.InterfaceSearch{SigmaXY: c.SigmaXY, SigmaZ: c.SigmaZ, Log: c.Log}
	if err := findInterfaces[T](ctx, m, search, res, reserved, false, d.take, nil); err != nil {
		return nil, err
	}
	start := time.Now()
	field := make([]float32, m.chunk[1]*m.chunk[2])
	basic.Enlarge(field, basic.FlatField(d.images), m.chunk[1], m.chunk[2])
	mean := float64(d.sum.Load()) / (float64(m.shape[1]) * float64(m.shape[2]))
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

// depths collects the interfaces of the tiles.
type depths struct {
	mosaic *mosaic
	images []float32    // whole tiles' z0/Z at BaSiC's working size
	sum    atomic.Int64 // of all z0
	writer *ngff.Writer // nil: no map

	mu   sync.Mutex
	open map[[2]int]*depthTile
}

// depthTile is a tile whose interfaces are coming in.
type depthTile struct {
	depth []float32
	left  int // A-lines to come
}

// take is given the interfaces of a rectangle.
func (d *depths) take(ctx context.Context, r rectangle, depth []int32, _ []float32) error {
	var sum int64
	for _, z := range depth {
		sum += int64(z)
	}
	d.sum.Add(sum)
	m := d.mosaic
	for i := r.y0 / m.chunk[1]; i*m.chunk[1] < r.y1; i++ {
		for j := r.x0 / m.chunk[2]; j*m.chunk[2] < r.x1; j++ {
			if err := d.put(ctx, i, j, r, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// put takes over a rectangle's part in one tile.
func (d *depths) put(ctx context.Context, i, j int, r rectangle, depth []int32) error {
	at := d.mosaic.extent(i, j)
	d.mu.Lock()
	t := d.open[[2]int{i, j}]
	if t == nil {
		t = &depthTile{make([]float32, at.area()), at.area()}
		d.open[[2]int{i, j}] = t
	}
	d.mu.Unlock()
	part := at.and(r)
	for y := part.y0; y < part.y1; y++ {
		from := depth[(y-r.y0)*r.width()+part.x0-r.x0:][:part.width()]
		to := t.depth[(y-at.y0)*at.width()+part.x0-at.x0:]
		for k, z := range from {
			to[k] = float32(z)
		}
	}
	d.mu.Lock()
	t.left -= part.area()
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

// complete hands on a tile whose interfaces are all there.
func (d *depths) complete(ctx context.Context, i, j int, at rectangle, depth []float32) error {
	m := d.mosaic
	if d.writer != nil {
		if err := d.writer.WriteTile(ctx, []int{at.y0, at.x0}, []int{at.height(), at.width()}, dtype.Bytes(depth)); err != nil {
			return err
		}
	}
	if at.height() < m.chunk[1] || at.width() < m.chunk[2] {
		return nil
	}
	for k, z := range depth {
		depth[k] = float32(float64(z) / float64(m.shape[0]))
	}
	n := basic.Size * basic.Size
	k := i*(m.shape[2]/m.chunk[2]) + j // among the whole tiles
	basic.Shrink(d.images[k*n:(k+1)*n], depth, m.chunk[1], m.chunk[2])
	return nil
}

// rolling is the second pass: every A-line moved by the correction.
type rolling struct {
	mosaic     *mosaic
	res        Resources
	chunk      int64 // bytes of an output chunk
	pyramidMem int64
	writer     *ngff.Writer
	nonFinite  atomic.Int64

	mu   sync.Mutex
	next func() ([]int, bool) // start of the next tile
}

// roll is the second pass on the CPU.
type roll[T dtype.Element] struct {
	*rolling
	columns *columns[T]
	workers int
}

func planRoll(m *mosaic, layout Layout, res Resources) *rolling {
	chunk := m.tileBytes()
	if layout.Chunks == nil {
		chunk = chunk / int64(m.shape[0]) * int64(m.chunk[0])
	}
	return &rolling{mosaic: m, res: res, chunk: chunk, pyramidMem: max(res.Mem/4, 2*chunk+64<<10)}
}

// rollOnCPU plans the pass on the CPU.
func rollOnCPU[T dtype.Element](r *rolling) (*roll[T], error) {
	m, res := r.mosaic, r.res
	c, err := newColumns[T](m, res)
	if err != nil {
		return nil, err
	}
	each := m.tileBytes() + max(c.scratch, r.chunk) + workspace(m) // read, then rolled in place and encoded
	if each+r.pyramidMem > res.Mem {
		return nil, fmt.Errorf("%s: rolling tiles of %v voxels needs %d MiB of buffers, --mem grants %d MiB",
			m.where, m.tile(), max(each*4/3, each+r.pyramidMem)>>20+1, res.Mem>>20)
	}
	workers := int(min(int64(res.Workers), (res.Mem-r.pyramidMem)/each))
	r.pyramidMem = res.Mem - int64(workers)*each // what is left: a chunk without room is made from stored ones
	return &roll[T]{rolling: r, columns: c, workers: workers}, nil
}

// create starts the output.
func (r *rolling) create(ctx context.Context, out store.Writer, layout Layout) (*ngff.Writer, error) {
	m := r.mosaic
	piece := m.tile()
	if len(layout.Chunks) == 3 && layout.Chunks[0] > 0 { // along Z a tile ends with the mosaic
		piece[0] = (piece[0] + layout.Chunks[0] - 1) / layout.Chunks[0] * layout.Chunks[0]
	}
	level := m.image.Levels[0]
	w, err := create(ctx, out, layout, ngff.ImageSpec{
		Format: m.format(), Name: m.image.Name, Shape: m.shape[:], DType: m.dtype,
		Axes: m.axes(), Scale: level.Scale, Translation: level.Translation, Chunks: m.chunk[:], Budget: r.pyramidMem,
	}, piece, r.res)
	r.writer = w
	return w, err
}

// inOrder lets workers roll tiles, which they get from another.
func (r *rolling) inOrder(ctx context.Context, workers int, roll func(ctx context.Context) error) error {
	next, stop := iter.Pull(ngff.TileOrder(r.mosaic.shape[:], r.mosaic.tile(), r.mosaic.image.Axes))
	defer stop()
	r.next = next
	g, ctx := work.WithContext(ctx)
	for range workers {
		g.Go(func() error { return roll(ctx) })
	}
	return g.Wait()
}

func (r *roll[T]) run(ctx context.Context, corr []float32) error {
	return r.inOrder(ctx, r.workers, func(ctx context.Context) error {
		v, err := newTileBuffer[T](r.mosaic.tileBytes())
		if err != nil {
			return err
		}
		defer v.free()
		w := &filter.RollWorkspace{}
		for {
			at, ok := r.another()
			if !ok {
				return nil
			}
			if err := r.tile(ctx, w, v, at, corr); err != nil {
				return err
			}
		}
	})
}

// another is the next tile.
func (r *rolling) another() (rectangle, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	start, ok := r.next()
	if !ok {
		return rectangle{}, false
	}
	return r.mosaic.extent(start[1]/r.mosaic.chunk[1], start[2]/r.mosaic.chunk[2]), true
}

func (r *roll[T]) tile(ctx context.Context, w *filter.RollWorkspace, v *tileBuffer[T], at rectangle, corr []float32) error {
	m := r.mosaic
	if err := r.columns.read(ctx, v, 0, m.shape[0], at); err != nil {
		return err
	}
	start := time.Now()
	n := filter.Roll(w, v.data, m.shape[0], at.height(), at.width(), corr, m.chunk[2])
	r.nonFinite.Add(n)
	r.res.Meter.Since(meter.Compute, start)
	if err := r.writer.WriteTile(ctx, []int{0, at.y0, at.x0}, []int{m.shape[0], at.height(), at.width()}, dtype.Bytes(v.data)); err != nil {
		return err
	}
	r.res.progress(int64(len(v.data) * m.dtype.Size()))
	return nil
}
