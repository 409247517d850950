package tile

import (
	"context"
	"slices"
	"sync"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/work"
)

// stream serves one set of requests: its workers start views in request order as slots allow, place their
// pieces, and queue complete ones for the loop that consumes them. l.mu protects all fields.
type stream[T dtype.Element] struct {
	l       *Loader[T]
	reqs    []Request
	plan    *schedule
	next    int          // first request that was never started
	again   []int        // requests that gave their slot away, ascending
	pieces  []task[T]    // ready to be placed
	active  int          // views that are being built
	ready   []*result[T] // complete or failed, in order of completion
	told    int          // results that went to the consumer
	waiting bool         // the consumer waits for a result
	arrived *sync.Cond   // for the consumer
	ended   bool         // no more work
	failed  error        // a panic of a worker
}

// result is a view or an error for the consumer.
type result[T dtype.Element] struct {
	position int // of its request
	v        *View[T]
	pieces   []piece
	left     int       // of them to be placed
	centered bool      // the central tile, which comes first, is in its place
	fetched  []task[T] // pieces that came before it: their tiles are in the cache
	err      error
}

type task[T dtype.Element] struct {
	r *result[T]
	p piece
}

// stream runs a set of requests until all are delivered, the consumer leaves
// or ctx ends. No goroutine outlives it.
func (l *Loader[T]) stream(ctx context.Context, reqs []Request, yield func(*View[T], error) bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &stream[T]{l: l, reqs: reqs, plan: l.schedule(reqs), arrived: sync.NewCond(&l.mu)}
	l.mu.Lock()
	l.streams = append(l.streams, s)
	l.mu.Unlock()
	stop := context.AfterFunc(ctx, l.wake)
	defer stop()
	var workers sync.WaitGroup
	for range l.cfg.loaders {
		work.Go(&workers, func() error { s.work(ctx); return nil }, s.fail)
	}
	defer func() {
		cancel()
		s.end()
		workers.Wait()
		s.clear()
	}()
	for {
		r, err := s.take(ctx)
		switch {
		case err != nil:
			yield(nil, err)
			return
		case r == nil:
			return
		case r.err != nil:
			if !yield(nil, r.err) {
				return
			}
		default:
			if !yield(r.v, nil) {
				return
			}
		}
	}
}

