package zarr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/zarr/box"
	"strata/pkg/zarr/meta"
	"strata/pkg/zarr/store"
)

// shardFile writes the inner chunks of a shard in grid order, in whatever order they arrive, so that the file's bytes
// do not depend on the timing of goroutines. A chunk that arrives before its predecessors waits in memory of [Hold] or,
// if that is exhausted, in a second hidden file. It moves to its place once that is known.
type shardFile struct {
	a     *Array
	sh    *meta.Sharding
	grid  []int // inner chunks along each dimension that lie in the array
	st    store.Writer
	key   string
	obj   store.PendingObject
	fixed int64 // the size of every chunk, which has its place from the start; 0: sizes differ

	mu      sync.Mutex
	turn    *sync.Cond // of next and failed
	failed  bool
	next    int   // the first chunk that did not come
	off     int64 // end of the chunks that have a place
	entries []meta.IndexEntry
	waiting map[int]waiting // by number: chunks that came before their turn
	stored  bool            // any chunk
	aside   store.PendingObject
	asideN  int64 // bytes in aside
}

// waiting is an encoded chunk whose place is not known yet.
type waiting struct {
	buf  *mem.Buffer // nil: in the file aside, from off on
	off  int64
	size int64
}

// Until the shard is complete, an entry of the index also records the state of a chunk without a place: not
// yet come, waiting, or left out.
var (
	notCome = meta.NotStored
	waits   = meta.IndexEntry{Offset: meta.Absent, Length: 1}
	leftOut = meta.IndexEntry{Offset: meta.Absent}
)

// createShard begins a shard of which valid elements along each dimension lie in the array.
func (a *Array) createShard(ctx context.Context, st store.Writer, key string, valid []int) (*shardFile, error) {
	sh := a.meta.Pipeline.Shard
	obj, err := st.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	f := &shardFile{a: a, sh: sh, st: st, key: key, obj: obj, entries: make([]meta.IndexEntry, sh.Count), waiting: map[int]waiting{}}
	f.turn = sync.NewCond(&f.mu)
	for d, n := range sh.Inner.Shape {
		f.grid = append(f.grid, box.CeilDiv(valid[d], n))
	}
	for i := range f.entries {
		f.entries[i] = leftOut
		if f.inside(i) >= 0 {
			f.entries[i] = notCome
		}
	}
	f.off = f.begin()
	return f, nil
}

// inside returns how many chunks before number i lie in the array, or -1 if chunk i does not.
func (f *shardFile) inside(i int) int {
	n, before := 1, 0
	for d := len(f.grid) - 1; d >= 0; d-- {
		at := i % f.sh.Grid[d]
		if at >= f.grid[d] {
			return -1
		}
		before += at * n
		n *= f.grid[d]
		i /= f.sh.Grid[d]
	}
	return before
}

// begin returns the offset of the first chunk.
func (f *shardFile) begin() int64 {
	if f.sh.IndexAtEnd {
		return 0
	}
	return int64(f.sh.IndexSize)
}

// fixedSize returns the size of every stored chunk of a shard, or 0 if sizes differ or chunks may be left
// out.
func (a *Array) fixedSize() int64 {
	p := a.meta.Pipeline.Shard.Inner
	lo, hi := p.Chain.EncodedSize(p.Bytes)
	if lo != hi || p.Shard != nil || a.opts.omitFill {
		return 0
	}
	return int64(lo)
}

// came reports whether chunk i was appended.
func (f *shardFile) came(i int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.entries[i] != notCome
}

// append stores inner chunk i, and then the chunks that waited for it. A nil chunk is left out of the shard.
func (f *shardFile) append(ctx context.Context, i int, c *Stored) error {
	f.mu.Lock()
	switch {
	case c == nil:
		f.entries[i] = leftOut
		f.a.omitted.Add(1)
	case f.fixed > 0 || f.next == i:
		off := f.place(i, c.size())
		ready := f.ready()
		f.mu.Unlock()
		err := f.put(c, off)
		return errors.Join(err, f.move(ctx, ready, err))
	default:
		f.mu.Unlock()
		w, err := f.wait(ctx, c)
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.entries[i], f.waiting[i] = waits, w
	}
	ready := f.ready() // it may be chunk i's turn by now
	f.mu.Unlock()
	return f.move(ctx, ready, nil)
}

// appendInTurn appends chunk i, nil to leave it out, for one of several goroutines that take chunks in order.
// It waits until the chunks before it have their place, so that nothing needs to be set aside.
func (f *shardFile) appendInTurn(ctx context.Context, i int, enc []byte) error {
	f.mu.Lock()
	for f.next < i && !f.failed {
		f.turn.Wait()
	}
	failed := f.failed
	f.mu.Unlock()
	if failed {
		return nil // the worker that failed has the error
	}
	if enc == nil {
		return f.append(ctx, i, nil)
	}
	return f.append(ctx, i, &Stored{Bytes: enc})
}

