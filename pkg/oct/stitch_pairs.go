package oct

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"strata/pkg/filter"
	"strata/pkg/meter"
	"strata/pkg/work"
)

// aligner compares the neighbouring tiles of a mosaic by their projections.
// Where the memory does not hold the projections of all tiles, they are made again
// row by row for each step.
type aligner struct {
	mosaic  *mosaic
	grid    grid
	overlap float64
	res     Resources
	workers int         // that compare
	in      projector   // of this pass over the pairs; nil: not needed so far
	kept    [][]float32 // by tile, nil where they are not kept
	keep    bool        // all of them
	empty   []bool      // tiles that are known to be
	counted []bool      // tiles that are in the progress
	shading *shading    // that the projections are divided by; nil: none yet
}

// newAligners prepares the comparison of mosaics' tiles: a quarter of the memory
// keeps projections, of as many mosaics as it holds, or else holds the two rows
// of tiles that are compared.
func newAligners(all []*mosaic, overlap float64, res Resources) ([]*aligner, error) {
	var total, rows, plane int64
	for _, m := range all {
		g := m.grid()
		plane = max(plane, 4*int64(g.tile[0])*int64(g.tile[1]))
		total += plane * int64(g.ny*g.nx)
		rows = max(rows, plane*int64(2*g.nx+2*res.Workers))
	}
	left := res.Mem / 4
	if total > left {
		left -= rows
	}
	if need := max(rows, plane*comparing/4); left < 0 || need > res.Mem/4 {
		return nil, fmt.Errorf("%s: comparing tiles of this size needs %d MiB of buffers, --mem grants %d MiB", all[0].where, 4*need>>20+1, res.Mem>>20)
	}
	var out []*aligner
	for _, m := range all {
		g := m.grid()
		a := &aligner{mosaic: m, grid: g, overlap: overlap, res: res}
		a.workers = int(min(int64(res.Workers), res.Mem/4/(plane*comparing/4)))
		a.kept, a.empty, a.counted = make([][]float32, g.ny*g.nx), make([]bool, g.ny*g.nx), make([]bool, g.ny*g.nx)
		if n := plane * int64(g.ny*g.nx); n <= left {
			a.keep = true
			left -= n
		}
		out = append(out, a)
	}
	return out, nil
}

// comparing is how many bytes a pixel of a tile a worker takes to compare two of
// them: their strips, the Fourier transforms and what comes of them.
const comparing = 100

// row is the projections of a row of tiles.
func (a *aligner) row(ctx context.Context, i int) ([][]float32, error) {
	out := make([][]float32, a.grid.nx)
	var missing []int
	for j := range out {
		t := i*a.grid.nx + j
		if out[j] = a.kept[t]; out[j] == nil && !a.empty[t] {
			missing = append(missing, t)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	if a.in == nil {
		var err error
		if a.in, err = newProjector(a.mosaic, a.counted, a.res); err != nil {
			return nil, err
		}
	}
	planes, err := a.in.project(ctx, missing)
	if err != nil {
		return nil, err
	}
	for k, t := range missing {
		a.empty[t] = planes[k] == nil
		out[t%a.grid.nx] = planes[k]
		if a.keep {
			a.kept[t] = planes[k]
		}
	}
	return out, nil
}

// neighbours are two tiles that the grid puts side by side, and their
// projections; nil: the tile is empty.
type neighbours struct {
	a, b   int
	axis   int // 0: b is below a; 1: right of it
	pa, pb []float32
}

// eachPair visits all pairs of neighbours, in parallel, and calls done for one
// after the other, in order, with what visit made of it. No more results than
// there are workers wait for their turn.
func eachPair[R any](ctx context.Context, a *aligner, visit func(p *filter.Phase, n neighbours) R, done func(n neighbours, r R)) error {
	defer func() {
		if a.in != nil {
			a.in.close()
			a.in = nil
		}
	}()
	phases := make([]*filter.Phase, a.workers)
	for k := range phases {
		phases[k] = filter.NewPhase()
	}
	var above [][]float32
	for i := range a.grid.ny {
		row, err := a.row(ctx, i)
		if err != nil {
			return err
		}
		pairs := a.grid.pairs(i, above, row)
		if err := inOrder(ctx, a.workers, len(pairs), func(worker, k int) R {
			start := time.Now()
			defer a.res.Meter.Since(meter.Compute, start)
			return visit(phases[worker], pairs[k])
		}, func(k int, r R) { done(pairs[k], r) }); err != nil {
			return err
		}
		above = row
	}
	return nil
}

// pairs are the neighbours in a row of tiles, and of it and the row above.
func (g *grid) pairs(i int, above, row [][]float32) (out []neighbours) {
	for j := range g.nx {
		t := i*g.nx + j
		if i > 0 {
			out = append(out, neighbours{t - g.nx, t, 0, above[j], row[j]})
		}
		if j > 0 {
			out = append(out, neighbours{t - 1, t, 1, row[j-1], row[j]})
		}
	}
	return out
}

// inOrder makes n results with several workers, and hands them on one after the
// other.
func inOrder[R any](ctx context.Context, workers, n int, visit func(worker, k int) R, done func(k int, r R)) error {
	g, gctx := work.WithContext(ctx)
	var next atomic.Int64
	var mu sync.Mutex
	turn := sync.NewCond(&mu)
	handed := 0
	for worker := range min(workers, n) {
		g.Go(func() error {
			for {
				if err := gctx.Err(); err != nil {
					return err
				}
				// whoever takes k hands it on: the next can count on that
				k := int(next.Add(1) - 1)
				if k >= n {
					return nil
				}
				r := visit(worker, k)
				mu.Lock()
				for handed < k {
					turn.Wait()
				}
				done(k, r)
				handed++
				mu.Unlock()
				turn.Broadcast()
			}
		})
	}
	return g.Wait()
}
