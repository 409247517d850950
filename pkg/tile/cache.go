package tile

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"strata/pkg/dtype"
	"strata/pkg/mem"
)

// defaultTiles is the capacity of a cache that nobody gave one.
const defaultTiles = 18

// cache holds the tiles of one level, least recently used first out. A tile is
// loaded once for all who ask for it meanwhile, and stays as long as somebody
// has it pinned.
type cache[T dtype.Element] struct {
	grid     []int
	capacity int
	bytes    int // memory of a tile: loaded and converted in place
	pool     *mem.Pool
	load     func(ctx context.Context, index []int, buf *mem.Buffer) ([]T, error)

	mu           sync.Mutex
	tiles        map[int]*cached[T] // by C-order number of the tile
	front        cached[T]          // ring: front.after is the last used, front.before the oldest
	made         int                // buffers that exist
	idle         []*mem.Buffer
	waiting      []chan struct{} // for a tile to be unpinned
	closed       bool
	hits, misses int64
}

// cached is one tile in the cache.
type cached[T dtype.Element] struct {
	number        int
	buf           *mem.Buffer
	data          []T
	pins          int
	ready         chan struct{} // closed when data or err is set
	err           error
	before, after *cached[T]
}

// newCache makes an empty cache of up to capacity tiles; 0 takes the default,
// and no cache is larger than the grid.
func newCache[T dtype.Element](grid []int, capacity, bytes int, pool *mem.Pool,
	load func(context.Context, []int, *mem.Buffer) ([]T, error)) *cache[T] {
	if capacity <= 0 {
		capacity = defaultTiles
	}
	c := &cache[T]{
		grid: grid, capacity: min(capacity, product(grid)), bytes: bytes, pool: pool, load: load,
		tiles: map[int]*cached[T]{},
	}
	c.front.before, c.front.after = &c.front, &c.front
	return c
}

// get returns a tile, pinned: unpin must follow. fresh reports whether this
// call loaded it. A failed load is told to all who wait for it and tried again
// for those who ask later.
func (c *cache[T]) get(ctx context.Context, index []int) (t *cached[T], fresh bool, err error) {
	if err := inGrid(c.grid, index); err != nil {
		return nil, false, err
	}
	number := linear(c.grid, index)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if c.closed {
			return nil, false, ErrClosed
		}
		if t := c.tiles[number]; t != nil {
			retry, err := c.join(ctx, t)
			if retry {
				continue
			}
			return t, false, err
		}
		buf, wait, err := c.slot(ctx)
		if err != nil {
			return nil, false, err
		}
		if wait != nil {
			c.mu.Unlock()
			select {
			case <-wait:
			case <-ctx.Done():
			}
			c.mu.Lock()
			continue
		}
		t := &cached[T]{number: number, buf: buf, pins: 1, ready: make(chan struct{})}
		c.tiles[number] = t
		c.use(t)
		c.misses++
		c.fill(ctx, t, index)
		if t.err != nil {
			return nil, false, t.err
		}
		return t, true, nil
	}
}

// join pins a tile that is there or on its way. retry is true when whoever
// loaded it gave up for reasons of its own. c.mu is held.
func (c *cache[T]) join(ctx context.Context, t *cached[T]) (retry bool, err error) {
	c.hits++
	c.use(t)
	t.pins++
	select {
	case <-t.ready:
	default:
		c.mu.Unlock()
		select {
		case <-t.ready:
		case <-ctx.Done():
		}
		c.mu.Lock()
	}
	select {
	case <-t.ready:
		if t.err == nil {
			return false, nil
		}
		err = t.err
		retry = ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
	default:
		err = ctx.Err()
	}
	c.drop(t)
	return retry, err
}

// fill loads a tile that is marked as on its way. c.mu is held, except while
// the source works.
func (c *cache[T]) fill(ctx context.Context, t *cached[T], index []int) {
	c.mu.Unlock()
	data, err := c.load(ctx, index, t.buf)
	c.mu.Lock()
	t.data = data
	c.settle(t, err)
}

func (c *cache[T]) settle(t *cached[T], err error) {
	t.err = err
	if err != nil {
		delete(c.tiles, t.number)
		c.unlink(t)
		t.data = nil
		c.recycle(t.buf)
		t.buf = nil
	}
	close(t.ready)
}

// unpin gives back a tile of get.
func (c *cache[T]) unpin(t *cached[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(t)
}

func (c *cache[T]) drop(t *cached[T]) {
	if t.pins--; t.pins > 0 || t.buf == nil {
		return
	}
	if c.closed {
		c.evict(t)
	}
	c.wake()
}

// slot finds memory for one more tile: an idle buffer, a new one while there
// may be more, that of the tile that was used longest ago; else wait says when
// to look again. c.mu is held.
func (c *cache[T]) slot(ctx context.Context) (buf *mem.Buffer, wait chan struct{}, err error) {
	if n := len(c.idle); n > 0 {
		buf, c.idle = c.idle[n-1], c.idle[:n-1]
		return buf, nil, nil
	}
	if c.made < c.capacity {
		// the pool's budget counts the whole capacity: Get does not wait
		if buf, err = c.pool.Get(ctx, c.bytes); err != nil {
			return nil, nil, fmt.Errorf("memory for a tile: %w", err)
		}
		c.made++
		return buf, nil, nil
	}
	for t := c.front.before; t != &c.front; t = t.before {
		if t.pins == 0 {
			c.evict(t)
			return c.slot(ctx)
		}
	}
	wait = make(chan struct{})
	c.waiting = append(c.waiting, wait)
	return nil, wait, nil
}

func (c *cache[T]) evict(t *cached[T]) {
	delete(c.tiles, t.number)
	c.unlink(t)
	c.recycle(t.buf)
	t.buf, t.data = nil, nil
}

func (c *cache[T]) recycle(buf *mem.Buffer) {
	if c.closed {
		c.made--
		buf.Release()
	} else {
		c.idle = append(c.idle, buf)
	}
	c.wake()
}

func (c *cache[T]) wake() {
	for _, w := range c.waiting {
		close(w)
	}
	c.waiting = c.waiting[:0]
}

// use moves a tile to the front.
func (c *cache[T]) use(t *cached[T]) {
	if t.after != nil {
		c.unlink(t)
	}
	t.before, t.after = &c.front, c.front.after
	t.before.after, t.after.before = t, t
}

func (c *cache[T]) unlink(t *cached[T]) {
	t.before.after, t.after.before = t.after, t.before
	t.before, t.after = nil, nil
}

// close gives the memory of all tiles back; pinned ones follow when they are
// unpinned.
func (c *cache[T]) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	for t := c.front.before; t != &c.front; {
		older := t
		t = t.before
		if older.pins == 0 {
			c.evict(older)
		}
	}
	for _, buf := range c.idle {
		c.made--
		buf.Release()
	}
	c.idle = nil
	c.wake()
}
