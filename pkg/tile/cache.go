package tile

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/work"
)

// defaultTiles is the default capacity of a cache.
const defaultTiles = 18

// cache holds the tiles of one level and evicts the least recently used first. A tile is loaded once for all
// concurrent requests, and stays as long as anybody has it pinned.
type cache[T dtype.Element] struct {
	grid     []int
	capacity int
	bytes    int // memory of a tile: loaded and converted in place
	pool     *mem.Pool
	load     loadFunc[T]

	mu           sync.Mutex
	tiles        map[int]*cached[T] // by C-order number of the tile
	front        cached[T]          // ring: front.after is the last used, front.before the oldest
	room         int                // buffers that may exist: the capacity, and those of views to come
	made         int                // those that do
	idle         []*mem.Buffer
	waiting      []chan struct{} // for a tile to be unpinned
	closed       bool
	hits, misses int64
}

// loadFunc loads a tile and returns its memory as pixels.
type loadFunc[T dtype.Element] func(ctx context.Context, index []int, buf *mem.Buffer) ([]T, error)

// cached is one tile in the cache.
type cached[T dtype.Element] struct {
	number        int
	buf           *mem.Buffer
	data          []T
	pins          int
	claimed       bool          // it is about to be taken
	retired       bool          // it goes when nobody has it pinned
	ready         chan struct{} // closed when data or err is set
	err           error
	before, after *cached[T]
}

// newCache makes an empty cache of up to capacity tiles; 0 takes the default,
// and no cache is larger than the grid.
func newCache[T dtype.Element](grid []int, capacity, bytes int, pool *mem.Pool, load loadFunc[T]) *cache[T] {
	if capacity <= 0 {
		capacity = defaultTiles
	}
	c := &cache[T]{
		grid: grid, capacity: min(capacity, product(grid)), bytes: bytes, pool: pool, load: load,
		tiles: map[int]*cached[T]{},
	}
	c.room = c.capacity
	c.front.before, c.front.after = &c.front, &c.front
	return c
}

// get returns a tile, pinned; the caller calls unpin. fresh reports whether this call loaded it. All who wait
// for a tile get its error; later requests try again.
func (c *cache[T]) get(ctx context.Context, index []int) (t *cached[T], fresh bool, err error) {
	if err := inGrid(c.grid, index); err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.find(ctx, index)
}

// find implements get for callers that hold c.mu.
func (c *cache[T]) find(ctx context.Context, index []int) (t *cached[T], fresh bool, err error) {
	number := linear(c.grid, index)
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
			c.await(ctx, wait)
			continue
		}
		t := c.add(number, buf)
		c.misses++
		c.fill(ctx, t, index)
		if t.err != nil {
			return nil, false, t.err
		}
		return t, true, nil
	}
}

// add makes a pinned entry that is being loaded. c.mu is held.
func (c *cache[T]) add(number int, buf *mem.Buffer) *cached[T] {
	t := &cached[T]{number: number, buf: buf, pins: 1, ready: make(chan struct{})}
	c.tiles[number] = t
	c.use(t)
	return t
}

// busy reports whether a tile is being loaded, so that a request would wait.
func (c *cache[T]) busy(index []int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tiles[linear(c.grid, index)]
	return t != nil && !t.here()
}

// holds reports whether a tile is there.
func (c *cache[T]) holds(index []int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tiles[linear(c.grid, index)]
	return t != nil && t.here()
}

// peek returns a tile, pinned, if it is cached, and otherwise nil.
func (c *cache[T]) peek(index []int) *cached[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tiles[linear(c.grid, index)]
	if t == nil || !t.here() {
		return nil
	}
	c.hits++
	c.use(t)
	t.pins++
	return t
}

func (t *cached[T]) here() bool {
	select {
	case <-t.ready:
		return true
	default:
		return false
	}
}

// await waits for a signal or the end of ctx. c.mu is held, and unlocked during the wait.
func (c *cache[T]) await(ctx context.Context, wait <-chan struct{}) {
	c.mu.Unlock()
	select {
	case <-wait:
	case <-ctx.Done():
	}
	c.mu.Lock()
}

// The memory of a tile and that of its view are of one kind. A view that is to take
// a tile brings its memory into the cache beforehand (admit), or the right to it;
// it leaves with a tile's (take), with other memory (withdraw), or gives up
// (dismiss). So the memory that is written to next is what was used last.

// admit raises the number of buffers that may exist by one, and adds buf if it is not nil.
func (c *cache[T]) admit(buf *mem.Buffer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room++
	if buf != nil {
		c.made++
		c.recycle(buf)
	}
	c.wake()
}

