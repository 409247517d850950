package tile

import (
	"context"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// Tiles that can be loaded in parts are cached in parts. A part is short enough
// to stay in a processor's cache between reading and copying. Those at both
// ends of a tile are what the halos of its neighbours need of it, and have a
// cache of their own: they wait for a row of tiles to be done, the others only
// for the next tile, so that both caches can be small. A whole tile is one part.

const (
	defaultPartBytes  = 512 << 10 // of the parts inside a tile, at most
	defaultWholeBytes = 256 << 10 // tiles up to this size are not parted
)

// parts is how the tiles of a level are cut.
type parts struct {
	axis  int   // that is cut: the first on which a tile is longer than a pixel
	bound []int // the planes where parts begin, and the number of planes
	ends  bool  // the first and the last part are ends
}

// newParts cuts tiles of a source that can load parts; else one part is all.
func newParts(src Source, cfg *config, level int, tile, radii []int) parts {
	p := parts{}
	for p.axis < len(tile)-1 && tile[p.axis] == 1 {
		p.axis++
	}
	planes := tile[p.axis]
	p.bound = []int{0, planes}
	ps, ok := src.(PartSource)
	bytes := product(tile) * src.DType().Size()
	if !ok || !ps.Parts(level) || bytes <= cfg.wholeBytes || planes == 1 {
		return p
	}
	lo, hi := 0, planes
	if r := radii[p.axis]; r > 0 && 4*r <= planes {
		p.ends = true
		lo, hi = r, planes-r
	}
	p.bound = nil
	if p.ends {
		p.bound = append(p.bound, 0)
	}
	n := ceilDiv((hi-lo)*(bytes/planes), cfg.partBytes)
	n = min(n, hi-lo)
	for k := range n {
		p.bound = append(p.bound, lo+(hi-lo)*k/n)
	}
	if p.ends {
		p.bound = append(p.bound, hi)
	}
	p.bound = append(p.bound, planes)
	return p
}

// count is the number of parts inside a tile, and of ends.
func (p parts) count() (inner, ends int) {
	if p.ends {
		return len(p.bound) - 3, 2
	}
	return len(p.bound) - 1, 0
}

// most is the number of planes of the longest part inside a tile, and of an end.
func (p parts) most() (inner, end int) {
	for k := range len(p.bound) - 1 {
		n := p.bound[k+1] - p.bound[k]
		if p.isEnd(k) {
			end = max(end, n)
		} else {
			inner = max(inner, n)
		}
	}
	return inner, end
}

func (p parts) isEnd(k int) bool { return p.ends && (k == 0 || k == len(p.bound)-2) }

// needed reports whether any of the boxes shows planes of the image from lo up
// to hi.
func (p parts) needed(boxes []Copy, lo, hi int) bool {
	for _, c := range boxes {
		if c.From[p.axis] < hi && c.From[p.axis]+c.Shape[p.axis] > lo {
			return true
		}
	}
	return false
}

// part finds one part of a tile in its cache, or loads it.
func (lv *level[T]) part(ctx context.Context, tile []int, k int) (*cache[T], *cached[T], error) {
	c := lv.cache
	number := k
	switch {
	case lv.parts.isEnd(k):
		c = lv.ends
		number = min(k, 1)
	case lv.parts.ends:
		number = k - 1
	}
	index := append(append(make([]int, 0, 8), tile...), number)
	t, _, err := c.get(ctx, index)
	return c, t, err
}

// loader makes the cache's way to the source: ends or inner parts.
func (lv *level[T]) loader(ends bool) func(context.Context, []int, *mem.Buffer) ([]T, error) {
	src, from := lv.l.src, lv.l.src.DType()
	plane := lv.tilePixels / lv.tile[lv.parts.axis]
	return func(ctx context.Context, index []int, buf *mem.Buffer) ([]T, error) {
		tile, k := index[:len(index)-1], index[len(index)-1]
		switch {
		case ends && k == 1:
			k = len(lv.parts.bound) - 2
		case lv.parts.ends && !ends:
			k++
		}
		first, n := lv.parts.bound[k], lv.parts.bound[k+1]-lv.parts.bound[k]
		area := loadArea[T](from, buf.B, n*plane)
		var err error
		if len(lv.parts.bound) == 2 {
			err = src.LoadTile(ctx, lv.number, tile, area)
		} else {
			err = src.(PartSource).LoadPart(ctx, lv.number, tile, first, n, area)
		}
		if err != nil {
			return nil, err
		}
		return convert[T](from, buf.B, n*plane), nil
	}
}

// partGrid numbers the parts of all tiles: one more axis behind the tiles'.
func (lv *level[T]) partGrid(n int) []int {
	return append(append([]int{}, lv.grid...), n)
}

// partPlan describes a cache of parts of up to planes planes each.
func (lv *level[T]) partPlan(from dtype.Type, size int64, planes, count int, build func(tiles int, c cachePlan)) *cachePlan {
	bytes := tileBytes[T](from, planes*(lv.tilePixels/lv.tile[lv.parts.axis]))
	p := &cachePlan{tiles: cacheTiles(size, bytes, lv.partGrid(count)), bytes: bytes}
	p.make = func(tiles int) { build(tiles, *p) }
	return p
}
