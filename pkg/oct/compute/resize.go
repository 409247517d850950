package compute

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/work"
)

// Resizer is a worker that resamples tiles by the plan's [Resizing], with the same bits on every machine.
type Resizer interface {
	Worker
	// Resize reads a tile and resamples it along z, y and x in float32 with those of the plan's weights that fit its
	// height and width. The result (z, y, x) has the source's element type and is valid until the piece of work ends.
	// Non-finite voxels of the tile are counted in the meter.
	Resize(tile oct.Rectangle) Block
}

// Resizing is the operator of a [Resizer].
type Resizing struct {
	summing
	Tile [3]int // shape of the largest result (z, y, x)
	// Weights returns the weights of an axis, 0 to 2, for whole tiles or, with edge, for partial tiles at the far
	// edge; nil if there are none. It is called after checking that the memory holds a tile.
	Weights func(axis int, edge bool) *filter.Weights

	z    *filter.Weights
	y, x [2]*filter.Weights
}

// prepare makes the weights.
func (r *Resizing) prepare() {
	r.z = r.Weights(0, false)
	for i, edge := range []bool{false, true} {
		r.y[i], r.x[i] = r.Weights(1, edge), r.Weights(2, edge)
	}
}

// of returns the weights for a tile.
func (r *Resizing) of(tile oct.Rectangle) (y, x *filter.Weights) {
	y, x = r.y[0], r.x[0]
	if y == nil || y.In() != tile.Height() {
		y = r.y[1]
	}
	if x == nil || x.In() != tile.Width() {
		x = r.x[1]
	}
	return y, x
}

// resized returns the number of elements of the largest result.
func (r *Resizing) resized() int64 {
	t := r.Tile
	return int64(t[0]) * int64(t[1]) * int64(t[2])
}

// resizeGroup is the number of bytes of float32 planes that pass through the filters at a time, chosen to stay in
// the cache from one pass to the next.
const resizeGroup = 256 << 10

// weights returns the memory of the weights of whole and of partial tiles, at most.
func (r *Resizing) weights(m *oct.Mosaic) (sum int64) {
	tile := m.Tile()
	for d, out := range r.Tile {
		sum += 2 * filter.WeightsBytes(tile[d], out, filter.AntiAliasSigma(tile[d], out))
	}
	return sum
}

// onHost returns the memory for resampled tiles and their encoded form.
func (r *Resizing) onHost(p *Plan) int64 {
	m := p.Source.mosaic
	group := resizedAtATime(m)
	bytes := r.resized() * int64(m.DType.Size())
	each := r.weights(m) + 2*bytes + filter.ResizerBytes([3]int(m.Tile()), r.Tile, group)
	if m.DType != dtype.Float32 {
		each += 4*int64(group)*int64(m.Chunk[1])*int64(m.Chunk[2]) + bytes
	}
	return each
}

// resizedAtATime returns the number of planes resampled at a time.
func resizedAtATime(m *oct.Mosaic) int {
	return min(m.Shape[0], max(1, resizeGroup/(4*m.Chunk[1]*m.Chunk[2])))
}

// hostResizer holds the memory in which a worker resamples tiles.
type hostResizer struct {
	*filter.Resizer
	own  resizeSpace // with the Resizer's scratch
	used atomic.Bool // own, by one of those who filter
	out  []byte      // the result; nil if the Resizer holds it
}

func (w *host) Resize(tile oct.Rectangle) Block {
	p, to := w.plan, operatorOf[*Resizing](w.plan)
	m, r := p.Source.mosaic, &w.resize
	y, x := to.of(tile)
	switch {
	case r.Resizer != nil:
		r.Reset(to.z, y, x)
	default:
		r.Resizer = filter.NewResizer(to.z, y, x)
		r.own.scratch = r.Scratch()
	}
	w.Stream(tile, func(_, _ int, planes Block) { w.addResized(planes.host, tile.Area()) })
	if w.err != nil {
		return Block{}
	}
	start := time.Now()
	defer func() { p.Source.res.Meter.Since(meter.Compute, start) }()
	v := r.Volume()
	if m.DType == dtype.Float32 {
		return Block{host: dtype.Bytes(v)}
	}
	n := len(v) * m.DType.Size()
	if cap(r.out) < n {
		r.out = make([]byte, n)
	}
	r.out = r.out[:n]
	filter.ToStored(m.DType, r.out, v)
	return Block{host: r.out}
}

// resizeSpace is the scratch memory of a goroutine that filters planes.
type resizeSpace struct {
	scratch *filter.ResizeScratch
	planes  []float32 // as float32; not used if the source is float32
}

// resizeSpaces keeps scratch memory between uses.
var resizeSpaces = sync.Pool{New: func() any { return &resizeSpace{scratch: new(filter.ResizeScratch)} }}

