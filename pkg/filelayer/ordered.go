package filelayer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/gpu/cufile"
	"strata/pkg/mem"
	"strata/pkg/settings"
)

// QueueRead queues [File.Read] on a stream: it begins when earlier work has run, and later work finds the
// memory filled. Errors come from the stream's [gpu.Stream.Wait]; later work has run by then, on undefined
// memory. The file must stay open until then.
//
// cuFile does the read if [Pool.Ordered] says so. Otherwise a function in the stream's order reads the file
// into a page-locked buffer of the stream, which the stream copies. A transfer that cuFile begins and does
// not finish is an error: the stream has moved on.
func (f *File) QueueRead(ctx context.Context, s *gpu.Stream, dst gpu.Span, off int64) {
	f.queueOn(&turn{ctx: ctx, file: f, stream: s, dev: dst, off: off})
}

// QueueWrite queues [File.Write] on a stream, as QueueRead queues Read: earlier work produces the content.
func (f *File) QueueWrite(ctx context.Context, s *gpu.Stream, src gpu.Span, off int64) {
	f.queueOn(&turn{ctx: ctx, file: f, stream: s, write: true, dev: src, off: off})
}

// turn is a read or write in the order of a stream.
type turn struct {
	ctx    context.Context
	file   *File
	stream *gpu.Stream
	write  bool
	dev    gpu.Span
	off    int64

	mu  sync.Mutex
	err error // the first
}

// lane holds a pool's resources for a stream that it reads and writes on.
type lane struct {
	buffer  *mem.Buffer // page-locked
	known   bool        // the stream is registered with cuFile
	waiting int         // turns that have not been waited for; under the pool's lock
}

// ordered are the streams that a pool reads and writes on.
type ordered struct {
	asking sync.Once
	reason error                 // why cuFile does nothing on streams
	lanes  map[*gpu.Stream]*lane // under the pool's lock
}

// Ordered reports whether cuFile moves data straight in the order of a stream, and by what mechanism, or why
// not.
func (p *Pool) Ordered() (straight bool, reason string) {
	ok, how := p.Mode()
	if !ok {
		return false, how
	}
	p.ordered.asking.Do(func() { p.ordered.reason = p.straight.driver.Ordered() })
	if p.ordered.reason != nil {
		return false, p.ordered.reason.Error()
	}
	return true, how
}

func (f *File) queueOn(t *turn) {
	p := f.pool
	fail := func(err error) {
		t.fail(err)
		t.stream.Queue(func(uintptr) error { return f.failure(t.write, t.off, t.end(), err) })
	}
	t.stream.After(func() { f.ended(t.write, t.fail(nil)) })
	switch {
	case t.off < 0:
		fail(errors.New("the position is negative"))
		return
	case p.device != t.stream.Device():
		fail(errors.New("the stream is not of the pool's device"))
		return
	case t.write && f.source != nil:
		fail(errSource)
		return
	}
	if err := t.ctx.Err(); err != nil {
		fail(err)
		return
	}
	l, err := f.enterLane(t.stream)
	if err != nil {
		fail(err)
		return
	}
	t.stream.After(func() { f.leaveLane(l) })
	t.stream.Check(func() error {
		if err := t.fail(nil); err != nil {
			return f.failure(t.write, t.off, t.end(), err)
		}
		return nil
	})
	from, to, err := t.straight()
	if err == nil {
		err = t.bounced(l, 0, from)
	}
	if err == nil && from < to {
		from, err = t.queueStraight(l, from, to)
	}
	if err == nil {
		err = t.bounced(l, from, t.dev.Bytes())
	}
	if err != nil {
		fail(err)
	}
}

// end returns the file offset behind the last byte of the turn.
func (t *turn) end() int64 { return t.off + t.dev.Bytes() }

// fail keeps err if it is the turn's first error, and returns the first error.
func (t *turn) fail(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
	return t.err
}

// enterLane begins a turn; leaveLane ends it.
func (f *File) enterLane(s *gpu.Stream) (*lane, error) {
	p := f.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case f.closed:
		return nil, fs.ErrClosed
	case p.closed:
		return nil, errClosedPool
	}
	l := p.ordered.lanes[s]
	if l == nil {
		if p.ordered.lanes == nil {
			p.ordered.lanes = map[*gpu.Stream]*lane{}
		}
		l = &lane{}
		p.ordered.lanes[s] = l
		s.OnClose(func() { _ = p.endLane(s) }) // the driver has the error as well
	}
	l.waiting++
	f.queued++
	return l, nil
}

func (f *File) leaveLane(l *lane) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	l.waiting--
	f.queued--
}

// endLane releases the resources of a stream.
func (p *Pool) endLane(s *gpu.Stream) error {
	p.mu.Lock()
	l := p.ordered.lanes[s]
	delete(p.ordered.lanes, s)
	p.mu.Unlock()
	if l == nil {
		return nil
	}
	l.buffer.Release()
	if l.known {
		return p.straight.driver.DeregisterStream(s)
	}
	return nil
}

// waiting returns how many turns have not been waited for; under the pool's lock.
func (p *Pool) waiting() (n int) {
	for _, l := range p.ordered.lanes {
		n += l.waiting
	}
	return n
}

// endLanes releases the resources of streams that are still open.
func (p *Pool) endLanes() error {
	p.mu.Lock()
	streams := slices.Collect(maps.Keys(p.ordered.lanes))
	p.mu.Unlock()
	var errs []error
	for _, s := range streams {
		errs = append(errs, p.endLane(s))
	}
	return errors.Join(errs...)
}

