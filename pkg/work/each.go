// Package work starts goroutines: all of the module that handle input begin here, so that a
// panic in one of them becomes an error of the call it works for ([Panic]), and the outputs
// of the run are removed as after any other error.
//
// [Each] shares pieces of work out to workers, [Share] to workers with memory of their own, a [Group] runs
// calls that end together, [Go] and [Async] run one.
package work

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
)

// Each calls f for 0 to n−1, which begin in this order, in as many goroutines as
// there are workers, at most n; the caller is worker 0, and one worker starts none.
// After an error or a panic, or when ctx ends, no more begin. It returns when all have
// ended, with the first error.
func Each(ctx context.Context, workers, n int, f func(worker, i int) error) error {
	return Share(ctx, workers, n, func(_ context.Context, worker int, pieces iter.Seq[int]) error {
		for i := range pieces {
			if err := f(worker, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// Share calls run for as many workers as there are, at most n, each in a goroutine; the caller
// is worker 0. Ranging over its pieces, a worker takes one after the other of 0 to n−1, which no other gets; what
// it needs for all of them it makes before. After an error or a panic, or when ctx ends, the
// pieces end, and so does the context that run is given. Share returns when all workers have, with
// the first error, or that of ctx if pieces are left.
func Share(ctx context.Context, workers, n int, run func(ctx context.Context, worker int, pieces iter.Seq[int]) error) error {
	if n <= 0 {
		return nil
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	var next atomic.Int64
	pieces := func(yield func(int) bool) {
		for within.Err() == nil {
			if i := int(next.Add(1)) - 1; i >= n || !yield(i) {
				return
			}
		}
	}
	var once sync.Once
	var first error
	end := func(err error) {
		if err != nil {
			once.Do(func() { first = err })
			cancel()
		}
	}
	var wg sync.WaitGroup
	for k := 1; k < min(workers, n); k++ {
		Go(&wg, func() error { return run(within, k, pieces) }, end)
	}
	end(Guard(func() error { return run(within, 0, pieces) }))
	wg.Wait()
	if first == nil && next.Load() < int64(n) {
		return ctx.Err()
	}
	return first
}
