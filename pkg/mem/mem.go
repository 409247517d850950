// Package mem hands out large buffers within a byte budget.
//
// A buffer of a page or more lies outside the Go heap, on huge pages if the kernel grants them: a result in
// fresh 4 KiB pages would cost five times the page faults, and the garbage collector would let the heap grow
// to twice the memory in use. Callers therefore return buffers explicitly to their [Pool].
package mem

import (
	"context"
	"fmt"
	"math"
	"sync"
)

// Buffer is a piece of memory that belongs to its holder until Release.
type Buffer struct {
	B    []byte
	full []byte
	pool *Pool
}

// Release returns the buffer to its pool. B must not be used afterwards; a second Release does nothing.
func (b *Buffer) Release() {
	if b == nil || b.pool == nil {
		return
	}
	p := b.pool
	b.pool = nil
	p.put(b.full)
	b.B, b.full = nil, nil
}

// Pool hands out buffers that together never exceed a number of bytes. Get waits for a Release when the
// budget is exhausted. It is safe for concurrent use.
type Pool struct {
	mu     sync.Mutex
	limit  int64
	keep   int64 // bytes that may lie idle
	used   int64 // bytes that callers hold
	idle   int64 // bytes that lie in free
	peak   int64
	free   map[int][][]byte
	waiter []chan struct{}
	closed bool

	alloc   func(int) ([]byte, error)
	dealloc func([]byte)
}

// NewPool returns a pool whose buffers, in use and idle, stay within limit bytes.
func NewPool(limit int64) *Pool { return NewPoolOf(limit, Alloc, Free) }

// NewPoolOf returns a pool of memory that alloc provides, of exactly the requested length, and free releases.
func NewPoolOf(limit int64, alloc func(n int) ([]byte, error), free func([]byte)) *Pool {
	return &Pool{limit: limit, keep: limit, free: map[int][][]byte{}, alloc: alloc, dealloc: free}
}

// Keep limits the idle bytes that the pool keeps; more are returned to the system. It returns the pool.
func (p *Pool) Keep(idle int64) *Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keep = idle
	p.trim(p.keep)
	return p
}

// Limit returns the pool's budget in bytes.
func (p *Pool) Limit() int64 { return p.limit }

// Peak returns the largest number of bytes that the pool ever had allocated.
func (p *Pool) Peak() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}

// Get returns a buffer of n bytes, reusing one that fits, with undefined content. While the budget is
// exhausted it waits, until ctx ends. A request larger than the whole budget is an error.
func (p *Pool) Get(ctx context.Context, n int) (*Buffer, error) {
	c := class(n)
	if int64(c) > p.limit {
		return nil, fmt.Errorf("a buffer of %d bytes: %w of %d bytes", n, ErrBudget, p.limit)
	}
	for {
		p.mu.Lock()
		if b, err := p.take(c, n); b != nil || err != nil {
			return b, err
		}
		w := make(chan struct{})
		p.waiter = append(p.waiter, w)
		p.mu.Unlock()
		select {
		case <-w:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TryGet works like Get for callers that can do without: it returns nil at once if the budget is exhausted, or if the
// machine's memory is short (see [Share]).
func (p *Pool) TryGet(n int) (*Buffer, error) {
	c := class(n)
	p.mu.Lock()
	if len(p.free[c]) == 0 && !spared(int64(c)) {
		p.mu.Unlock()
		return nil, nil
	}
	b, err := p.take(c, n)
	if b == nil && err == nil {
		p.mu.Unlock()
	}
	return b, err
}

// take finds or makes a buffer of class c and unlocks the pool. When the budget
// is spent it returns nothing, with the pool still locked.
func (p *Pool) take(c, n int) (*Buffer, error) {
	if l := p.free[c]; len(l) > 0 {
		b := l[len(l)-1]
		p.free[c] = l[:len(l)-1]
		p.idle -= int64(c)
		p.used += int64(c)
		p.mu.Unlock()
		return &Buffer{B: b[:n], full: b, pool: p}, nil
	}
	if int64(c) > p.limit-p.used {
		return nil, nil
	}
	p.trim(p.limit - p.used - int64(c))
	p.used += int64(c)
	p.peak = max(p.peak, p.used+p.idle)
	p.mu.Unlock()
	b, err := p.alloc(c)
	if err != nil {
		p.mu.Lock()
		p.used -= int64(c)
		p.wake()
		p.mu.Unlock()
		return nil, err
	}
	return &Buffer{B: b[:n], full: b, pool: p}, nil
}

func (p *Pool) put(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= int64(len(b))
	if p.closed {
		p.dealloc(b)
	} else {
		p.idle += int64(len(b))
		p.free[len(b)] = append(p.free[len(b)], b)
		p.trim(p.keep)
	}
	p.wake()
}

// wake lets every waiter look again: their sizes differ, so the first in line
// need not be the one that fits.
func (p *Pool) wake() {
	for _, w := range p.waiter {
		close(w)
	}
	p.waiter = nil
}

// trim gives idle buffers back to the system until no more than keep bytes of
// them are left.
func (p *Pool) trim(keep int64) {
	for c, l := range p.free {
		for len(l) > 0 && p.idle > keep {
			p.dealloc(l[len(l)-1])
			l = l[:len(l)-1]
			p.idle -= int64(c)
		}
		p.free[c] = l
		if p.idle <= keep {
			return
		}
	}
}

// Close returns idle buffers to the system, and those in use when they are released.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.trim(0)
}

const page = 4096

// Size returns how many bytes of the budget a buffer of n bytes takes.
func Size(n int) int { return class(n) }

// Pooled works like [Size] for int64, and returns 0 for 0 bytes, which need no buffer.
func Pooled(n int64) int64 {
	if n == 0 {
		return 0
	}
	return int64(class(int(n)))
}

// class rounds a size up so that buffers of nearly equal size share a list:
// to a sixteenth of its power of two, at least a page.
func class(n int) int {
	if n > math.MaxInt/64 {
		return math.MaxInt // no pool has so much
	}
	step := page
	for step*32 <= n {
		step *= 2
	}
	return max((n+step-1)/step, 1) * step
}
