package oct

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/tile/zarrsource"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Resampling says what [Resample] makes of a mosaic.
type Resampling struct {
	Resolution [3]float64 // voxel size of the output along (z, y, x), µm
	// Prefetch is how many tiles are in flight: read ahead or worked on. There are
	// at least as many as workers, and no more than fit in memory. Raw chunks of a
	// folder are not read ahead: the system does that.
	Prefetch int
}

// Resample brings a mosaic grid (z, y, x) to another voxel size, tile by tile,
// and writes it as an OME-Zarr image of the same data type with the resampled
// tile as chunk (stages specification, resample).
//
// An axis of n voxels becomes one of m = max(1, n·voxel size/resolution, rounded
// half to even). Where it shrinks it is blurred by a Gaussian with sigma
// (n/m−1)/2 voxels, cut off at 4 sigma, the edge voxel repeated beyond the edge;
// then sampled linearly at i·(n−1)/(m−1). Tiles are separate exposures: nothing
// crosses their borders. Partial tiles at the far edges have an m of their own
// and lie behind the whole ones.
//
// The voxel size of the output is nominal: the samples of a tile reach from its
// first voxel to its last, so that 36 voxels of 2 µm become 7 that are 11.67 µm
// apart at a resolution of 10 µm (256 voxels: 51, 10.2 µm apart).
//
// Computed in float32; integers are rounded half to even and clamped. A NaN or
// infinite voxel makes the voxels non-finite whose filter it lies in, up to 2·n/m
// voxels away, and no others; those of the input are counted in the meter.
//
// Raw chunks are read in pieces of some planes, others whole. A tile in flight
// needs memory for a piece or chunk, and for the resampled tile.
func Resample(ctx context.Context, in *ngff.Image, out store.Writer, to Resampling, layout Layout, res Resources) (*ngff.Image, error) {
	m, err := openMosaic(in)
	if err != nil {
		return nil, err
	}
	switch m.dtype {
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

func resample[T dtype.Element](ctx context.Context, m *mosaic, out store.Writer, to Resampling, layout Layout, res Resources) (*ngff.Image, error) {
	g, err := newRegrid(m, to.Resolution)
	if err != nil {
		return nil, err
	}
	p, err := planResample(m, g, to.Prefetch, res)
	if err != nil {
		return nil, err
	}
	tile := g.tile()
	w, err := create(ctx, out, layout, ngff.ImageSpec{
		Format: m.format(), Name: m.image.Name, Shape: g.shape(), DType: m.dtype,
		Axes: m.axes(), Scale: g.scale, Translation: m.image.Levels[0].Translation, Chunks: tile, Budget: p.pyramidMem,
	}, tile, res)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	p.writer = w
	next, stop := iter.Pull(ngff.TileOrder(g.shape(), tile, m.image.Axes))
	defer stop()
	p.next = next
	group, gctx := errgroup.WithContext(ctx)
	for range p.inFlight {
		group.Go(func() error { return resampleTiles[T](gctx, p) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := w.Close(ctx); err != nil {
		return nil, err
	}
	return ngff.Open(ctx, out, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter))
}

// regrid is how the axes of a mosaic change.
type regrid struct {
	axes  [3]regridAxis
	scale []float64 // voxel size of the output, in the unit of the mosaic
}

// regridAxis is one axis of it: whole tiles, then maybe a partial one.
type regridAxis struct {
	n, tile int // voxels of the mosaic and of its tile
	out     int // voxels of a resampled tile
	outEdge int // voxels of the resampled partial tile; 0: there is none
}

func (a regridAxis) whole() int  { return a.n / a.tile }
func (a regridAxis) length() int { return a.whole()*a.out + a.outEdge }

// span is where tile i lies and what becomes of it.
func (a regridAxis) span(i int) (start, n, outStart, out int) {
	if start = i * a.tile; i < a.whole() {
		return start, a.tile, i * a.out, a.out
	}
	return start, a.n - start, i * a.out, a.outEdge
}

// vastBytes is the size from which an output that is much larger than its input
// is taken for a mistake.
const vastBytes = 1 << 40

func newRegrid(m *mosaic, resolution [3]float64) (*regrid, error) {
	g := &regrid{}
	bytes := float64(m.dtype.Size())
	voxels := bytes
	for d := range g.axes {
		name := m.image.Axes[d].Name
		um, _, ok := ngff.Micrometres(m.image.Unit[d])
		if !ok {
			return nil, badInput("%s: axis %s is not an axis of space: its voxel size is not known", m.where, name)
		}
		size := m.image.VoxelSize[d]
		if !(size > 0) || math.IsInf(size, 0) {
			return nil, badInput("%s: voxel size %v µm along %s: must be a positive number", m.where, size, name)
		}
		if r := resolution[d]; !(r > 0) || math.IsInf(r, 0) {
			return nil, layoutError{fmt.Errorf("--resolution %v µm along %s: must be a positive number", r, name)}
		}
		g.scale = append(g.scale, resolution[d]/um)
		a := &g.axes[d]
		a.n, a.tile = m.shape[d], m.chunk[d]
		if d == 0 {
			a.tile = a.n // a tile has the full depth, however it is stored
		}
		scaled := func(n int) float64 { return max(1, math.RoundToEven(float64(n)*(size/resolution[d]))) }
		out, outEdge := scaled(a.tile), 0.0
		if edge := a.n % a.tile; edge > 0 {
			outEdge = scaled(edge)
		}
		if length := out*float64(a.whole()) + outEdge; length > math.MaxInt32*1024 {
			return nil, layoutError{fmt.Errorf("%s: --resolution %v µm makes an axis %s of %.3g voxels", m.where, resolution[d], name, length)}
		} else {
			bytes *= length
		}
		a.out, a.outEdge = int(out), int(outEdge)
		voxels *= float64(a.n)
	}
	if bytes > vastBytes && bytes > 8*voxels {
		return nil, layoutError{fmt.Errorf("%s: --resolution %v µm makes an image of %v voxels, %.1f TiB, %.0f times the mosaic: is it meant to be in µm?",
			m.where, resolution, g.shape(), bytes/vastBytes, bytes/voxels)}
	}
	return g, nil
}

// shape is the shape of the output.
func (g *regrid) shape() []int {
	return []int{g.axes[0].length(), g.axes[1].length(), g.axes[2].length()}
}

// tile is the shape of a resampled tile. A mosaic without a whole tile has only
// the partial one, but a mosaic's tile is not longer than the mosaic.
func (g *regrid) tile() []int { return []int{g.axes[0].out, g.axes[1].out, g.axes[2].out} }

// resampler is a running Resample.
type resampler struct {
	mosaic     *mosaic
	grid       *regrid
	res        Resources
	array      *zarr.Array
	writer     *ngff.Writer
	pyramidMem int64

	raw      bool // chunks may be read in parts
	piece    int  // planes that are read at a time
	group    int  // planes that are computed at a time
	inFlight int
	turns    chan struct{} // a token for each worker that computes

	weights [3][2]*filter.Weights // of the whole tile and the partial one

	mu   sync.Mutex
	next func() ([]int, bool) // start of the next output tile
}

const (
	resamplePiece = 512 << 10 // bytes of a raw chunk that are read at a time
	resampleGroup = 256 << 10 // bytes of float32 planes that pass through the filters at a time
)

// planResample decides the pieces and how many tiles are in flight.
func planResample(m *mosaic, g *regrid, prefetch int, res Resources) (*resampler, error) {
	p := &resampler{mosaic: m, grid: g, res: res}
	p.array = m.image.Levels[0].Array.With(zarr.Workers(1), zarr.Meter(res.Meter))
	src, err := zarrsource.New(p.array)
	if err != nil {
		return nil, err
	}
	size := int64(m.dtype.Size())
	plane := int64(m.chunk[1]) * int64(m.chunk[2])
	p.raw, p.piece = src.Parts(0), m.chunk[0]
	if p.raw {
		p.piece = int(min(int64(p.piece), max(1, resamplePiece/(size*plane))))
	}
	p.group = int(min(int64(p.piece), max(1, resampleGroup/(4*plane))))

	outElements := int64(1)
	for _, n := range g.tile() {
		outElements *= int64(n)
	}
	p.pyramidMem = max(res.Mem/4, 2*outElements*size+16<<10) // room to remake a chunk
	available := res.Mem - p.pyramidMem
	each := int64(p.piece)*plane*size + src.ScratchBytes() + 2*outElements*size // the last: what is encoded
	each += filter.ResizerBytes([3]int{m.shape[0], m.chunk[1], m.chunk[2]}, [3]int(g.tile()), p.group)
	if m.dtype != dtype.Float32 {
		each += int64(p.group)*plane*4 + outElements*size
	}
	if each > available {
		return nil, fmt.Errorf("%s: resampling tiles of %v voxels to %v needs %d MiB of buffers, --mem grants %d MiB", m.where,
			[]int{m.shape[0], m.chunk[1], m.chunk[2]}, g.tile(), max(each*4/3, each+p.pyramidMem)>>20+1, res.Mem>>20)
	}
	for d, a := range g.axes {
		for edge, n := range [2]int{a.tile, a.n % a.tile} {
			if out := [2]int{a.out, a.outEdge}[edge]; n > 0 {
				p.weights[d][edge] = filter.CornerAligned(n, out, filter.AntiAliasSigma(n, out), filter.Reflect)
			}
		}
	}
	if _, local := p.array.Store().(*store.FolderStore); local && p.raw {
		prefetch = 0 // the system reads ahead in files; more tiles at a time would only drive each other out of the cache
	}
	p.inFlight = int(min(int64(max(prefetch, res.Workers)), available/each))
	p.turns = make(chan struct{}, res.Workers)
	return p, nil
}

// resampleTiles resamples tiles until none is left.
func resampleTiles[T dtype.Element](ctx context.Context, p *resampler) error {
	plane := p.mosaic.chunk[1] * p.mosaic.chunk[2]
	in, err := mem.Alloc(p.piece * plane * p.mosaic.dtype.Size())
	if err != nil {
		return err
	}
	defer mem.Free(in)
	w := &tileResampler[T]{resampler: p, in: dtype.Slice[T](in)}
	if p.mosaic.dtype != dtype.Float32 {
		w.planes = make([]float32, p.group*plane)
	}
	for {
		p.mu.Lock()
		start, ok := p.next()
		p.mu.Unlock()
		if !ok {
			return nil
		}
		if err := w.tile(ctx, start[1]/p.grid.axes[1].out, start[2]/p.grid.axes[2].out); err != nil {
			return err
		}
	}
}

// tileResampler is the memory in which one tile after the other is resampled.
type tileResampler[T dtype.Element] struct {
	*resampler
	in      []T       // a piece of the mosaic
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
	depth, chunk := w.mosaic.shape[0], w.mosaic.chunk[0]
	for z := 0; z < depth; {
		// a piece lies in one chunk
		n := min(w.piece, depth-z, chunk-z%chunk)
		v := w.in[:n*ny*nx]
		err := w.array.Read(ctx, zarr.Region{Start: []int{z, y, x}, Shape: []int{n, ny, nx}}, dtype.Bytes(v))
		if errors.Is(err, fs.ErrPermission) {
			return inputError{err} // a chunk that may not be read; of the output it would be another matter
		}
		if err != nil {
			return err
		}
		if err := w.compute(ctx, func() error { w.add(v, ny*nx); return nil }); err != nil {
			return err
		}
		w.res.progress(int64(len(v) * w.mosaic.dtype.Size()))
		z += n
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
func (w *tileResampler[T]) of(axis, i int) *filter.Weights {
	if i < w.grid.axes[axis].whole() {
		return w.weights[axis][0]
	}
	return w.weights[axis][1]
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
		if w.mosaic.dtype.IsFloat() && (len(filtered) >= len(planes) || filter.CountNonFinite(filtered) > 0) {
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
