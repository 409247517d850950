package tile

import (
	"context"
	"fmt"
)

// A slot is the right to hold one view's buffer. Slots are handed out under
// l.mu: to streams that load ahead as long as none of them has more than its
// share, to those who wait for a view always. A view that was loaded ahead is
// taken back when somebody waits and all slots are gone, so that whoever reads
// several streams in turn cannot be stopped by what the others prepared.

// demand takes a buffer for a view that the caller waits for.
func (l *Loader[T]) demand(ctx context.Context, lv *level[T]) (*buffer[T], error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if buf, err := l.take(lv, nil); buf != nil || err != nil {
		return buf, err
	}
	defer context.AfterFunc(ctx, l.wake)()
	l.demands++
	defer func() { l.demands-- }()
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("wait for a view of level %d to be released (%d available): %w", lv.number, lv.most, err)
		}
		if buf, err := l.take(lv, nil); buf != nil || err != nil {
			return buf, err
		}
		l.change.Wait()
	}
}

// wake wakes all waiting goroutines.
func (l *Loader[T]) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeAll()
}

// wakeAll implements wake for callers that hold l.mu.
func (l *Loader[T]) wakeAll() {
	l.change.Broadcast()
	for _, s := range l.streams {
		s.arrived.Signal()
	}
}

// take hands out a free slot, or one whose view a stream loaded ahead; a view of the requesting stream itself
// (to) only if no other has any. It returns nil if there is none. l.mu is held.
func (l *Loader[T]) take(lv *level[T], to *stream[T]) (*buffer[T], error) {
	if l.closed {
		return nil, ErrClosed
	}
	if buf, err := lv.free(); buf != nil || err != nil {
		return buf, err
	}
	var victim *stream[T]
	var last *result[T]
	for _, s := range l.streams {
		if r := s.spare(lv, s == to); r != nil && (last == nil || s != to) {
			victim, last = s, r
		}
	}
	if victim == nil {
		return nil, nil
	}
	victim.giveUp(last)
	lv.admit(last.v.buf)
	return last.v.buf, nil
}

// free returns an idle buffer or a new one. The new buffer of a view that takes over the memory of tiles has none of
// its own. l.mu is held.
func (lv *level[T]) free() (*buffer[T], error) {
	var buf *buffer[T]
	if n := len(lv.idle); n > 0 {
		buf = lv.idle[n-1]
		lv.idle = lv.idle[:n-1]
		if !buf.intact() {
			lv.back(buf)
			return nil, fmt.Errorf("a view of level %d was written to after its release", lv.number)
		}
	} else if lv.made == lv.most {
		return nil, nil
	} else {
		buf = &buffer[T]{}
		if !lv.inPlace {
			m, err := lv.l.pool.Get(context.Background(), lv.viewBytes) // does not wait: see plan
			if err != nil {
				return nil, fmt.Errorf("memory for a view: %w", err)
			}
			buf.set(m, lv.viewPixels)
		}
		lv.made++
	}
	lv.admit(buf)
	return buf, nil
}

// admit gives the memory of a view that is about to be built to the cache; the view takes over the memory of its tile
// instead.
func (lv *level[T]) admit(buf *buffer[T]) {
	if lv.inPlace {
		lv.cache.admit(buf.mem)
		buf.mem, buf.data = nil, nil
	}
}

// put gives a slot back.
func (lv *level[T]) put(buf *buffer[T]) {
	if lv.l.cfg.checked && buf.mem != nil {
		buf.poison()
	}
	lv.l.mu.Lock()
	defer lv.l.mu.Unlock()
	lv.back(buf)
}

// back implements put for callers that hold l.mu.
func (lv *level[T]) back(buf *buffer[T]) {
	if lv.inPlace && buf.mem == nil { // it was not made
		lv.cache.dismiss()
		lv.made--
	} else if lv.l.closed {
		lv.made--
		buf.mem.Release()
	} else {
		lv.idle = append(lv.idle, buf)
	}
	lv.l.change.Broadcast()
}

// shut frees the idle buffers of a loader that was closed. l.mu is held.
func (lv *level[T]) shut() {
	for _, buf := range lv.idle {
		lv.made--
		buf.mem.Release()
	}
	lv.idle = nil
}
