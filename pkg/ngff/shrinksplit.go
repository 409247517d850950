package ngff

import (
	"context"

	"strata/pkg/work"
)

// leastShrunk is the number of voxels made at a time from which idle processors help.
const leastShrunk = 1 << 17

// shrinkSplit computes a box of the next level, on idle processors as well. An error is that of ctx.
func (p *pyramid) shrinkSplit(ctx context.Context, l *lattice, dst, src memory, out box) error {
	n, along := out.shape(), 0
	for d := range rank - 1 { // not along rows
		if n[d] > n[along] {
			along = d
		}
	}
	parts := 1
	if n.volume() >= leastShrunk {
		parts = min(1+2*work.Idle(ctx), n[along])
	}
	return work.Split(ctx, parts, 0, func(i int) error {
		some := out
		some.lo[along], some.hi[along] = out.lo[along]+i*n[along]/parts, out.lo[along]+(i+1)*n[along]/parts
		p.shrink(l, dst, src, some)
		return nil
	})
}
