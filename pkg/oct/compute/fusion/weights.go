package fusion

import (
	"container/list"
	"errors"
	"sync"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/mem"
)

// weigher assigns weights to the pixels of tiles.
type weigher interface {
	// Weigh gives the pixels of the loaded tile the weights that fill computes; without it all weights are 1. Tiles
	// with the same key share one plane of weights, which stays in memory until the space is needed: the least
	// recently used is evicted first.
	Weigh(key string, fill func(v []float32))
}

// weightCache keeps planes of weights in host or device memory.
type weightCache struct {
	limit int64 // bytes; exceeded only by planes in use

	mu    sync.Mutex
	bytes int64
	known map[string]*list.Element
	used  list.List // of *weightPlane, most recently used first
}

// weightPlane holds the weights of a tile's pixels.
type weightPlane struct {
	key    string
	bytes  int64 // of host or device memory
	users  int
	once   sync.Once
	host   []float32
	device *gpu.Buffer
	err    error
}

func newWeightCache(limit int64) *weightCache {
	return &weightCache{limit: limit, known: map[string]*list.Element{}}
}

// of returns the weights of a key, which take the given number of bytes; bring makes them on first use. They stay
// in memory until done is called.
func (w *weightCache) of(key string, bytes int64, bring func(p *weightPlane) error) (p *weightPlane, done func(), err error) {
	p = w.take(key, bytes)
	p.once.Do(func() { p.err = bring(p) })
	if p.err != nil {
		w.forget(p)
		return nil, nil, p.err
	}
	return p, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		p.users--
	}, nil
}

// take returns the plane of a key, making room for it if it is new.
func (w *weightCache) take(key string, bytes int64) *weightPlane {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.known[key]; e != nil {
		w.used.MoveToFront(e)
		p := e.Value.(*weightPlane)
		p.users++
		return p
	}
	p := &weightPlane{key: key, bytes: bytes, users: 1}
	for e := w.used.Back(); e != nil && w.bytes+p.bytes > w.limit; {
		before := e.Prev()
		if e.Value.(*weightPlane).users == 0 {
			w.drop(e)
		}
		e = before
	}
	w.known[key] = w.used.PushFront(p)
	w.bytes += p.bytes
	return p
}

// drop releases a plane. w.mu must be held.
func (w *weightCache) drop(e *list.Element) {
	p := w.used.Remove(e).(*weightPlane)
	delete(w.known, p.key)
	w.bytes -= p.bytes
	p.device.Release()
}

// forget drops a plane that could not be made.
func (w *weightCache) forget(p *weightPlane) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.known[p.key]; e != nil && e.Value == p {
		w.drop(e)
	}
}

// beside calls take, which allocates device memory. If the device is out of memory, it releases unused weights and
// calls take again.
func (w *weightCache) beside(take func() (*gpu.Buffer, error)) (*gpu.Buffer, error) {
	b, err := take()
	if errors.Is(err, gpu.ErrMemory) && w.trim() {
		return take()
	}
	return b, err
}

// trim releases unused planes and reports whether it released any.
func (w *weightCache) trim() (released bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for e := w.used.Back(); e != nil; {
		before := e.Prev()
		if e.Value.(*weightPlane).users == 0 {
			w.drop(e)
			released = true
		}
		e = before
	}
	return released
}

// release releases all planes. None may be in use.
func (w *weightCache) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.used.Len() > 0 {
		w.drop(w.used.Back())
	}
}

func (w *hostFuser[T, F]) Weigh(key string, fill func(v []float32)) {
	if w.err != nil {
		return
	}
	n := w.tile.To.Area()
	p, done, err := w.weights.of(key, int64(4*n), func(p *weightPlane) error {
		p.host = make([]float32, n)
		fill(p.host)
		return nil
	})
	if w.err = err; err == nil {
		w.own, w.done = p.host, done
	}
}

// Weigh computes the weights on the host and uploads them once per key.
func (w *deviceFuser) Weigh(key string, fill func(v []float32)) {
	w.try(func() error {
		n := int64(4 * w.tile.To.Area())
		p, done, err := w.weights.of(key, mem.Pooled(n), func(p *weightPlane) (err error) {
			p.device, err = w.bring(n, fill)
			return err
		})
		if err != nil {
			return shortOfMemory(err)
		}
		w.own = p.device.Span
		w.dev.Stream.After(done)
		return nil
	})
}

// bring computes n bytes of weights and uploads them.
func (w *deviceFuser) bring(n int64, fill func(v []float32)) (*gpu.Buffer, error) {
	s := w.dev.Stream
	host, err := s.Device().Host(int(n))
	if err != nil {
		return nil, err
	}
	defer host.Release()
	fill(dtype.Slice[float32](host.B))
	b, err := w.weights.beside(func() (*gpu.Buffer, error) { return s.Device().Memory().Get(n) })
	if err != nil {
		return nil, err
	}
	s.Upload(b.Span, host.B)
	if err := s.Wait(); err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}
