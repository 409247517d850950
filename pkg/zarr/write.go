package zarr

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash"
	"time"

	"strata/pkg/meter"
	"strata/pkg/zarr/store"
)

// Write stores the elements of a region from src, which holds exactly these in C order and native byte order.
// Chunk files that the region covers (up to the array's edge) are replaced; of others the remaining content
// is read and kept. If Write fails, some files may have been replaced and others not.
func (a *Array) Write(ctx context.Context, r Region, src []byte) error {
	n, err := a.regionBytes(r)
	if err != nil {
		return err
	}
	if n != len(src) {
		return fmt.Errorf("%s: region %v of %s has %d bytes, the buffer %d", a.Location(), r, a.meta.elem, n, len(src))
	}
	return a.write(ctx, r, src, nil)
}

// WriteStrided writes like [Array.Write] from a strided layout: neighbouring elements along dimension d lie
// strides[d] ≥ 0 bytes apart in src.
func (a *Array) WriteStrided(ctx context.Context, r Region, src []byte, strides []int) error {
	if err := a.checkStrided(r, len(src), strides); err != nil {
		return err
	}
	return a.write(ctx, r, src, strides)
}

// ChunkRegion returns the part of the array that the chunk with the given index in the grid of [Array.Chunks]
// holds. Chunks at the far edges are cut there.
func (a *Array) ChunkRegion(index []int) (Region, error) {
	return a.gridRegion("chunk", index, a.Chunks())
}

// ShardRegion returns the part of the array that a chunk file holds: a shard, or a chunk if the array is not
// sharded.
func (a *Array) ShardRegion(index []int) (Region, error) {
	return a.gridRegion("shard", index, a.meta.chunks)
}

func (a *Array) gridRegion(what string, index, unit []int) (Region, error) {
	if len(index) != len(unit) {
		return Region{}, fmt.Errorf("%s: %s %v for %d dimensions", a.Location(), what, index, len(unit))
	}
	r := Region{Start: make([]int, len(unit)), Shape: make([]int, len(unit))}
	for d, i := range index {
		if n := ceilDiv(a.meta.shape[d], unit[d]); i < 0 || i >= n {
			return Region{}, fmt.Errorf("%s: %s %v lies outside the grid: dimension %d has %d", a.Location(), what, index, d, n)
		}
		r.Start[d] = i * unit[d]
		r.Shape[d] = min(unit[d], a.meta.shape[d]-r.Start[d])
	}
	return r, nil
}

// WriteChunk stores one whole chunk; src holds the elements of its [Array.ChunkRegion]. In a sharded array it
// rewrites the whole shard: to write all chunks of a shard, use [Array.WriteShard] or [Array.NewShard].
func (a *Array) WriteChunk(ctx context.Context, index []int, src []byte) error {
	r, err := a.ChunkRegion(index)
	if err != nil {
		return err
	}
	return a.Write(ctx, r, src)
}

// WriteShard stores one whole chunk file without reading; src holds the elements of its [Array.ShardRegion].
func (a *Array) WriteShard(ctx context.Context, index []int, src []byte) error {
	r, err := a.ShardRegion(index)
	if err != nil {
		return err
	}
	return a.Write(ctx, r, src)
}

// streams reports whether chunk files are shards that can be written chunk by chunk.
func (p *pipeline) streams() bool { return p.shard != nil && p.addressable() && p.perm == nil }

// write writes a checked region; nil strides mean C order.
func (a *Array) write(ctx context.Context, r Region, src []byte, strides []int) error {
	st, err := a.writer()
	if err != nil {
		return err
	}
	if err := a.meta.pipe.readOnly(); err != nil {
		return inFile(a.st, a.path, err)
	}
	w := takeWorker()
	defer w.giveBack()
	if strides == nil {
		strides = cStrides(w.vector(len(r.Shape)), r.Shape, a.meta.pipe.size)
	}
	c := w.newCursor(r, a.meta.chunks, nil)
	files := a
	inner := a
	if a.meta.pipe.streams() {
		// parallel over shards when there are enough, else within each
		if c.tasks(a.opts.workers) >= a.opts.workers {
			inner = a.With(Workers(1))
		} else {
			files = a.With(Workers(1))
		}
	}
	return files.run(ctx, w, c, func(w *worker, t *task) error {
		off := 0
		for d, s := range t.start {
			off += (s - r.Start[d]) * strides[d]
		}
		w.key = a.appendKey(w.key[:0], t.file)
		defer a.writing.unlock(a.writing.lock(w.key))
		var err error
		if a.meta.pipe.streams() {
			err = inner.writeShard(ctx, st, w, t, src[off:], strides)
		} else {
			err = a.writeFile(ctx, st, w, t, src[off:], strides)
		}
		return inFileUnlessNamed(a.st, string(w.key), err)
	})
}

