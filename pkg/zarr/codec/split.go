package codec

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"strata/pkg/work"
	"strata/pkg/zarr/codec/enzstd"
)

// segmentLength is the number of bytes of a long chunk that one goroutine encodes. Encoded bytes depend on it; it is a
// variable for tests.
var segmentLength = enzstd.SegmentLength

// segments returns the number of segments into which n bytes are cut. Up to twice the segment length, cutting does not
// pay.
func segments(n int) int {
	if n <= 2*segmentLength {
		return 1
	}
	return 1 + (n-1)/segmentLength
}

// helpers provides a Scratch for each goroutine that helps another one.
var helpers = sync.Pool{New: func() any { return new(Scratch) }}

// begun, if tests have set it, is called when a piece of split is begun.
var begun func()

// split calls f for 0 to n−1 by [work.Split]. One goroutine at a time uses s; each helping goroutine uses a Scratch of
// its own, and so many bytes of memory.
func (s *Scratch) split(n int, bytes int64, f func(s *Scratch, i int) error) error {
	ctx := s.context()
	var taken atomic.Bool // s
	return work.Split(ctx, n, bytes, func(i int) error {
		if begun != nil {
			begun()
		}
		if taken.CompareAndSwap(false, true) {
			defer taken.Store(false)
			return f(s, i)
		}
		h := helpers.Get().(*Scratch)
		h.Bind(ctx)
		defer func() {
			h.Bind(context.Background())
			helpers.Put(h)
		}()
		return f(h, i)
	})
}

// parts encodes a result in parts, directly in the memory of the result. A part is encoded behind the longest possible
// preceding parts or, if these are complete, directly behind them. Complete parts then move down in order.
type parts struct {
	dst   []byte          // what is in front of part 0, then all parts in order; its capacity is at least bound(n)
	n     int             // parts
	bound func(i int) int // the most bytes of dst in front of part i
	// encode appends part i to dst, which is empty and has the capacity that bound allows.
	encode func(s *Scratch, dst []byte, i int) ([]byte, error)
	// placed, unless nil, is called for each part in order when part i has its final place, bytes from … to−1 of dst.
	placed func(i, from, to int) error

	mu    sync.Mutex
	done  map[int][]byte // encoded, not in place
	next  int            // the first part that is not in place
	busy  bool           // a goroutine is moving parts
	moved error
}

// join encodes all parts with s and with helping goroutines, each of which needs so many bytes.
func (p *parts) join(s *Scratch, bytes int64) error {
	p.done = map[int][]byte{}
	return s.split(p.n, bytes, func(s *Scratch, i int) error {
		part, err := p.encode(s, p.room(i), i)
		if err != nil {
			return err
		}
		return p.finish(i, part)
	})
}

// room returns the memory for part i.
func (p *parts) room(i int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.bound(i)
	if p.next == i {
		at = len(p.dst)
	}
	return p.dst[at:at:p.bound(i+1)]
}

// finish keeps the encoded part i. Unless another goroutine already does so, it moves the parts that are next in order
// to their places.
func (p *parts) finish(i int, part []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[i] = part
	if p.busy {
		return p.moved
	}
	p.busy = true
	for p.moved == nil {
		part, ok := p.done[p.next]
		if !ok {
			break
		}
		delete(p.done, p.next)
		i, from := p.next, len(p.dst)
		p.mu.Unlock()
		err := p.place(i, from, part)
		p.mu.Lock()
		if p.moved = err; err == nil {
			p.dst = p.dst[:from+len(part)]
			p.next++
		}
	}
	p.busy = false
	return p.moved
}

// place moves part i to byte from of the result.
func (p *parts) place(i, from int, part []byte) error {
	to := from + len(part)
	if to > p.bound(i+1) {
		return fmt.Errorf("part %d became %d bytes long, more than there is room for", i, len(part))
	}
	if dst := p.dst[from:to]; len(part) > 0 && &dst[0] != &part[0] {
		copy(dst, part)
	}
	if p.placed == nil {
		return nil
	}
	return p.placed(i, from, to)
}
