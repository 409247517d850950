package zarr

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// run does all tasks of c with the array's workers. It returns the first error,
// after all workers have stopped.
func (a *Array) run(ctx context.Context, c *cursor, do func(*worker, *task) error) error {
	n, err := a.workersFor(c)
	if err != nil {
		return err
	}
	var (
		stop  atomic.Bool
		mu    sync.Mutex
		first error
	)
	work := func() {
		w := takeWorker()
		defer w.giveBack()
		t := newTask(len(c.chunk))
		for !stop.Load() {
			// before next: every task that is handed out is done, others may wait for it
			err := ctx.Err()
			if err == nil {
				if !c.next(t) {
					return
				}
				err = do(w, t)
			}
			w.release(mark{})
			if err != nil {
				stop.Store(true)
				mu.Lock()
				if first == nil {
					first = err
				}
				mu.Unlock()
				return
			}
		}
	}
	var others sync.WaitGroup
	for range n - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return first
}

// workersFor is the number of workers that the tasks of c keep busy and that
// the budget allows.
func (a *Array) workersFor(c *cursor) (int, error) {
	n := c.tasks(a.opts.workers)
	if a.opts.budget <= 0 || n == 0 {
		return n, nil
	}
	each := a.meta.pipe.scratchBytes()
	most := a.opts.budget / max(each, 1)
	if most == 0 && !a.meta.pipe.plain() {
		return 0, fmt.Errorf("%s: one chunk needs %d bytes of memory: %w of %d bytes", a.Location(), each, ErrBudget, a.opts.budget)
	}
	return int(min(int64(n), max(most, 1))), nil
}
