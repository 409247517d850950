package gds

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
}

func (w *worker) run() {
	for {
		t, ok := w.pool.take(len(w.copied) == 0)
		switch {
		case ok && t.device() && !t.write:
			w.read(t)
			continue
		case len(w.copied) > 0:
			_ = w.flush() // who waits for them has the error
		case !ok:
			return
		}
		if ok {
			w.pool.finish(t, w.other(t))
		}
	}
}

// other does a task that leaves nothing queued.
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
		if err := t.file.readFull(b, t.off+t.from); err != nil {
			return err
		}
	}
	w.pool.counts.host.Add(t.len)
	return nil
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
	if w.stream == nil {
		s, err := p.device.Stream()
		if err != nil {
			return err
		}
		w.stream = s
	}
	for n := p.piece; w.buffers[1] == nil; n = max(n/2/page*page, leastPiece) {
		var err error
		for i := range w.buffers {
			if w.buffers[i], err = p.device.Host(int(n + page)); err != nil {
				break
			}
		}
		if err == nil {
			break
		}
		w.buffers[0].Release()
		w.buffers = [2]*mem.Buffer{}
		if n == leastPiece || !errors.Is(err, gpu.ErrMemory) {
			return err
		}
	}
	return nil
}

// piece is the part of the current buffer for at most n bytes at byte off of a file,
// where it lies in a page as they do.
func (w *worker) piece(off, n int64) []byte {
	b := w.buffers[w.current].B
	at := off % page
	return b[at : at+min(n, int64(len(b))-page)]
}

// read fills device memory: while a piece is read from the file the one before it is
// copied to the device, also that of the task before.
func (w *worker) read(t task) {
	done, err := int64(0), w.prepare()
	for done < t.len && err == nil {
		if err = t.ctx.Err(); err != nil {
			break
		}
		b := w.piece(t.off+t.from+done, t.len-done)
		if err = t.file.readFull(b, t.off+t.from+done); err != nil {
			break
		}
		if err = w.flush(); err != nil {
			break
		}
		w.stream.Upload(t.dev.From(t.from+done, int64(len(b))), b)
		w.current ^= 1
		done += int64(len(b))
		w.pool.counts.readBounced.Add(int64(len(b)))
	}
	if err != nil {
		_ = w.flush() // nothing of this task is under way when it ends
		w.pool.finish(t, err)
		return
	}
	w.copied = append(w.copied, t)
}

// write writes device memory: while a piece is written to the file the one after it is
// copied from the device.
func (w *worker) write(t task) error {
	if err := w.prepare(); err != nil {
		return err
	}
	fetch := func(done int64) []byte {
		b := w.piece(t.off+t.from+done, t.len-done)
		w.stream.Download(b, t.dev.From(t.from+done, int64(len(b))))
		w.current ^= 1
		return b
	}
	next := fetch(0)
	for done := int64(0); done < t.len; {
		if err := w.stream.Wait(); err != nil {
			return err
		}
		b := next
		at := done
		done += int64(len(b))
		if done < t.len {
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
		w.pool.counts.writtenBounced.Add(int64(len(b)))
	}
	return nil
}

// close gives back what the thread had.
func (w *worker) close() error {
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
