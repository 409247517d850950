package work

import "context"

// InOrder calls visit for 0 … n−1 by several workers, and done with what each returned, in order, one at a time. No
// more results than there are workers wait for their turn. The first error, of the context or a panic, ends it.
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
