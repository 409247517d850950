package zarr

import (
	"errors"
	"time"
	"unsafe"

	"strata/pkg/zarr/box"
	"strata/pkg/zarr/meta"
)

// scatter copies the pieces of a chunk to their places in a box while the chunk is decoded from front to back
// and each piece is in the cache. The last dimension of the destination is contiguous.
type scatter struct {
	dst      []byte
	strides  []int // of the destination
	pitch    []int // of the chunk
	shape    []int // of the box, without the dimensions that a run spans
	at       []int
	run      int // bytes that lie together on both sides
	from, to int // offset of the current run in the chunk and in dst
	done     bool
}

// begin prepares for a box of a chunk of p, in stored order.
func (s *scatter) begin(w *worker, p *meta.Pipeline, start, shape []int, dst []byte, strides []int) {
	run, d := p.Size, len(shape)-1
	for ; d >= 0; d-- {
		if shape[d] == 1 {
			continue
		}
		if strides[d] != run || p.Strides[d] != run {
			break
		}
		run *= shape[d]
	}
	d++
	*s = scatter{dst: dst, strides: strides[:d], pitch: p.Strides[:d], shape: shape[:d], at: w.vector(d), run: run}
	clear(s.at)
	s.from, _ = p.Cover(start, shape)
}

// emit receives the bytes of the chunk at off. Calls come in order and without gaps.
func (s *scatter) emit(off int, piece []byte) error {
	end := off + len(piece)
	for !s.done && s.from < end {
		lo, hi := max(s.from, off), min(s.from+s.run, end)
		if lo < hi {
			copy(s.dst[s.to+lo-s.from:s.to+hi-s.from], piece[lo-off:hi-off])
		}
		if s.from+s.run > end {
			return nil // the rest is in the next piece
		}
		s.next()
	}
	return nil
}

func (s *scatter) next() {
	for d := len(s.shape) - 1; d >= 0; d-- {
		s.from += s.pitch[d]
		s.to += s.strides[d]
		if s.at[d]++; s.at[d] < s.shape[d] {
			return
		}
		s.from -= s.shape[d] * s.pitch[d]
		s.to -= s.shape[d] * s.strides[d]
		s.at[d] = 0
	}
	s.done = true
}

// planes passes on a box plane by plane along its first dimension while a chunk is decoded from front to
// back.
type planes struct {
	buf    []byte
	plane  int // bytes
	count  int // planes of the box
	next   int // the first that was not handed out
	take   func(first int, planes []byte) error
	failed error         // of take
	busy   time.Duration // spent in take

	w            *worker
	p            *meta.Pipeline
	first        int   // plane of the chunk that is the first of the box
	start, shape []int // of what scatter is gathering
	strides      []int
	mark         mark
	group        int  // planes that scatter is gathering
	begun        bool // it is gathering some
	matched      bool // a plane of the box is a plane of the chunk
}

// begin prepares for a box of a chunk of p, in stored order.
func (s *planes) begin(w *worker, p *meta.Pipeline, start, shape, strides []int) {
	s.w, s.p, s.strides = w, p, strides
	v := w.vector(2 * len(start))
	s.start, s.shape = v[:len(start)], v[len(start):]
	s.first = start[0]
	copy(s.start, start)
	copy(s.shape, shape)
	s.mark = w.mark()
	s.matched = p.Strides[0] == s.plane
	for d := 1; d < len(shape); d++ {
		s.matched = s.matched && shape[d] == p.Shape[d]
	}
	s.group = 1
	if !s.matched {
		s.group = len(s.buf) / s.plane
	}
}

// emit receives the bytes of the chunk at off. Calls come in order and without gaps.
func (s *planes) emit(off int, piece []byte) error {
	for s.next < s.count {
		if s.matched && !s.begun {
			from := (s.first+s.next)*s.plane - off
			if from >= len(piece) {
				return nil
			}
			// planes that lie in the piece are handed out where they are
			k := min((len(piece)-from)/s.plane, s.count-s.next)
			if k > 0 && uintptr(unsafe.Pointer(&piece[from]))%uintptr(s.p.Size) == 0 {
				if err := s.hand(piece[from:from+k*s.plane], k); err != nil {
					return err
				}
				continue
			}
		}
		if !s.begun {
			s.group = min(s.group, s.count-s.next)
			s.w.release(s.mark)
			s.start[0], s.shape[0] = s.first+s.next, s.group
			s.w.scatter.begin(s.w, s.p, s.start, s.shape, s.buf, s.strides)
			s.begun = true
		}
		if err := s.w.scatter.emit(off, piece); err != nil || !s.w.scatter.done {
			return err
		}
		s.begun = false
		if err := s.hand(s.buf[:s.group*s.plane], s.group); err != nil {
			return err
		}
	}
	return nil
}

// errTaken ends the reading when take fails; planes.failed is the reason.
var errTaken = errors.New("the planes were not taken")

// hand passes k planes on.
func (s *planes) hand(b []byte, k int) error {
	start := time.Now()
	s.failed = s.take(s.next, b)
	s.busy += time.Since(start)
	s.next += k
	if s.failed != nil {
		return errTaken
	}
	return nil
}

// fill passes on the planes of a chunk that is not stored.
func (s *planes) fill(value []byte) error {
	for s.next < s.count {
		k := min(len(s.buf)/s.plane, s.count-s.next)
		box.Fill(s.buf, []int{len(value)}, []int{k * s.plane / len(value)}, value) // take may have written to it
		if err := s.hand(s.buf[:k*s.plane], k); err != nil {
			return err
		}
	}
	return nil
}