// take waits for the next result to deliver; nil after the last.
func (s *stream[T]) take(ctx context.Context) (*result[T], error) {
	l := s.l
	l.mu.Lock()
	defer l.mu.Unlock()
	s.waiting = true
	defer func() {
		s.waiting = false
		l.change.Broadcast()
	}()
	l.change.Broadcast()
	for {
		if s.told == len(s.reqs) {
			return nil, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if l.closed {
			return nil, ErrClosed
		}
		if s.failed != nil {
			return nil, s.failed
		}
		if i := s.deliverable(); i >= 0 {
			r := s.ready[i]
			s.ready = slices.Delete(s.ready, i, i+1)
			s.told++
			return r, nil
		}
		s.arrived.Wait()
	}
}

// fail ends the stream with a worker's panic.
func (s *stream[T]) fail(err error) {
	if err == nil {
		return
	}
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.failed = err
	s.arrived.Signal()
}

// deliverable returns the index in ready of the next result, or -1 if it is not there yet.
func (s *stream[T]) deliverable() int {
	if !s.l.cfg.ordered {
		return min(len(s.ready), 1) - 1
	}
	return slices.IndexFunc(s.ready, func(r *result[T]) bool { return r.position == s.told })
}

// work runs a loader thread: it places pieces and, if there are none, starts the next view. Pieces of a tile
// that another thread loads wait until that is done, as long as there is other work.
func (s *stream[T]) work(ctx context.Context) {
	l := s.l
	l.mu.Lock()
	defer l.mu.Unlock()
	for !s.ended && ctx.Err() == nil && !l.closed {
		i := slices.IndexFunc(s.pieces, func(t task[T]) bool { return t.r.err != nil || !t.r.v.lv.busy(t.p) })
		if i < 0 && s.start() {
			continue
		}
		if len(s.pieces) == 0 {
			began := time.Now()
			l.change.Wait()
			l.waited += time.Since(began)
			continue
		}
		t := s.pieces[max(i, 0)]
		s.pieces = slices.Delete(s.pieces, max(i, 0), max(i, 0)+1)
		s.place(ctx, t)
	}
}

// place does a task and completes its view after the last one. A piece that
// comes before the central one is brought into the cache and done again after
// it. l.mu is held, but not during the work.
func (s *stream[T]) place(ctx context.Context, t task[T]) {
	l, r, lv := s.l, t.r, t.r.v.lv
	early := lv.inPlace && !t.p.central && !r.centered
	if r.err == nil {
		err := l.unlocked(func() error {
			if early {
				return lv.fetch(ctx, r.v, t.p)
			}
			return lv.place(ctx, r.v, t.p)
		})
		if r.err == nil {
			r.err = err
		}
		if early && r.err == nil {
			if r.centered {
				s.pieces = append(s.pieces, t)
			} else {
				r.fetched = append(r.fetched, t)
			}
			return
		}
	}
	if t.p.central {
		r.centered = true
		s.pieces = slices.Insert(s.pieces, 0, r.fetched...)
		r.fetched = nil
		l.change.Broadcast()
	}
	if r.left--; r.left > 0 {
		return
	}
	if r.err == nil {
		r.err = l.unlocked(func() error { lv.finish(r.v); return nil })
	}
	if r.err != nil {
		lv.back(r.v.buf)
	}
	lv.done(r.v, r.pieces)
	s.active--
	s.ready = append(s.ready, r)
	s.arrived.Signal()
	l.change.Broadcast()
}

// unlocked calls f while l.mu is not held; a panic of f is an error, after which it is held again.
func (l *Loader[T]) unlocked(f func() error) error {
	l.mu.Unlock()
	defer l.mu.Lock()
	return work.Guard(f)
}

// start begins the next view if there is one and a slot is available. l.mu is held, but not while the view is
// planned.
func (s *stream[T]) start() bool {
	position := s.next
	if len(s.again) > 0 {
		position = s.again[0]
	} else if s.next == len(s.reqs) {
		return false
	}
	l, req := s.l, s.reqs[position]
	lv := l.levels[req.Level]
	r := &result[T]{position: position}
	var buf *buffer[T]
	var err error
	if s.wanted(position) {
		buf, err = l.take(lv, s)
	} else if l.demands == 0 && s.held(lv) < lv.most/len(l.streams) {
		buf, err = lv.free()
	}
	if buf == nil && err == nil {
		return false
	}
	if len(s.again) > 0 {
		s.again = s.again[1:]
	} else {
		s.next++
	}
	s.active++
	if err == nil {
		r.v = lv.view(buf, req.Index, s.plan, position)
		err = l.unlocked(func() (err error) { // the border may be the caller's code
			r.pieces, err = lv.pieces(r.v.Geometry)
			return err
		})
		r.left = len(r.pieces)
		for _, p := range r.pieces {
			s.pieces = append(s.pieces, task[T]{r, p})
		}
	}
	if err != nil {
		r.err = &Error{req.Level, req.Index, nil, err}
		if buf != nil {
			lv.back(buf)
		}
		s.active--
		s.ready = append(s.ready, r)
		s.arrived.Signal()
	}
	l.change.Broadcast()
	return true
}

// wanted reports whether the consumer waits for the view of that request and
// for nothing that is under way already.
func (s *stream[T]) wanted(position int) bool {
	if s.l.cfg.ordered {
		return s.waiting && position == s.told
	}
	return s.waiting && s.active == 0 && len(s.ready) == 0
}

// held counts the slots of a level that the stream has and its consumer not yet.
func (s *stream[T]) held(lv *level[T]) int {
	n := s.active
	for _, r := range s.ready {
		if r.err == nil && r.v.lv == lv {
			n++
		}
	}
	return n
}

// spare returns the complete view of that level that the stream can best do without, the one to be delivered
// last; nil if it has none, or if its consumer is about to take it.
func (s *stream[T]) spare(lv *level[T], own bool) *result[T] {
	if s.waiting && !own {
		return nil
	}
	var last *result[T]
	for _, r := range s.ready {
		if r.err == nil && r.v.lv == lv && (last == nil || r.position > last.position) {
			last = r
		}
	}
	return last
}

// giveUp takes a complete view out of the stream; it will be built again.
func (s *stream[T]) giveUp(r *result[T]) {
	s.ready = slices.DeleteFunc(s.ready, func(x *result[T]) bool { return x == r })
	s.plan.undo(r.position)
	i, _ := slices.BinarySearch(s.again, r.position)
	s.again = slices.Insert(s.again, i, r.position)
}

// end lets the workers stop.
func (s *stream[T]) end() {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.ended = true
	s.l.change.Broadcast()
}

// clear returns views that nobody will take and removes the stream from the loader's list. The workers have
// ended.
func (s *stream[T]) clear() {
	l := s.l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams = slices.DeleteFunc(l.streams, func(x *stream[T]) bool { return x == s })
	back := map[*result[T]]bool{}
	for _, r := range s.ready {
		if r.err == nil {
			back[r] = true
		}
	}
	for _, t := range s.pieces {
		back[t.r] = true
	}
	for r := range back {
		r.v.lv.back(r.v.buf)
	}
	l.change.Broadcast()
}
