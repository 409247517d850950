package czi

import (
	"context"
	"errors"
	"sync"
)

// tileCache holds decoded tiles within a budget, the ones used last.
type tileCache struct {
	limit int64

	mu    sync.Mutex
	held  map[int]*cachedTile // by number of the sub-block
	used  int64
	clock uint64
}

type cachedTile struct {
	done  chan struct{} // closed when data or err is there
	data  []byte
	err   error
	users int
	last  uint64
}

// get returns the pixels of a tile, which it decodes unless they are there or somebody does it already; done ends their
// use.
func (c *tileCache) get(ctx context.Context, i int, t *tile) (pixels []byte, done func(), err error) {
	for {
		k, mine := c.take(i, t.bytes)
		if mine {
			k.fill(ctx, t)
		}
		select {
		case <-k.done:
		case <-ctx.Done():
			c.leave(i, k)
			return nil, nil, ctx.Err()
		}
		if k.err == nil {
			return k.data, func() { c.leave(i, k) }, nil
		}
		err := k.err
		c.leave(i, k)
		if !mine && ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			continue // it was the other's time that was up
		}
		return nil, nil, err
	}
}

// fill decodes the tile. Even if decoding panics, it closes done, so that goroutines that wait for the tile continue.
func (k *cachedTile) fill(ctx context.Context, t *tile) {
	defer close(k.done)
	k.err = t.errorf("was not decoded")
	k.err = t.load(ctx, k.data)
}

// take returns the cache's entry for tile i. If there is none, it makes one of n bytes, which the caller must fill
// (mine is true).
func (c *tileCache) take(i int, n int64) (k *cachedTile, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	if k := c.held[i]; k != nil {
		k.users++
		k.last = c.clock
		return k, false
	}
	k = &cachedTile{done: make(chan struct{}), users: 1, last: c.clock}
	for c.used+n > c.limit {
		oldest := -1
		for j, o := range c.held {
			if o.users == 0 && (oldest < 0 || o.last < c.held[oldest].last) {
				oldest = j
			}
		}
		if oldest < 0 { // all are in use: as many as there are workers
			break
		}
		o := c.held[oldest]
		delete(c.held, oldest)
		c.used -= int64(len(o.data))
		if int64(len(o.data)) == n {
			k.data = o.data
		}
	}
	if k.data == nil {
		k.data = make([]byte, n)
	}
	c.used += n
	c.held[i] = k
	return k, true
}

// leave ends the use of an entry, and removes it from the cache if its decoding failed.
func (c *tileCache) leave(i int, k *cachedTile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.users--
	if k.users == 0 && c.held[i] == k && k.err != nil {
		delete(c.held, i)
		c.used -= int64(len(k.data))
	}
}
