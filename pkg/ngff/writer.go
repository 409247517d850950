package ngff

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"

	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Writer writes an image: level 0 as tiles arrive, and the levels below it as soon as possible. Its methods
// are safe for concurrent use.
type Writer struct {
	group    *zarr.Group
	where    string // the image, for messages
	omitFill bool
	scale    Multiscale
	attrs    map[string]any
	pyramid  *pyramid
	warnings []string
	helpers  chan struct{} // a token for each goroutine besides the callers'

	mu      sync.Mutex
	state   error // why there can be no more tiles; nil while there can
	calls   sync.WaitGroup
	grid    point    // chunks of level 0
	written []uint64 // a bit for each chunk of level 0
	missing int      // chunks that were not written yet
}

var errClosed = errors.New("the image writer is closed")

// Create makes the group of an image at path ("" for the root of the store) and the arrays of its levels. If
// there is something already, the error wraps fs.ErrExist. [Writer.Close] adds the NGFF metadata; until then
// readers find no image. The caller must call Close or [Writer.Abort].
func Create(ctx context.Context, st store.Writer, path string, spec ImageSpec) (*Writer, error) {
	w, err := create(ctx, st, path, spec)
	if err != nil {
		return nil, fmt.Errorf("%s: create image: %w", st.Location(path), err)
	}
	return w, nil
}

