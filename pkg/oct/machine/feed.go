package machine

import (
	"context"
	"errors"
	"iter"
	"sync"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/machine/transfer"
)

// InHand returns a source for the float32 tiles that another stage has in hand as it makes the mosaic: nothing is read. Its plan is for
// a [Feed], on the host.
func InHand(m *oct.Mosaic, res *oct.Resources) *Source {
	plane := m.Chunk[1] * m.Chunk[2] * m.DType.Size()
	return &Source{mosaic: m, res: res, piece: plane * min(m.Shape[0], max(1, transfer.PlanesPiece/plane))}
}

// A Feed is a stage that computes on tiles in hand: the same operations in the same order as by [Run], on planes that it is given
// instead of planes that it reads.
type Feed struct {
	plan  *Plan
	do    func(w Worker, tile oct.Rectangle)
	end   func(ctx context.Context) (*ngff.Image, error)
	begin sync.Once
}

// NewFeed returns the feed of a stage: do computes and writes one tile, and end completes the output once all tiles are done.
// The plan's source is that of [InHand].
func NewFeed(p *Plan, do func(w Worker, tile oct.Rectangle), end func(ctx context.Context) (*ngff.Image, error)) *Feed {
	return &Feed{plan: p, do: do, end: end}
}

// Pyramid returns the bytes of memory that the feed takes besides its tiles.
func (f *Feed) Pyramid() int64 { return f.plan.Source.res.Mem - f.plan.Mem }

// TileBytes returns the bytes of memory that a tile takes from its first plane to its last.
func (f *Feed) TileBytes() int64 { return f.plan.onHost() }

// Chunk returns the height and width of the feed's tiles.
func (f *Feed) Chunk() [2]int { return [2]int(f.plan.Source.mosaic.Chunk[1:]) }

// End completes the output after the last tile and returns it.
func (f *Feed) End(ctx context.Context) (*ngff.Image, error) { return f.end(ctx) }

// Abort gives up the output; after End it does nothing.
func (f *Feed) Abort() { f.plan.Output.Abort() }

// Worker returns a worker for one tile at a time, for one goroutine. The caller must call its End.
func (f *Feed) Worker(ctx context.Context) (*Fed, error) {
	f.begin.Do(f.plan.Resize.begin)
	w := &host{plan: f.plan, ctx: ctx, fed: &fed{}}
	w.in = w.memory(f.plan.Source.piece)
	for _, n := range f.plan.Blocks {
		w.blocks = append(w.blocks, Block{host: w.memory(int(n))})
	}
	return &Fed{feed: f, w: w}, w.err
}

// Fed is a worker of a [Feed].
type Fed struct {
	feed *Feed
	w    *host
	next func() (struct{}, bool)
	stop func()
}

// fed holds planes on their way to a worker: some planes of a box in which its tile lies.
type fed struct {
	wait   func(struct{}) bool // until there are more planes; false: there will be none
	planes []float32
	box    oct.Rectangle
}

// errUnfed ends the work on a tile whose planes do not come.
var errUnfed = errors.New("the tile was given up")

// Begin begins a tile.
func (x *Fed) Begin(tile oct.Rectangle) error {
	x.next, x.stop = iter.Pull(func(yield func(struct{}) bool) {
		x.w.fed.wait = yield
		x.feed.do(x.w, tile)
	})
	x.next() // until it wants planes
	return x.w.err
}

// Add computes on the next planes of the tile: those of a box (z, y, x) in which it lies, in increasing z. With the last ones it also
// writes the result.
func (x *Fed) Add(planes []float32, box oct.Rectangle) error {
	x.w.fed.planes, x.w.fed.box = planes, box
	x.next()
	return x.w.err
}

// End releases the worker, also in the midst of a tile.
func (x *Fed) End() error {
	if x.stop != nil {
		x.stop()
	}
	return x.w.end()
}

// stream passes the planes of a part of the box to take as they come, a few at a time so that they stay in the cache.
func (w *host) stream(part oct.Rectangle, take func(z, n int, planes Block)) {
	f, area := w.fed, part.Area()
	for z := 0; z < w.plan.Source.mosaic.Shape[0]; {
		if !f.wait(struct{}{}) {
			w.err = errUnfed
			return
		}
		plane, most := f.box.Area(), len(w.in)/(4*area)
		for at := 0; at < len(f.planes) && w.err == nil; {
			n := min(most, (len(f.planes)-at)/plane)
			some := dtype.Bytes(f.planes[at:][:n*plane])
			if part != f.box {
				some = w.in[:4*n*area]
				cut(dtype.Slice[float32](some), f.planes[at:][:n*plane], part, f.box)
			}
			take(z, n, Block{host: some})
			z, at = z+n, at+n*plane
		}
		if w.err != nil {
			return
		}
	}
}

// cut copies a part of the planes of a box.
func cut(to, planes []float32, part, box oct.Rectangle) {
	for at := part.X0 - box.X0; len(to) > 0; at += box.Area() {
		for y := part.Y0; y < part.Y1; y++ {
			copy(to[:part.Width()], planes[at+(y-box.Y0)*box.Width():])
			to = to[part.Width():]
		}
	}
}