// straight returns the range of a turn that cuFile moves; it is empty if cuFile cannot. It returns an error if the
// settings demand cuFile but it cannot.
func (t *turn) straight() (from, to int64, err error) {
	p, n := t.file.pool, t.dev.Bytes()
	if n < p.settings.Threshold || t.file.source != nil || n == 0 {
		return 0, 0, nil
	}
	ok, reason := p.Ordered()
	if ok && t.file.noOrdered.Load() {
		ok, reason = false, "cuFile failed with it on a stream before"
	}
	if ok {
		if why := t.file.register(); why != nil {
			ok, reason = false, why.Error()
		}
	}
	switch {
	case !ok && p.settings.Compat == settings.Off:
		return 0, 0, fmt.Errorf("compat_mode is off, but cuFile does not do it in the order of a stream: %s", reason)
	case !ok:
		return 0, 0, nil
	case !t.write:
		return 0, n, nil
	}
	head, whole := aligned(t.off, n)
	return head, head + whole, nil
}

// queueStraight queues a part on cuFile and returns its end, or its beginning if cuFile refuses it.
func (t *turn) queueStraight(l *lane, from, to int64) (int64, error) {
	f, p := t.file, t.file.pool
	if !l.known {
		l.known = p.straight.driver.RegisterStream(t.stream) == nil
	}
	transfer, err := cufile.NewTransfer()
	if err != nil {
		return from, err
	}
	part, off := t.dev.From(from, to-from), t.off+from
	g := p.straight.buffers
	a := g.use(t.dev, p.settings.Register)
	var why error
	a.move(func(b *cufile.Buffer) {
		t.stream.Queue(func(stream uintptr) error {
			if t.write {
				why = f.handle.QueueWrite(transfer, stream, b, part, off)
			} else {
				why = f.handle.QueueRead(transfer, stream, b, part, off)
			}
			return nil // what is refused here goes another way
		})
	})
	if why != nil {
		transfer.Close()
		p.fellBack(f, t.write, why)
		return from, nil
	}
	g.queue(a, 1)
	t.stream.Check(func() error { return t.moved(transfer, part, off) })
	t.stream.After(func() {
		transfer.Close()
		g.queue(a, -1)
	})
	return to, nil
}

// moved counts the bytes that cuFile has moved, and returns an error if they are too few.
func (t *turn) moved(transfer *cufile.Transfer, part gpu.Span, off int64) error {
	f := t.file
	n, err := transfer.Moved()
	if t.write {
		f.count(writtenStraight, n)
		f.pool.device.CountStraight(0, n)
	} else {
		f.count(readStraight, n)
		f.pool.device.CountStraight(n, 0)
	}
	if err == nil && n < part.Bytes() {
		err = fmt.Errorf("cuFile moved %d bytes of %d", n, part.Bytes())
		if size, e := f.Size(); e == nil && !t.write && off+n >= size {
			return f.failure(t.write, off+n, t.end(), t.fail(&placed{off + n, io.ErrUnexpectedEOF}))
		}
	}
	if t.fail(err); err == nil {
		return nil
	}
	f.noOrdered.Store(true) // the next goes by way of the host
	f.count(fallbacks, 1)
	f.pool.device.CountFallback()
	return f.failure(t.write, off+n, t.end(), err)
}

// bounced queues a part through the host, piece by piece, in the lane's buffer.
func (t *turn) bounced(l *lane, from, to int64) error {
	if from >= to {
		return nil
	}
	if err := t.file.pool.laneBuffer(l); err != nil {
		return err
	}
	for from < to {
		off := t.off + from
		at := off % page
		b := l.buffer.B[at : at+min(to-from, int64(len(l.buffer.B))-page)]
		part := t.dev.From(from, int64(len(b)))
		if t.write {
			t.stream.Download(b, part)
			t.stream.Host(func() { t.host(b, off, writtenBounced, t.file.writeFull) })
		} else {
			t.stream.Host(func() {
				t.host(b, off, readBounced, func(b []byte, off int64) error { return t.file.fill(t.ctx, b, off) })
			})
			t.stream.Upload(part, b)
		}
		from += int64(len(b))
	}
	return nil
}

// host moves a piece between the file and the host, when its turn has come: by as many at
// once as the pool has threads, which themselves may wait for the stream.
func (t *turn) host(b []byte, off int64, c counter, move func(b []byte, off int64) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = t.ctx.Err()
	}
	if t.err != nil {
		return
	}
	start := time.Now()
	size := max((len(b)/t.file.pool.settings.Threads+page-1)/page*page, leastShare)
	if t.err = inParts(b, size, func(b []byte, at int64) error { return move(b, off+at) }); t.err == nil {
		t.file.count(c, int64(len(b)))
		t.file.took(start)
	}
}

// leastShare is the minimum number of bytes for which a further goroutine pays.
const leastShare = 256 << 10

// laneBuffer allocates a lane's buffer on first use. Its size is limited by the settings, by a quarter of the
// page-locked memory, and by what is left of that memory.
func (p *Pool) laneBuffer(l *lane) error {
	if l.buffer != nil {
		return nil
	}
	var err error
	for n := max(min(p.settings.Bounce, p.device.Pinned().Limit()/4)-page, leastPiece) / page * page; ; n = max(n/2/page*page, leastPiece) {
		if l.buffer, err = p.device.Host(int(n + page)); err == nil || n == leastPiece || !errors.Is(err, gpu.ErrMemory) {
			return err
		}
	}
}
