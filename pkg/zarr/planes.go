package zarr

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"
)

// InBlocks reports whether [Array.ReadPlanes] can read the array, that is, whether its chunks are decoded
// block by block, as Blosc's are.
func (a *Array) InBlocks() bool {
	p := a.meta.pipe
	for ; p.shard != nil; p = p.shard.inner {
		if p.perm != nil {
			return false
		}
	}
	return p.inBlocks()
}

// ReadPlanes reads a region that lies in one chunk without holding all of it. It calls take with the region's
// planes along the first dimension, in order and one or more at a time, while they are still in the
// processor's cache; first is the number of the first plane in the region. Planes have the layout of
// [Array.Read] and are reused after take returns. An error of take ends the reading and is returned
// unchanged. buf has room for at least one plane.
//
// It runs in the caller's goroutine and needs an array for which [Array.InBlocks] is true.
func (a *Array) ReadPlanes(ctx context.Context, r Region, buf []byte, take func(first int, planes []byte) error) error {
	n, err := a.regionBytes(r)
	if err != nil || n == 0 {
		return err
	}
	if !a.InBlocks() {
		return fmt.Errorf("%s: chunks are not decoded in blocks", a.Location())
	}
	for d, unit := range a.Chunks() {
		if r.Start[d]/unit != (r.Start[d]+r.Shape[d]-1)/unit {
			return fmt.Errorf("%s: region %v lies in more than one chunk", a.Location(), r)
		}
	}
	s := &planes{buf: buf, plane: n / r.Shape[0], count: r.Shape[0], take: take}
	if len(buf) < s.plane {
		return fmt.Errorf("%s: a buffer of %d bytes does not hold a plane of region %v, %d bytes", a.Location(), len(buf), r, s.plane)
	}
	w := takeWorker()
	defer w.giveBack()
	w.planes = s
	strides := cStrides(w.vector(len(r.Shape)), r.Shape, a.meta.pipe.size)
	err = a.run(ctx, w, w.newCursor(r, a.meta.chunks, a.unit), func(w *worker, t *task) error {
		return a.readTask(ctx, w, t, buf, strides)
	})
	if s.failed != nil {
		return s.failed
	}
	return err
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
	p            *pipeline
	first        int   // plane of the chunk that is the first of the box
	start, shape []int // of what scatter is gathering
	strides      []int
	mark         mark
	group        int  // planes that scatter is gathering
	begun        bool // it is gathering some
	matched      bool // a plane of the box is a plane of the chunk
}

// begin prepares for a box of a chunk of p, in stored order.
func (s *planes) begin(w *worker, p *pipeline, start, shape, strides []int) {
	s.w, s.p, s.strides = w, p, strides
	v := w.vector(2 * len(start))
	s.start, s.shape = v[:len(start)], v[len(start):]
	s.first = start[0]
	copy(s.start, start)
	copy(s.shape, shape)
	s.mark = w.mark()
	s.matched = p.strides[0] == s.plane
	for d := 1; d < len(shape); d++ {
		s.matched = s.matched && shape[d] == p.shape[d]
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
			if k > 0 && uintptr(unsafe.Pointer(&piece[from]))%uintptr(s.p.size) == 0 {
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
		fillBox(s.buf, []int{len(value)}, []int{k * s.plane / len(value)}, value) // take may have written to it
		if err := s.hand(s.buf[:k*s.plane], k); err != nil {
			return err
		}
	}
	return nil
}

// ScratchBytes returns the maximum memory that one goroutine needs for reading besides the destination:
// encoded chunks, intermediate results between codecs, and decoded chunks that cannot be decoded in place.
// whole promises that only whole chunks are read; it has no effect if the array's edge cuts chunks.
func (a *Array) ScratchBytes(whole bool) int64 {
	for d, n := range a.unit {
		whole = whole && a.meta.shape[d]%n == 0
	}
	return a.meta.pipe.scratchBytes(whole)
}

// ReadFront reads a region that begins at the first element of a chunk and lies inside it into the front of
// buf, as [Array.Read] would. If buf has room for the whole chunk, planes along the first dimension are
// decoded in place without a copy, and no more of them than the codec needs; the content of buf behind the
// region is then undefined.
//
// It runs in the caller's goroutine.
func (a *Array) ReadFront(ctx context.Context, r Region, buf []byte) error {
	n, err := a.regionBytes(r)
	if err != nil || n == 0 {
		return err
	}
	for d, unit := range a.Chunks() {
		if r.Start[d]%unit != 0 || r.Shape[d] > unit {
			return fmt.Errorf("%s: region %v is not the front of a chunk", a.Location(), r)
		}
	}
	if len(buf) < n {
		return fmt.Errorf("%s: region %v of %s has %d bytes, the buffer %d", a.Location(), r, a.meta.elem, n, len(buf))
	}
	w := takeWorker()
	defer w.giveBack()
	w.front = true
	strides := cStrides(w.vector(len(r.Shape)), r.Shape, a.meta.pipe.size)
	return a.run(ctx, w, w.readCursor(r, a), func(w *worker, t *task) error {
		return a.readTask(ctx, w, t, buf, strides)
	})
}
