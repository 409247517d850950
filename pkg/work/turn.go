package work

import (
	"context"
	"sync"
)

// Turn lets workers of [Each] pass on their results in the order of their pieces. The zero value is ready.
//
//	err := turn.Wait(ctx, i)
//	if err == nil {
//		err = write(piece)
//	}
//	turn.Done(err)
type Turn struct {
	mu   sync.Mutex
	more sync.Cond
	at   int
	err  error
}

// Wait waits until all pieces before number i are done. It returns the first error of one of them, or that of
// ctx.
func (t *Turn) Wait(ctx context.Context, i int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.more.L = &t.mu
	for t.at < i && t.err == nil && ctx.Err() == nil {
		t.more.Wait()
	}
	if t.err != nil {
		return t.err
	}
	return ctx.Err()
}

// Done ends a turn. It must be called for every piece that was begun, even without Wait.
func (t *Turn) Done(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.more.L = &t.mu
	t.at++
	if t.err == nil {
		t.err = err
	}
	t.more.Broadcast()
}

// InOrder lets several workers call visit for 0 … n−1, and calls done with each result, in order, one at a time. At
// most as many results as workers wait for their turn. The first error, a panic or the end of the context ends it.
func InOrder[R any](ctx context.Context, workers, n int, visit func(worker, k int) R, done func(k int, r R)) error {
	var turn Turn
	return Each(ctx, workers, n, func(worker, k int) (err error) {
		defer func() { turn.Done(err) }() // after a panic, too
		r := visit(worker, k)
		if err = turn.Wait(ctx, k); err == nil {
			done(k, r)
		}
		return err
	})
}
