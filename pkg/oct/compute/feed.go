package compute

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
)

// InHand returns a source for float32 tiles that another stage passes on in memory while it makes the mosaic; nothing
// is read from storage. Its plan must be for a [Feed], on the host.
func InHand(m *oct.Mosaic, res *oct.Resources) *Source {
	plane := m.Chunk[1] * m.Chunk[2] * m.DType.Size()
	return &Source{mosaic: m, res: res, piece: plane * min(m.Shape[0], max(1, transfer.PlanesPiece/plane))}
}

// A Feed is a stage whose caller supplies the planes in memory. It does the same operations in the same order as [Run],
// which reads the planes from storage.
type Feed struct {
	plan  *Plan
	do    func(w *host, tile oct.Rectangle)
	end   func(ctx context.Context) (*ngff.Image, error)
	begin sync.Once
}

// NewFeed returns the feed of a stage: do computes and writes one tile, and end completes the output once all tiles are
// done. The plan's source is that of [InHand].
func NewFeed[W Worker](p *Plan, do func(w W, tile oct.Rectangle), end func(ctx context.Context) (*ngff.Image, error)) *Feed {
	return &Feed{plan: p, do: func(w *host, tile oct.Rectangle) { do(Worker(w).(W), tile) }, end: end}
}

// Pyramid returns the bytes of memory that the feed needs in addition to its workers, for the pyramid of its output.
func (f *Feed) Pyramid() int64 { return f.plan.Source.res.Mem - f.plan.Memory.Host }

// WorkerBytes returns the bytes of memory of a worker for boxes of the given height and width.
func (f *Feed) WorkerBytes(height, width int) int64 {
	piece := int64(f.plan.Source.piece)
	return piece + int64(len(f.tiles(oct.Rect(0, height, 0, width))))*(f.plan.onHost()-piece)
}

// tiles returns the tiles of the feed's mosaic in a box: one, or several where the mosaic has smaller chunks.
func (f *Feed) tiles(box oct.Rectangle) (tiles []oct.Rectangle) {
	chunk := f.plan.Source.mosaic.Chunk
	for y := box.Y0; y < box.Y1; y += chunk[1] {
		for x := box.X0; x < box.X1; x += chunk[2] {
			tiles = append(tiles, oct.Rect(y, min(y+chunk[1], box.Y1), x, min(x+chunk[2], box.X1)))
		}
	}
	return tiles
}

// End completes the output after the last tile and returns it.
func (f *Feed) End(ctx context.Context) (*ngff.Image, error) { return f.end(ctx) }

// Abort gives up the output; after End it does nothing.
func (f *Feed) Abort() { f.plan.Output.To.Abort() }

// A Fed is a worker of a [Feed]. It computes on the tiles of one box at a time, and must be used by one goroutine.
type Fed struct {
	feed   *Feed
	blocks []byte // memory of all parts
	hand   hand
	parts  []*coroutine
}

// hand holds the planes that the caller has supplied last.
type hand struct {
	planes []float32
	box    oct.Rectangle // of which they are
	piece  []byte        // for a part of them
}

// coroutine computes on one tile, and pauses wherever the stage asks for planes that the caller has not supplied yet.
type coroutine struct {
	host
	next func() (struct{}, bool)
	stop func()
}

// fed connects a worker to the planes that the caller supplies.
type fed struct {
	wait func(struct{}) bool // until there are more planes; false: there will be none
	hand *hand
}

// errUnfed ends the work on a tile whose planes do not come.
var errUnfed = errors.New("the tile was given up")

// Worker returns a worker for boxes of that height and width, made of whole tiles of the feed's mosaic. The caller must
// call its Close, also after an error.
func (f *Feed) Worker(ctx context.Context, height, width int) (x *Fed, err error) {
	f.begin.Do(f.plan.operator().prepare)
	x = &Fed{feed: f}
	if x.hand.piece, err = mem.Alloc(f.plan.Source.piece); err != nil {
		return x, fmt.Errorf("memory for planes: %w", err)
	}
	each := int64(0)
	for _, n := range f.plan.Memory.Blocks {
		each += n
	}
	tiles := f.tiles(oct.Rect(0, height, 0, width))
	if x.blocks, err = mem.Alloc(int(each) * len(tiles)); err != nil {
		return x, fmt.Errorf("memory for a tile: %w", err)
	}
	left := x.blocks
	for range tiles {
		p := &coroutine{host: host{plan: f.plan, ctx: ctx, fed: &fed{hand: &x.hand}}}
		for _, n := range f.plan.Memory.Blocks {
			p.blocks = append(p.blocks, Block{host: left[:n:n]})
			left = left[n:]
		}
		x.parts = append(x.parts, p)
	}
	return x, nil
}

// Begin begins the tiles of a box.
func (x *Fed) Begin(box oct.Rectangle) error {
	x.hand.box = box
	for i, tile := range x.feed.tiles(box) {
		p := x.parts[i]
		p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
			p.fed.wait = yield
			x.feed.do(&p.host, tile)
		})
	}
	return x.resume() // until they want planes
}

// Add computes on the next planes (z, y, x) of the box, in increasing z. With the last ones it also writes the results.
func (x *Fed) Add(planes []float32) error {
	x.hand.planes = planes
	return x.resume()
}

// resume runs each tile's coroutine until it needs further planes or has ended.
func (x *Fed) resume() error {
	for _, p := range x.parts {
		if p.next(); p.err != nil {
			return p.err
		}
	}
	return nil
}

// Close releases the worker, also in the midst of a box.
func (x *Fed) Close() {
	for _, p := range x.parts {
		if p.stop != nil {
			p.stop()
		}
	}
	mem.Free(x.blocks)
	mem.Free(x.hand.piece)
}

// stream passes the planes of a tile to take as they come, a few at a time so that they stay in the cache.
func (w *host) stream(tile oct.Rectangle, take func(z, n int, planes Block)) {
	area := tile.Area()
	for z := 0; z < w.plan.Source.mosaic.Shape[0] && w.err == nil; {
		if !w.fed.wait(struct{}{}) {
			w.err = errUnfed
			return
		}
		in := w.fed.hand
		plane, most := in.box.Area(), len(in.piece)/(4*area)
		for left := in.planes; len(left) > 0 && w.err == nil; {
			n := min(most, len(left)/plane)
			some := dtype.Bytes(left[:n*plane])
			if tile != in.box {
				some = in.piece[:4*n*area]
				cut(dtype.Slice[float32](some), left, tile, in.box)
			}
			take(z, n, Block{host: some})
			z, left = z+n, left[n*plane:]
		}
	}
}

// cut copies a tile out of planes of a box.
func cut(to, planes []float32, tile, box oct.Rectangle) {
	for at := tile.X0 - box.X0; len(to) > 0; at += box.Area() {
		for y := tile.Y0; y < tile.Y1; y++ {
			copy(to[:tile.Width()], planes[at+(y-box.Y0)*box.Width():])
			to = to[tile.Width():]
		}
	}
}
