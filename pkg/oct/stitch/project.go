package stitch

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/work"
)

// projector makes the average projections of tiles, row by row.
type projector interface {
	// project makes the projections of tiles, shapes their extents, nil where the
	// tile is empty. It returns when all are made.
	project(ctx context.Context, tiles []int) ([][]float32, error)
	close()
}

// newProjector makes a projector; counted are the tiles that are in the progress.
func newProjector(m *oct.Mosaic, counted []bool, res oct.Resources) (projector, error) {
	if res.Device != nil {
		return newDeviceProjector(m, counted, res)
	}
	switch m.DType {
	case dtype.Uint8:
		return projectorOf[uint8](m, counted, res)
	case dtype.Int8:
		return projectorOf[int8](m, counted, res)
	case dtype.Uint16:
		return projectorOf[uint16](m, counted, res)
	case dtype.Int16:
		return projectorOf[int16](m, counted, res)
	case dtype.Uint32:
		return projectorOf[uint32](m, counted, res)
	case dtype.Int32:
		return projectorOf[int32](m, counted, res)
	case dtype.Uint64:
		return projectorOf[uint64](m, counted, res)
	case dtype.Int64:
		return projectorOf[int64](m, counted, res)
	case dtype.Float32:
		return projectorOf[float32](m, counted, res)
	default:
		return projectorOf[float64](m, counted, res)
	}
}

type tileProjector[T dtype.Element] struct {
	*tileReader[T]
	grid    grid
	res     oct.Resources
	workers int
	counted []bool // tiles whose bytes are in the progress, of this pass or another
}

// projectorOf makes a projector with as many workers as half of the memory
// holds; the other half is for the projections.
func projectorOf[T dtype.Element](m *oct.Mosaic, counted []bool, res oct.Resources) (projector, error) {
	r, err := newTileReader[T](m, 0, res)
	if err != nil {
		return nil, err
	}
	each := r.bytes + 8*int64(m.Chunk[1])*int64(m.Chunk[2])
	n := int(min(int64(res.Workers), res.Mem/2/each))
	if n < 1 {
		return nil, fmt.Errorf("%s: projecting tiles of this size needs %d MiB of buffers, --mem grants %d MiB", m.Where, 2*each>>20+1, res.Mem>>20)
	}
	if r, err = newTileReader[T](m, n, res); err != nil {
		return nil, err
	}
	return &tileProjector[T]{tileReader: r, grid: gridOf(m), res: res, workers: n, counted: counted}, nil
}

func (p *tileProjector[T]) project(ctx context.Context, tiles []int) ([][]float32, error) {
	out := make([][]float32, len(tiles))
	g, gctx := work.WithContext(ctx)
	var next atomic.Int64
	for range min(p.workers, len(tiles)) {
		g.Go(func() error {
			in := piece[T]{tileReader: p.tileReader}
			defer in.release()
			acc := make([]float64, p.mosaic.Chunk[1]*p.mosaic.Chunk[2])
			for {
				k := int(next.Add(1) - 1)
				if k >= len(tiles) {
					return nil
				}
				var err error
				if out[k], err = p.one(gctx, &in, acc, tiles[k]); err != nil {
					return err
				}
			}
		})
	}
	return out, g.Wait()
}

// one projects a tile; nil if all of its sums are zero.
func (p *tileProjector[T]) one(ctx context.Context, in *piece[T], acc []float64, t int) ([]float32, error) {
	i, j := t/p.grid.nx, t%p.grid.nx
	n := p.grid.extent(i, j)
	clear(acc)
	for k := range p.pieces {
		data, _, planes, err := in.load(ctx, k, i, j)
		if err != nil {
			return nil, err
		}
		start := time.Now()
		filter.AddPlanes(acc, data[:planes*len(acc)])
		p.res.Meter.Since(meter.Compute, start)
		if !p.counted[t] {
			p.res.Done(int64(planes*n[0]*n[1]) * int64(p.mosaic.DType.Size()))
		}
	}
	p.counted[t] = true
	out := make([]float32, n[0]*n[1])
	something := false
	for y := range n[0] {
		row := acc[y*p.mosaic.Chunk[2]:][:n[1]]
		filter.Mean(out[y*n[1]:][:n[1]], row, p.mosaic.Shape[0])
		for _, v := range row {
			something = something || v != 0
		}
	}
	if !something {
		return nil, nil
	}
	return out, nil
}