// place allocates n bytes of the file for inner chunk i; mu is held.
func (f *shardFile) place(i int, n int64) int64 {
	off := f.off
	if f.fixed > 0 {
		off = f.begin() + int64(f.inside(i))*n
	}
	f.off = max(f.off, off+n)
	f.entries[i] = meta.IndexEntry{Offset: uint64(off), Length: uint64(n)}
	f.stored = true
	return off
}

// moving is a chunk that waited and now has a place.
type moving struct {
	waiting
	to int64
}

// ready assigns places to the chunks that no longer need to wait; mu is held.
func (f *shardFile) ready() (list []moving) {
	for ; f.next < len(f.entries) && f.entries[f.next] != notCome; f.next++ {
		if f.entries[f.next] == waits {
			w := f.waiting[f.next]
			delete(f.waiting, f.next)
			list = append(list, moving{w, f.place(f.next, w.size)})
		}
	}
	f.turn.Broadcast()
	return list
}

// wait sets an encoded chunk aside.
func (f *shardFile) wait(ctx context.Context, c *Stored) (waiting, error) {
	w := waiting{size: c.size()}
	if f.a.opts.hold != nil && c.Write == nil {
		var err error
		if w.buf, err = f.a.opts.hold.TryGet(len(c.Bytes)); err != nil {
			return w, err
		}
	}
	if w.buf != nil {
		copy(w.buf.B, c.Bytes)
		return w, nil
	}
	f.mu.Lock()
	if f.aside == nil {
		var err error
		if f.aside, err = f.st.Create(ctx, f.key); err != nil {
			f.aside = nil
			f.mu.Unlock()
			return w, err
		}
	}
	o := f.aside
	w.off = f.asideN
	f.asideN += w.size
	f.mu.Unlock()
	t := time.Now()
	defer func() { f.a.opts.meter.Since(meter.Write, t) }()
	return w, c.put(o, w.off)
}

// move writes chunks that waited to their places; after an earlier error it only releases them.
func (f *shardFile) move(ctx context.Context, list []moving, err error) error {
	for _, m := range list {
		if err == nil {
			err = f.put(&Stored{Size: m.size, Write: func(o store.PendingObject, off int64) error {
				if m.buf == nil {
					return copyPending(ctx, o, off, f.aside, m.off, m.size)
				}
				_, err := o.WriteAt(m.buf.B, off)
				return err
			}}, m.to)
		}
		m.buf.Release()
	}
	return err
}

// copyPending copies n bytes from one object under construction to another.
func copyPending(ctx context.Context, to store.PendingObject, at int64, from store.PendingObject, off, n int64) error {
	b := make([]byte, min(n, slabBytes))
	for done := int64(0); done < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := b[:min(n-done, int64(len(b)))]
		if k, err := from.ReadAt(p, off+done); k < len(p) {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF // it was written before
			}
			return err
		}
		if _, err := to.WriteAt(p, at+done); err != nil {
			return err
		}
		done += int64(len(p))
	}
	return nil
}

// put writes a chunk to its place.
func (f *shardFile) put(c *Stored, off int64) error {
	t := time.Now()
	defer func() { f.a.opts.meter.Since(meter.Write, t) }()
	if err := c.put(f.obj, off); err != nil {
		return err
	}
	f.a.opts.meter.AddWritten(c.size())
	return nil
}

// fail wakes all goroutines that wait for their turn.
func (f *shardFile) fail() {
	f.mu.Lock()
	f.failed = true
	f.turn.Broadcast()
	f.mu.Unlock()
}

// commit writes the index and moves the shard to its place, or removes the old one if no chunk is stored and
// empty ones are left out.
func (f *shardFile) commit(ctx context.Context, w *worker) error {
	defer f.a.objects.drop(f.key)
	f.mu.Lock()
	for i, e := range f.entries {
		if e == notCome {
			f.entries[i] = leftOut
		}
	}
	ready := f.ready()
	for i, e := range f.entries {
		if e == leftOut {
			f.entries[i] = meta.NotStored
		}
	}
	f.mu.Unlock()
	if err := f.move(ctx, ready, nil); err != nil {
		return err
	}
	if !f.stored && f.a.opts.omitFill {
		f.abort()
		return f.st.Delete(ctx, f.key)
	}
	index, err := f.sh.EncodeIndex(&w.codec, f.entries)
	if err != nil {
		return &FormatError{Err: fmt.Errorf("shard index: %w", err)}
	}
	off := f.off
	if !f.sh.IndexAtEnd {
		off = 0
	}
	if err := f.put(&Stored{Bytes: index}, off); err != nil {
		return err
	}
	t := time.Now()
	defer func() { f.a.opts.meter.Since(meter.Write, t) }()
	return f.obj.Commit()
}

// abort discards what was not committed. After commit, that is only the file of waiting chunks.
func (f *shardFile) abort() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.obj.Abort() // hidden files of a run that ended are removed by the next one
	if f.aside != nil {
		_ = f.aside.Abort()
	}
	for i, w := range f.waiting {
		w.buf.Release()
		delete(f.waiting, i)
	}
}
