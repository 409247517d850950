package oct

import (
	"context"
	"sync"
	"sync/atomic"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/zarr"
)

// crew runs tasks on a fixed number of workers, each with memory of its own.
type crew struct {
	workers int
	own     []workMemory
}

// workMemory is the memory of a worker.
type workMemory struct {
	growing
	strips [2]growing
}

func newCrew(workers int) *crew {
	return &crew{max(workers, 1), make([]workMemory, max(workers, 1))}
}

// close gives the workers' memory back.
func (c *crew) close() {
	for i := range c.own {
		w := &c.own[i]
		w.free()
		w.strips[0].free()
		w.strips[1].free()
	}
}

// each calls f for 0 to n−1, in increasing order of their beginning, on at most
// limit workers, of which the caller is one.
func (c *crew) each(ctx context.Context, n, limit int, f func(w *workMemory, i int) error) error {
	var next atomic.Int64
	var failed atomic.Bool
	errs := make([]error, min(c.workers, limit, n))
	work := func(worker int) {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			err := ctx.Err()
			if err == nil {
				err = f(&c.own[worker], i)
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
	if n > 0 {
		work(0)
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// growing is scratch memory outside the Go heap.
type growing struct{ b []byte }

// get returns n bytes of undefined content, valid until the next get.
func (g *growing) get(n int) ([]byte, error) {
	if len(g.b) < n {
		g.free()
		var err error
		if g.b, err = mem.Alloc(n); err != nil {
			return nil, err
		}
	}
	return g.b[:n], nil
}

func (g *growing) free() {
	mem.Free(g.b)
	g.b = nil
}

// readRaw reads a box of a slice as it is stored, in C order.
func (s *stackSlice) readRaw(ctx context.Context, start, shape [3]int, dst []byte) error {
	return unreadable(s.array.Read(ctx, zarr.Region{Start: start[:], Shape: shape[:]}, dst))
}

// readBox reads a box of a slice as float32 in C order. Scratch is used where
// the slice has another type.
func (s *stackSlice) readBox(ctx context.Context, start, shape [3]int, dst []float32, scratch *growing) error {
	dst = dst[:shape[0]*shape[1]*shape[2]]
	if s.dtype == dtype.Float32 {
		return s.readRaw(ctx, start, shape, dtype.Bytes(dst))
	}
	b, err := scratch.get(len(dst) * s.dtype.Size())
	if err != nil {
		return err
	}
	if err := s.readRaw(ctx, start, shape, b); err != nil {
		return err
	}
	dtype.ConvertSlice(dst, b, s.dtype)
	return nil
}
