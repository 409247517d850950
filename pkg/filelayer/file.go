package filelayer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/gpu/cufile"
)

// File is an open file. Its methods may be called concurrently.
type File struct {
	pool     *Pool
	path     string
	file     *os.File
	mode     int            // of access
	requests sync.WaitGroup // that have not ended
	closed   bool           // under the pool's lock
	queued   int            // on streams, that have not been waited for; the same
	source   Source         // instead of a file

	through mover // file, through the page cache

	opening  sync.Once
	direct   *os.File // the same file opened for direct I/O, or nil
	past     mover    // direct, for the host; nil: it is of no use
	memory   int64    // what memory is to be aligned to for it
	told     bool     // the system reveals what the page cache holds
	noDirect atomic.Bool
	whyNot   atomic.Pointer[error] // where noDirect

	registering sync.Once
	handle      *cufile.Handle // nil: cuFile does not take the file
	refused     error          // why
	noOrdered   atomic.Bool    // cuFile failed with it on a stream

	counts counts
}

// Name returns the path that the file was opened with.
func (f *File) Name() string { return f.path }

// Close waits for reads and writes in progress and closes the file.
func (f *File) Close() error {
	f.pool.mu.Lock()
	again, queued := f.closed, f.queued
	f.closed = f.closed || queued == 0
	f.pool.mu.Unlock()
	switch {
	case again:
		return fmt.Errorf("close %s: %w", f.path, os.ErrClosed)
	case queued > 0:
		return fmt.Errorf("close %s: a stream that reads or writes it has not been waited for", f.path)
	}
	f.requests.Wait()
	var err error
	if f.handle != nil {
		f.handle.Close()
	}
	if f.direct != nil {
		err = f.direct.Close()
	}
	if f.source != nil {
		err = f.source.Close()
	} else {
		err = errors.Join(f.file.Close(), err)
	}
	f.pool.mu.Lock()
	f.pool.files--
	f.pool.mu.Unlock()
	return err
}

// Read fills device memory from offset off of the file. No work may be queued on the memory. If the file ends
// earlier, the error wraps [io.ErrUnexpectedEOF].
func (f *File) Read(ctx context.Context, dst gpu.Span, off int64) error {
	return f.GoRead(ctx, dst, off).Wait()
}

// Write writes device memory to the file at offset off. Work that produces the content must have been waited
// for.
func (f *File) Write(ctx context.Context, src gpu.Span, off int64) error {
	return f.GoWrite(ctx, src, off).Wait()
}

// ReadAt fills host memory from offset off of the file. If the file ends earlier, the error wraps
// [io.ErrUnexpectedEOF]. A read of up to one task runs in the caller's goroutine without allocating.
func (f *File) ReadAt(ctx context.Context, dst []byte, off int64) error {
	if int64(len(dst)) > f.pool.settings.TaskSize || off < 0 {
		return f.GoReadAt(ctx, dst, off).Wait()
	}
	return f.alone(ctx, dst, off, false)
}

// WriteAt writes host memory to the file at offset off; see [File.ReadAt].
func (f *File) WriteAt(ctx context.Context, src []byte, off int64) error {
	if int64(len(src)) > f.pool.settings.TaskSize || off < 0 {
		return f.GoWriteAt(ctx, src, off).Wait()
	}
	return f.alone(ctx, src, off, true)
}

// alone reads or writes host memory in the caller's goroutine.
func (f *File) alone(ctx context.Context, b []byte, off int64, write bool) error {
	err := ctx.Err()
	if err == nil {
		err = f.enter()
	}
	if err != nil {
		f.ended(write, err)
		return f.failure(write, off, off+int64(len(b)), err)
	}
	defer f.requests.Done()
	if len(b) > 0 {
		start := time.Now()
		switch {
		case !write:
			err = f.fill(ctx, b, off)
		case f.source != nil:
			err = errSource
		default:
			err = f.writeFull(b, off)
		}
		f.took(start)
	}
	f.ended(write, err)
	if err != nil {
		return f.failure(write, off, off+int64(len(b)), err)
	}
	f.count(host, int64(len(b)))
	return nil
}

// enter begins a use of the file; requests.Done ends it.
func (f *File) enter() error {
	p := f.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case f.closed:
		return fs.ErrClosed
	case p.closed:
		return errClosedPool
	}
	f.requests.Add(1)
	return nil
}

// failure returns the error of a request for the bytes from off to end, with the file and the offset.
func (f *File) failure(write bool, off, end int64, err error) error {
	verb := "read"
	if write {
		verb = "write"
	}
	var at *placed
	if errors.As(err, &at) {
		if off, err = at.off, at.err; err == io.ErrUnexpectedEOF {
			err = fmt.Errorf("the file ends, %d bytes are missing: %w", end-off, err)
		}
	}
	return fmt.Errorf("%s %s at byte %d: %w", verb, f.path, off, err)
}