// addResized adds the tile's next planes to the resizer, a few at a time so that they stay in the cache from one pass
// to the next. Idle processors filter some of them along y and x; all are added in their order.
func (w *host) addResized(v []byte, area int) {
	s := w.plan.Source
	plane := area * s.mosaic.DType.Size()
	group := resizedAtATime(s.mosaic) * plane
	groups := (len(v) + group - 1) / group
	part := func(i int) []byte { return v[i*group : min((i+1)*group, len(v))] }
	start := time.Now()
	defer func() { s.res.Meter.Since(meter.Compute, start) }()
	if groups < 2 || work.Idle(w.ctx) == 0 {
		for i := range groups {
			w.resize.Finish(w.filtered(&w.resize.own, part(i)), len(part(i))/plane)
		}
		return
	}
	bytes := 4*int64(resizedAtATime(s.mosaic)*area) + w.resize.ScratchBytes(resizedAtATime(s.mosaic))
	turn := newTurns()
	w.err = work.Split(w.ctx, groups, bytes, func(i int) error {
		defer turn.end(i)
		space := &w.resize.own
		if w.resize.used.CompareAndSwap(false, true) {
			defer w.resize.used.Store(false)
		} else {
			space = resizeSpaces.Get().(*resizeSpace)
			defer resizeSpaces.Put(space)
		}
		filtered := w.filtered(space, part(i))
		turn.wait(i)
		w.resize.Finish(filtered, len(part(i))/plane)
		return nil
	})
}

// filtered returns planes filtered along y and x, in the memory of space.
func (w *host) filtered(space *resizeSpace, v []byte) []float32 {
	kind := w.plan.Source.mosaic.DType
	var planes []float32
	if kind == dtype.Float32 {
		planes = dtype.Slice[float32](v)
	} else {
		n := len(v) / kind.Size()
		space.planes = slices.Grow(space.planes[:0], n)[:n]
		planes = space.planes
		filter.FromStored(kind, planes, v)
	}
	filtered := w.resize.Begin(space.scratch, planes)
	if kind.IsFloat() && (len(filtered) >= len(planes) || filter.CountNonFinite(filtered) > 0) {
		// what is filtered is fewer voxels to look at, and shows them all
		w.plan.nonFinite(filter.NonFiniteStored(kind, v))
	}
	return filtered
}

// deviceResizer holds the memory in which a worker resamples tiles: voxels are uploaded once, and the result comes
// back.
type deviceResizer struct {
	tile, result gpu.Span                    // of the mosaic's type
	byShape      map[[2]int]*kernels.Resizer // by the tile's height and width
}

func (r *Resizing) needs(p *Plan, n *transfer.Needs) {
	m := p.Source.mosaic
	result := r.resized() * int64(m.DType.Size())
	kinds := int64(1) // of tiles: whole, and at each far edge
	for _, d := range []int{1, 2} {
		if m.Shape[d]%m.Chunk[d] != 0 && m.Shape[d] > m.Chunk[d] {
			kinds *= 2
		}
	}
	weights := r.weights(m)
	n.Host, n.Device = weights+result, m.TileBytes()+result+kinds*kernels.ResizerBytes([3]int(m.Tile()), r.Tile)+1<<20
	n.Pinned = mem.Pooled(weights) // on their way
}

// beginOnDevice allocates the memory and uploads the weights.
func (to *Resizing) beginOnDevice(w *onDevice) (err error) {
	m, r := w.plan.Source.mosaic, &w.resize
	if r.tile, err = w.dev.Memory(m.TileBytes()); err != nil {
		return err
	}
	if r.result, err = w.dev.Memory(to.resized() * int64(m.DType.Size())); err != nil {
		return err
	}
	r.byShape = map[[2]int]*kernels.Resizer{}
	for _, y := range to.y {
		for _, x := range to.x {
			if y == nil || x == nil {
				continue
			}
			k, err := kernels.NewResizer(w.dev.Stream, to.z, y, x)
			if err != nil {
				return err
			}
			r.byShape[[2]int{y.In(), x.In()}] = k
		}
	}
	return nil
}

// release releases the memory of the weights.
func (r *deviceResizer) release() {
	for _, k := range r.byShape {
		k.Release()
	}
}

func (w *onDevice) Resize(tile oct.Rectangle) (result Block) {
	m, r, to := w.plan.Source.mosaic, &w.resize, operatorOf[*Resizing](w.plan)
	w.load(tile, func(z int, plane int64) gpu.Span {
		return r.tile.From(int64(z)*plane, r.tile.Bytes()-int64(z)*plane)
	}, func(int, int, Block) {})
	w.try(func() error {
		err := kernels.CountNonFinite(w.dev.Stream, w.nonFinite(), r.tile, m.DType, int64(m.Shape[0])*int64(tile.Area()))
		if err != nil {
			return err
		}
		volume, err := r.byShape[[2]int{tile.Height(), tile.Width()}].Run(w.dev.Stream, r.tile, m.DType)
		if err != nil {
			return err
		}
		y, x := to.of(tile)
		n := int64(to.z.Out()) * int64(y.Out()) * int64(x.Out())
		result = Block{device: r.result.From(0, n*int64(m.DType.Size()))}
		return kernels.FromFloat32(w.dev.Stream, r.result, volume, m.DType, n)
	})
	return result
}
