// Package work shares pieces of work out to goroutines.
package work

import (
	"context"
	"sync"
	"sync/atomic"
)

// Each calls f for 0 to n−1, which begin in this order, in as many goroutines as
// there are workers, at most n; the caller is worker 0, and one worker starts none.
// After an error, or when ctx ends, no more begin. It returns when all have ended,
// with an error of the worker of the lowest number that has one.
func Each(ctx context.Context, workers, n int, f func(worker, i int) error) error {
	if n <= 0 {
		return nil
	}
	var next atomic.Int64
	var failed atomic.Bool
	errs := make([]error, max(1, min(workers, n)))
	work := func(worker int) {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			err := ctx.Err()
			if err == nil {
				err = f(worker, i)
			}
			if err != nil {
				failed.Store(true)
				errs[worker] = err
			}
		}
	}
	var wg sync.WaitGroup
	for k := 1; k < len(errs); k++ {
		wg.Go(func() { work(k) })
	}
	work(0)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
