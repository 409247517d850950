package benchtile

import (
	"context"
	"fmt"
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

// delivery is what a repetition delivered and waited for.
type delivery struct {
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
	round(ctx context.Context, check bool) (benchkit.Sample, delivery, error)
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

func (v *viewer[T]) round(ctx context.Context, checked bool) (out benchkit.Sample, s delivery, err error) {
	v.plan.src.again()
	waited := v.loader.Waited()
	w := benchkit.Start()
	left := time.Now()
	for x, err := range v.loader.AllViews(ctx, v.plan.level) {
		if err != nil {
			return out, s, err
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
			return out, s, err
		}
		left = time.Now()
	}
	out = w.Stop()
	s.loader = v.loader.Waited() - waited
	s.buffers = v.loader.PeakMemory()
	s.again, s.loaded = v.plan.src.again()
	return out, s, nil
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

func (a *alone) round(ctx context.Context, checked bool) (out benchkit.Sample, s delivery, err error) {
	a.plan.src.again()
	w := benchkit.Start()
	err = work.Each(ctx, len(a.bufs), len(a.index), func(worker, i int) error {
		return a.plan.src.LoadTile(ctx, a.plan.level, a.index[i], a.bufs[worker])
	})
	out = w.Stop()
	s.again, s.loaded = a.plan.src.again()
	s.bytes = int64(len(a.index) * len(a.bufs[0]))
	for _, b := range a.bufs {
		s.buffers += int64(mem.Size(len(b)))
	}
	return out, s, err
}

// contestant is one of the ways in which the plan is measured.
type contestant struct {
	streamer // nil: it cannot be measured
	*benchkit.Contestant
}

// newContestant returns a way to stream views, or the reason why there is none.
func newContestant(who string, s streamer, reason string) *contestant {
	c := &contestant{s, &benchkit.Contestant{Result: bench.Result{Name: "views", Who: who, Reason: reason}}}
	c.Check = func(ctx context.Context) (uint64, error) {
		_, d, err := s.round(ctx, true)
		return d.check, err
	}
	c.Round = func(ctx context.Context) (out benchkit.Sample, err error) {
		var d delivery
		out, d, err = s.round(ctx, false)
		out.More = d
		return out, err
	}
	return c
}

// tilesAlone is the name for results of loading the tiles alone, which no program made.
const tilesAlone = "tiles alone"

// measure lets contestants take turns. The pixels are compared with those of the first contestant; the tiles alone have
// none.
func measure(ctx context.Context, all []*contestant, im *image, reps int, cold bool, done func(int64)) error {
	var list []*benchkit.Contestant
	for _, c := range all {
		list = append(list, c.Contestant)
	}
	if err := benchkit.Compare(ctx, list, func(c, first *benchkit.Contestant) error {
		if c.Result.Who == tilesAlone {
			return nil
		}
		return fmt.Errorf("%s: %s shows other pixels than %s: the checksums are %d and %d", im.path, c.Result.Who, first.Result.Who, c.Sum, first.Sum)
	}); err != nil {
		return err
	}
	before := func(ctx context.Context) error {
		if !cold {
			return nil
		}
		files, err := im.files(ctx)
		if err == nil {
			_, err = benchkit.Forget(files)
		}
		return err
	}
	return benchkit.Race(ctx, list, reps, before, func(_ *benchkit.Contestant, s benchkit.Sample) { done(s.More.(delivery).bytes) })
}
