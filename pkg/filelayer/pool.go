package filelayer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/mem"
	"strata/pkg/settings"
)

// Pool owns the threads that read and write files, with the device, settings and counters that they share.
// Its methods may be called concurrently.
type Pool struct {
	device    *gpu.Device
	settings  settings.Settings
	piece     int64     // bytes that a bounce buffer takes at a time
	aside     *mem.Pool // buffers that data of callers' memory is copied to and from for direct I/O
	asideSize int       // bytes that one takes at most
	warn      func(text string)

	mu      sync.Mutex
	changed *sync.Cond // the queue, or closed
	queue   []*request
	back    []task // that threads could not do
	able    int    // threads that have bounce buffers
	closed  bool
	files   int

	preparing sync.Mutex // held while a thread gets its bounce buffers
	threads   sync.WaitGroup
	failed    error // of giving back what the threads had; once they have ended

	straight straight
	ordered  ordered

	counts counts
}

// Stats counts the transfers of a pool or a file: bytes, repetitions, and durations.
type Stats struct {
	Reads, Writes, Failed         int64   // calls that ended, and those of both that failed
	ReadStraight, WrittenStraight int64   // between file and device by cuFile
	ReadBounced, WrittenBounced   int64   // between file and device through host memory
	Host                          int64   // between file and host memory that callers gave
	Fallbacks                     int64   // pieces that failed with cuFile and went through host memory
	Direct                        int64   // bytes moved by the host that bypassed the page cache
	Realigned                     int64   // bytes of Direct that were copied because the callers' memory was not aligned
	Queued                        int64   // of Direct, by a queue of the system (io_uring), which keeps a device busy with small tasks
	Latency                       Latency // of tasks, from the first byte to the last
}

// NewPool starts the threads. Without a device (nil) it serves only host memory. warn, which may be nil, gets one line
// when cuFile fails. It fails only if the settings demand cuFile and cuFile does not move data straight; the error has
// the reason.
func NewPool(d *gpu.Device, s settings.Settings, warn func(text string)) (*Pool, error) {
	if s.Threads <= 0 {
		s.Threads = runtime.GOMAXPROCS(0)
	}
	if warn == nil {
		warn = func(string) {}
	}
	p := &Pool{device: d, settings: s, warn: warn}
	p.changed = sync.NewCond(&p.mu)
	p.straight.known = make(chan struct{})
	p.aside, p.asideSize = newAside(s.Threads, s.TaskSize)
	if d != nil {
		p.piece = pieceOf(s, d.Pinned().Limit())
	}
	if d != nil && s.Compat == settings.Off {
		if straight, reason := p.Mode(); !straight {
			return nil, fmt.Errorf("compat_mode is off, but files cannot be moved directly to the GPU: %s", reason)
		}
	}
	p.threads.Add(s.Threads)
	for range s.Threads {
		go func() {
			defer p.threads.Done()
			w := &worker{pool: p}
			w.run()
			if err := w.close(); err != nil {
				p.mu.Lock()
				p.failed = errors.Join(p.failed, err)
				p.mu.Unlock()
			}
		}()
	}
	return p, nil
}

// leastPiece is the minimum size that a thread moves at a time, however little memory there is.
const leastPiece = 4096

// pieceOf returns the size of the data in each of a thread's two bounce buffers: no more than a task, than
// the settings allow, and in total than a quarter of the page-locked memory.
func pieceOf(s settings.Settings, pinned int64) int64 {
	n := min(s.TaskSize, s.Bounce/2-page, pinned/4/int64(s.Threads)/2-page)
	return max(n/page*page, leastPiece)
}

// Memory returns the maximum page-locked memory, in bytes, that the pool's threads take from the device's
// share. They allocate it on first use and keep it. A stream used by [File.QueueRead] takes up to one more
// bounce buffer until it ends.
func (p *Pool) Memory() int64 {
	if p.device == nil {
		return 0
	}
	return 2 * int64(p.settings.Threads) * int64(mem.Size(int(p.piece+page)))
}

// Stats returns what the pool has moved so far.
func (p *Pool) Stats() Stats { return p.counts.load() }