// Sync returns when all written data have reached the device.
func (f *File) Sync() error {
	if err := f.enter(); err != nil {
		return fmt.Errorf("sync %s: %w", f.path, err)
	}
	defer f.requests.Done()
	if err := f.file.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", f.path, bare(err))
	}
	return nil
}

// Stats returns what has been moved from and to the file so far.
func (f *File) Stats() Stats { return f.counts.load() }

// Cached returns how many of n bytes from offset off the page cache holds; see [Cached].
func (f *File) Cached(off, n int64) (int64, error) {
	if f.source != nil {
		return 0, f.notLocal()
	}
	return Cached(f.file, off, n)
}

// DropCached drops n bytes from offset off from the page cache; see [DropCached].
func (f *File) DropCached(off, n int64) error {
	if f.source != nil {
		return f.notLocal()
	}
	return DropCached(f.file, off, n)
}

// Prefetch asks for n bytes from offset off to be read into the page cache; see [Prefetch].
func (f *File) Prefetch(off, n int64) error {
	if f.source != nil {
		return f.notLocal()
	}
	return Prefetch(f.file, off, n)
}

// GoRead begins [File.Read] and returns at once.
func (f *File) GoRead(ctx context.Context, dst gpu.Span, off int64) *Pending {
	return f.begin(&request{ctx: ctx, file: f, dev: dst, off: off, n: dst.Bytes()})
}

// GoWrite begins [File.Write] and returns at once.
func (f *File) GoWrite(ctx context.Context, src gpu.Span, off int64) *Pending {
	return f.begin(&request{ctx: ctx, file: f, write: true, dev: src, off: off, n: src.Bytes()})
}

// GoReadAt begins [File.ReadAt] and returns at once.
func (f *File) GoReadAt(ctx context.Context, dst []byte, off int64) *Pending {
	return f.begin(&request{ctx: ctx, file: f, host: dst, off: off, n: int64(len(dst))})
}

// GoWriteAt begins [File.WriteAt] and returns at once.
func (f *File) GoWriteAt(ctx context.Context, src []byte, off int64) *Pending {
	return f.begin(&request{ctx: ctx, file: f, write: true, host: src, off: off, n: int64(len(src))})
}

func (f *File) begin(r *request) *Pending {
	r.done = make(chan struct{})
	r.small = r.n < f.pool.settings.Threshold
	switch {
	case r.off < 0:
		r.fail(0, errors.New("the position is negative"))
	case r.write && f.source != nil:
		r.fail(0, errSource)
	case r.host == nil && r.n > 0 && f.pool.device == nil:
		r.fail(0, errors.New("device memory without a device"))
	default:
		f.pool.submit(r)
		return &Pending{r}
	}
	r.finish()
	return &Pending{r}
}

// Pending is a read or write in progress. Wait for it before using or freeing its memory.
type Pending struct {
	request *request
}

// Wait waits until the read or write has ended and returns its error, which names the file and the offset.
// When the context ends, it waits only for tasks that have begun.
func (p *Pending) Wait() error {
	r := p.request
	select {
	case <-r.done:
	case <-r.ctx.Done():
		r.file.pool.cancel(r, r.ctx.Err())
		<-r.done
	}
	if r.err == nil {
		return nil
	}
	return r.file.failure(r.write, r.off+r.errAt, r.off+r.n, r.err)
}

// placed is an error with its place in the file. [io.ErrUnexpectedEOF] says that the file ends there: how many bytes
// are missing is said of the request, however many parts it has.
type placed struct {
	off int64
	err error
}

func (e *placed) Error() string { return e.err.Error() }
func (e *placed) Unwrap() error { return e.err }

// readFull fills memory from offset off.
func (f *File) readFull(b []byte, off int64) error {
	done := 0
	if f.pool.settings.DirectRead {
		done = f.directly(b, off, false)
	}
	return f.readThrough(b[done:], off+int64(done))
}

// readThrough fills memory through the page cache.
func (f *File) readThrough(b []byte, off int64) error {
	n, err := moveAll(f.through, false, b, off)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return &placed{off + int64(n), io.ErrUnexpectedEOF}
	}
	return &placed{off + int64(n), bare(err)}
}

// writeFull writes memory at offset off.
func (f *File) writeFull(b []byte, off int64) error {
	done := 0
	if f.pool.settings.DirectWrite {
		done = f.directly(b, off, true)
	}
	n, err := moveAll(f.through, true, b[done:], off+int64(done))
	if err != nil {
		return &placed{off + int64(done+n), bare(err)}
	}
	return nil
}

// bare returns an error without the path, which the message has already.
func bare(err error) error {
	var e *os.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
