package filelayer

import (
	"errors"
	"fmt"

	"strata/pkg/gpu"
	"strata/pkg/mem"
)

// worker is a thread of a pool.
type worker struct {
	pool    *Pool
	stream  *gpu.Stream
	buffers [2]*mem.Buffer // that data bounces off
	current int            // of them, the one that no copy uses
	copied  []task         // whose last copy to the device is queued
	ended   bool           // there is no memory for its buffers
	direct  queue          // of reads past the page cache
}

// run processes tasks until the pool is closed. A thread for which there is no page-locked memory ends early.
func (w *worker) run() {
	for !w.ended {
		w.land(0) // those that wait for it need not wait for what comes next
		t, ok := w.pool.take(len(w.copied) == 0 && w.direct.pending == 0)
		switch {
		case ok && t.device() && !t.write:
			w.read(t)
			continue
		case ok && w.enqueue(t):
			continue
		case len(w.copied) > 0:
			_ = w.flush() // who waits for them has the error
		case !ok && w.direct.pending > 0:
			w.land(1)
			continue
		case !ok:
			return
		}
		if ok {
			w.landAll() // they may hold memory that it waits for
			w.finish(t, w.other(t))
		}
	}
}

// other executes a task that does not go through a queue.
func (w *worker) other(t task) error {
	switch {
	case t.device():
		return w.write(t)
	case t.write:
		b := t.host[t.from : t.from+t.len]
		if err := t.file.writeFull(b, t.off+t.from); err != nil {
			return err
		}
	default:
		b := t.host[t.from : t.from+t.len]
		if err := t.file.fill(t.ctx, b, t.off+t.from); err != nil {
			return err
		}
	}
	t.file.count(host, t.len)
	return nil
}

// finish ends a task. If the task failed because there was no memory for the thread's buffers, it leaves the task to
// other threads.
func (w *worker) finish(t task, err error) {
	if errors.Is(err, gpu.ErrMemory) && w.buffers[0] == nil && w.pool.giveBack(t) {
		w.ended = true
		return
	}
	w.pool.finish(t, err)
}

// flush waits for the copies that are queued and ends their tasks.
func (w *worker) flush() error {
	if w.stream == nil {
		return nil
	}
	err := w.stream.Wait()
	for _, t := range w.copied {
		w.pool.finish(t, err)
	}
	w.copied = w.copied[:0]
	return err
}

// prepare makes the stream and the buffers when they are needed first.
func (w *worker) prepare() error {
	p := w.pool
	if err := w.queue(); err != nil {
		return err
	}
	if w.buffers[0] != nil {
		return nil
	}
	p.preparing.Lock() // else none may get the second one
	defer p.preparing.Unlock()
	for n := p.piece; w.buffers[0] == nil; n = max(n/2/page*page, leastPiece) {
		var err error
		for i := range w.buffers {
			if w.buffers[i], err = p.device.Host(int(n + page)); err != nil {
				break
			}
		}
		if err == nil {
			p.mu.Lock()
			p.able++
			p.mu.Unlock()
			return nil
		}
		w.buffers[0].Release()
		w.buffers = [2]*mem.Buffer{}
		if n == leastPiece || !errors.Is(err, gpu.ErrMemory) {
			return err
		}
	}
	return nil
}

// queue makes the stream when it is needed first.
func (w *worker) queue() error {
	if w.stream != nil {
		return nil
	}
	s, err := w.pool.device.Stream()
	if err == nil {
		w.stream = s
	}
	return err
}

// piece returns the part of the current buffer for at most n bytes at byte off of a file, where it lies in a
// page as they do.
func (w *worker) piece(off, n int64) []byte {
	b := w.buffers[w.current].B
	at := off % page
	return b[at : at+min(n, int64(len(b))-page)]
}

// read fills device memory.
func (w *worker) read(t task) {
	if !w.straight(t) {
		w.readBounced(t, 0, nil)
		return
	}
	_ = w.flush() // who waits for what was copied has the error
	done, why, err := w.moveStraight(t, 0, t.len)
	switch {
	case err != nil || done == t.len:
		w.pool.finish(t, err)
	default:
		w.readBounced(t, done, func() { w.pool.fellBack(t.file, t.write, why) })
	}
}

// readBounced fills device memory from a byte of the task on. While it reads a piece from the file, the
// previous one, possibly of the task before, is copied to the device. fellBack, which may be nil, is called
// when everything has been read from the file.
func (w *worker) readBounced(t task, done int64, fellBack func()) {
	err := w.prepare()
	for done < t.len && err == nil {
		if err = t.ctx.Err(); err != nil {
			break
		}
		b := w.piece(t.off+t.from+done, t.len-done)
		if err = t.file.fill(t.ctx, b, t.off+t.from+done); err != nil {
			break
		}
		if err = w.flush(); err != nil {
			break
		}
		w.stream.Upload(t.dev.From(t.from+done, int64(len(b))), b)
		w.current ^= 1
		done += int64(len(b))
		t.file.count(readBounced, int64(len(b)))
	}
	if err != nil {
		_ = w.flush() // nothing of this task is under way when it ends
		w.finish(t, err)
		return
	}
	if fellBack != nil {
		fellBack()
	}
	w.copied = append(w.copied, t)
}

// write writes device memory to the file. cuFile writes the whole pages of a task; the bytes outside go through host
// memory. cuFile would read, change and write back the pages of these bytes, which fails if another task does the same.
func (w *worker) write(t task) error {
	if !w.straight(t) {
		return w.writeBounced(t, 0, t.len)
	}
	head, whole := aligned(t.off+t.from, t.len)
	if err := w.writeBounced(t, 0, head); err != nil {
		return err
	}
	done, why, err := w.moveStraight(t, head, head+whole)
	if err != nil {
		return err
	}
	if err := w.writeBounced(t, done, t.len); err != nil {
		return err
	}
	if done < head+whole {
		w.pool.fellBack(t.file, t.write, why)
	}
	return nil
}

// writeBounced writes device memory, from a byte of the task to another: while a piece is
// written to the file the one after it is copied from the device.
func (w *worker) writeBounced(t task, done, end int64) error {
	if done == end {
		return nil
	}
	if err := w.prepare(); err != nil {
		return err
	}
	fetch := func(done int64) []byte {
		b := w.piece(t.off+t.from+done, end-done)
		w.stream.Download(b, t.dev.From(t.from+done, int64(len(b))))
		w.current ^= 1
		return b
	}
	next := fetch(done)
	for done < end {
		if err := w.stream.Wait(); err != nil {
			return err
		}
		b, at := next, done
		done += int64(len(b))
		if done < end {
			next = fetch(done)
		}
		err := t.ctx.Err()
		if err == nil {
			err = t.file.writeFull(b, t.off+t.from+at)
		}
		if err != nil {
			_ = w.stream.Wait() // nothing of this task is under way when it ends
			return err
		}
		t.file.count(writtenBounced, int64(len(b)))
	}
	return nil
}

// close frees the thread's resources.
func (w *worker) close() error {
	w.landAll()
	if w.direct.ring != nil {
		w.direct.ring.close()
	}
	for _, b := range w.buffers {
		b.Release()
	}
	if w.stream == nil {
		return nil
	}
	if err := w.stream.Close(); err != nil {
		return fmt.Errorf("end a thread that reads and writes: %w", err)
	}
	return nil
}
