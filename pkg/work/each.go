// Package work starts goroutines: all of the module that handle input begin here, so that a
// panic in one of them becomes an error of the call it works for ([Panic]), and the outputs
// of the run are removed as after any other error.
//
// [Each] shares pieces of work out to workers, a [Group] runs calls that end together, [Go]
// and [Async] run one.
package work

import (
	"context"
	"sync"
	"sync/atomic"
)

// Each calls f for 0 to n−1, which begin in this order, in as many goroutines as
// there are workers, at most n; the caller is worker 0, and one worker starts none.
// After an error or a panic, or when ctx ends, no more begin. It returns when all have
// ended, with an error of the worker of the lowest number that has one.
func Each(ctx context.Context, workers, n int, f func(worker, i int) error) error {
	if n <= 0 {
		return nil
	}
	var next atomic.Int64
	var failed atomic.Bool
	errs := make([]error, max(1, min(workers, n)))
	work := func(worker int) error {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return nil
			}
			err := ctx.Err()
			if err == nil {
				err = f(worker, i)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	end := func(worker int, err error) {
		if err != nil {
			failed.Store(true)
			errs[worker] = err
		}
	}
	var wg sync.WaitGroup
	for k := 1; k < len(errs); k++ {
		Go(&wg, func() error { return work(k) }, func(err error) { end(k, err) })
	}
	end(0, Guard(func() error { return work(0) }))
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