// claim returns a tile that the caller wants to take over. If first is false, another one has claimed it, and
// it is like a tile of get; otherwise the caller calls take.
func (c *cache[T]) claim(ctx context.Context, index []int) (t *cached[T], first bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, _, err = c.find(ctx, index); err != nil {
		return nil, false, err
	}
	first = !t.claimed
	t.claimed = true
	return t, first, nil
}

// take removes a claimed tile as soon as nobody else has it pinned, and returns its memory.
func (c *cache[T]) take(t *cached[T]) *mem.Buffer {
	c.mu.Lock()
	defer c.mu.Unlock()
	for t.pins > 1 { // by those who copy from it: that takes no time worth cancelling
		wait := make(chan struct{})
		c.waiting = append(c.waiting, wait)
		c.await(context.Background(), wait)
	}
	buf := t.buf
	delete(c.tiles, t.number)
	c.unlink(t)
	t.buf, t.data = nil, nil
	c.room--
	c.made--
	return buf
}

// withdraw removes memory without a tile from the cache and returns it.
func (c *cache[T]) withdraw(ctx context.Context) (*mem.Buffer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if c.closed {
			return nil, ErrClosed
		}
		buf, wait, err := c.slot(ctx)
		if err != nil {
			return nil, err
		}
		if wait == nil {
			c.room--
			c.made--
			return buf, nil
		}
		c.await(ctx, wait)
	}
}

// dismiss lowers the number of buffers that may exist by one, and frees one if there are more.
func (c *cache[T]) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room--
	if c.made <= c.room {
		return
	}
	if n := len(c.idle); n > 0 {
		buf := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.recycle(buf)
		return
	}
	for t := c.front.before; t != &c.front; t = t.before {
		if t.pins == 0 {
			c.evict(t)
			return
		}
	}
}

// put adds a tile whose pixels fill writes, unless it is cached or no unused room is left. It waits for a
// tile that is being loaded.
func (c *cache[T]) put(index []int, fill func(buf *mem.Buffer) []T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := linear(c.grid, index)
	if t := c.tiles[number]; t != nil {
		c.await(context.Background(), t.ready)
		return
	}
	if c.closed {
		return
	}
	buf, _, err := c.slot(context.Background())
	if buf == nil || err != nil {
		return
	}
	t := c.add(number, buf)
	c.mu.Unlock()
	data := fill(buf)
	c.mu.Lock()
	t.data = data
	c.settle(t)
	c.drop(t)
}

// join pins a tile that is cached or being loaded. retry is true if its loader gave up for reasons of its
// own. c.mu is held.
func (c *cache[T]) join(ctx context.Context, t *cached[T]) (retry bool, err error) {
	c.hits++
	c.use(t)
	t.pins++
	if !t.here() {
		c.await(ctx, t.ready)
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

// fill loads a tile that is marked as being loaded. c.mu is held, except while the source works.
func (c *cache[T]) fill(ctx context.Context, t *cached[T], index []int) {
	c.mu.Unlock()
	err := work.Guard(func() (err error) {
		t.data, err = c.load(ctx, index, t.buf)
		return err
	})
	c.mu.Lock()
	t.err = err
	c.settle(t)
}

// settle wakes those who wait for a tile that has loaded or failed.
func (c *cache[T]) settle(t *cached[T]) {
	if t.err != nil {
		delete(c.tiles, t.number)
		c.unlink(t)
		t.data = nil
		c.recycle(t.buf)
		t.buf = nil
	}
	close(t.ready)
}

// unpin releases a tile returned by get.
func (c *cache[T]) unpin(t *cached[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(t)
}

// retire drops a tile that is not expected to be requested again, as soon as nobody has it pinned.
func (c *cache[T]) retire(index []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.tiles[linear(c.grid, index)]; t != nil {
		t.retired = true
		t.pins++
		c.drop(t)
	}
}

func (c *cache[T]) drop(t *cached[T]) {
	if t.pins--; t.buf == nil || t.pins > 1 {
		return
	}
	if t.pins == 0 && (c.closed || t.retired) {
		c.evict(t)
	}
	c.wake() // those who wait for room, or to take it
}

// slot finds memory for one more tile: an idle buffer, a new one if the limit allows, or that of the least
// recently used tile. Otherwise wait tells when to look again. c.mu is held.
func (c *cache[T]) slot(ctx context.Context) (buf *mem.Buffer, wait chan struct{}, err error) {
	if n := len(c.idle); n > 0 {
		buf, c.idle = c.idle[n-1], c.idle[:n-1]
		return buf, nil, nil
	}
	if c.made < c.room {
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
	if c.closed || c.made > c.room {
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