// Describe returns the image that [Create] makes of a spec as it is before it has voxels: its metadata are those of the
// written image, and its arrays are empty. It lies in memory; messages call it by the spec's name.
func Describe(ctx context.Context, spec ImageSpec) (*Image, error) {
	st := described{store.Memory(), spec.Name}
	w, err := create(ctx, st, "", spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	defer w.Abort()
	if err := w.group.SetAttributes(ctx, w.attrs); err != nil {
		return nil, err
	}
	return Open(ctx, st, "")
}

// described is the store of an image that is described.
type described struct {
	*store.MemoryStore
	name string
}

// Location returns the name of the image.
func (s described) Location(string) string { return s.name }

func create(ctx context.Context, st store.Writer, path string, spec ImageSpec) (*Writer, error) {
	if spec.Format == 0 {
		spec.Format = 3
	}
	if err := spec.check(); err != nil {
		return nil, err
	}
	if err := countable(&spec); err != nil {
		return nil, err
	}
	base := Transform{spec.Scale, spec.Translation}
	w := &Writer{where: st.Location(path), scale: Multiscale{Name: spec.Name, Axes: spec.Axes}}
	geo := spec.geometry()
	w.capped(len(geo)-1, spec.Levels)
	if len(geo) > 1 {
		w.scale.Type = method(spec.Label != nil)
	}
	for k, g := range geo {
		w.scale.Datasets = append(w.scale.Datasets, Dataset{strconv.Itoa(k), levelTransform(base, spec.Shape, g.shape)})
	}
	err := w.scale.readable()
	if err != nil {
		return nil, err
	}
	if w.pyramid, err = newPyramid(&spec, geo, spec.Budget); err != nil {
		return nil, err
	}
	w.attrs = w.scale.attributes(spec.Format, spec.Omero, spec.Label, spec.Attributes)
	if err = w.createNodes(ctx, st, path, &spec, geo); err != nil {
		w.pyramid.close()
		return nil, err
	}
	w.prepare(spec.Workers)
	return w, nil
}

// geometry returns the geometry of all levels.
func (s *ImageSpec) geometry() (geo []geometry) {
	for k, shape := range LevelShapes(s.Shape, s.Axes, s.Levels) {
		g := geometry{shape, s.Chunks, s.Shard}
		if k > 0 {
			g.chunk, g.shard = levelChunks(shape, s.Chunks, s.Shard)
		}
		geo = append(geo, g)
	}
	return geo
}

// LeastBudget returns the smallest Budget with which [Create] makes the image.
func (s *ImageSpec) LeastBudget() (int64, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	if err := countable(s); err != nil {
		return 0, err
	}
	p, err := newPyramid(s, s.geometry(), 0)
	if err != nil {
		return 0, err
	}
	defer p.close()
	return p.least(), nil
}

// createNodes creates the group and the arrays.
func (w *Writer) createNodes(ctx context.Context, st store.Writer, path string, spec *ImageSpec, geo []geometry) (err error) {
	if w.group, err = zarr.CreateGroup(ctx, st, path, spec.Format, passed(spec.Attributes)); err != nil {
		return err
	}
	options := w.pyramid.options()
	if w.omitFill = spec.OmitFill; w.omitFill {
		options = append(options, zarr.OmitFill())
	}
	for k, l := range w.pyramid.levels {
		a := arraySpec(spec, geo[k])
		if l.array, err = zarr.CreateArray(ctx, st, store.Join(path, w.scale.Datasets[k].Path), a, options...); err != nil {
			return err
		}
	}
	return nil
}

// countable refuses images of which memory cannot even hold the account of chunks:
// how many there are is a number in a header.
func countable(s *ImageSpec) error {
	chunks := 1.0
	for d, n := range s.Shape {
		chunks *= math.Ceil(float64(n) / float64(s.Chunks[d]))
	}
	if budget := max(s.Budget, defaultBudget); chunks/8 > float64(budget) {
		return fmt.Errorf("%.3g chunks of shape %v in an image of shape %v are too many to keep account of in %d bytes", chunks, s.Chunks, s.Shape, budget)
	}
	return nil
}

// arraySpec returns the array of one level.
func arraySpec(s *ImageSpec, g geometry) zarr.Spec {
	a := zarr.Spec{
		Format: s.Format, Shape: g.shape, Chunks: g.chunk, Shard: g.shard,
		DType: s.DType, Codecs: s.Codecs, Fill: s.Fill, Separator: "/", Complete: !s.OmitFill,
	}
	if s.Format == 3 {
		for _, x := range s.Axes {
			a.DimensionNames = append(a.DimensionNames, x.Name)
		}
	}
	return a
}

// prepare sets up the account of level 0's chunks, and the workers.
func (w *Writer) prepare(workers int) {
	l := w.pyramid.levels[0]
	for d := range rank {
		w.grid[d] = (l.shape[d] + l.unit[d] - 1) / l.unit[d]
	}
	w.missing = w.grid.volume()
	w.written = make([]uint64, (w.missing+63)/64)
	workers = workersOr(workers)
	w.helpers = make(chan struct{}, workers)
	for range workers - 1 {
		w.helpers <- struct{}{}
	}
}

// workersOr returns a number of workers, by default that of the processors.
func workersOr(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// capped warns that there are fewer levels than requested.
func (w *Writer) capped(got, want int) {
	if got < want {
		w.warnings = append(w.warnings, fmt.Sprintf("%d pyramid levels instead of %d: no axis may fall under one voxel", got, want))
	}
}

// Levels returns the number of levels of the image, level 0 included.
func (w *Writer) Levels() int { return len(w.pyramid.levels) }

// Array returns the array of a level. It is complete after Close.
func (w *Writer) Array(level int) *zarr.Array { return w.pyramid.levels[level].array }

// Warnings returns notes for the user about how the writer interpreted the spec.
func (w *Writer) Warnings() []string { return w.warnings }

// Remade returns the number of chunks that did not fit into the budget and were computed from stored data.
func (w *Writer) Remade() int64 { return w.pyramid.spills.Load() }

// WriteTile stores a part of level 0 and the parts of the levels below that it completes. The tile begins at
// index start and consists of whole chunks, up to the edge of the image; data holds its elements in C order
// and native byte order. Each chunk must be written once, in any order, but see [TileOrder]. It runs in the
// caller's goroutine and, for tiles of several chunks, in up to Workers−1 more, which end before it returns.
// After an error, further tiles fail.
func (w *Writer) WriteTile(ctx context.Context, start, shape []int, data []byte) error {
	return w.tile(ctx, start, shape, data, false)
}

func (w *Writer) tile(ctx context.Context, start, shape []int, data []byte, stored bool) error {
	src := memory{data: data, origin: padded(start, 0), stride: contiguous(padded(shape, 1))}
	return w.chunks(ctx, start, shape, func(_ int, at point) error {
		return w.pyramid.tile(ctx, at, src, stored)
	}, func(box) error {
		if want := padded(shape, 1).volume() * w.pyramid.elem; len(data) != want {
			return fmt.Errorf("tile of shape %v has %d bytes, must be %d", shape, len(data), want)
		}
		return nil
	})
}

// chunks calls f for the chunks of a tile, with their number in the tile and their
// index, if check finds nothing. After an error of f there can be no more tiles.
func (w *Writer) chunks(ctx context.Context, start, shape []int, f func(i int, at point) error, check func(units box) error) error {
	units, err := w.units(start, shape)
	if err == nil {
		err = check(units)
	}
	if err == nil {
		err = w.begin(units)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w.where, err)
	}
	defer w.calls.Done()
	n := units.shape()
	err = w.each(ctx, n.volume(), func(i int) error {
		at, r := units.lo, i
		for d := rank - 1; d >= 0; d-- {
			at[d] += r % n[d]
			r /= n[d]
		}
		return f(i, at)
	})
	if err != nil {
		w.stop(err)
	}
	return err
}

// CheckTile returns an error if [Writer.WriteTile] would refuse a tile because of its position or shape.
func (w *Writer) CheckTile(start, shape []int) error {
	if _, err := w.units(start, shape); err != nil {
		return fmt.Errorf("%s: %w", w.where, err)
	}
	return nil
}

// units returns the box of chunks that a tile consists of.
func (w *Writer) units(start, shape []int) (b box, err error) {
	l := w.pyramid.levels[0]
	if len(start) != l.dims || len(shape) != l.dims {
		return b, fmt.Errorf("tile at %v of shape %v in an image of %d dimensions", start, shape, l.dims)
	}
	lo, size := padded(start, 0), padded(shape, 1)
	for d := range rank {
		if lo[d] < 0 || size[d] < 1 || lo[d] > l.shape[d] || size[d] > l.shape[d]-lo[d] {
			return b, fmt.Errorf("tile at %v of shape %v lies outside the image of shape %v", start, shape, l.shape[rank-l.dims:])
		}
		hi := lo[d] + size[d]
		if lo[d]%l.unit[d] != 0 || (hi%l.unit[d] != 0 && hi != l.shape[d]) {
			return b, fmt.Errorf("tile at %v of shape %v does not consist of whole chunks of shape %v", start, shape, l.unit[rank-l.dims:])
		}
		b.lo[d], b.hi[d] = lo[d]/l.unit[d], (hi+l.unit[d]-1)/l.unit[d]
	}
	return b, nil
}

// begin notes that chunks are being written.
func (w *Writer) begin(units box) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != nil {
		return w.state
	}
	n := units.shape()
	// first look, then note: a refused tile leaves no trace
	for _, note := range []bool{false, true} {
		for i := range n.volume() {
			at, r := 0, i
			var p point
			for d := rank - 1; d >= 0; d-- {
				p[d] = units.lo[d] + r%n[d]
				r /= n[d]
			}
			for d := range rank {
				at = at*w.grid[d] + p[d]
			}
			bit := uint64(1) << (at % 64)
			if note {
				w.written[at/64] |= bit
				w.missing--
			} else if w.written[at/64]&bit != 0 {
				return fmt.Errorf("chunk %v of level 0 is written twice", p[rank-w.pyramid.levels[0].dims:])
			}
		}
	}
	w.calls.Add(1)
	return nil
}

