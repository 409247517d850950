package tile

import (
	"fmt"

	"strata/pkg/mem"
)

// plan settles the number of tiles in each cache, so that all views and caches
// together stay within the limit, and makes the pool they come from. As the
// pool has room for all of them at once, taking from it never waits.
func (l *Loader[T]) plan(below *adapter[T]) error {
	var fixed, flexible int64 // views and one tile per cache; the tiles above that
	caches, err := l.caches(below)
	if err != nil {
		return err
	}
	for _, lv := range l.levels {
		fixed += int64(lv.most) * int64(mem.Size(lv.viewBytes))
	}
	for _, c := range caches {
		fixed += int64(mem.Size(c.bytes))
		flexible += int64(c.tiles-1) * int64(mem.Size(c.bytes))
	}
	if limit := l.cfg.memoryLimit; limit > 0 {
		if fixed > limit {
			return fmt.Errorf("a memory limit of %d bytes: the views available and one tile per cache take %d", limit, fixed)
		}
		if room := limit - fixed; flexible > room {
			part := float64(room) / float64(flexible)
			flexible = 0
			for _, c := range caches {
				c.tiles = 1 + int(float64(c.tiles-1)*part)
				flexible += int64(c.tiles-1) * int64(mem.Size(c.bytes))
			}
		}
	}
	l.memory = fixed + flexible
	l.pool = mem.NewPool(l.memory)
	for _, c := range caches {
		c.make(c.tiles)
	}
	return nil
}

// cachePlan is a cache that is yet to be made.
type cachePlan struct {
	tiles int
	bytes int // per tile
	make  func(tiles int)
}

// caches lists the caches of all levels, with the sizes that the options ask for.
func (l *Loader[T]) caches(below *adapter[T]) ([]*cachePlan, error) {
	var out []*cachePlan
	sizes := l.cfg.cacheBytes
	if below != nil {
		sizes = l.cfg.logical
	}
	n := len(l.levels)
	for k, lv := range l.levels {
		size, err := perLevel(sizes, k, n, "cache sizes")
		if err != nil {
			return nil, err
		}
		if lv.direct && !borrows(l.border) {
			continue // its tiles never pass through a cache
		}
		size -= lv.planEnds(size, &out)
		bytes := tileBytes[T](l.src.DType(), lv.tilePixels)
		if lv.inPlace {
			bytes = lv.viewBytes
		}
		out = append(out, &cachePlan{cacheTiles(size, bytes, lv.grid), bytes, func(tiles int) {
			lv.cache = newCache(lv.grid, tiles, bytes, l.pool, lv.loadTile)
		}})
	}
	if below == nil {
		return out, nil
	}
	for k := range l.levels {
		size, err := perLevel(l.cfg.cacheBytes, k, n, "cache sizes")
		if err != nil {
			return nil, err
		}
		bytes, tiles := below.tileBytes(k), below.grids[k]
		out = append(out, &cachePlan{cacheTiles(size, bytes, tiles), bytes, func(tiles int) {
			below.makeCache(k, tiles, l.pool)
		}})
	}
	return out, nil
}

// cacheTiles returns the number of tiles in a cache of size bytes: at least one, at most all.
func cacheTiles(size int64, tile int, grid []int) int {
	n := max(1, size/int64(tile))
	return int(min(n, int64(product(grid))))
}
