package stitch

import (
	"container/list"
	"errors"
	"sync"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/mem"
)

// deviceWeights are the weights of tiles' pixels in device memory, made by the CPU and
// brought there once. Tiles that overlap their neighbours alike share them; the
// least recently used that nobody uses are forgotten.
type deviceWeights struct {
	*weights // whose own cache is not used
	device   *gpu.Device
	limit    int64 // bytes

	mu    sync.Mutex
	bytes int64
	known map[string]*list.Element
	used  list.List // of *deviceWeightPlane, most recently used first
}

// deviceWeightPlane are the weights of one situation.
type deviceWeightPlane struct {
	key    string
	bytes  int64
	users  int
	once   sync.Once
	buffer *gpu.Buffer
	err    error
}

// size is what the plane takes of the device's memory.
func (p *deviceWeightPlane) size() int64 { return mem.Pooled(p.bytes) }

func newDeviceWeights(w *weights, d *gpu.Device, limit int64) *deviceWeights {
	return &deviceWeights{weights: w, device: d, limit: limit, known: map[string]*list.Element{}}
}

// of are the weights of tile t, a float32 per pixel; a span of no bytes: all are 1. They
// stay until done is called.
func (w *deviceWeights) of(t int, s *gpu.Stream) (plane gpu.Span, done func(), err error) {
	c := w.situation(t)
	if c == nil {
		return gpu.Span{}, func() {}, nil
	}
	p := w.take(c)
	p.once.Do(func() { p.err = w.bring(p, c, s) })
	if p.err != nil {
		w.forget(p)
		return gpu.Span{}, nil, p.err
	}
	return p.buffer.Span, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		p.users--
	}, nil
}

// bring works the weights out, and copies them to the device.
func (w *deviceWeights) bring(p *deviceWeightPlane, c *situation, s *gpu.Stream) error {
	host, err := s.Device().Host(int(p.bytes))
	if err != nil {
		return err
	}
	defer host.Release()
	c.fill(dtype.Slice[float32](host.B))
	b, err := s.Device().Memory().Get(p.bytes)
	if errors.Is(err, gpu.ErrMemory) && w.trim() {
		b, err = s.Device().Memory().Get(p.bytes)
	}
	if err != nil {
		return err
	}
	s.Upload(b.Span, host.B)
	if err := s.Wait(); err != nil {
		b.Release()
		return err
	}
	p.buffer = b
	return nil
}

// take finds the plane of a situation, or makes room for it.
func (w *deviceWeights) take(c *situation) *deviceWeightPlane {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := c.key()
	if e := w.known[key]; e != nil {
		w.used.MoveToFront(e)
		p := e.Value.(*deviceWeightPlane)
		p.users++
		return p
	}
	p := &deviceWeightPlane{key: key, bytes: int64(4 * c.ny * c.nx), users: 1}
	for e := w.used.Back(); e != nil && w.bytes+p.size() > w.limit; {
		before := e.Prev()
		if old := e.Value.(*deviceWeightPlane); old.users == 0 {
			w.drop(e)
		}
		e = before
	}
	w.known[key] = w.used.PushFront(p)
	w.bytes += p.size()
	return p
}

// drop gives a plane's memory back. mu is held.
func (w *deviceWeights) drop(e *list.Element) {
	p := w.used.Remove(e).(*deviceWeightPlane)
	delete(w.known, p.key)
	w.bytes -= p.size()
	p.buffer.Release()
}

// forget drops a plane that could not be brought.
func (w *deviceWeights) forget(p *deviceWeightPlane) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.known[p.key]; e != nil && e.Value == p {
		w.drop(e)
	}
}

// trim gives back what nobody uses, and says whether there was any.
func (w *deviceWeights) trim() (some bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for e := w.used.Back(); e != nil; {
		before := e.Prev()
		if e.Value.(*deviceWeightPlane).users == 0 {
			w.drop(e)
			some = true
		}
		e = before
	}
	return some
}

// release gives all back, when nobody uses any.
func (w *deviceWeights) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.used.Len() > 0 {
		w.drop(w.used.Back())
	}
}
