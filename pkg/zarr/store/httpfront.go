package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"strata/pkg/work"
)

// FrontPart is the size of the pieces in which [Starter] reads: each is a request.
const FrontPart = 1 << 20

// Starter is implemented by stores that can read the beginning of an object while they open it, which saves a round
// trip if the whole object is wanted.
type Starter interface {
	Store
	// Start works like Open and meanwhile reads the beginning of the object into memory, in pieces of [FrontPart]
	// bytes. Reads of these bytes wait for them there; what does not arrive is requested by the read itself. The
	// caller calls Finish before it uses the memory again.
	Start(ctx context.Context, key string, memory []byte) (StartedObject, error)
}

// StartedObject is the Object of a [Starter].
type StartedObject interface {
	Object
	// Finish ends the reading of the beginning and returns the memory to the caller. Later reads make their own
	// requests. A second Finish does nothing. It returns panics only.
	Finish() error
}

var _ Starter = (*HTTPStore)(nil)

// front is the beginning of an object that is read before its size is known.
type front struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	opened  chan struct{} // closed when Open has ended
	object  *httpObject   // then; nil: it failed
	parts   []frontPart

	mu     sync.RWMutex
	memory []byte // nil: it was returned
	panic  error
}

type frontPart struct {
	ended chan struct{}
	ok    bool // when ended is closed: all of it has arrived
}

// Start opens an object and reads its beginning; see [Starter].
func (s *HTTPStore) Start(ctx context.Context, key string, memory []byte) (StartedObject, error) {
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Location(""), err)
	}
	f := &front{opened: make(chan struct{}), memory: memory, parts: make([]frontPart, (len(memory)+FrontPart-1)/FrontPart)}
	var part context.Context
	part, f.cancel = context.WithCancel(ctx)
	for i := range f.parts {
		f.parts[i].ended = make(chan struct{})
		work.Go(&f.running, func() error {
			defer close(f.parts[i].ended)
			f.parts[i].ok = f.fetch(part, s, key, int64(i)*FrontPart)
			return nil
		}, f.failed)
	}
	o, err := s.Open(ctx, key)
	if err == nil {
		f.object = o.(*httpObject)
		f.object.front = f
	}
	close(f.opened)
	if err != nil {
		return nil, errors.Join(err, f.finish())
	}
	return f.object, nil
}

// fetch reads the part at off and reports whether all of it has arrived.
func (f *front) fetch(ctx context.Context, s *HTTPStore, key string, off int64) bool {
	end := min(off+FrontPart, int64(len(f.memory)))
	r, err := s.send(ctx, http.MethodGet, key, http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", off, end-1)}})
	if err != nil {
		return false
	}
	defer r.close()
	if r.StatusCode != http.StatusPartialContent {
		return false
	}
	select {
	case <-f.opened:
	case <-ctx.Done():
		return false
	}
	if f.object == nil || off >= f.object.size {
		return false
	}
	end = min(end, f.object.size)
	if _, to, err := f.object.answered(r, off, end); err != nil || to < end {
		return false
	}
	_, err = io.ReadFull(r.Body, f.memory[off:end])
	return err == nil
}

// read fills p from off and reports whether it could.
func (f *front) read(ctx context.Context, p []byte, off int64) bool {
	last := (off + int64(len(p)) - 1) / FrontPart
	if last >= int64(len(f.parts)) {
		return false
	}
	for i := off / FrontPart; i <= last; i++ {
		select {
		case <-f.parts[i].ended:
		case <-ctx.Done():
			return false
		}
		if !f.parts[i].ok {
			return false
		}
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if off+int64(len(p)) > int64(len(f.memory)) {
		return false
	}
	copy(p, f.memory[off:])
	return true
}

func (f *front) failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.panic = cmp.Or(f.panic, err)
}

func (f *front) finish() error {
	f.cancel()
	f.running.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.memory = nil
	return f.panic
}

// Finish ends the reading of the beginning; see [StartedObject].
func (o *httpObject) Finish() error { return o.front.finish() }
