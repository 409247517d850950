// Package compute does the work of a stage, piece by piece, on the host or on a GPU, with the same bits on both.
//
// A stage makes a [Plan]: what its workers read ([Source]), write ([Output]) and keep ([Memory]), and which [Operator]
// they have. [Run] calls a function of the stage with a [Worker] for each piece of work. The function says which
// methods it needs: those of a [Projector], [Resizer], [Roller], [Counter], [InterfaceFinder] or [Changer].
//
//	err := compute.Run(ctx, plan, mosaic.EachTile(), func(w compute.Resizer, tile oct.Rectangle) {
//		w.Write(start, shape, w.Resize(tile))
//	})
//
// [RunBoth] begins on the host and lets a device join. A [Feed] computes on tiles that another stage has in memory.
package compute

import (
	"context"
	"errors"
	"sync"

	"strata/pkg/gpu"
	"strata/pkg/oct"
	"strata/pkg/work"
)

// A Block is host memory or device memory, depending on where its worker runs.
type Block struct {
	host   []byte
	device gpu.Span
}

// From returns n bytes of the block from byte at on.
func (b Block) From(at, n int64) Block {
	if b.host != nil {
		return Block{host: b.host[at : at+n]}
	}
	return Block{device: b.device.From(at, n)}
}

// A Worker does pieces of a stage's work, on the host or on a device. The stage determines the operations and
// their order; the worker determines when they run. On the host they run immediately. On a device they are queued:
// while the device works, the host reads the next data, of the same piece of work or the next one, and writes the
// results of the preceding one.
//
// Errors are sticky: after one, the methods do nothing, and [Run] returns it.
type Worker interface {
	// Block returns the plan's i-th block. Its content lasts until the piece of work ends.
	Block(i int) Block
	// Stream reads a part of the input, one of those that Source.Parts returns, and passes it to take a few planes at
	// a time in increasing z: n planes from plane z on, in C order, valid until take returns.
	Stream(part oct.Rectangle, take func(z, n int, planes Block))
	// Bring calls f on the host with the bytes of a block as the piece of work has computed them by then.
	Bring(b Block, f func(bytes []byte))
	// Then calls f on the host once all work requested before by this piece of work is done. The worker keeps f's
	// error.
	Then(f func() error)
	// Write writes a tile of the output with the given start and shape.
	Write(start, shape []int, tile Block)
}

// host and onDevice implement the methods of all operators. A stage declares the interface whose methods it calls:
// [Projector], or the interface of its plan's operator.
var (
	_, _ Projector       = (*host)(nil), (*onDevice)(nil)
	_, _ Resizer         = (*host)(nil), (*onDevice)(nil)
	_, _ Roller          = (*host)(nil), (*onDevice)(nil)
	_, _ Counter         = (*host)(nil), (*onDevice)(nil)
	_, _ InterfaceFinder = (*host)(nil), (*onDevice)(nil)
	_, _ Changer         = (*host)(nil), (*onDevice)(nil)
)

// Run calls do for all pieces of work that next returns, on the plan's workers. It never calls next concurrently.
// It returns the first error.
func Run[T any, W Worker](ctx context.Context, p *Plan, next func() (T, bool), do func(w W, piece T)) error {
	var mu sync.Mutex
	begun := p.Ahead.Pieces == 0 // reading ahead
	p.ahead = make(chan struct{})
	another := func() (T, bool) {
		mu.Lock()
		defer mu.Unlock()
		piece, ok := next()
		if !begun && (!ok || p.Ahead.Slow()) {
			begun = true
			close(p.ahead)
		}
		return piece, ok
	}
	begin, workers, err := p.begin()
	if err != nil {
		return err
	}
	workers = p.atMost(workers)
	gate, ctx := p.crew.Gate(ctx, workers)
	g, ctx := work.WithContext(ctx)
	for i := range workers {
		g.Go(func() (err error) {
			if !gate.Admit(ctx, i) {
				return nil
			}
			defer gate.Leave(i)
			w, err := begin(ctx, i)
			if w == nil || err != nil {
				return err
			}
			defer func() { err = errors.Join(err, w.end()) }() // after a panic, too
			as := Worker(w).(W)
			for w.failed() == nil {
				piece, ok := another()
				if !ok {
					break
				}
				w.start()
				do(as, piece)
				w.next()
				gate.Ended(i)
			}
			w.finish()
			return w.failed()
		})
	}
	return g.Wait()
}

// running is a worker as seen by Run.
type running interface {
	Worker
	failed() error
	start()     // begins a piece of work
	next()      // ends it
	finish()    // completes outstanding work
	end() error // releases everything; nothing may be running
}

// begin returns a function that starts the worker of a number, and the number of workers. The function returns nil
// if there is no memory for the worker.
func (p *Plan) begin() (begin func(ctx context.Context, number int) (running, error), workers int, err error) {
	if p.start != nil {
		return p.start, p.starts, nil
	}
	if p.Source.res.Device != nil {
		begin, workers, err = p.beginOnDevice()
	} else {
		begin, workers, err = p.beginOnHost()
	}
	if err == nil {
		p.operator().prepare()
		p.start, p.starts = begin, workers
		p.crew = p.team(workers)
	}
	return begin, workers, err
}

// team plans the workers that begin found room for.
func (p *Plan) team(workers int) *oct.Crew {
	res := p.Source.res
	if res.Device != nil {
		res.Decided("%s: %d on the GPU at a time", p.What, workers)
		return res.OnDevice(workers)
	}
	pieces := p.Pieces
	if pieces == 0 {
		ny, nx := p.Source.mosaic.Tiles()
		pieces = ny * nx
	}
	each := p.onHost()
	all := each * int64(max(res.Busy(pieces), 1))
	workers = p.atMost(workers)
	all = p.operator().forAll(all)
	return res.Crew(oct.Team{What: p.What, Workers: workers, Each: each, Pieces: pieces, All: res.ForAll(all, p.Memory.Host)})
}

// Each returns a function for [Run] that hands out the elements of a list in their order.
func Each[T any](all []T) func() (T, bool) {
	return func() (next T, ok bool) {
		if len(all) == 0 {
			return next, false
		}
		next, all = all[0], all[1:]
		return next, true
	}
}
