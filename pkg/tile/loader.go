package tile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// ErrClosed is returned by requests to a closed loader.
var ErrClosed = errors.New("the tile loader is closed")

// Error reports a view that could not be loaded, and the tile that caused it.
type Error struct {
	Level int
	Index []int // of the view
	Tile  []int // that failed; nil when no single tile did
	Err   error
}

func (e *Error) Error() string {
	if e.Tile == nil || slices.Equal(e.Tile, e.Index) {
		return fmt.Sprintf("tile %v of level %d: %v", e.Index, e.Level, e.Err)
	}
	return fmt.Sprintf("tile %v of level %d (for view %v): %v", e.Tile, e.Level, e.Index, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Request names one view.
type Request struct {
	Level int
	Index []int // of the central tile, one number per axis
}

// Loader loads views of a source. It is safe for concurrent use.
type Loader[T dtype.Element] struct {
	src    Source
	cfg    *config
	levels []*level[T]
	pool   *mem.Pool
	border BorderCreator[T]
	copies chan struct{} // one token per copy that may run; nil: any number
	memory int64

	mu      sync.Mutex
	change  *sync.Cond // anything below, in a level's slots or in a stream; consumers have their stream's
	streams []*stream[T]
	demands int // callers that wait for a view of their own
	waited  time.Duration
	closed  bool
}

// New returns a loader. Its error joins all faults of the source's answers and of the options.
func New[T dtype.Element](src Source, opts ...Option) (*Loader[T], error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("tile loader: %w", err)
	}
	return newLoader[T](src, cfg, nil)
}

func newLoader[T dtype.Element](src Source, cfg *config, below *adapter[T]) (*Loader[T], error) {
	l := &Loader[T]{src: src, cfg: cfg}
	l.change = sync.NewCond(&l.mu)
	if err := l.setUp(below); err != nil {
		return nil, fmt.Errorf("tile loader: %w", err)
	}
	return l, nil
}

func (l *Loader[T]) setUp(below *adapter[T]) error {
	shapes, err := describe(l.src)
	if err != nil {
		return err
	}
	if l.border, err = newBorder[T](l.cfg.border); err != nil {
		return err
	}
	axes := len(l.src.DimensionNames())
	radii := l.cfg.radii
	if radii == nil {
		radii = slices.Repeat([]int{l.cfg.radius}, axes)
	}
	if len(radii) != axes {
		return fmt.Errorf("%d radii (the image has %d axes)", len(radii), axes)
	}
	for k := range l.cfg.regions {
		if k < 0 || k >= len(shapes) {
			return fmt.Errorf("region of level %d (the image has %d levels)", k, len(shapes))
		}
	}
	for k, s := range shapes {
		lv, err := newLevel(l, k, s.shape, s.tile, radii)
		if err != nil {
			return fmt.Errorf("level %d: %w", k, err)
		}
		l.levels = append(l.levels, lv)
	}
	if err := l.plan(below); err != nil {
		return err
	}
	if n := l.cfg.copiers; n > 0 {
		l.copies = make(chan struct{}, n)
	}
	return nil
}

// Shape returns the size of a level in pixels.
func (l *Loader[T]) Shape(level int) []int { return slices.Clone(l.levels[level].shape) }

// TileShape returns the size of a level's tiles, which is the step between views.
func (l *Loader[T]) TileShape(level int) []int { return slices.Clone(l.levels[level].tile) }

// ViewShape returns the size of all views of a level.
func (l *Loader[T]) ViewShape(level int) []int { return slices.Clone(l.levels[level].viewShape) }

// Grid returns the number of tiles of a level per axis.
func (l *Loader[T]) Grid(level int) []int { return slices.Clone(l.levels[level].grid) }

// Levels returns the number of pyramid levels.
func (l *Loader[T]) Levels() int { return len(l.levels) }

// Source returns the loader's source.
func (l *Loader[T]) Source() Source { return l.src }

// Geometry returns the position of a view without loading it.
func (l *Loader[T]) Geometry(level int, index []int) (Geometry, error) {
	lv, err := l.level(level, index)
	if err != nil {
		return Geometry{}, err
	}
	return lv.geometry(index), nil
}

// MaxMemory returns the largest number of bytes that the loader's views and caches can take: per level, the
// tiles of its cache and the views available.
func (l *Loader[T]) MaxMemory() int64 { return l.memory }

// PeakMemory returns the largest number of bytes that views and caches have taken so far.
func (l *Loader[T]) PeakMemory() int64 { return l.pool.Peak() }

// Waited returns the total time that the loader threads of all streams were idle because all available views
// were loaded or held. With several threads it grows faster than the clock.
func (l *Loader[T]) Waited() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waited
}

