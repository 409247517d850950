package filelayer

import (
	"errors"
	"fmt"
	"sync"

	"strata/pkg/gpu"
	"strata/pkg/gpu/cufile"
)

// leastRegistered is the minimum size of memory that is registered automatically: a page of the device. A
// smaller registration would map other owners' memory with it.
const leastRegistered = 64 << 10

// registry is the memory of a device that cuFile knows ([cufile.Buffer]), whichever pool
// asked for it.
type registry struct {
	driver *cufile.Driver
	device *gpu.Device
	stop   func() // looking at memory that is freed

	mu    sync.Mutex
	known map[uint64]*allocation // by address
	bytes int64                  // that are registered
	full  bool                   // no more can be
}

// allocation is memory that the driver gave at once, which cuFile moves data to or from.
type allocation struct {
	span gpu.Span

	moves  sync.RWMutex   // read-locked while cuFile is given the memory
	buffer *cufile.Buffer // nil: cuFile does not know it
	never  bool           // nor can it
	uses   int            // reads and writes that began; under the registry's lock
	queued int            // on streams, that have not been waited for; the same
}

// registries are in use by pools.
var registries = struct {
	sync.Mutex
	of    map[*gpu.Device]*registry
	users map[*registry]int
}{of: map[*gpu.Device]*registry{}, users: map[*registry]int{}}

// registryOf returns the registry of a device, for a pool. The pool calls close.
func registryOf(d *gpu.Device, driver *cufile.Driver) *registry {
	registries.Lock()
	defer registries.Unlock()
	g := registries.of[d]
	if g == nil {
		g = &registry{driver: driver, device: d, known: map[uint64]*allocation{}}
		g.stop = d.Memory().BeforeFree(g.forget)
		registries.of[d] = g
	}
	registries.users[g]++
	return g
}

// close unregisters all memory from cuFile, unless another pool uses the registry.
func (g *registry) close() error {
	registries.Lock()
	defer registries.Unlock()
	if registries.users[g]--; registries.users[g] > 0 {
		return nil
	}
	delete(registries.users, g)
	delete(registries.of, g.device)
	g.stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for _, a := range g.known {
		errs = append(errs, g.unregister(a))
	}
	return errors.Join(errs...)
}

// forget unregisters memory that is about to be freed.
func (g *registry) forget(s gpu.Span) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.known[s.Address()]; a != nil {
		_ = g.unregister(a) // of memory that goes anyway
		delete(g.known, s.Address())
	}
}

// unregister removes an allocation's registration with cuFile. g.mu must be held.
func (g *registry) unregister(a *allocation) error {
	a.moves.Lock()
	defer a.moves.Unlock()
	if a.buffer == nil {
		return nil
	}
	err := a.buffer.Close()
	a.buffer = nil
	g.bytes -= a.span.Bytes()
	return err
}

// allocation returns the allocation that contains memory, or nil if it is not the device's.
func (g *registry) allocation(s gpu.Span) *allocation {
	whole, ok := g.device.Memory().Allocation(s)
	if !ok {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.known[whole.Address()]
	if a == nil {
		a = &allocation{span: whole}
		g.known[whole.Address()] = a
	}
	return a
}

// use returns the allocation of memory that a read or write begins to use. If it is not the first one and
// auto is given, cuFile gets to know it, as far as it can: unknown memory is moved as well.
func (g *registry) use(s gpu.Span, auto bool) *allocation {
	a := g.allocation(s)
	if a == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.uses++; auto && a.uses > 1 && a.buffer == nil && !a.never && a.queued == 0 && !g.full && a.span.Bytes() >= leastRegistered {
		if most := g.driver.MostRegistered(); most > 0 && g.bytes+a.span.Bytes() > most {
			return a // until some is freed
		}
		_ = g.register(a)
	}
	return a
}

// register makes an allocation known to cuFile; under the lock.
func (g *registry) register(a *allocation) error {
	a.moves.Lock()
	defer a.moves.Unlock()
	b, err := g.driver.RegisterBuffer(a.span)
	if err != nil {
		var e *cufile.Error
		a.never = true
		g.full = g.full || errors.As(err, &e) && e.OfMemory()
		return err
	}
	a.buffer = b
	g.bytes += a.span.Bytes()
	return nil
}

// move calls f with the buffer as which the memory is registered with cuFile, or nil. The registration does not change
// until f returns.
func (a *allocation) move(f func(b *cufile.Buffer)) {
	if a == nil {
		f(nil)
		return
	}
	a.moves.RLock()
	defer a.moves.RUnlock()
	f(a.buffer)
}

// queue counts transfers that are queued on streams; until they end, registrations do not change.
func (g *registry) queue(a *allocation, n int) {
	if a != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		a.queued += n
	}
}

// Register makes device memory known to cuFile: it stays mapped for transfers, which otherwise go through
// cuFile's own memory, and occupies as much of the device's window (BAR1). It registers the whole allocation
// of the driver that contains the memory, until [Pool.Deregister], the end of the pool, or the return of the
// allocation to the driver. It does nothing if files are not moved straight ([Pool.Mode]) or the memory is
// registered already.
//
// Memory that is read into or written from a second time is registered automatically, unless
// [settings.Settings] forbid it or the window is full.
func (p *Pool) Register(s gpu.Span) error {
	g := p.buffers()
	if g == nil {
		return nil
	}
	a := g.allocation(s)
	if a == nil {
		return fmt.Errorf("register %d bytes at %#x: they are not of the device's memory", s.Bytes(), s.Address())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case a.buffer != nil:
		return nil
	case a.queued > 0:
		return fmt.Errorf("register %d bytes at %#x: a stream that reads or writes them has not been waited for", s.Bytes(), s.Address())
	}
	if err := g.register(a); err != nil {
		return fmt.Errorf("register %d bytes at %#x, of %d: %w", s.Bytes(), s.Address(), a.span.Bytes(), err)
	}
	return nil
}

// Deregister undoes [Pool.Register] after waiting for reads and writes of the memory.
func (p *Pool) Deregister(s gpu.Span) error {
	g := p.buffers()
	if g == nil {
		return nil
	}
	a := g.allocation(s)
	if a == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.queued > 0 {
		return fmt.Errorf("deregister %d bytes at %#x: a stream that reads or writes them has not been waited for", s.Bytes(), s.Address())
	}
	a.never = true // not again without asking
	if err := g.unregister(a); err != nil {
		return fmt.Errorf("deregister %d bytes at %#x: %w", s.Bytes(), s.Address(), err)
	}
	return nil
}

// Registered returns how many bytes of device memory are registered with cuFile.
func (p *Pool) Registered() int64 {
	g := p.buffers()
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bytes
}

// buffers returns the registry, or nil if files are not moved straight.
func (p *Pool) buffers() *registry {
	ok, _ := p.Mode()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok || p.closed {
		return nil
	}
	return p.straight.buffers
}