// Close waits for transfers in progress, ends the threads and frees their memory. Files must be closed, and
// streams that read or write them waited for; otherwise it closes nothing.
func (p *Pool) Close() error {
	p.mu.Lock()
	if n := p.waiting(); n > 0 {
		p.mu.Unlock()
		return fmt.Errorf("%d reads and writes on streams were not waited for", n)
	}
	p.closed = true
	p.changed.Broadcast()
	p.mu.Unlock()
	p.threads.Wait()
	ended := p.endLanes()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.aside.Close()
	err := errors.Join(p.failed, ended, p.straight.close())
	p.failed = nil
	if p.files > 0 {
		err = errors.Join(err, fmt.Errorf("%d files were not closed", p.files))
	}
	return err
}

// Open opens a file like [os.OpenFile]; flag must not include os.O_APPEND.
func (p *Pool) Open(path string, flag int, perm fs.FileMode) (*File, error) {
	if flag&os.O_APPEND != 0 {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("cannot be opened to append: writes go to where they are told")}
	}
	f, err := os.OpenFile(path, flag, perm)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: errClosedPool}
	}
	p.files++
	return &File{pool: p, path: path, file: f, through: f, mode: flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)}, nil
}

var errClosedPool = errors.New("the pool of threads is closed")

// request is a read or write with all its tasks. Fields after the first blank line
// belong to the pool's lock.
type request struct {
	ctx   context.Context
	file  *File
	write bool
	dev   gpu.Span // device memory, or
	host  []byte   // host memory
	off   int64    // in the file
	n     int64
	small bool // less than what is left to cuFile
	done  chan struct{}
	using sync.Once
	uses  *allocation // that dev is of, where cuFile moves it

	next    int64 // where the next task begins, from off
	running int   // tasks
	ended   bool
	err     error // of the task that lies first in the file
	errAt   int64
}

// task is a part of a request.
type task struct {
	*request
	from, len int64 // from the request's beginning
	start     time.Time
}

func (t task) device() bool { return t.host == nil }

// submit queues a request.
func (p *Pool) submit(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.file.closed:
		r.fail(0, fs.ErrClosed)
	case p.closed:
		r.fail(0, errClosedPool)
	case r.n > 0:
		r.file.requests.Add(1)
		p.queue = append(p.queue, r)
		p.changed.Broadcast()
		return
	}
	r.finish()
}

// finish ends the request and wakes the goroutines that wait for it.
func (r *request) finish() {
	r.ended = true
	r.file.ended(r.write, r.err)
	close(r.done)
}

// fail remembers an error of the byte at, from the request's beginning.
func (r *request) fail(at int64, err error) {
	if r.err == nil || at < r.errAt {
		r.err, r.errAt = err, at
	}
}

// take returns the next task. Without one it waits, or says so if it is not to wait. It says so as well when
// the pool is closed and nothing is left to do.
func (p *Pool) take(wait bool) (task, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if n := len(p.back); n > 0 {
			t := p.back[n-1]
			p.back = p.back[:n-1]
			return t, true
		}
		for len(p.queue) > 0 {
			r := p.queue[0]
			if err := r.ctx.Err(); err != nil {
				r.fail(r.next, err)
				p.drop(r)
				continue
			}
			t := task{r, r.next, firstTask(r.off+r.next, r.n-r.next, p.settings.TaskSize), time.Now()}
			r.next += t.len
			r.running++
			if r.next == r.n {
				p.queue = p.queue[1:]
			}
			return t, true
		}
		if p.closed || !wait {
			return task{}, false
		}
		p.changed.Wait()
	}
}

// giveBack returns a task to the queue for threads that have bounce buffers. It returns false if no thread has any.
func (p *Pool) giveBack(t task) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.able == 0 {
		return false
	}
	p.back = append(p.back, t)
	p.changed.Signal()
	return true
}

// finish ends a task. After an error no more tasks of its request begin.
func (p *Pool) finish(t task, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.running--
	if err != nil {
		t.fail(t.from, err)
	} else {
		t.file.took(t.start)
	}
	if t.err != nil {
		p.drop(t.request)
	}
	p.end(t.request)
}

// cancel lets no more tasks of a request begin.
func (p *Pool) cancel(r *request, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.next < r.n {
		r.fail(r.next, err)
	}
	p.drop(r)
}

// drop takes a request out of the queue.
func (p *Pool) drop(r *request) {
	for i, q := range p.queue {
		if q == r {
			p.queue = append(p.queue[:i:i], p.queue[i+1:]...)
			break
		}
	}
	r.next = r.n
	p.end(r)
}

// end wakes waiting goroutines if a request has ended.
func (p *Pool) end(r *request) {
	if r.next == r.n && r.running == 0 && !r.ended {
		r.file.requests.Done()
		r.finish()
	}
}