// level checks a request.
func (l *Loader[T]) level(level int, index []int) (*level[T], error) {
	if level < 0 || level >= len(l.levels) {
		return nil, fmt.Errorf("level %d does not exist (the image has %d)", level, len(l.levels))
	}
	lv := l.levels[level]
	if err := inGrid(lv.grid, index); err != nil {
		return nil, fmt.Errorf("level %d: %w", level, err)
	}
	return lv, nil
}

// Requests lists the views that AllViews delivers, in the traversal's order.
func (l *Loader[T]) Requests(level int) ([]Request, error) {
	if level < 0 || level >= len(l.levels) {
		return nil, fmt.Errorf("level %d does not exist (the image has %d)", level, len(l.levels))
	}
	lv := l.levels[level]
	part := make([]int, len(lv.grid))
	for a := range part {
		part[a] = lv.hi[a] - lv.lo[a]
	}
	order := l.cfg.traversal(part)
	out := make([]Request, len(order))
	for i, index := range order {
		if err := inGrid(part, index); err != nil {
			return nil, fmt.Errorf("level %d: traversal: %w", level, err)
		}
		index = slices.Clone(index)
		for a := range index {
			index[a] += lv.lo[a]
		}
		out[i] = Request{level, index}
	}
	return out, nil
}

// View loads one view in the caller's goroutine. It waits while all views of
// the level are held, until ctx ends.
func (l *Loader[T]) View(ctx context.Context, level int, index []int) (*View[T], error) {
	lv, err := l.level(level, index)
	if err != nil {
		return nil, err
	}
	return l.view(ctx, lv, index, nil, 0)
}

// view implements View for a request at a position of a schedule.
func (l *Loader[T]) view(ctx context.Context, lv *level[T], index []int, plan *schedule, position int) (*View[T], error) {
	buf, err := l.demand(ctx, lv)
	if err != nil {
		return nil, err
	}
	v := lv.view(buf, index, plan, position)
	if err := lv.build(ctx, v); err != nil {
		lv.put(buf)
		return nil, err
	}
	return v, nil
}

// Reload makes a view show another tile of its level. It has the effect of releasing the view and requesting
// the next one, but keeps the memory, which is likely to be in the processor's cache. The view must not have
// been released; its release count starts anew. After an error the view is released.
func (l *Loader[T]) Reload(ctx context.Context, v *View[T], index []int) error {
	if v.left.Load() <= 0 {
		return fmt.Errorf("view %v of level %d: %w", v.Index, v.Level, ErrReleased)
	}
	if v.lv.l != l {
		return fmt.Errorf("view %v of level %d is of another loader", v.Index, v.Level)
	}
	lv, err := l.level(v.Level, index)
	if err == nil {
		v.Geometry, v.plan = lv.geometry(index), nil
		lv.admit(v.buf)
		v.left.Store(lv.releases)
		if err = lv.build(ctx, v); err == nil {
			return nil
		}
	}
	v.left.Store(0)
	v.lv.put(v.buf)
	return err
}

// AllViews streams all views of a level in the order of the traversal, or
// those of its region. See [Loader.Views].
func (l *Loader[T]) AllViews(ctx context.Context, level int) iter.Seq2[*View[T], error] {
	reqs, err := l.Requests(level)
	if err != nil {
		return func(yield func(*View[T], error) bool) { yield(nil, err) }
	}
	return l.Views(ctx, reqs)
}

// Views streams the requested views; the caller must release each. A view that fails to load gives an
// *[Error] in its place, and the stream continues; break ends it. A request outside the image ends the stream
// before it begins, and the end of ctx at once; the last error gives the reason. Loading starts with a loop
// over the result and ends with it; each loop is a separate stream.
func (l *Loader[T]) Views(ctx context.Context, reqs []Request) iter.Seq2[*View[T], error] {
	return func(yield func(*View[T], error) bool) {
		for _, r := range reqs {
			if _, err := l.level(r.Level, r.Index); err != nil {
				yield(nil, err)
				return
			}
		}
		if !l.cfg.inline {
			l.stream(ctx, reqs, yield)
			return
		}
		plan := l.schedule(reqs)
		for k, r := range reqs {
			v, err := l.view(ctx, l.levels[r.Level], r.Index, plan, k)
			if !yield(v, err) || ctx.Err() != nil && err != nil || errors.Is(err, ErrClosed) {
				return
			}
		}
	}
}

// Close frees all memory. Views that are still held may be used and released afterwards; streams end with
// ErrClosed.
func (l *Loader[T]) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	for _, lv := range l.levels {
		lv.shut()
	}
	l.wakeAll()
	l.mu.Unlock()
	for _, lv := range l.levels {
		for _, c := range append(lv.ends, lv.cache) {
			if c != nil {
				c.close()
			}
		}
	}
	if below, ok := l.src.(*adapter[T]); ok {
		below.close()
	}
	l.pool.Close()
	return nil
}
