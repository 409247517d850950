package tile

import (
	"context"
	"sync/atomic"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// A large tile with a narrow halo lies in its cache as its view shows it: in the
// middle of memory that has a view's shape. The view takes that memory over, so
// that the tile's pixels are never copied. What the halos of the neighbours show
// of the tile are its ends: the first and the last planes along an axis, as many
// as the radius. They are copied to caches of their own before the tile goes;
// those that are planes of the file can also be loaded alone.

// defaultSmallBytes is the size up to which a tile is copied: that costs no more than
// the bookkeeping of its ends.
const defaultSmallBytes = 256 << 10

// setInPlace decides whether cached tiles lie as views show them. It is not worth
// it where the ends together are more than half of a tile.
func (lv *level[T]) setInPlace() {
	share := 0.0
	for a, r := range lv.radii {
		share += 2 * float64(r) / float64(lv.tile[a])
	}
	from := lv.l.src.DType()
	if share == 0 || share > 0.5 || tileBytes[T](from, lv.tilePixels) <= lv.l.cfg.smallBytes {
		return
	}
	lv.inPlace = true
	lv.viewBytes = max(lv.viewBytes, tileBytes[T](from, lv.tilePixels))
	lv.tileStrides = lv.viewStrides
	for a, r := range lv.radii {
		lv.tileStart += r * lv.viewStrides[a]
	}
}

// planEnds plans the caches of ends within a third of size and returns how much of it they take.
func (lv *level[T]) planEnds(size int64, plans *[]*cachePlan) (taken int64) {
	lv.ends = make([]*cache[T], len(lv.tile))
	if !lv.inPlace {
		return 0
	}
	for a, r := range lv.radii {
		if r == 0 {
			continue
		}
		grid := append(append([]int{}, lv.grid...), 2)
		bytes := tileBytes[T](lv.l.src.DType(), product(lv.endShape(a)))
		// no order of views needs more than a few for every line of tiles along the axis
		n := min(cacheTiles(size/int64(3*len(lv.tile)), bytes, grid), 3*product(lv.grid)/lv.grid[a]+16)
		taken += int64(n) * int64(bytes)
		*plans = append(*plans, &cachePlan{n, bytes, func(tiles int) {
			lv.ends[a] = newCache(grid, tiles, bytes, lv.l.pool, lv.loadEnd(a))
		}})
	}
	return taken
}

// end finds the end of a tile that shows a box of it.
func (lv *level[T]) end(tile []int, c Copy) (axis, end int, ok bool) {
	if !lv.inPlace {
		return 0, 0, false
	}
	for a, r := range lv.radii {
		from := c.From[a] - tile[a]*lv.tile[a]
		switch {
		case r == 0:
		case from+c.Shape[a] <= r:
			return a, 0, true
		case from >= lv.tile[a]-r:
			return a, 1, true
		}
	}
	return 0, 0, false
}

// endIndex returns the place of an end in the cache of its axis.
func endIndex(tile []int, end int) []int { return append(append(make([]int, 0, 8), tile...), end) }

func (lv *level[T]) endShape(axis int) []int {
	s := append(make([]int, 0, 8), lv.tile...)
	s[axis] = lv.radii[axis]
	return s
}

// endStart returns the first pixel of an end in its tile.
func (lv *level[T]) endStart(axis, end int) []int {
	s := make([]int, len(lv.tile), 8)
	s[axis] = end * (lv.tile[axis] - lv.radii[axis])
	return s
}

// endOrigin returns the first pixel of an end in the image.
func (lv *level[T]) endOrigin(tile []int, axis, end int) []int {
	o := lv.origin(tile)
	o[axis] += end * (lv.tile[axis] - lv.radii[axis])
	return o
}

// loadTile loads a tile for the cache of tiles.
func (lv *level[T]) loadTile(ctx context.Context, index []int, buf *mem.Buffer) ([]T, error) {
	src, from := lv.l.src, lv.l.src.DType()
	if !lv.inPlace {
		if err := src.LoadTile(ctx, lv.number, index, loadArea[T](from, buf.B, lv.tilePixels)); err != nil {
			return nil, err
		}
		return convert[T](from, buf.B, lv.tilePixels), nil
	}
	data := dtype.Slice[T](buf.B)[:lv.viewPixels]
	if boxes, ok := src.(BoxSource); ok && from == dtype.Of[T]() {
		err := boxes.LoadBox(ctx, lv.number, index, make([]int, len(index)), lv.tile,
			dtype.Bytes(data[lv.tileStart:]), lv.inBytes(lv.tileStrides))
		return data, err
	}
	if err := src.LoadTile(ctx, lv.number, index, loadArea[T](from, buf.B, lv.tilePixels)); err != nil {
		return nil, err
	}
	convert[T](from, buf.B, lv.tilePixels)
	lv.spread(data)
	return data, nil
}

func (lv *level[T]) inBytes(strides []int) []int {
	out := make([]int, len(strides))
	for a, s := range strides {
		out[a] = s * sizeOf[T]()
	}
	return out
}

// spread moves the rows of a tile from the beginning of its memory, where they lie in C order, to their places in a
// view. It begins with the last row, since no row moves to the front.
func (lv *level[T]) spread(data []T) {
	run, a := 1, len(lv.tile)-1
	for ; a > 0 && lv.viewStrides[a] == run; a-- {
		run *= lv.tile[a]
	}
	outer := lv.tile[:a+1]
	for k := product(outer) - 1; k >= 0; k-- {
		to := lv.tileStart
		for d, rest := a, k; d >= 0; d-- {
			to += rest % outer[d] * lv.viewStrides[d]
			rest /= outer[d]
		}
		copy(data[to:to+run], data[k*run:(k+1)*run])
	}
}

// loadEnd returns the function that loads an end for the cache of ends along an axis.
func (lv *level[T]) loadEnd(axis int) loadFunc[T] {
	shape, from := lv.endShape(axis), lv.l.src.DType()
	strides, n := stridesOf(shape), product(shape)
	return func(ctx context.Context, index []int, buf *mem.Buffer) ([]T, error) {
		tile, end := index[:len(lv.tile)], index[len(lv.tile)]
		if lv.parts(axis) && !lv.cache.holds(tile) {
			bytes := stridesOf(shape)
			for a := range bytes {
				bytes[a] *= from.Size()
			}
			err := lv.l.src.(BoxSource).LoadBox(ctx, lv.number, tile, lv.endStart(axis, end), shape, loadArea[T](from, buf.B, n), bytes)
			if err != nil {
				return nil, err
			}
			return convert[T](from, buf.B, n), nil
		}
		t, _, err := lv.cache.get(ctx, tile)
		if err != nil {
			return nil, err
		}
		defer lv.cache.unpin(t)
		return lv.copyEnd(axis, end, shape, strides, t.data, buf), nil
	}
}

// parts reports whether the ends along an axis can be loaded alone.
func (lv *level[T]) parts(axis int) bool {
	boxes, ok := lv.l.src.(BoxSource)
	return ok && product(lv.tile[:axis]) == 1 && boxes.Parts(lv.number)
}

// copyEnd copies an end of a tile from the memory of its cache.
func (lv *level[T]) copyEnd(axis, end int, shape, strides []int, data []T, buf *mem.Buffer) []T {
	out := dtype.Slice[T](buf.B)[:product(shape)]
	from := lv.tileStart
	for a, x := range lv.endStart(axis, end) {
		from += x * lv.tileStrides[a]
	}
	copyBox(out, 0, strides, data, from, lv.tileStrides, shape)
	return out
}

// takes reports whether views take tiles out of the cache: not if it holds all
// of them, nor while several streams may want the same ones.
func (lv *level[T]) takes() bool {
	lv.l.mu.Lock()
	defer lv.l.mu.Unlock()
	return len(lv.l.streams) <= 1 && lv.cache.capacity < product(lv.grid)
}

// center brings the central tile into its view, by giving the view the tile's memory if nobody else needs it.
func (lv *level[T]) center(ctx context.Context, v *View[T], p piece) error {
	if lv.takes() {
		t, first, err := lv.cache.claim(ctx, p.tile)
		if err != nil {
			return err
		}
		if first {
			lv.keepEnds(v, p.tile, t.data)
			v.buf.set(lv.cache.take(t), lv.viewPixels)
			for _, c := range p.boxes[1:] { // of the border
				lv.copyTile(v, c, v.buf.data, p.tile)
			}
			return nil
		}
		lv.cache.unpin(t)
	}
	buf, err := lv.cache.withdraw(ctx)
	if err != nil {
		return err
	}
	v.buf.set(buf, lv.viewPixels)
	return lv.gather(ctx, v, p)
}

// keepEnds copies the ends of a tile that leaves its cache to the caches of ends.
func (lv *level[T]) keepEnds(v *View[T], tile []int, data []T) {
	for a, r := range lv.radii {
		for end := range 2 {
			if r > 0 && lv.due(v, tile, a, end) {
				shape := lv.endShape(a)
				lv.ends[a].put(endIndex(tile, end), func(buf *mem.Buffer) []T {
					return lv.copyEnd(a, end, shape, stridesOf(shape), data, buf)
				})
			}
		}
	}
}

// gatherEnd copies a box of an end of a tile into a view: from the cached end, or from the tile if that is
// cached or about to become its own view's.
func (lv *level[T]) gatherEnd(ctx context.Context, v *View[T], tile []int, axis, end int, c Copy) error {
	ends, index := lv.ends[axis], endIndex(tile, end)
	if !ends.holds(index) {
		t := lv.cache.peek(tile)
		if t == nil && lv.soon(v, tile, axis) {
			var err error
			if t, _, err = lv.cache.get(ctx, tile); err != nil {
				return err
			}
		}
		if t != nil {
			lv.copyTile(v, c, t.data, tile)
			lv.cache.unpin(t)
			return nil
		}
	}
	t, _, err := ends.get(ctx, index)
	if err != nil {
		return err
	}
	lv.copy(v, c, t.data, lv.endOrigin(tile, axis, end), stridesOf(lv.endShape(axis)))
	ends.unpin(t)
	return nil
}

// soon reports whether a tile whose end must be copied from the whole tile is about to be in its own view:
// then it stays until that, and its end need not be kept.
func (lv *level[T]) soon(v *View[T], tile []int, axis int) bool {
	if v.plan == nil || lv.parts(axis) {
		return false
	}
	k, ok := v.plan.last[lv.number][linear(lv.grid, tile)]
	return ok && k > v.position && k <= v.position+lv.most
}

// fetch loads the pixels that a piece shows of a tile into the caches.
func (lv *level[T]) fetch(ctx context.Context, v *View[T], p piece) error {
	for _, c := range p.boxes {
		cache, index := lv.cache, p.tile
		if a, end, ok := lv.end(p.tile, c); ok && (lv.ends[a].holds(endIndex(p.tile, end)) || !lv.soon(v, p.tile, a)) {
			cache, index = lv.ends[a], endIndex(p.tile, end)
		}
		t, _, err := cache.get(ctx, index)
		if err != nil {
			return &Error{v.Level, v.Index, p.tile, err}
		}
		cache.unpin(t)
	}
	return nil
}

// busy reports whether a piece would have to wait for a tile being loaded.
func (lv *level[T]) busy(p piece) bool {
	if p.direct {
		return false
	}
	for _, c := range p.boxes {
		if a, end, ok := lv.end(p.tile, c); ok {
			index := endIndex(p.tile, end)
			if lv.ends[a].busy(index) {
				return true
			}
			if lv.ends[a].holds(index) || lv.parts(a) {
				continue
			}
		}
		if lv.cache.busy(p.tile) {
			return true
		}
	}
	return false
}

// schedule holds what is known of the requests of one stream; nil: nothing.
type schedule struct {
	last []map[int]int // position of the last request of each tile, by level and the tile's number
	made []atomic.Bool // by position: the view was made
}

// schedule returns the schedule of requests, or nil if no level has a use for it.
func (l *Loader[T]) schedule(reqs []Request) *schedule {
	var s *schedule
	for k, r := range reqs {
		lv := l.levels[r.Level]
		if !lv.inPlace {
			continue
		}
		if s == nil {
			s = &schedule{make([]map[int]int, len(l.levels)), make([]atomic.Bool, len(reqs))}
		}
		if s.last[r.Level] == nil {
			s.last[r.Level] = map[int]int{}
		}
		s.last[r.Level][linear(lv.grid, r.Index)] = k
	}
	return s
}

// undo notes that a view is going to be made again.
func (s *schedule) undo(position int) {
	if s != nil {
		s.made[position].Store(false)
	}
}

// done drops from the caches the ends of a view's neighbours that no other view will show.
func (lv *level[T]) done(v *View[T], pieces []piece) {
	if v.plan == nil || !lv.inPlace {
		return
	}
	v.plan.made[v.position].Store(true)
	for _, p := range pieces {
		for _, c := range p.boxes {
			if a, end, ok := lv.end(p.tile, c); ok && !lv.due(v, p.tile, a, end) {
				lv.ends[a].retire(endIndex(p.tile, end))
			}
		}
	}
}

// due reports whether views other than v will show an end of a tile. A view whose central tile differs from that tile
// along several axes shows the end along the first of them.
func (lv *level[T]) due(v *View[T], tile []int, axis, end int) bool {
	n := len(tile)
	room := make([]int, 3*n)
	lo, hi, index := room[:n], room[n:2*n], room[2*n:]
	for a, i := range tile {
		lo[a], hi[a] = i, i+1
		if a > axis || lv.radii[a] == 0 {
			lo[a], hi[a] = max(i-1, 0), min(i+2, lv.grid[a])
		}
	}
	if lo[axis], hi[axis] = tile[axis]+2*end-1, tile[axis]+2*end; lo[axis] < 0 || hi[axis] > lv.grid[axis] {
		return false
	}
	if v.plan == nil {
		return true
	}
	copy(index, lo)
	for more := true; more; more = next(index, lo, hi) {
		k, ok := v.plan.last[lv.number][linear(lv.grid, index)]
		if ok && k != v.position && !v.plan.made[k].Load() {
			return true
		}
	}
	return false
}