// readOnly returns an error for codecs that only decode, and for shards whose index is too long to hold.
func (p *pipeline) readOnly() error {
	if err := p.chain.ReadOnly(); err != nil || p.shard == nil {
		return err
	}
	if p.shard.count > mostInnerWritten {
		return fieldError("chunk_shape", "makes %d inner chunks of a shard, at most %d are written", p.shard.count, mostInnerWritten)
	}
	return p.shard.inner.readOnly()
}

// inFileUnlessNamed adds a file to errors about its content.
func inFileUnlessNamed(st store.Store, key string, err error) error {
	if fe, ok := err.(*FormatError); ok {
		return inFile(st, key, fe)
	}
	return err
}

// covered reports whether a box of the array holds all elements of a chunk of the given shape at origin, up
// to the array's edge, and stores their number along each dimension in valid.
func (a *Array) covered(valid, origin, chunk, start, shape []int) bool {
	all := true
	for d := range chunk {
		valid[d] = min(chunk[d], a.meta.shape[d]-origin[d])
		all = all && start[d] == origin[d] && shape[d] == valid[d]
	}
	return all
}

// writeFile replaces a chunk file by the task's box of elements and the old content around it.
func (a *Array) writeFile(ctx context.Context, st store.Writer, w *worker, t *task, src []byte, strides []int) error {
	p, rank := a.meta.pipe, len(t.start)
	origin, valid := w.vector(rank), w.vector(rank)
	for d := range rank {
		origin[d] = t.file[d] * p.shape[d]
	}
	if !a.covered(valid, origin, p.shape, t.start, t.shape) {
		b, bs, err := a.merge(ctx, w, p, nil, origin, t, src, strides)
		if err != nil {
			return err
		}
		src, strides, valid = b, bs, p.shape
	}
	key := string(w.key)
	defer a.objects.drop(key)
	if _, summed := p.summed(); (p.plain() || summed) && p.nbytes > pieceBytes && !a.opts.omitFill && !p.asStored(strides, valid) {
		return a.writePieces(ctx, st, w, p, key, src, strides, valid)
	}
	enc, isFill, err := a.encode(w, p, src, strides, valid)
	if err != nil {
		return err
	}
	tw := time.Now()
	defer func() { a.opts.meter.Since(meter.Write, tw) }()
	if isFill {
		a.omitted.Add(1)
		return st.Delete(ctx, key)
	}
	if err := st.Put(ctx, key, enc); err != nil {
		return err
	}
	a.opts.meter.AddWritten(int64(len(enc)))
	return nil
}

// merge returns a whole chunk in C order: the stored one overlaid with the task's box. It reads the stored
// chunk from old, or from the file w.key if old is nil.
func (a *Array) merge(ctx context.Context, w *worker, p *pipeline, old *span, origin []int, t *task, src []byte, strides []int) ([]byte, []int, error) {
	rank := len(origin)
	b, err := w.buffer(p.nbytes)
	if err != nil {
		return nil, nil, err
	}
	bs, zero := cStrides(w.vector(rank), p.shape, p.size), w.vector(rank)
	clear(zero)
	rd := reader{a: a, w: w, ctx: ctx}
	switch {
	case old == nil:
		err = rd.file(p, zero, p.shape, b, bs)
	case old.n < 0:
		fillRun(b, a.meta.fill)
	default:
		err = rd.decode(p, *old, zero, p.shape, b, bs)
	}
	if err != nil {
		return nil, nil, err
	}
	off := 0
	for d := range rank {
		off += (t.start[d] - origin[d]) * bs[d]
	}
	copyBox(b[off:], bs, src, strides, t.shape, p.size)
	return b, bs, nil
}

// asStored reports whether elements lie in memory as they will in the file.
func (p *pipeline) asStored(strides, valid []int) bool {
	if p.big {
		return false
	}
	run := p.size
	for i := len(p.stored) - 1; i >= 0; i-- {
		d := i
		if p.perm != nil {
			d = p.perm[i]
		}
		if valid[d] != p.stored[i] || valid[d] != 1 && strides[d] != run {
			return false
		}
		run *= valid[d]
	}
	return true
}

// permute returns a box's lengths and strides in stored order.
func (p *pipeline) permute(w *worker, valid, strides []int) ([]int, []int) {
	if p.perm == nil {
		return valid, strides
	}
	pv, ps := w.vector(len(valid)), w.vector(len(valid))
	for i, d := range p.perm {
		pv[i], ps[i] = valid[d], strides[d]
	}
	return pv, ps
}