// each calls f for 0 to n-1, in the caller's goroutine and as many helpers as
// are free. It returns when all have ended.
func (w *Writer) each(ctx context.Context, n int, f func(i int) error) error {
	helpers := 0
	defer func() {
		for range helpers {
			w.helpers <- struct{}{}
		}
	}()
	for range n - 1 {
		select {
		case <-w.helpers:
			helpers++
			continue
		default:
		}
		break
	}
	return work.Each(ctx, 1+helpers, n, func(_, i int) error { return f(i) })
}

// stop refuses further tiles.
func (w *Writer) stop(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == nil {
		w.state = fmt.Errorf("an earlier write failed: %w", err)
	}
}

// Close writes the NGFF metadata; the image is complete when it returns nil. A missing or failed tile is an
// error. All calls of WriteTile must have returned. It releases the writer's memory in any case.
func (w *Writer) Close(ctx context.Context) error {
	if err := w.end(); err != nil {
		return fmt.Errorf("%s: %w", w.where, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.omitFill {
		for _, l := range w.pyramid.levels {
			if err := l.array.WriteAccount(ctx); err != nil {
				return err
			}
		}
	}
	return w.group.SetAttributes(ctx, w.attrs)
}

// end gives everything back and reports why the image is not complete.
func (w *Writer) end() error {
	w.mu.Lock()
	err := w.state
	if err == nil && w.missing > 0 {
		err = w.incomplete()
	}
	w.state = errClosed
	w.mu.Unlock()
	if err == errClosed {
		return err
	}
	w.calls.Wait()
	if err == nil {
		err = w.pyramid.unfinished()
	}
	w.pyramid.close()
	return err
}

// incomplete names the first chunk that is missing.
func (w *Writer) incomplete() error {
	for i := range w.grid.volume() {
		if w.written[i/64]>>(i%64)&1 == 0 {
			var p point
			for d, r := rank-1, i; d >= 0; d-- {
				p[d] = r % w.grid[d]
				r /= w.grid[d]
			}
			return fmt.Errorf("%d of %d chunks of level 0 were not written, the first is %v",
				w.missing, w.grid.volume(), p[rank-w.pyramid.levels[0].dims:])
		}
	}
	return nil
}

// Abort ends writing without completing the image. It leaves the files: the caller writes to a place of its
// own and removes it. After Close it does nothing, so that it can be deferred.
func (w *Writer) Abort() { _ = w.end() } // that it is incomplete is why it is aborted
