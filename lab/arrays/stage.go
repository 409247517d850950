package main

import (
	"context"

	"strata/pkg/tile"
	"strata/pkg/tile/zarrsource"
)

// alone loads all tiles of an array into reused buffers, in the pieces in which
// a stage reads them, and does nothing with them.
func (b *bench) alone(ctx context.Context) error {
	a, err := b.array(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	src, err := zarrsource.New(a, zarrsource.PieceBytes(b.piece))
	if err != nil {
		return err
	}
	return b.columns(ctx, src, a.Shape())
}

// columns loads all tiles of a source, each column of pieces by one worker, from
// front to back.
func (b *bench) columns(ctx context.Context, src *zarrsource.Source, shape []int) error {
	size, last := src.DType().Size()*volume(src.TileShape(0)), len(shape)-1
	grid := make([]int, last+1)
	for d, n := range src.TileShape(0) {
		grid[d] = (shape[d] + n - 1) / n
	}
	depth := volume(grid[:last-1])
	return b.workers(grid[last-1]*grid[last], size, func(i int, buf []byte) (int, error) {
		index := make([]int, len(grid))
		index[last-1], index[last] = i/grid[last], i%grid[last]
		for k := range depth {
			if len(grid) > 2 {
				index[0] = k
			}
			if err := src.LoadTile(ctx, 0, index, buf); err != nil {
				return 0, err
			}
		}
		return depth * len(buf), nil
	})
}

// views streams all views of the tiles. Bytes are those of the views.
func (b *bench) views(ctx context.Context) error {
	a, err := b.array(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	src, err := zarrsource.New(a)
	if err != nil {
		return err
	}
	l, err := tile.New[uint16](src, tile.Radius(b.radius), tile.ViewsAvailable(b.threads+1), tile.LoaderThreads(b.threads))
	if err != nil {
		return err
	}
	defer l.Close()
	b.bytes = 0
	for v, err := range l.AllViews(ctx, 0) {
		if err != nil {
			return err
		}
		b.bytes += int64(2 * len(v.Data()))
		if err := v.Release(); err != nil {
			return err
		}
	}
	return nil
}
