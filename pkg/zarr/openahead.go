package zarr

import (
	"cmp"
	"context"
	"sync"

	"strata/pkg/mem"
	"strata/pkg/work"
	"strata/pkg/zarr/store"
)

// aheadShards is the number of shards opened ahead.
const aheadShards = 8

// openAhead opens the next few shards of c ahead of time, until stop is called, and meanwhile reads front bytes of
// the first. A faulty shard is reported when it is read; stop returns panics only.
func (a *Array) openAhead(ctx context.Context, c *cursor, front int64) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	c.entered = sync.NewCond(&c.mu)
	running := work.NewGroup()
	finish := a.startFirst(ctx, c, front, running)
	running.Go(func() error {
		w := takeWorker()
		defer w.giveBack()
		files := w.newCursor(c.region, c.chunk, nil)
		t := w.newTask(len(c.chunk))
		for files.next(t) {
			for c.mu.Lock(); t.seq >= c.files+aheadShards && ctx.Err() == nil; {
				c.entered.Wait()
			}
			late := t.seq < c.files
			c.mu.Unlock()
			switch {
			case ctx.Err() != nil:
				return nil
			case late:
				continue
			}
			key := a.appendKey(nil, t.file)
			running.Go(func() error {
				if f, err := a.objects.open(ctx, a.st, key, -1); err == nil {
					a.objects.release(f)
				}
				return nil
			})
		}
		return nil
	})
	return func() error {
		cancel()
		c.mu.Lock()
		c.entered.Broadcast()
		c.mu.Unlock()
		err := running.Wait()
		return cmp.Or(err, finish())
	}
}

// frontBytes is the number of bytes of a call's first shard that are read while its index is on the way. Two
// processors decode about as much while the next chunks are.
const frontBytes = 16 << 20

// takeFront reserves memory for the beginning of the first shard of c and returns its size: of a shard that is wanted
// whole, of which a quarter is surely stored if it is not compressed by more. Most memory and requests are left to
// fetch chunks.
func (a *Array) takeFront(c *cursor, workers int) int64 {
	p := a.meta.Pipeline
	if _, ok := a.st.(store.Starter); !ok || !c.reads || a.far == 0 || workers == 0 || p.Shard == nil || !p.Addressable() {
		return 0
	}
	for d, n := range p.Shape {
		if c.region.Start[d]%n != 0 || c.region.Shape[d] < min(n, a.meta.Shape[d]-c.region.Start[d]) {
			return 0
		}
	}
	ahead.mu.Lock()
	most := min(frontBytes, ahead.size/4)
	ahead.mu.Unlock()
	size := min(min(int64(p.Bytes)/4, most)/store.FrontPart, int64(a.far)/4) * store.FrontPart
	if size <= 0 || ahead.take(size, 1) == 0 {
		return 0
	}
	return size
}

// startFirst opens the first shard of c and meanwhile reads size bytes of its beginning, unless size is 0. It returns
// when the readers of the shard will wait for that. The caller calls finish when nothing reads any more; it returns
// panics only.
func (a *Array) startFirst(ctx context.Context, c *cursor, size int64, running *work.Group) (finish func() error) {
	if size == 0 {
		return func() error { return nil }
	}
	var started store.StartedObject
	var memory []byte
	found := make(chan struct{})
	begun := sync.OnceFunc(func() { close(found) })
	running.Go(func() error {
		defer begun()
		w := takeWorker()
		defer w.giveBack()
		first := w.newTask(len(c.chunk))
		w.newCursor(c.region, c.chunk, nil).next(first)
		f, err := a.objects.openBy(ctx, a.appendKey(nil, first.file), -1, begun, func(name string) (*file, error) {
			var err error
			if memory, err = mem.Alloc(int(size)); err != nil {
				return nil, err
			}
			if started, err = a.st.(store.Starter).Start(ctx, name, memory); err != nil {
				return nil, err
			}
			return &file{key: name, users: 1, reading: make(chan struct{}, 1), object: started, size: started.Size()}, nil
		})
		if err == nil {
			a.objects.release(f)
		}
		return nil
	})
	<-found
	return func() error {
		defer mem.Free(memory)
		if started == nil {
			return nil
		}
		return started.Finish()
	}
}
