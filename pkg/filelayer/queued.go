package filelayer

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"strata/pkg/mem"
)

// Limits of a thread's queue of direct reads.
const (
	queueLength = 16             // reads
	queueBytes  = 2 * mostCopied // bytes of them
)

// queue is a thread's queue of direct reads.
type queue struct {
	ring    *ring
	refused error // why there is none
	flights [queueLength]flight
	pending int   // reads that the system has
	bytes   int64 // of these
}

// flight is a task whose whole pages are being read by the system.
type flight struct {
	task
	used  bool
	head  int64       // bytes before the first page
	whole int64       // bytes of pages
	aside *mem.Buffer // aligned memory that receives them; nil: they go to their place
}

// enqueue hands a read into host memory to the system's queue, and reports whether it did: the read must bypass the
// page cache, and the system must have such queues. If the queue is full, it first waits for a pending read.
func (w *worker) enqueue(t task) bool {
	q := &w.direct
	if t.write || t.device() || t.file.source != nil || !w.pool.settings.DirectRead || q.refused != nil || t.len < page {
		return false
	}
	b := t.host[t.from : t.from+t.len]
	pages, ok := t.file.directPages(b, t.off+t.from, false)
	past, real := t.file.past.(*os.File)                                                              // in tests it may be one that fails
	if !ok || !real || pages.size > 1<<30 || !pages.aligned && pages.size > int64(w.pool.asideSize) { // a call moves no more than 2 GiB
		return false
	}
	if q.ring == nil {
		if q.ring, q.refused = newRing(queueLength); q.refused != nil {
			return false
		}
	}
	for q.pending == queueLength || q.pending > 0 && q.bytes+pages.size > queueBytes {
		w.land(1)
	}
	to := b[pages.head : pages.head+pages.size]
	var aside *mem.Buffer
	if !pages.aligned {
		for aside == nil {
			var err error
			if aside, err = w.pool.aside.TryGet(max(len(to), leastAside)); err != nil || aside == nil && q.pending == 0 {
				return false
			}
			if aside == nil {
				w.land(1) // gives one back
			}
		}
		to = aside.B[:len(to)]
	}
	for i := range q.flights {
		if !q.flights[i].used {
			q.flights[i] = flight{t, true, pages.head, pages.size, aside}
			q.ring.read(int(past.Fd()), to, t.off+t.from+pages.head, uint64(i))
			break
		}
	}
	q.pending++
	q.bytes += pages.size
	w.land(0)
	return true
}

// land submits queued reads to the system, waits for the given number of reads to end, and finishes those
// that have.
func (w *worker) land(wait int) {
	q := &w.direct
	if q.pending == 0 {
		return
	}
	down := func(user uint64, result int32) {
		f := q.flights[user]
		q.flights[user] = flight{}
		q.pending--
		q.bytes -= f.whole
		w.pool.finish(f.task, f.end(result))
	}
	if err := q.ring.enter(wait); err != nil {
		// What the system did not take is read without it; what it took, it ends.
		q.refused = err
		q.ring.takeBack(func(user uint64) { down(user, -int32(syscall.EAGAIN)) })
		for q.pending > 0 {
			q.ring.ended(down)
			time.Sleep(time.Millisecond)
		}
	}
	q.ring.ended(down)
}

// landAll waits for all pending reads.
func (w *worker) landAll() {
	for w.direct.pending > 0 {
		w.land(1)
	}
}

// end completes a task: it moves the bytes outside whole pages, and those that the system did not read.
func (f flight) end(result int32) error {
	b, off := f.host[f.from:f.from+f.len], f.off+f.from
	n := int64(max(result, 0)) / page * page
	if f.aside != nil {
		copy(b[f.head:], f.aside.B[:n])
		f.aside.Release()
		f.file.count(realigned, n)
	}
	f.file.count(direct, n)
	f.file.count(queued, n)
	switch e := syscall.Errno(-result); {
	case result >= 0, e == syscall.EINTR, e == syscall.EAGAIN, e == syscall.ECANCELED: // the thread that queued it has ended
	default:
		f.file.refuse(fmt.Errorf("direct I/O failed at byte %d: %w", off+f.head, e))
	}
	if err := f.file.readThrough(b[:f.head], off); err != nil {
		return err
	}
	if err := f.file.readThrough(b[f.head+n:], off+f.head+n); err != nil {
		return err
	}
	f.file.count(host, f.len)
	return nil
}
