package view

import (
	"bytes"
	"container/list"
	"context"
	"sync"

	"strata/pkg/mem"
	"strata/pkg/work"
)

// mostBlocks is the maximum number of cached blocks, even if each takes little memory.
const mostBlocks = 1 << 16

// blocks caches decoded chunks within a byte budget. Concurrent requests for a chunk decode it once; decoding
// stops when every request for it has been abandoned.
type blocks struct {
	pool    *mem.Pool
	running sync.WaitGroup

	mu      sync.Mutex
	all     map[string]*block
	idle    list.List // unused blocks, most recent first
	waiting int       // loads that wait for memory
}

// block is a decoded chunk. If all its elements are equal, it holds only one of them.
type block struct {
	key    string
	data   []byte
	single bool

	buffer *mem.Buffer
	users  int
	idle   *list.Element
	loaded bool
	gone   bool // no longer in the map
	err    error
	done   chan struct{}
	cancel context.CancelFunc
}

func newBlocks(limit int64) *blocks {
	return &blocks{pool: mem.NewPool(limit).Keep(limit / 4), all: map[string]*block{}}
}

// get returns the block of a key, filled by load unless it is cached. The caller must return it by put, and must
// not hold another block meanwhile.
func (c *blocks) get(ctx context.Context, key string, size, elem int, load func(ctx context.Context, dst []byte) error) (*block, error) {
	c.mu.Lock()
	b := c.all[key]
	if b == nil {
		b = &block{key: key, done: make(chan struct{})}
		var loading context.Context
		loading, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
		c.all[key] = b
		work.Go(&c.running, func() error { return c.load(loading, b, size, elem, load) }, func(err error) { c.finish(b, err) })
	}
	b.users++
	if b.idle != nil {
		c.idle.Remove(b.idle)
		b.idle = nil
	}
	c.mu.Unlock()
	select {
	case <-b.done:
		if b.err == nil {
			return b, nil
		}
		c.put(b)
		return nil, b.err
	case <-ctx.Done():
		c.put(b)
		return nil, context.Cause(ctx)
	}
}

// put returns a block to the cache. A load that nobody waits for is cancelled.
func (c *blocks) put(b *block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.users--; b.users > 0 {
		return
	}
	switch {
	case !b.loaded:
		b.cancel()
		c.forget(b)
	case b.err != nil, c.waiting > 0:
		c.forget(b)
	case !b.gone:
		b.idle = c.idle.PushFront(b)
		if c.idle.Len() > mostBlocks {
			c.forget(c.idle.Back().Value.(*block))
		}
	}
}

// load reads a block into memory of the pool, evicting older blocks if needed.
func (c *blocks) load(ctx context.Context, b *block, size, elem int, load func(ctx context.Context, dst []byte) error) error {
	buffer, err := c.room(ctx, size)
	if err != nil {
		return err
	}
	b.buffer = buffer // nobody looks at it before done is closed
	if err := load(ctx, buffer.B); err != nil {
		return err
	}
	if b.data = buffer.B; equal(b.data, elem) {
		b.data, b.single = bytes.Clone(b.data[:elem]), true
	}
	return nil
}

// finish publishes the result of load.
func (c *blocks) finish(b *block, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.cancel()
	b.err, b.loaded = err, true
	if b.buffer != nil && (b.single || err != nil || b.gone) {
		b.buffer.Release()
		b.buffer = nil
	}
	close(b.done)
}

// forget removes an unused block.
func (c *blocks) forget(b *block) {
	if b.idle != nil {
		c.idle.Remove(b.idle)
		b.idle = nil
	}
	if !b.gone {
		b.gone = true
		delete(c.all, b.key)
	}
	if b.loaded && b.buffer != nil {
		b.buffer.Release()
		b.buffer = nil
	}
}

// room allocates memory, evicting the least recently used blocks. It waits if all are in use.
func (c *blocks) room(ctx context.Context, size int) (*mem.Buffer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		b, err := c.pool.TryGet(size)
		if b != nil || err != nil {
			return b, err
		}
		last := c.idle.Back()
		if last == nil {
			break
		}
		c.forget(last.Value.(*block))
	}
	c.waiting++
	c.mu.Unlock()
	b, err := c.pool.Get(ctx, size)
	c.mu.Lock()
	c.waiting--
	return b, err
}

// close waits for loads, all of which must have been abandoned, and releases the memory.
func (c *blocks) close() {
	c.running.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.idle.Len() > 0 {
		c.forget(c.idle.Back().Value.(*block))
	}
	c.pool.Close()
}

// equal reports whether all elements of b are the same.
func equal(b []byte, elem int) bool {
	return len(b) >= elem && bytes.Equal(b[elem:], b[:len(b)-elem])
}
