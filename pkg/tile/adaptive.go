package tile

import (
	"context"
	"fmt"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// NewAdaptive returns a loader with logical tiles of any size, independent of the tiles that the source
// stores: one logical tile shape per level. Views, radii and traversals refer to logical tiles. Logical tiles
// ([LogicalCacheBytes]) and stored tiles ([CacheBytes]) have a cache each.
func NewAdaptive[T dtype.Element](src Source, logical [][]int, opts ...Option) (*Loader[T], error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("adaptive tile loader: %w", err)
	}
	stored, err := describe(src)
	if err != nil {
		return nil, fmt.Errorf("adaptive tile loader: %w", err)
	}
	if len(logical) != len(stored) {
		return nil, fmt.Errorf("adaptive tile loader: %d logical tile shapes (the image has %d levels)", len(logical), len(stored))
	}
	same := true
	for k := range stored {
		same = same && slices.Equal(logical[k], stored[k].tile)
	}
	if same { // nothing to adapt
		return newLoader[T](src, cfg, nil)
	}
	a := &adapter[T]{Source: src, logical: logical, stored: stored}
	for _, s := range stored {
		a.grids = append(a.grids, grid(s.shape, s.tile))
	}
	a.caches = make([]*cache[T], len(stored))
	return newLoader(a, cfg, a)
}

// adapter is a source of logical tiles over the stored tiles of another one.
type adapter[T dtype.Element] struct {
	Source
	logical [][]int
	stored  []levelShape
	grids   [][]int
	caches  []*cache[T]
}

// TileShape returns the shape of the logical tiles.
func (a *adapter[T]) TileShape(level int) []int { return a.logical[level] }

// DType returns the type of the loader's pixels: stored tiles are converted when they enter their cache.
func (a *adapter[T]) DType() dtype.Type { return dtype.Of[T]() }

// LoadTile puts a logical tile together from stored ones.
func (a *adapter[T]) LoadTile(ctx context.Context, level int, index []int, dst []byte) error {
	shape := a.logical[level]
	strides := stridesOf(shape)
	for k := range strides {
		strides[k] *= sizeOf[T]()
	}
	return a.LoadBox(ctx, level, index, make([]int, len(shape)), shape, dst, strides)
}

// Parts returns false: stored tiles are always loaded as a whole.
func (a *adapter[T]) Parts(int) bool { return false }

// LoadBox puts a box of a logical tile together from stored ones.
func (a *adapter[T]) LoadBox(ctx context.Context, level int, index, start, box []int, dst []byte, strides []int) error {
	s, logical := a.stored[level], a.logical[level]
	n := len(index)
	lo, hi := make([]int, n), make([]int, n)      // pixels of the image
	first, end := make([]int, n), make([]int, n)  // stored tiles
	from, shape := make([]int, n), make([]int, n) // of one part
	for k := range n {
		lo[k] = index[k]*logical[k] + start[k]
		hi[k] = min(lo[k]+box[k], s.shape[k])
		if hi[k] <= lo[k] {
			return nil // all of it lies outside
		}
		first[k], end[k] = lo[k]/s.tile[k], ceilDiv(hi[k], s.tile[k])
	}
	out := dtype.Slice[T](dst)
	outStrides, inStrides := make([]int, n), stridesOf(s.tile)
	for k := range n {
		outStrides[k] = strides[k] / sizeOf[T]()
	}
	tile := slices.Clone(first)
	for more := true; more; more = next(tile, first, end) {
		in, at := 0, 0
		for k := range n {
			from[k] = max(lo[k], tile[k]*s.tile[k])
			shape[k] = min(hi[k], (tile[k]+1)*s.tile[k]) - from[k]
			in += (from[k] - tile[k]*s.tile[k]) * inStrides[k]
			at += (from[k] - lo[k]) * outStrides[k]
		}
		t, _, err := a.caches[level].get(ctx, tile)
		if err != nil {
			return fmt.Errorf("stored tile %v: %w", tile, err)
		}
		copyBox(out, at, outStrides, t.data, in, inStrides, shape)
		a.caches[level].unpin(t)
	}
	return nil
}

func (a *adapter[T]) tileBytes(level int) int {
	return tileBytes[T](a.Source.DType(), product(a.stored[level].tile))
}

func (a *adapter[T]) makeCache(level, tiles int, pool *mem.Pool) {
	from, pixels := a.Source.DType(), product(a.stored[level].tile)
	a.caches[level] = newCache(a.grids[level], tiles, a.tileBytes(level), pool,
		func(ctx context.Context, index []int, buf *mem.Buffer) ([]T, error) {
			if err := a.Source.LoadTile(ctx, level, index, loadArea[T](from, buf.B, pixels)); err != nil {
				return nil, err
			}
			return convert[T](from, buf.B, pixels), nil
		})
}

func (a *adapter[T]) close() {
	for _, c := range a.caches {
		c.close()
	}
}
