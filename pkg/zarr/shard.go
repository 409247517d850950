package zarr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"strata/pkg/zarr/box"
	"strata/pkg/zarr/meta"
	"strata/pkg/zarr/store"
)

// writeShard replaces a shard by the task's box of elements and the old content around it. Chunks that the
// box does not touch are copied as stored.
func (a *Array) writeShard(ctx context.Context, st store.Writer, w *worker, t *task, src []byte, strides []int) error {
	p := a.meta.Pipeline
	sh, rank := p.Shard, len(t.start)
	origin, valid := make([]int, rank), make([]int, rank)
	for d := range rank {
		origin[d] = t.file[d] * p.Shape[d]
	}
	u := shardUpdate{a: a, ctx: ctx, box: t, src: src, strides: strides}
	if !a.covered(valid, origin, p.Shape, t.start, t.shape) {
		f, err := a.objects.open(ctx, a.st, w.key, -1)
		if err == nil {
			defer a.objects.release(f)
			u.old = span{f: f, n: f.size}
			u.index, err = reader{a: a, w: w, ctx: ctx}.index(sh, u.old)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := a.createShard(ctx, st, string(w.key), valid)
	if err != nil {
		return err
	}
	defer f.abort()
	err = a.run(ctx, w, w.newCursor(Region{Start: origin, Shape: valid}, sh.Inner.Shape, nil), func(w *worker, c *task) error {
		i := sh.Ordinal(origin, c.start)
		w.key = append(w.key[:0], f.key...)
		stored := false
		defer func() {
			if !stored { // also after a panic: the others wait for their turn
				f.fail()
			}
		}()
		enc, err := u.chunk(w, i, c)
		if err == nil {
			err = f.appendInTurn(ctx, i, enc)
		}
		stored = err == nil
		return err
	})
	if err != nil {
		return err
	}
	return f.commit(ctx, w)
}

// shardUpdate replaces a box of a shard's elements.
type shardUpdate struct {
	a       *Array
	ctx     context.Context
	box     *task
	src     []byte // elements of the box
	strides []int
	old     span        // the stored shard
	index   *shardIndex // of it; nil: there is none, or all of it is replaced
}

// chunk returns the stored form of inner chunk i, which is the box c of the array; nil if it is not stored.
func (u *shardUpdate) chunk(w *worker, i int, c *task) ([]byte, error) {
	a, inner := u.a, u.a.meta.Pipeline.Shard.Inner
	part, from := u.part(w, c)
	if slices.Equal(part.shape, c.shape) {
		return a.encodeUnlessFill(w, inner, u.src[from:], u.strides, c.shape)
	}
	before, err := u.stored(w, i)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(part.shape, func(n int) bool { return n <= 0 }) { // untouched
		if before.n < 0 {
			return nil, nil
		}
		return reader{a: a, w: w, ctx: u.ctx}.bytes(before)
	}
	b, strides, err := a.merge(u.ctx, w, inner, &before, c.start, part, u.src[from:], u.strides)
	if err != nil {
		return nil, err
	}
	return a.encodeUnlessFill(w, inner, b, strides, inner.Shape)
}

// part returns the part of chunk c that the update replaces, and its offset in src. If the update does not touch the
// chunk, a size in the part's shape is 0 or less.
func (u *shardUpdate) part(w *worker, c *task) (part *task, from int) {
	rank := len(c.start)
	part = &task{start: w.vector(rank), shape: w.vector(rank)}
	for d, at := range u.box.start {
		lo, hi := max(c.start[d], at), min(c.start[d]+c.shape[d], at+u.box.shape[d])
		part.start[d], part.shape[d] = lo, hi-lo
		from += (lo - at) * u.strides[d]
	}
	return part, from
}

// stored returns inner chunk i as it is stored, of negative length if it is not.
func (u *shardUpdate) stored(w *worker, i int) (span, error) {
	if u.index == nil {
		return span{n: -1}, nil
	}
	off, n, ok, err := reader{a: u.a, w: w, ctx: u.ctx}.lookup(u.a.meta.Pipeline.Shard, u.index, u.old, i)
	if err != nil || !ok {
		return span{n: -1}, err
	}
	return u.old.sub(off, n), nil
}

// encodeUnlessFill encodes a chunk, or returns nil if all elements have the fill value.
func (a *Array) encodeUnlessFill(w *worker, p *meta.Pipeline, src []byte, strides, valid []int) ([]byte, error) {
	enc, isFillOnly, err := a.encode(w, p, src, strides, valid)
	if isFillOnly {
		enc = nil
	}
	return enc, err
}

// ShardWriter writes one shard chunk by chunk, so that the whole shard is never in memory. Chunks may come in any order
// and from several goroutines. The file holds them in grid order, so that its bytes do not depend on the order of
// writing.
//
// A chunk that comes before its predecessors waits as [Hold] describes. If all stored chunks have the same size, each
// is written to its place at once, and a chunk that is never written leaves a gap in the file. A chunk that is not
// written reads as the fill value.
type ShardWriter struct {
	a      *Array
	f      *shardFile
	region Region
	once   sync.Once
	err    error
}

// NewShard begins the shard with the given index in the grid of [Array.Shard]. It replaces the stored shard
// on Commit. The caller must call Commit or Abort.
func (a *Array) NewShard(ctx context.Context, index []int) (*ShardWriter, error) {
	if !a.meta.Pipeline.Streams() {
		return nil, fmt.Errorf("%s: not made of shards that can be written chunk by chunk", a.Location())
	}
	r, err := a.ShardRegion(index)
	if err != nil {
		return nil, err
	}
	st, err := a.writer()
	if err == nil {
		err = inFileUnlessNamed(a.st, a.path, a.meta.Pipeline.ReadOnly())
	}
	if err != nil {
		return nil, err
	}
	f, err := a.createShard(ctx, st, a.ChunkKey(index), r.Shape)
	if err != nil {
		return nil, err
	}
	f.fixed = a.fixedSize()
	return &ShardWriter{a: a, f: f, region: r}, nil
}

// Region returns the part of the array that the shard holds.
func (s *ShardWriter) Region() Region { return s.region }

// WriteChunk encodes and stores the chunk with the given index in the array's grid of [Array.Chunks], in the
// caller's goroutine. src holds the elements of its [Array.ChunkRegion]. Writing a chunk twice is an error.
func (s *ShardWriter) WriteChunk(ctx context.Context, index []int, src []byte) error {
	i, r, err := s.place(ctx, index)
	if err != nil {
		return err
	}
	n, ok := box.Volume(r.Shape, s.a.meta.Pipeline.Size)
	if !ok || n != len(src) {
		return fmt.Errorf("%s: chunk %v has %d bytes, the buffer %d", s.a.Location(), index, n, len(src))
	}
	w := takeWorker()
	defer w.giveBack()
	inner := s.a.meta.Pipeline.Shard.Inner
	enc, isFillOnly, err := s.a.encode(w, inner, src, box.Strides(w.vector(len(r.Shape)), r.Shape, s.a.meta.Pipeline.Size), r.Shape)
	if err != nil {
		return inFileUnlessNamed(s.a.st, s.f.key, err)
	}
	if isFillOnly {
		return s.f.append(ctx, i, nil)
	}
	return s.f.append(ctx, i, &Stored{Bytes: enc})
}

// place returns the number in the shard and the region of a chunk, or an error if it was written before.
func (s *ShardWriter) place(ctx context.Context, index []int) (i int, r Region, err error) {
	if r, err = s.a.ChunkRegion(index); err != nil {
		return 0, r, err
	}
	for d, lo := range r.Start {
		if lo < s.region.Start[d] || lo >= s.region.Start[d]+s.region.Shape[d] {
			return 0, r, fmt.Errorf("%s: chunk %v does not lie in shard %v", s.a.Location(), index, s.region)
		}
	}
	if err := ctx.Err(); err != nil {
		return 0, r, err
	}
	i = s.a.meta.Pipeline.Shard.Ordinal(s.region.Start, r.Start)
	if s.f.came(i) {
		return 0, r, fmt.Errorf("%s: chunk %v is written twice", s.a.Location(), index)
	}
	return i, r, nil
}

// Commit writes the index and moves the shard to its place. The caller waits for all WriteChunk calls first.
func (s *ShardWriter) Commit(ctx context.Context) error {
	s.once.Do(func() {
		w := takeWorker()
		defer w.giveBack()
		defer s.f.abort()
		if s.err = ctx.Err(); s.err == nil {
			s.err = inFileUnlessNamed(s.a.st, s.f.key, s.f.commit(ctx, w))
		}
	})
	return s.err
}

// Abort discards the shard; a stored one stays. After Commit it does nothing, so that it can be deferred.
func (s *ShardWriter) Abort() {
	s.once.Do(func() {
		s.err = errors.New("shard was given up")
		s.f.abort()
	})
}

// PutChunk stores a chunk that is encoded already; otherwise it works like [ShardWriter.WriteChunk].
func (s *ShardWriter) PutChunk(ctx context.Context, index []int, c Stored) error {
	i, _, err := s.place(ctx, index)
	if err != nil {
		return err
	}
	if err := c.check(s.a.meta.Pipeline.Shard.Inner); err != nil {
		return fmt.Errorf("%s: chunk %v: %w", s.a.st.Location(s.f.key), index, err)
	}
	return s.f.append(ctx, i, &c)
}

// merge returns a whole chunk in C order: the stored one overlaid with the task's box. It reads the stored
// chunk from old, or from the file w.key if old is nil.
func (a *Array) merge(ctx context.Context, w *worker, p *meta.Pipeline, old *span, origin []int, t *task, src []byte, strides []int) ([]byte, []int, error) {
	rank := len(origin)
	b, err := w.buffer(p.Bytes)
	if err != nil {
		return nil, nil, err
	}
	bs, zero := box.Strides(w.vector(rank), p.Shape, p.Size), w.vector(rank)
	clear(zero)
	rd := reader{a: a, w: w, ctx: ctx}
	switch {
	case old == nil:
		err = rd.file(p, zero, p.Shape, b, bs)
	case old.n < 0:
		box.FillRun(b, a.meta.Fill)
	default:
		err = rd.decode(p, *old, zero, p.Shape, b, bs)
	}
	if err != nil {
		return nil, nil, err
	}
	off := 0
	for d := range rank {
		off += (t.start[d] - origin[d]) * bs[d]
	}
	box.Copy(b[off:], bs, src, strides, t.shape, p.Size)
	return b, bs, nil
}
