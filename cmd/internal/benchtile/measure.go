package benchtile

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"strata/cmd/internal/benchkit"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/tile"
	"strata/pkg/work"
)

// plan describes what is measured, for one radius and one size of the cache.
type plan struct {
	src         *counting
	level       int
	tile        []int // logical
	radii       []int
	cache       int64
	threads     int
	copyThreads int // 0: as many
	views       int
	order       string
	border      string
	ordered     bool
	op          string
	mem         int64
}

// sample is the result of one repetition.
type sample struct {
	seconds, cpu float64
	peak         int64 // most resident memory
	bytes        int64 // that were delivered
	views, again int
	loaded       int64
	consumer     time.Duration // that the consumer waited
	loader       time.Duration // that the loader's threads waited for views
	buffers      int64
	check        uint64
}

// streamer delivers an image once. If pixels are checked, that is not measured.
type streamer interface {
	round(ctx context.Context, check bool) (sample, error)
	close() error
}

// viewer streams views with the tile loader.
type viewer[T dtype.Element] struct {
	plan   plan
	loader *tile.Loader[T]
	op     operator[T]
}

func newViewer[T dtype.Element](p plan) (streamer, error) {
	opts := []tile.Option{tile.Radii(p.radii...), tile.CacheBytes(p.cache), tile.LogicalCacheBytes(p.cache), tile.LoaderThreads(p.threads),
		tile.ViewsAvailable(p.views), tile.Traverse(traversals[p.order]), tile.Border(borders[p.border]), tile.MemoryLimit(p.mem)}
	if p.copyThreads > 0 {
		opts = append(opts, tile.CopyThreads(p.copyThreads))
	}
	if p.ordered {
		opts = append(opts, tile.Ordered())
	}
	v := &viewer[T]{plan: p, op: operator[T]{name: p.op, radius: p.radii}}
	var err error
	logical := make([][]int, p.src.Levels())
	for k := range logical {
		logical[k] = p.src.TileShape(k)
	}
	logical[p.level] = p.tile
	if v.loader, err = tile.NewAdaptive[T](p.src, logical, opts...); err != nil {
		return nil, cli.Usage("%w", err)
	}
	return v, nil
}

func (v *viewer[T]) close() error { return v.loader.Close() }

func (v *viewer[T]) round(ctx context.Context, checked bool) (s sample, err error) {
	v.plan.src.again()
	waited := v.loader.Waited()
	usage, began := start()
	left := began
	for x, err := range v.loader.AllViews(ctx, v.plan.level) {
		if err != nil {
			return s, err
		}
		s.consumer += time.Since(left)
		s.views++
		pixels := dtype.Bytes(x.Data())
		s.bytes += int64(len(pixels))
		if checked {
			s.check += check(pixels, dtype.Of[T]().Size())
		} else {
			v.op.apply(x)
		}
		if err := x.Release(); err != nil {
			return s, err
		}
		left = time.Now()
	}
	s.seconds = time.Since(began).Seconds()
	s.cpu, s.peak = usage.End()
	s.loader = v.loader.Waited() - waited
	s.buffers = v.loader.PeakMemory()
	s.again, s.loaded = v.plan.src.again()
	return s, nil
}

func start() (bench.Usage, time.Time) {
	debug.FreeOSMemory() // of what came before
	return bench.Begin(), time.Now()
}

// alone loads the stored tiles into reused memory.
type alone struct {
	plan  plan
	index [][]int
	bufs  [][]byte
}

func newAlone(p plan) (streamer, error) {
	a := &alone{plan: p, index: traversals[p.order](p.src.grid)}
	for range p.threads {
		b, err := mem.Alloc(volume(p.src.TileShape(p.level)) * p.src.DType().Size())
		if err != nil {
			return nil, err
		}
		a.bufs = append(a.bufs, b)
	}
	return a, nil
}

func (a *alone) close() error {
	for _, b := range a.bufs {
		mem.Free(b)
	}
	return nil
}

func (a *alone) round(ctx context.Context, checked bool) (s sample, err error) {
	a.plan.src.again()
	usage, began := start()
	err = work.Each(ctx, len(a.bufs), len(a.index), func(worker, i int) error {
		return a.plan.src.LoadTile(ctx, a.plan.level, a.index[i], a.bufs[worker])
	})
	s.seconds = time.Since(began).Seconds()
	s.cpu, s.peak = usage.End()
	s.again, s.loaded = a.plan.src.again()
	s.bytes = int64(len(a.index) * len(a.bufs[0]))
	for _, b := range a.bufs {
		s.buffers += int64(mem.Size(len(b)))
	}
	return s, err
}

// contestant is one of the ways in which the plan is measured.
type contestant struct {
	who string
	streamer
	samples []sample
	check   uint64
	reason  string // why it is not measured
}

// tilesAlone is the name for results of loading the tiles alone, which no program made.
const tilesAlone = "tiles alone"

// measure lets contestants take turns, with another one first in each round, because a machine's speed drifts. The
// pixels are compared with those of the first contestant; the tiles alone have none.
func measure(ctx context.Context, list []*contestant, im *image, reps int, cold bool, done func(int64)) error {
	for i, c := range list {
		if c.reason != "" {
			continue
		}
		s, err := c.round(ctx, true)
		if err == nil && i > 0 && c.who != tilesAlone && s.check != list[0].check {
			err = fmt.Errorf("%s: %s shows other pixels than %s: the checksums are %d and %d", im.path, c.who, list[0].who, s.check, list[0].check)
		}
		if c.check = s.check; err != nil {
			if err := c.fail(ctx, err); err != nil {
				return err
			}
		}
	}
	for round := range reps {
		for i := range list {
			c := list[(i+round)%len(list)]
			if c.reason != "" {
				continue
			}
			if cold {
				files, err := im.files(ctx)
				if err == nil {
					_, err = benchkit.Forget(files)
				}
				if err != nil {
					return err
				}
			}
			s, err := c.round(ctx, false)
			if err != nil {
				if err := c.fail(ctx, err); err != nil {
					return err
				}
				continue
			}
			c.samples = append(c.samples, s)
			done(s.bytes)
		}
	}
	return nil
}
