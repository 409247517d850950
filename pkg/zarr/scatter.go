package zarr

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
func (s *scatter) begin(w *worker, p *pipeline, start, shape []int, dst []byte, strides []int) {
	run, d := p.size, len(shape)-1
	for ; d >= 0; d-- {
		if shape[d] == 1 {
			continue
		}
		if strides[d] != run || p.strides[d] != run {
			break
		}
		run *= shape[d]
	}
	d++
	*s = scatter{dst: dst, strides: strides[:d], pitch: p.strides[:d], shape: shape[:d], at: w.vector(d), run: run}
	clear(s.at)
	s.from, _ = p.cover(start, shape)
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
