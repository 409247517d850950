package store

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

const (
	// perObject is the maximum number of requests in flight for one object. Ranges requested meanwhile wait,
	// and neighbours are then requested together.
	perObject = 16
	// gapBytes is the gap between two ranges that costs less than another request.
	gapBytes = 64 << 10
	// groupBytes is the maximum length of a joint request.
	groupBytes = 8 << 20
)

// wanted is a range of an object that a reader waits for.
type wanted struct {
	ctx  context.Context
	dst  []byte
	off  int64
	have int // bytes of dst that have come

	group []*wanted     // set before ready: what to ask for together, in order; nil: another asks
	ready chan struct{} // closed when it is this one's turn, or another has asked
	err   error
}

func (w *wanted) end() int64 { return w.off + int64(len(w.dst)) }

// ranges holds the ranges requested of one object.
type ranges struct {
	mu      sync.Mutex
	active  int // requests in flight
	waiting []*wanted
}

// read reads a range, in one request with neighbouring ranges if others wait for them.
func (o *httpObject) read(ctx context.Context, p []byte, off int64) (int, error) {
	w := &wanted{ctx: ctx, dst: p, off: off}
	q := &o.ranges
	q.mu.Lock()
	if q.active < perObject {
		q.active++
		q.mu.Unlock()
		w.group = []*wanted{w}
	} else {
		w.ready = make(chan struct{})
		q.waiting = append(q.waiting, w)
		q.mu.Unlock()
		select {
		case <-w.ready:
		case <-ctx.Done():
			if q.leave(w) {
				return 0, fmt.Errorf("%s: %w", o.store.Location(o.key), ctx.Err())
			}
			<-w.ready // its memory is being filled, by one that ends with the same context
		}
		if w.group == nil {
			return w.have, w.err
		}
	}
	err := o.fetch(ctx, w.group)
	for _, other := range w.group {
		if other != w {
			other.err = err
			if other.have == len(other.dst) {
				other.err = nil
			}
			close(other.ready)
		}
	}
	q.next()
	if w.have == len(w.dst) {
		err = nil
	}
	return w.have, err
}

// leave removes a waiting range that no request covers yet.
func (q *ranges) leave(w *wanted) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// next ends a request and starts the one that has waited longest, with its neighbours.
func (q *ranges) next() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.active--
		return
	}
	first := q.waiting[0]
	same := make([]*wanted, 0, len(q.waiting))
	for _, w := range q.waiting {
		if w.ctx == first.ctx { // of the same call: they end together
			same = append(same, w)
		}
	}
	slices.SortStableFunc(same, func(a, b *wanted) int { return cmp.Compare(a.off, b.off) })
	at := slices.Index(same, first)
	from, to := at, at+1
	for to < len(same) && joins(same[from], same[to-1], same[to]) {
		to++
	}
	for from > 0 && joins(same[from-1], same[from-1], same[from]) && same[to-1].end()-same[from-1].off <= groupBytes {
		from--
	}
	group := slices.Clone(same[from:to])
	q.waiting = slices.DeleteFunc(q.waiting, func(w *wanted) bool { return slices.Contains(group, w) })
	leader := group[0]
	leader.group = group
	close(leader.ready)
}

// joins reports whether a range belongs in the same request as those from first to last.
func joins(first, last, w *wanted) bool {
	return w.off >= last.end() && w.off-last.end() <= gapBytes && w.end()-first.off <= groupBytes
}

// fetch fills the ranges of a group, which are in order and do not overlap.
func (o *httpObject) fetch(ctx context.Context, group []*wanted) error {
	return o.store.retry(ctx, o.key, func(ctx context.Context) (bool, error) {
		got := 0
		for {
			for len(group) > 0 && group[0].have == len(group[0].dst) {
				group = group[1:]
			}
			if len(group) == 0 {
				return true, nil
			}
			n, err := o.fetchOnce(ctx, group) // a server may send less than it was asked for
			if got += n; err != nil {
				return got >= goodProgress, err
			}
		}
	})
}

// fetchOnce fills as much of the ranges as one answer brings.
func (o *httpObject) fetchOnce(ctx context.Context, group []*wanted) (got int, err error) {
	off, end := group[0].off+int64(group[0].have), group[len(group)-1].end()
	r, err := o.store.send(ctx, http.MethodGet, o.key, http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", off, end-1)}})
	if err != nil {
		return 0, err
	}
	defer r.close()
	at, end, err := o.answered(r, off, end)
	if err != nil {
		return 0, err
	}
	for _, w := range group {
		from := w.off + int64(w.have)
		to := min(w.end(), end)
		if from >= to {
			break
		}
		if _, err := io.CopyN(io.Discard, r.Body, from-at); err != nil {
			return got, cut(err)
		}
		n, err := io.ReadFull(r.Body, w.dst[w.have:to-w.off])
		w.have += n
		got += n
		if at = from + int64(n); err != nil {
			return got, cut(err)
		}
	}
	return got, nil
}
