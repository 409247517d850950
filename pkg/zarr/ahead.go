package zarr

import (
	"context"
	"sync"

	"strata/pkg/work"
	"strata/pkg/zarr/store"
)

// Reading from a store that is far away waits for answers most of the time. A call
// then has more chunks on their way than it has workers: further goroutines fetch,
// and decode when it is their turn, with the memory of a worker. What they hold is
// bounded, for all arrays of the process together; shards are opened before their
// first chunk is wanted.

const (
	// AheadBytes bounds what goroutines beyond the workers hold of chunks as stored, unless
	// [SetAhead] says otherwise.
	AheadBytes = 64 << 20
	// aheadShards is how many shards are opened before they are wanted.
	aheadShards = 8
	// perRequest is how many chunks of shards are waited for at a time for each request
	// on its way: neighbours are asked for together.
	perRequest = 4
)

// ahead is the memory for it, of the process.
var ahead = pool{size: AheadBytes, free: AheadBytes}

type pool struct {
	mu         sync.Mutex
	size, free int64
}

// SetAhead sets how many bytes all arrays of the process together fetch from far stores before
// their workers ask for them: for a program that has less memory to give than [AheadBytes].
func SetAhead(n int64) {
	ahead.mu.Lock()
	defer ahead.mu.Unlock()
	ahead.free += n - ahead.size
	ahead.size = n
}

// take takes memory for as many as want goroutines, and says for how many it was enough.
func (p *pool) take(each int64, want int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int(max(0, min(int64(want), p.free/max(each, 1))))
	p.free -= int64(n) * each
	return n
}

func (p *pool) give(each int64, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free += int64(n) * each
}

// requests is how many requests are worth having on their way to the array's store;
// 0: it is near.
func requests(st store.Store) int {
	if far, ok := st.(store.Distant); ok {
		return far.Requests()
	}
	return 0
}

// turns are workers that goroutines which fetch decode with, one after the other.
type turns chan *worker

func newTurns(n int) turns {
	t := make(turns, n)
	for range n {
		t <- takeWorker()
	}
	return t
}

// end gives the workers back when nobody uses them any more.
func (t turns) end() {
	for range cap(t) {
		(<-t).giveBack()
	}
}

// decoder is who decodes what rd has fetched: itself, or the worker whose turn it is. done
// ends that.
func (rd reader) decoder() (d reader, done func()) {
	turns := rd.w.turns
	if turns == nil {
		return rd, func() {}
	}
	d = rd
	d.w = <-turns
	d.w.front = rd.w.front
	m := d.w.mark()
	return d, func() {
		d.w.release(m)
		turns <- d.w
	}
}

// fetchBytes is about what a goroutine holds of a unit until it is decoded.
func (p *pipeline) fetchBytes() int64 {
	switch {
	case p.plain():
		return int64(min(p.nbytes, pieceBytes))
	case p.addressable():
		return p.shard.inner.fetchBytes()
	case p.shard != nil:
		return p.scratchBytes(false)
	}
	return p.eager()
}

// openAhead opens the shards that c will come to, a few before it comes there, until
// stop is called. What is wrong with a shard is said when it is wanted: stop returns
// panics only.
func (a *Array) openAhead(ctx context.Context, c *cursor) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	c.entered = sync.NewCond(&c.mu)
	running := work.NewGroup()
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
		return running.Wait()
	}
}
