package virtual

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"strata/pkg/zarr/store"
)

// Arrays holds the arrays of a store by their keys. They are made when they are first asked for.
type Arrays[A interface{ Dims() []Axis }] struct {
	Where string // location of the file
	// Make makes the array at a key; its error wraps fs.ErrNotExist if there is none.
	Make func(ctx context.Context, key string) (A, error)

	mu    sync.Mutex
	known map[string]A
}

// mostArrays bounds the arrays that are kept: a file may have millions of pages or sub-blocks.
const mostArrays = 4096

// Absent returns the error for a key that does not exist.
func (s *Arrays[A]) Absent(key string) error { return Absent(store.Join(s.Where, key)) }

// Known returns the array at a key if it was asked for before.
func (s *Arrays[A]) Known(key string) (a A, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok = s.known[key]
	return a, ok
}

// Array returns the array at a key.
func (s *Arrays[A]) Array(ctx context.Context, key string) (A, error) {
	if a, ok := s.Known(key); ok {
		return a, nil
	}
	a, err := s.Make(ctx, key)
	if err != nil {
		return a, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= mostArrays {
		s.known = map[string]A{}
	}
	s.known[key] = a
	return a, nil
}

// Chunk finds the chunk that a key names: its array and its index, which is nil if the key is of no chunk.
func (s *Arrays[A]) Chunk(ctx context.Context, key string) (a A, index []int, err error) {
	at, rest, ok := strings.Cut(key, "/c/")
	if !ok {
		return a, nil, nil
	}
	if a, err = s.Array(ctx, at); err != nil {
		return a, nil, err
	}
	if index, ok = Index(a.Dims(), rest); !ok {
		return a, nil, s.Absent(key)
	}
	return a, index, nil
}

// Get appends the document at a location to dst[:0], unless it is longer than limit; below 0 there is none.
func (d Document) Get(dst []byte, limit int64, location string) ([]byte, error) {
	if limit >= 0 && int64(len(d)) > limit {
		return nil, fmt.Errorf("%s: %w: %d bytes, at most %d expected", location, store.ErrTooLarge, len(d), limit)
	}
	return append(dst[:0], d...), nil
}
