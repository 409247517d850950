package compute

import (
	"context"
	"fmt"
	"time"

	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
)

// host is a worker on the host.
type host struct {
	plan   *Plan
	ctx    context.Context
	err    error
	in     []byte               // streamed planes
	tile   *transfer.TileBuffer // or tiles loaded whole
	blocks []Block
	turn   bool // it holds a turn to compute
	resize hostResizer
	finder hostFinder
	fed    *fed // where planes come from that are not read; nil: they are read
}

func (p *Plan) beginOnHost() (begin func(context.Context, int) (running, error), workers int, err error) {
	op := p.operator()
	workers, err = p.workers(p.onHost())
	if p.Ahead.Pieces > 0 {
		p.turns = make(chan struct{}, p.Source.res.Workers)
	}
	return func(ctx context.Context, number int) (running, error) {
		if number >= p.Source.res.Workers { // it begins when pieces wait for their storage
			select {
			case <-p.ahead:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		w := &host{plan: p, ctx: ctx}
		if op.streams() {
			w.in = w.memory(p.Source.planes.Buffer())
		} else if n := op.loads(p); n > 0 {
			w.tile, w.err = transfer.NewTileBuffer(n)
		}
		for _, n := range p.Memory.Blocks {
			w.blocks = append(w.blocks, Block{host: w.memory(int(n))})
		}
		return w, nil
	}, workers, err
}

// memory allocates n bytes until the worker ends.
func (w *host) memory(n int) []byte {
	if w.err != nil {
		return nil
	}
	b, err := mem.Alloc(n)
	if err != nil {
		w.err = fmt.Errorf("memory for a tile: %w", err)
	}
	return b
}

// compute calls f unless the worker has failed, and counts its time.
func (w *host) compute(f func()) {
	if w.err == nil {
		start := time.Now()
		f()
		w.plan.Source.res.Meter.Since(meter.Compute, start)
	}
}

func (w *host) failed() error { return w.err }
func (w *host) start()        { w.take() }
func (w *host) next()         { w.leave() }

// take waits for the worker's turn to compute. More workers read than compute.
func (w *host) take() {
	if w.plan.turns == nil || w.err != nil {
		return
	}
	select {
	case w.plan.turns <- struct{}{}:
		w.turn = true
	case <-w.ctx.Done():
		w.err = w.ctx.Err()
	}
}

// leave ends the worker's turn.
func (w *host) leave() {
	if w.turn {
		<-w.plan.turns
		w.turn = false
	}
}

func (w *host) finish() {}

func (w *host) end() error {
	mem.Free(w.in)
	w.tile.Free()
	for _, b := range w.blocks {
		mem.Free(b.host)
	}
	return nil
}

func (w *host) Block(i int) Block { return w.blocks[i] }

func (w *host) Stream(part oct.Rectangle, take func(z, n int, planes Block)) {
	switch {
	case w.err != nil:
		return
	case w.fed != nil:
		w.stream(part, take)
		return
	}
	s := w.plan.Source
	z, plane := 0, part.Area()*s.mosaic.DType.Size()
	w.leave()
	err := s.planes.Read(w.ctx, w.in, part.Y0, part.Height(), part.X0, part.Width(), func(planes []byte) error {
		w.take()
		defer w.leave()
		if w.err != nil {
			return w.err
		}
		n := len(planes) / plane
		take(z, n, Block{host: planes})
		z += n
		s.res.Done(int64(len(planes)))
		return w.err
	})
	if w.err == nil {
		w.err = err
	}
	w.take()
}

func (w *host) Bring(b Block, f func([]byte)) {
	if w.err == nil {
		f(b.host)
	}
}

func (w *host) Then(f func() error) {
	if w.err == nil {
		w.err = f()
	}
}

func (w *host) Write(start, shape []int, tile Block) {
	if w.err != nil {
		return
	}
	out := &w.plan.Output
	if out.Look != nil {
		out.Look(tile.host)
	}
	w.err = out.To.WriteTile(w.ctx, start, shape, tile.host)
}
