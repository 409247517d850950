package ngff

import (
	"context"

	"strata/pkg/zarr"
)

// openShard is a shard to which chunks are still to come.
type openShard struct {
	w    *zarr.ShardWriter
	left int     // chunks to come
	next []*unit // spilled units that are made from it when it is complete
}

// put stores one chunk of level k. When that completes a shard, the spilled
// units that waited for it are appended to done.
func (p *pyramid) put(ctx context.Context, k int, index point, src memory, done []*unit) ([]*unit, error) {
	l := p.levels[k]
	b := l.clipped(index)
	strides := make([]int, l.dims)
	for d := range strides {
		strides[d] = src.stride[rank-l.dims+d] * p.elem
	}
	if l.shard == (point{}) {
		return done, l.array.WriteStrided(ctx, l.area(b), src.data[src.at(b.lo)*p.elem:], strides)
	}
	shape := b.shape()
	data := src.data[:shape.volume()*p.elem]
	if src.origin != b.lo || src.stride != contiguous(shape) {
		w, err := p.workspace(ctx, shape.volume()*p.elem)
		if err != nil {
			return done, err
		}
		defer w.release()
		copyBox(memory{data: w.out, origin: b.lo, stride: contiguous(shape)}, src, b, p.elem)
		data = w.out
	}
	s, at, err := l.openShard(ctx, index)
	if err != nil {
		return done, err
	}
	if err := s.w.WriteChunk(ctx, append([]int(nil), index[rank-l.dims:]...), data); err != nil {
		return done, err
	}
	return l.written(ctx, s, at, done)
}

// putStored works like put for a chunk of level 0 that is encoded already.
func (p *pyramid) putStored(ctx context.Context, index point, chunk zarr.Stored, done []*unit) ([]*unit, error) {
	l := p.levels[0]
	at := append([]int(nil), index[rank-l.dims:]...)
	if l.shard == (point{}) {
		return done, l.array.PutChunk(ctx, at, chunk)
	}
	s, shard, err := l.openShard(ctx, index)
	if err != nil {
		return done, err
	}
	if err := s.w.PutChunk(ctx, at, chunk); err != nil {
		return done, err
	}
	return l.written(ctx, s, shard, done)
}

// written notes that a chunk of the shard at at is there. When it was the last, the
// shard is completed, and the units that waited for that are appended to done.
func (l *level) written(ctx context.Context, s *openShard, at point, done []*unit) ([]*unit, error) {
	l.shardMu.Lock()
	s.left--
	last := s.left == 0
	l.shardMu.Unlock()
	if !last {
		return done, nil
	}
	if err := s.w.Commit(ctx); err != nil {
		return done, err
	}
	l.shardMu.Lock()
	defer l.shardMu.Unlock()
	delete(l.shards, at)
	for _, u := range s.next {
		if u.inputs--; u.inputs == 0 {
			done = append(done, u)
		}
	}
	return done, nil
}

// openShard finds or begins the shard of a chunk; at is its place in the grid of shards.
func (l *level) openShard(ctx context.Context, chunk point) (s *openShard, at point, err error) {
	for d := range at {
		at[d] = chunk[d] / l.shard[d]
	}
	l.shardMu.Lock()
	defer l.shardMu.Unlock()
	if s := l.shards[at]; s != nil {
		return s, at, nil
	}
	s = &openShard{left: 1}
	for d := range at {
		chunks := (l.shape[d] + l.unit[d] - 1) / l.unit[d]
		s.left *= min(l.shard[d], chunks-at[d]*l.shard[d])
	}
	if s.w, err = l.array.NewShard(ctx, append([]int(nil), at[rank-l.dims:]...)); err != nil {
		return nil, at, err
	}
	l.shards[at] = s
	return s, at, nil
}

// deferred reports whether a spilled unit must wait until shards that it is
// made from are complete: only then can they be read. All its input has been
// written, so each of those shards is complete or open.
func (p *pyramid) deferred(u *unit) bool {
	above := p.levels[u.level-1]
	if above.shard == (point{}) {
		return false
	}
	in := above.lattice.inputs(u.region)
	var lo, hi point
	for d := range rank {
		n := above.unit[d] * above.shard[d]
		lo[d], hi[d] = in.lo[d]/n, (in.hi[d]-1)/n
	}
	above.shardMu.Lock()
	defer above.shardMu.Unlock()
	at := lo
	for {
		if s := above.shards[at]; s != nil {
			s.next = append(s.next, u)
			u.inputs++
		}
		d := rank - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] <= hi[d] {
				break
			}
			at[d] = lo[d]
		}
		if d < 0 {
			return u.inputs > 0
		}
	}
}
