package machine

import (
	"context"
	"fmt"

	"strata/pkg/mem"
	"strata/pkg/oct"
)

// host is a worker on the host.
type host struct {
	plan   *Plan
	ctx    context.Context
	err    error
	in     []byte // planes that stream by
	blocks []Block
}

func (p *Plan) beginOnHost() (begin func(context.Context) (running, error), workers int, err error) {
	each := p.Source.planes.Bytes()
	for _, n := range p.Blocks {
		each += n
	}
	workers, err = p.workers(each)
	return func(ctx context.Context) (running, error) {
		w := &host{plan: p, ctx: ctx}
		w.in = w.memory(p.Source.planes.Buffer())
		for _, n := range p.Blocks {
			w.blocks = append(w.blocks, Block{host: w.memory(int(n))})
		}
		return w, nil
	}, workers, err
}

// memory is memory for as long as the worker works.
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

func (w *host) failed() error { return w.err }
func (w *host) next()         {}

func (w *host) end() error {
	mem.Free(w.in)
	for _, b := range w.blocks {
		mem.Free(b.host)
	}
	return w.err
}

func (w *host) Block(i int) Block { return w.blocks[i] }

func (w *host) Stream(part oct.Rectangle, take func(z, n int, planes Block)) {
	if w.err != nil {
		return
	}
	s := w.plan.Source
	z, plane := 0, part.Area()*s.mosaic.DType.Size()
	w.err = s.planes.Read(w.ctx, w.in, part.Y0, part.Height(), part.X0, part.Width(), func(planes []byte) error {
		n := len(planes) / plane
		take(z, n, Block{host: planes})
		z += n
		s.res.Done(int64(len(planes)))
		return w.err
	})
}

func (w *host) Bring(b Block, f func([]byte)) {
	if w.err == nil {
		f(b.host)
	}
}

func (w *host) Write(start, shape []int, tile Block) {
	if w.err != nil {
		return
	}
	if w.plan.Look != nil {
		w.plan.Look(tile.host)
	}
	w.err = w.plan.Output.WriteTile(w.ctx, start, shape, tile.host)
}
