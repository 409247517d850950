// Package resample is the stage that brings a mosaic grid to another voxel size.
package resample

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/oct"
	"strata/pkg/oct/machine"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Options says what [Run] makes of a mosaic.
type Options struct {
	Resolution [3]float64 // voxel size of the output along (z, y, x), µm
	// Prefetch is how many tiles are in flight, read ahead or worked on, when the
	// storage is slower than the workers. There are at least as many as workers, and
	// no more than fit in memory.
	Prefetch int
	// Corner samples a tile from its first voxel to its last, and states the Resolution as the voxel size, whatever it is: what
	// linumpy does.
	Corner bool
}

// Run brings a mosaic grid (z, y, x) to another voxel size, tile by tile,
// and writes it as an OME-Zarr image of the same data type with the resampled
// tile as chunk (stages specification, resample).
//
// An axis of n voxels becomes one of m = max(1, n·voxel size/resolution, rounded
// half to even). Where it shrinks it is blurred by a Gaussian with sigma
// (n/m−1)/2 voxels, cut off at 4 sigma, the edge voxel repeated beyond the edge;
// then sampled linearly at (i+½)·n/m − ½, no further than the first and the last voxel. The voxel size of the output is
// n/m times that of the mosaic, along all of it: distances stay what they were. Tiles are separate exposures: nothing
// crosses their borders. Partial tiles at the far edges are sampled at the same distances, and lie behind the whole ones.
//
// With Corner samples lie at i·(n−1)/(m−1), also in partial tiles, whose m is the rule's for their own n, and the voxel size
// is nominal: 36 voxels of 2 µm become 7 that are 11.67 µm apart at a resolution of 10 µm (256 voxels: 51, 10.2 µm apart).
//
// Computed in float32; integers are rounded half to even and clamped. A NaN or
// infinite voxel makes the voxels non-finite whose filter it lies in, up to 2·n/m
// voxels away, and no others; those of the input are counted in the meter.
//
// Planes are filtered as they come from raw chunks and from those that are
// decoded block by block; other chunks are decoded whole. A tile in flight needs
// memory for the encoded chunk, the decoded piece, and the resampled tile.
func Run(ctx context.Context, in *ngff.Image, out store.Writer, to Options, layout oct.Layout, res oct.Resources) (*ngff.Image, error) {
	m, err := oct.OpenMosaic(in)
	if err != nil {
		return nil, err
	}
	switch m.DType {
	case dtype.Uint8:
		return resample[uint8](ctx, m, out, to, layout, res)
	case dtype.Int8:
		return resample[int8](ctx, m, out, to, layout, res)
	case dtype.Uint16:
		return resample[uint16](ctx, m, out, to, layout, res)
	case dtype.Int16:
		return resample[int16](ctx, m, out, to, layout, res)
	case dtype.Uint32:
		return resample[uint32](ctx, m, out, to, layout, res)
	case dtype.Int32:
		return resample[int32](ctx, m, out, to, layout, res)
	case dtype.Uint64:
		return resample[uint64](ctx, m, out, to, layout, res)
	case dtype.Int64:
		return resample[int64](ctx, m, out, to, layout, res)
	case dtype.Float32:
		return resample[float32](ctx, m, out, to, layout, res)
	default:
		return resample[float64](ctx, m, out, to, layout, res)
	}
}

