package zarr

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"strata/pkg/mem"
	"strata/pkg/work"
)

// run does all tasks of c with the array's workers; w is one of them. It returns the first error after all
// workers have stopped.
func (a *Array) run(ctx context.Context, w *worker, c *cursor, do func(*worker, *task) error) (err error) {
	n, err := a.workersFor(c)
	if err != nil {
		return err
	}
	w.codec.Bind(ctx)
	front := a.takeFront(c, n)
	if front > 0 {
		defer ahead.give(front, 1)
	}
	if extra, each := a.extraFor(c, n); extra > 0 {
		defer ahead.give(each, extra)
		w.turns = newTurns(n)
		defer func() { err = cmp.Or(err, w.turns.end()) }()
		w.turns.populate(c.dst, n)
		if a.meta.Pipeline.Shard != nil && a.meta.Pipeline.Addressable() {
			stop := a.openAhead(ctx, c, front)
			err := runParallel(ctx, w, c, n+extra, do)
			return cmp.Or(err, stop())
		}
		return runParallel(ctx, w, c, n+extra, do)
	}
	if n == 1 && w.planes == nil && !w.front && work.Idle(ctx) > 0 && c.tasks(2) > 1 {
		if err := a.runSplit(ctx, c, do); err != nil {
			return err
		}
	}
	if n <= 1 {
		m := w.mark()
		t := w.newTask(len(c.chunk))
		for {
			// before next: every task that is handed out is done, others may wait for it
			if err := ctx.Err(); err != nil {
				return err
			}
			if !c.next(t) {
				w.release(m)
				return nil
			}
			inner := w.mark()
			if err := do(w, t); err != nil {
				return err
			}
			w.release(inner)
		}
	}
	return runParallel(ctx, w, c, n, do)
}

// runSplit does the tasks of c by the caller and processors that are idle: as many as c knows of, which may not be all.
func (a *Array) runSplit(ctx context.Context, c *cursor, do func(*worker, *task) error) error {
	return work.Split(ctx, c.tasks(math.MaxInt32), a.meta.Pipeline.ScratchBytes(false), func(int) error {
		w := takeWorker()
		defer w.giveBack()
		w.codec.Bind(ctx)
		t := w.newTask(len(c.chunk))
		if !c.next(t) {
			return nil
		}
		return do(w, t)
	})
}

func runParallel(ctx context.Context, w *worker, c *cursor, n int, do func(*worker, *task) error) error {
	var (
		stop   atomic.Bool
		mu     sync.Mutex
		first  error
		others sync.WaitGroup
	)
	shared := w.turns
	all := func(w *worker) error {
		m := w.mark()
		t := w.newTask(len(c.chunk))
		for !stop.Load() {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !c.next(t) {
				break
			}
			inner := w.mark()
			if err := do(w, t); err != nil {
				return err
			}
			w.release(inner)
		}
		w.release(m)
		return nil
	}
	end := func(err error) {
		if err == nil {
			return
		}
		stop.Store(true)
		mu.Lock()
		defer mu.Unlock()
		if first == nil {
			first = err
		}
	}
	for range n - 1 {
		work.Go(&others, func() error {
			w := takeWorker()
			defer w.giveBack()
			w.turns = shared
			w.codec.Bind(ctx)
			return all(w)
		}, end)
	}
	end(work.Guard(func() error { return all(w) }))
	others.Wait()
	return first
}

// extraFor returns the number of goroutines beyond n workers that fetch from a remote store, and the memory
// reserved for each.
func (a *Array) extraFor(c *cursor, n int) (extra int, each int64) {
	if !c.reads || a.far == 0 || n == 0 {
		return 0, 0
	}
	each = a.meta.Pipeline.FetchBytes()
	want := a.far
	if a.meta.Pipeline.Shard != nil {
		want *= perRequest
	}
	return ahead.take(each, c.tasks(max(n, want))-n), each
}

// workersFor returns the number of workers that the tasks of c keep busy and that the budget allows, be it
// the array's or that of the process.
func (a *Array) workersFor(c *cursor) (int, error) {
	n := c.tasks(a.opts.workers)
	budget := a.opts.budget
	if budget <= 0 {
		budget = mem.Limit()
	}
	if budget <= 0 || n == 0 {
		return n, nil
	}
	each := a.meta.Pipeline.ScratchBytes(false)
	most := budget / max(each, 1)
	if most == 0 && !a.meta.Pipeline.Plain() {
		return 0, fmt.Errorf("%s: one chunk needs %d bytes of memory: %w of %d bytes", a.Location(), each, ErrBudget, budget)
	}
	return int(min(int64(n), max(most, 1))), nil
}
