package work

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Group starts goroutines and waits for them like [errgroup.Group]: Wait returns the first error, or the
// first panic as a [*Panic].
type Group struct{ inner *errgroup.Group }

// NewGroup returns a group whose goroutines continue when one of them fails.
func NewGroup() *Group { return &Group{new(errgroup.Group)} }

// WithContext returns a group and a context that ends at the first error, or when Wait returns.
func WithContext(ctx context.Context) (*Group, context.Context) {
	inner, ctx := errgroup.WithContext(ctx)
	return &Group{inner}, ctx
}

// SetLimit lets at most n goroutines of the group run at a time; Go waits for one to end.
func (g *Group) SetLimit(n int) { g.inner.SetLimit(n) }

// Go calls f in a goroutine of the group.
func (g *Group) Go(f func() error) {
	g.inner.Go(func() error { return Guard(f) })
}

// Wait waits for the goroutines and returns the first error.
func (g *Group) Wait() error { return g.inner.Wait() }

// Go calls f in a goroutine that wg waits for, then done with the error of f, or with its
// panic as a [*Panic].
func Go(wg *sync.WaitGroup, f func() error, done func(error)) {
	wg.Go(func() { done(Guard(f)) })
}

// Async calls f in a goroutine. wait returns its result; a panic of f continues there, in the
// goroutine that waits.
func Async[T any](f func() T) (wait func() T) {
	var v T
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = Guard(func() error { v = f(); return nil })
	}()
	return func() T {
		<-ended
		if err != nil {
			panic(err)
		}
		return v
	}
}
