package ngff

import (
	"context"
	"time"

	"strata/pkg/mem"
	"strata/pkg/meter"
)

// workspace is memory for making one unit from stored data: the unit, and the
// input of one box of it.
type workspace struct {
	out, in []byte
	release func()
}

// workspace takes memory from the pool or, if that is exhausted, waits for the spare memory.
func (p *pyramid) workspace(ctx context.Context, out int) (workspace, error) {
	o, err := p.pool.TryGet(out)
	if err != nil {
		return workspace{}, err
	}
	if o != nil {
		i, err := p.pool.TryGet(p.spare.in)
		if err != nil {
			o.Release()
			return workspace{}, err
		}
		if i != nil {
			return workspace{o.B, i.B, func() { i.Release(); o.Release() }}, nil
		}
		o.Release()
	}
	select {
	case <-p.spare.turn:
	case <-ctx.Done():
		return workspace{}, ctx.Err()
	}
	done := func() { p.spare.turn <- struct{}{} }
	if p.spare.outB == nil {
		if p.spare.outB, err = mem.Alloc(p.spare.out); err != nil {
			done()
			return workspace{}, err
		}
		if p.spare.inB, err = mem.Alloc(p.spare.in); err != nil {
			mem.Free(p.spare.outB)
			p.spare.outB = nil
			done()
			return workspace{}, err
		}
	}
	return workspace{p.spare.outB[:out], p.spare.inB, done}, nil
}

// remake computes a spilled unit from the level above it, whose parts that it needs are all stored by now.
func (p *pyramid) remake(ctx context.Context, u *unit, w workspace) error {
	p.spills.Add(1)
	above := p.levels[u.level-1]
	var spans [rank]span
	for d := range rank {
		spans[d] = above.cut[d].units[u.index[d]]
	}
	dst := memory{data: w.out, origin: u.region.lo, stride: contiguous(u.region.shape())}
	for it := newSegmentWalk(&above.cut, spans); it.next(); {
		shape := it.in.shape()
		b := w.in[:shape.volume()*p.elem]
		if err := above.array.Read(ctx, above.area(it.in), b); err != nil {
			return err
		}
		start := time.Now()
		p.shrink(above.lattice, dst, memory{data: b, origin: it.in.lo, stride: contiguous(shape)}, it.out)
		p.meter.Since(meter.Compute, start)
	}
	return nil
}