// gather copies elements to the order and byte order of the file. Elements of the chunk beyond valid get the
// fill value.
func (a *Array) gather(b []byte, p *pipeline, src []byte, strides, valid, stored, pitch []int) {
	for d, n := range stored {
		if valid[d] != n {
			fillRun(b, a.meta.fill)
			break
		}
	}
	copyBox(b, pitch, src, strides, valid, p.size)
}

// encode returns the stored form of a chunk, of which valid elements along each dimension are given; the rest
// lies outside the array. isFillOnly reports that the chunk holds only the fill value and is to be left out.
// The result may alias src.
func (a *Array) encode(w *worker, p *pipeline, src []byte, strides, valid []int) (enc []byte, isFillOnly bool, err error) {
	t := time.Now()
	defer func() { a.opts.meter.Since(meter.Encode, t) }()
	return a.encodeChunk(w, p, src, strides, valid)
}

func (a *Array) encodeChunk(w *worker, p *pipeline, src []byte, strides, valid []int) (enc []byte, isFillOnly bool, err error) {
	var raw []byte
	switch {
	case p.shard != nil:
		v, s := p.permute(w, valid, strides)
		if raw, isFillOnly, err = a.encodeShard(w, p, src, s, v); err != nil || isFillOnly {
			return nil, isFillOnly, err
		}
	case p.asStored(strides, valid):
		raw = src[:p.nbytes]
		if a.opts.omitFill && isFill(raw, a.meta.fill) {
			return nil, true, nil
		}
	default:
		if raw, err = w.buffer(p.nbytes); err != nil {
			return nil, false, err
		}
		v, s := p.permute(w, valid, strides)
		a.gather(raw, p, src, s, v, p.stored, p.strides)
		if a.opts.omitFill && isFill(raw, a.meta.fill) {
			return nil, true, nil
		}
		if p.big {
			swapBytes(raw, p.elem.SwapSize())
		}
	}
	if len(p.chain) == 0 {
		return raw, false, nil
	}
	enc, err = w.encodeChain(p.chain, raw)
	return enc, false, err
}

// writePieces writes a chunk of plain elements that lie scattered in memory, piece by piece, so that each is
// still in the cache when it is written, and the checksum behind them if the codecs add one.
func (a *Array) writePieces(ctx context.Context, st store.Writer, w *worker, p *pipeline, key string, src []byte, strides, valid []int) error {
	o, err := st.Create(ctx, key)
	if err != nil {
		return err
	}
	defer o.Abort()
	valid, strides = p.permute(w, valid, strides)
	rank := len(valid)
	piece := p.piece(w.vector(rank))
	at, part, sizes := w.vector(rank), w.vector(rank), w.vector(rank)
	pitch := w.vector(rank)
	clear(at)
	buf, err := w.buffer(pieceBytes + p.size)
	if err != nil {
		return err
	}
	var sum hash.Hash32
	if c, ok := p.summed(); ok {
		sum = c.New()
	}
	for { // pieces follow each other in the file
		t := time.Now()
		off, from := 0, 0
		inside := true
		for d := range rank {
			sizes[d] = min(piece[d], p.stored[d]-at[d])
			part[d] = min(sizes[d], valid[d]-at[d])
			inside = inside && part[d] > 0
			off += at[d] * p.strides[d]
			from += at[d] * strides[d]
		}
		n, _ := volume(sizes, p.size)
		if n > len(buf) {
			if buf, err = w.buffer(n); err != nil {
				return err
			}
		}
		b := buf[:n]
		if inside {
			a.gather(b, p, src[from:], strides, part, sizes, cStrides(pitch, sizes, p.size))
		} else {
			fillRun(b, a.meta.fill)
		}
		if p.big {
			swapBytes(b, p.elem.SwapSize())
		}
		if sum != nil {
			_, _ = sum.Write(b) // never fails
		}
		a.opts.meter.Since(meter.Encode, t)
		t = time.Now()
		if _, err := o.WriteAt(b, int64(off)); err != nil {
			return err
		}
		a.opts.meter.Since(meter.Write, t)
		a.opts.meter.AddWritten(int64(n))
		d := rank - 1
		for ; d >= 0; d-- {
			if at[d] += piece[d]; at[d] < p.stored[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			break
		}
	}
	if sum != nil {
		b := binary.LittleEndian.AppendUint32(nil, sum.Sum32())
		if _, err := o.WriteAt(b, int64(p.nbytes)); err != nil {
			return err
		}
		a.opts.meter.AddWritten(int64(len(b)))
	}
	return o.Commit()
}
