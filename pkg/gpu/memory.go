package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"strata/pkg/mem"
)

// Buffer is a piece of device memory that belongs to its holder until Release.
type Buffer struct {
	Span
	full  Span
	class int
	pool  *Pool
}

// Span is a range of device memory. It is valid as long as the holder keeps its buffer.
type Span struct {
	address uint64
	bytes   int64
}

// Bytes returns the span's length.
func (s Span) Bytes() int64 { return s.bytes }

// Address returns the device address of the span (CUdeviceptr), for libraries that take one.
func (s Span) Address() uint64 { return s.address }

// From returns the n bytes of the span that begin at byte i.
func (s Span) From(i, n int64) Span {
	if i < 0 || n < 0 || i+n > s.bytes {
		panic(fmt.Sprintf("gpu: bytes %d to %d of a span of %d", i, i+n, s.bytes)) // a mistake of the program, as an index out of range
	}
	return Span{s.address + uint64(i), n}
}

// Release returns the buffer to its pool. Work on it must have been waited for; [Stream.Release] does that. A
// second Release does nothing.
func (b *Buffer) Release() {
	if b == nil || b.pool == nil {
		return
	}
	p := b.pool
	b.pool = nil
	p.put(b.full, b.class)
}

// Pool allocates device memory within a limit. It keeps released buffers for the next request of the same
// size, and returns them to the driver when memory of another size is needed or the driver has no more. It is
// safe for concurrent use.
type Pool struct {
	device *Device

	mu    sync.Mutex
	limit int64
	used  int64 // held
	idle  int64 // in free
	peak  int64
	free  map[int][]Span
	all   []Span // what the driver gave, by address
	looks []*func(Span)
}

func newPool(d *Device, limit int64) *Pool {
	return &Pool{device: d, limit: limit, free: map[int][]Span{}}
}

// Limit returns the maximum number of bytes.
func (p *Pool) Limit() int64 { return p.limit }

// Peak returns the largest number of bytes that the pool ever held.
func (p *Pool) Peak() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}

// ForgetPeak resets [Pool.Peak] to the memory in use now.
func (p *Pool) ForgetPeak() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.peak = p.used + p.idle
}

// Allocation returns the whole allocation of the driver that contains a span. Other buffers may have used it
// before, or may later.
func (p *Pool) Allocation(s Span) (Span, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, found := slices.BinarySearchFunc(p.all, s.address, byAddress)
	if !found {
		i--
	}
	if i < 0 || s.address+uint64(s.bytes) > p.all[i].address+uint64(p.all[i].bytes) {
		return Span{}, false
	}
	return p.all[i], true
}

func byAddress(s Span, address uint64) int { return cmp.Compare(s.address, address) }

// BeforeFree calls f with each [Pool.Allocation] that is about to be returned to the driver, until stop is
// called. f must not use the pool.
func (p *Pool) BeforeFree(f func(Span)) (stop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	look := &f
	p.looks = append(p.looks, look)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.looks = slices.DeleteFunc(p.looks, func(l *func(Span)) bool { return l == look })
	}
}

// Get returns n bytes with undefined content, aligned to 256 bytes. It does not wait: if the limit is reached
// or the driver has no more memory, the error is [ErrMemory]. A caller that holds part of what it needs must
// not wait for the rest, since others may do the same.
func (p *Pool) Get(n int64) (*Buffer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := mem.Size(int(n))
	if l := p.free[c]; len(l) > 0 {
		s := l[len(l)-1]
		p.free[c] = l[:len(l)-1]
		p.idle -= int64(c)
		p.used += int64(c)
		return &Buffer{Span: Span{s.address, n}, full: s, class: c, pool: p}, nil
	}
	if p.used+int64(c) > p.limit {
		return nil, fmt.Errorf("%w: %d bytes do not fit beside %d of %d", ErrMemory, n, p.used, p.limit)
	}
	if err := p.trim(p.limit - p.used - int64(c)); err != nil {
		return nil, err
	}
	s, err := p.device.alloc(c)
	if errors.Is(err, ErrMemory) && p.idle > 0 {
		if err := p.trim(0); err != nil {
			return nil, err
		}
		s, err = p.device.alloc(c)
	}
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes on the device: %w", n, err)
	}
	i, _ := slices.BinarySearchFunc(p.all, s.address, byAddress)
	p.all = slices.Insert(p.all, i, s)
	p.used += int64(c)
	p.peak = max(p.peak, p.used+p.idle)
	return &Buffer{Span: Span{s.address, n}, full: s, class: c, pool: p}, nil
}

func (p *Pool) put(s Span, c int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= int64(c)
	p.idle += int64(c)
	p.free[c] = append(p.free[c], s)
}

// trim gives idle memory back to the driver until no more than keep bytes are left.
func (p *Pool) trim(keep int64) error {
	for c, l := range p.free {
		for len(l) > 0 && p.idle > keep {
			s := l[len(l)-1]
			l = l[:len(l)-1]
			p.free[c] = l
			p.idle -= int64(c)
			if i, found := slices.BinarySearchFunc(p.all, s.address, byAddress); found {
				p.all = slices.Delete(p.all, i, i+1)
			}
			for _, look := range p.looks {
				(*look)(s)
			}
			err := p.device.do(func() error { return check("cuMemFree_v2", driver.MemFree(s.address)) })
			if err = p.device.givenBack(err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.trim(0)
	if p.used > 0 {
		err = errors.Join(err, fmt.Errorf("%d bytes of device memory were not released", p.used))
	}
	return err
}

func (d *Device) alloc(n int) (Span, error) {
	var a uint64
	err := d.do(func() error { return check("cuMemAlloc_v2", driver.MemAlloc(&a, uint64(n))) })
	return Span{a, int64(n)}, err
}
