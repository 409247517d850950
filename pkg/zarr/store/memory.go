package store

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
)

// MemoryStore keeps objects in memory, for tests and for data used within one process.
type MemoryStore struct {
	mu   sync.RWMutex
	tree *tree[[]byte] // an object's bytes never change; Put replaces them
}

var _ Writer = (*MemoryStore)(nil)

// Memory returns an empty store in memory.
func Memory() *MemoryStore { return &MemoryStore{tree: newTree[[]byte]()} }

// Location returns key after "memory:".
func (s *MemoryStore) Location(key string) string { return "memory:" + key }

// Close does nothing; the objects stay until the store is garbage-collected.
func (s *MemoryStore) Close() error { return nil }

func (s *MemoryStore) check(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return ctx.Err()
}

func (s *MemoryStore) object(ctx context.Context, key string) ([]byte, error) {
	if err := s.check(ctx, key); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	data, err := s.tree.object(key)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: s.Location(key), Err: err}
	}
	return data, nil
}

// Get copies the object; see [Store].
func (s *MemoryStore) Get(ctx context.Context, key string, dst []byte, limit int64) ([]byte, error) {
	data, err := s.object(ctx, key)
	if err != nil {
		return nil, err
	}
	if limit >= 0 && int64(len(data)) > limit {
		return nil, tooLarge(s.Location(key), int64(len(data)), limit)
	}
	if dst == nil {
		dst = []byte{}
	}
	return append(dst[:0], data...), nil
}

// Open opens the present version of the object; see [Store].
func (s *MemoryStore) Open(ctx context.Context, key string) (Object, error) {
	data, err := s.object(ctx, key)
	if err != nil {
		return nil, err
	}
	return &memoryObject{data: data, where: s.Location(key)}, nil
}

// List lists the children of prefix; see [Store].
func (s *MemoryStore) List(ctx context.Context, prefix string) ([]Entry, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	entries, err := s.tree.list(prefix, func(b []byte) int64 { return int64(len(b)) })
	if err != nil {
		return nil, &fs.PathError{Op: "list", Path: s.Location(prefix), Err: err}
	}
	return entries, nil
}

// Put stores a copy of parts; see [Writer].
func (s *MemoryStore) Put(ctx context.Context, key string, parts ...[]byte) error {
	if err := s.check(ctx, key); err != nil {
		return err
	}
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	data := make([]byte, 0, n)
	for _, p := range parts {
		data = append(data, p...)
	}
	return s.put(key, data)
}

func (s *MemoryStore) put(key string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.tree.put(key, data); err != nil {
		return &fs.PathError{Op: "create", Path: s.Location(key), Err: err}
	}
	return nil
}

// Delete removes the object; see [Writer].
func (s *MemoryStore) Delete(ctx context.Context, key string) error {
	if err := s.check(ctx, key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.tree.remove(key); err != nil && err != fs.ErrNotExist {
		return &fs.PathError{Op: "remove", Path: s.Location(key), Err: err}
	}
	return nil
}

// Create begins an object; see [Writer].
func (s *MemoryStore) Create(ctx context.Context, key string) (PendingObject, error) {
	if err := s.check(ctx, key); err != nil {
		return nil, err
	}
	return &pendingMemory{store: s, key: key}, nil
}

// memoryObject is an object's bytes.
type memoryObject struct {
	data   []byte
	where  string
	closed atomic.Bool
}

func (o *memoryObject) Size() int64 { return int64(len(o.data)) }

func (o *memoryObject) Close() error {
	o.closed.Store(true)
	return nil
}

func (o *memoryObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if o.closed.Load() {
		return 0, &fs.PathError{Op: "read", Path: o.where, Err: fs.ErrClosed}
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n, eof, err := clampRange(len(p), off, o.Size())
	if err != nil {
		return 0, fmt.Errorf("%s: %w", o.where, err)
	}
	if n > 0 {
		copy(p, o.data[off:off+int64(n)])
	}
	return n, eof
}

// pendingMemory collects an object's bytes.
type pendingMemory struct {
	store *MemoryStore
	key   string

	mu   sync.Mutex
	data []byte
	done bool
}

func (o *pendingMemory) WriteAt(p []byte, off int64) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case off < 0:
		return 0, fmt.Errorf("%s: %w", o.store.Location(o.key), errOffset(off))
	case o.done:
		return 0, &fs.PathError{Op: "write", Path: o.store.Location(o.key), Err: fs.ErrClosed}
	case len(p) == 0:
		return 0, nil
	}
	if end := int(off) + len(p); end > len(o.data) {
		if end > cap(o.data) {
			o.data = append(make([]byte, 0, max(end, 2*cap(o.data))), o.data...)
		}
		o.data = o.data[:end]
	}
	return copy(o.data[off:], p), nil
}

func (o *pendingMemory) ReadAt(p []byte, off int64) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return 0, &fs.PathError{Op: "read", Path: o.store.Location(o.key), Err: fs.ErrClosed}
	}
	n, eof, err := clampRange(len(p), off, int64(len(o.data)))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", o.store.Location(o.key), err)
	}
	if n > 0 {
		copy(p, o.data[off:off+int64(n)])
	}
	return n, eof
}

func (o *pendingMemory) Commit() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return &fs.PathError{Op: "commit", Path: o.store.Location(o.key), Err: fs.ErrClosed}
	}
	o.done = true
	return o.store.put(o.key, o.data)
}

func (o *pendingMemory) Abort() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done, o.data = true, nil
	return nil
}