func resample[T dtype.Element](ctx context.Context, m *oct.Mosaic, out store.Writer, to Options, layout oct.Layout, res oct.Resources) (*ngff.Image, error) {
	g, err := newRegrid(m, to)
	if err != nil {
		return nil, err
	}
	p, err := planResample(m, g, to.Prefetch, res)
	if err != nil {
		return nil, err
	}
	tile := g.tile()
	w, err := oct.Create(ctx, out, layout, ngff.ImageSpec{
		Format: m.Format(), Name: m.Image.Name, Shape: g.shape(), DType: m.DType,
		Axes: m.Axes(), Scale: g.scale, Translation: g.translation, Chunks: tile, Budget: p.pyramidMem,
	}, tile, res)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	p.writer = w
	if res.Device != nil {
		if err := p.planOnDevice(); err != nil {
			return nil, err
		}
	}
	next, stop := iter.Pull(ngff.TileOrder(g.shape(), tile, m.Image.Axes))
	defer stop()
	p.next = next
	group, gctx := work.WithContext(ctx)
	defer p.account()
	for i := range p.inFlight {
		group.Go(func() error {
			if res.Device != nil {
				return resampleTilesOnDevice(gctx, p)
			}
			return resampleTiles[T](gctx, p, i)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := w.Close(ctx); err != nil {
		return nil, err
	}
	return ngff.Open(ctx, out, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter))
}

// resampler is a running Resample.
type resampler struct {
	mosaic     *oct.Mosaic
	grid       *regrid
	res        oct.Resources
	writer     *ngff.Writer
	pyramidMem int64

	reader   *machine.PlaneReader
	columns  *machine.DeviceColumns // on a device
	output   *ngffgpu.Writer        // likewise
	group    int                    // planes that are computed at a time
	inFlight int
	turns    chan struct{} // a token for each worker that computes
	ahead    chan struct{} // closed when reading ahead pays
	reading  *meter.Meter  // of the input

	weights [3][2]*filter.Weights // of the whole tile and the partial one
	team    machine.DeviceTeam    // of workers on a device

	mu    sync.Mutex
	next  func() ([]int, bool) // start of the next output tile
	begun bool                 // ahead is closed
}

// resampleGroup is how many bytes of float32 planes pass through the filters at
// a time: they stay in the cache from one pass to the next.
const resampleGroup = 256 << 10

// slowStorage is the rate, in bytes a second, below which a tile waits for its
// storage: a worker reads faster than that from a cache or a good disk, and
// more tiles at a time would only drive each other out of the processor's.
const slowStorage = 1 << 30

// planResample decides how tiles are read and how many are in flight.
func planResample(m *oct.Mosaic, g *regrid, prefetch int, res oct.Resources) (*resampler, error) {
	p := &resampler{mosaic: m, grid: g, res: res, reading: &meter.Meter{}, ahead: make(chan struct{})}
	p.reader = machine.NewPlaneReader(m, machine.PlanesPiece, p.reading)
	size := int64(m.DType.Size())
	plane := int64(m.Chunk[1]) * int64(m.Chunk[2])
	p.group = int(min(int64(m.Shape[0]), max(1, resampleGroup/(4*plane))))

	outElements := int64(1)
	for _, n := range g.tile() {
		outElements *= int64(n)
	}
	p.pyramidMem = max(res.Mem/4, 2*outElements*size+16<<10) // room to remake a chunk
	available := res.Mem - p.pyramidMem
	each := p.reader.Bytes() + 2*outElements*size // the latter: what is encoded
	each += filter.ResizerBytes([3]int{m.Shape[0], m.Chunk[1], m.Chunk[2]}, [3]int(g.tile()), p.group)
	if m.DType != dtype.Float32 {
		each += int64(p.group)*plane*4 + outElements*size
	}
	p.turns = make(chan struct{}, res.Workers)
	switch {
	case res.Device != nil: // planOnDevice says how many
	case each > available:
		return nil, fmt.Errorf("%s: resampling tiles of %v voxels to %v needs %d MiB of buffers, --mem grants %d MiB", m.Where,
			[]int{m.Shape[0], m.Chunk[1], m.Chunk[2]}, g.tile(), max(each*4/3, each+p.pyramidMem)>>20+1, res.Mem>>20)
	default:
		p.inFlight = int(min(int64(max(prefetch, res.Workers)), available/each))
	}
	for d := range g.axes {
		p.weights[d] = [2]*filter.Weights{g.weights(d, false), g.weights(d, true)}
	}
	return p, nil
}

// account adds what reading cost to the meter of the run.
func (p *resampler) account() {
	for _, phase := range meter.Phases() {
		p.res.Meter.Since(phase, time.Now().Add(-p.reading.Busy(phase)))
	}
	p.res.Meter.AddRead(p.reading.BytesRead())
}

// waits reports whether tiles wait for their storage.
func (p *resampler) waits() bool {
	busy := p.reading.Busy(meter.Read).Seconds()
	return busy > 0.01 && float64(p.reading.BytesRead()) < busy*slowStorage
}

// resampleTiles resamples tiles until none is left. Of those in flight, the ones
// beyond the workers begin when it turns out that they wait for their storage.
func resampleTiles[T dtype.Element](ctx context.Context, p *resampler, number int) error {
	if number >= p.res.Workers {
		select {
		case <-p.ahead:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	in, err := mem.Alloc(p.reader.Buffer())
	if err != nil {
		return err
	}
	defer mem.Free(in)
	w := &tileResampler[T]{resampler: p, in: in}
	if p.mosaic.DType != dtype.Float32 {
		w.planes = make([]float32, p.group*p.mosaic.Chunk[1]*p.mosaic.Chunk[2])
	}
	for {
		start, ok := p.another()
		if !ok {
			return nil
		}
		if err := w.tile(ctx, start[1]/p.grid.axes[1].out, start[2]/p.grid.axes[2].out); err != nil {
			return err
		}
	}
}

// another is where the next output tile starts. It also lets the others begin
// that read ahead, when that pays, and when there is no tile left.
func (p *resampler) another() (start []int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	start, ok = p.next()
	if !p.begun && (!ok || p.waits()) {
		p.begun = true
		close(p.ahead)
	}
	return start, ok
}

// tileResampler is the memory in which one tile after the other is resampled.
type tileResampler[T dtype.Element] struct {
	*resampler
	in      []byte    // a piece of the mosaic
	planes  []float32 // some of its planes as float32; nil when they are
	out     []T       // the resampled tile; nil when the resizer's volume is it
	resizer *filter.Resizer
}

// tile resamples tile (i, j) and writes it.
func (w *tileResampler[T]) tile(ctx context.Context, i, j int) error {
	y, ny, outY, outNY := w.grid.axes[1].span(i)
	x, nx, outX, outNX := w.grid.axes[2].span(j)
	wz, wy, wx := w.weights[0][0], w.of(1, i), w.of(2, j)
	if w.resizer == nil {
		w.resizer = filter.NewResizer(wz, wy, wx)
	} else {
		w.resizer.Reset(wz, wy, wx)
	}
	err := w.reader.Read(ctx, w.in, y, ny, x, nx, func(planes []byte) error {
		if err := w.compute(ctx, func() error { w.add(dtype.Slice[T](planes), ny*nx); return nil }); err != nil {
			return err
		}
		w.res.Done(int64(len(planes)))
		return nil
	})
	if err != nil {
		return err
	}
	return w.compute(ctx, func() error {
		start := time.Now()
		out := w.result()
		w.res.Meter.Since(meter.Compute, start)
		shape := []int{w.grid.axes[0].length(), outNY, outNX}
		return w.writer.WriteTile(ctx, []int{0, outY, outX}, shape, out)
	})
}

// of is the weights of an axis for tile i along it.
func (p *resampler) of(axis, i int) *filter.Weights {
	if i < p.grid.axes[axis].whole() {
		return p.weights[axis][0]
	}
	return p.weights[axis][1]
}

// compute does f when it is this tile's turn: others may be read meanwhile.
func (w *tileResampler[T]) compute(ctx context.Context, f func() error) error {
	select {
	case w.turns <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.turns }()
	return f()
}

// add takes the next planes of the tile into the sums, some at a time so that
// they stay in the cache from one pass to the next.
func (w *tileResampler[T]) add(v []T, plane int) {
	start := time.Now()
	for len(v) > 0 {
		n := min(w.group*plane, len(v))
		planes, ok := any(v[:n]).([]float32)
		if !ok {
			planes = w.planes[:n]
			filter.ToFloat32(planes, v[:n])
		}
		filtered := w.resizer.Add(planes)
		if w.mosaic.DType.IsFloat() && (len(filtered) >= len(planes) || filter.CountNonFinite(filtered) > 0) {
			// what is filtered is fewer voxels to look at, and shows them all
			w.res.Meter.AddNonFinite(filter.CountNonFinite(v[:n]))
		}
		v = v[n:]
	}
	w.res.Meter.Since(meter.Compute, start)
}

// result is the resampled tile as it is stored.
func (w *tileResampler[T]) result() []byte {
	v := w.resizer.Volume()
	if w.planes == nil {
		return dtype.Bytes(v)
	}
	if cap(w.out) < len(v) {
		w.out = make([]T, len(v))
	}
	out := w.out[:len(v)]
	filter.FromFloat32(out, v)
	return dtype.Bytes(out)
}
