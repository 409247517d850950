// Package work starts goroutines. All goroutines of the module that handle input begin here, so that a panic
// in one of them becomes an error of the call that it works for ([Panic]), and the run's outputs are removed
// as after any other error.
//
// [Each] distributes pieces of work to workers, [Share] to workers with memory of their own, [Split] parts of one piece
// to whoever is idle, a [Group] runs calls that end together, and [Go] and [Async] run one.
package work

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
)

// Each calls f for 0 to n−1, begun in this order, in at most n goroutines, one per worker. The caller is
// worker 0, so that one worker starts no goroutine. After an error or a panic, or when ctx ends, no further
// call begins. Each returns when all calls have ended, with the first error.
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

// Share calls run once per worker, for at most n workers, each in a goroutine; the caller is worker 0. Each
// worker ranges over its pieces, which are distinct numbers of 0 to n−1, and prepares before that what it
// needs for all of them. After an error or a panic, or when ctx ends, the pieces end, and so does the context
// given to run. Share returns when all workers have, with the first error, or with that of ctx if pieces are
// left.
func Share(ctx context.Context, workers, n int, run func(ctx context.Context, worker int, pieces iter.Seq[int]) error) error {
	if n <= 0 {
		return nil
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	numbers := counter{n: int64(n)}
	pieces := numbers.of(within)
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
	if first == nil {
		return numbers.unless(ctx)
	}
	return first
}

// counter hands out the numbers 0 to n−1.
type counter struct {
	n    int64
	next atomic.Int64
}

// of returns the numbers that nobody has taken yet, until ctx ends.
func (c *counter) of(ctx context.Context) iter.Seq[int] {
	return func(yield func(int) bool) {
		for ctx.Err() == nil {
			if i := c.next.Add(1) - 1; i >= c.n || !yield(int(i)) {
				return
			}
		}
	}
}

// left reports whether some numbers have not been taken yet.
func (c *counter) left() bool { return c.next.Load() < c.n }

// unless returns the error of ctx if numbers are left.
func (c *counter) unless(ctx context.Context) error {
	if c.left() {
		return ctx.Err()
	}
	return nil
}
