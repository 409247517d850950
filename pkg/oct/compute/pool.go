package compute

import (
	"sync"

	"strata/pkg/mem"
	"strata/pkg/oct"
)

// A Pool lends blocks of host or device memory that outlive a piece of work, within a budget. It is safe for
// concurrent use.
type Pool struct {
	get    func(n int64) (Block, func(), error)
	budget int64

	mu   sync.Mutex
	left int64
	lent map[*loan]struct{}
	host *mem.Pool
}

// loan records a lent block.
type loan struct {
	bytes   int64
	release func()
}

// NewPool returns a pool with a budget in bytes.
func NewPool(res *oct.Resources, budget int64) *Pool {
	p := &Pool{budget: budget, left: budget, lent: map[*loan]struct{}{}}
	if d := res.Device; d != nil {
		p.get = func(n int64) (Block, func(), error) {
			b, err := d.Memory().Get(n)
			if err != nil { // the device has less than there should be; another error shows again
				return Block{}, nil, nil
			}
			return Block{device: b.Span}, b.Release, nil
		}
		return p
	}
	p.host = mem.NewPool(budget)
	p.get = func(n int64) (Block, func(), error) {
		b, err := p.host.TryGet(int(n))
		if b == nil || err != nil {
			return Block{}, nil, err
		}
		return Block{host: b.B}, b.Release, nil
	}
	return p
}

// Get lends n bytes with undefined content until release is called. A nil release means that there is no room.
func (p *Pool) Get(n int64) (b Block, release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &loan{bytes: mem.Pooled(n)}
	if l.bytes > p.left {
		return Block{}, nil, nil
	}
	if b, l.release, err = p.get(n); l.release == nil || err != nil {
		return Block{}, nil, err
	}
	p.left -= l.bytes
	p.lent[l] = struct{}{}
	return b, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.giveBack(l)
	}, nil
}

// giveBack releases a block once. p.mu must be held.
func (p *Pool) giveBack(l *loan) {
	if _, lent := p.lent[l]; lent {
		delete(p.lent, l)
		p.left += l.bytes
		l.release()
	}
}

// Close releases all blocks. None may be in use.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.lent {
		p.giveBack(l)
	}
	if p.host != nil {
		p.host.Close()
	}
}
