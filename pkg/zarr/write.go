package zarr

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/zarr/box"
	"strata/pkg/zarr/meta"
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
		return fmt.Errorf("%s: region %v of %s has %d bytes, the buffer %d", a.Location(), r, a.meta.DType, n, len(src))
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

// WriteChunk stores one whole chunk; src holds the elements of its [Array.ChunkRegion]. In a sharded array it
// rewrites the whole shard: to write all chunks of a shard, use [Array.WriteShard] or [Array.NewShard].
func (a *Array) WriteChunk(ctx context.Context, index []int, src []byte) error {
	r, err := a.ChunkRegion(index)
	if err != nil {
		return err
	}
	return a.Write(ctx, r, src)
}

// write writes a checked region; nil strides mean C order.
func (a *Array) write(ctx context.Context, r Region, src []byte, strides []int) error {
	st, err := a.writer()
	if err != nil {
		return err
	}
	if err := a.meta.Pipeline.ReadOnly(); err != nil {
		return meta.InFile(a.st, a.path, err)
	}
	w := takeWorker()
	defer w.giveBack()
	if strides == nil {
		strides = box.Strides(w.vector(len(r.Shape)), r.Shape, a.meta.Pipeline.Size)
	}
	c := w.newCursor(r, a.meta.Chunks, nil)
	files := a
	inner := a
	if a.meta.Pipeline.Streams() {
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
		if a.meta.Pipeline.Streams() {
			err = inner.writeShard(ctx, st, w, t, src[off:], strides)
		} else {
			err = a.writeFile(ctx, st, w, t, src[off:], strides)
		}
		return inFileUnlessNamed(a.st, string(w.key), err)
	})
}

// writeFile replaces a chunk file by the task's box of elements and the old content around it.
func (a *Array) writeFile(ctx context.Context, st store.Writer, w *worker, t *task, src []byte, strides []int) error {
	p, rank := a.meta.Pipeline, len(t.start)
	origin, valid := w.vector(rank), w.vector(rank)
	for d := range rank {
		origin[d] = t.file[d] * p.Shape[d]
	}
	if !a.covered(valid, origin, p.Shape, t.start, t.shape) {
		b, bs, err := a.merge(ctx, w, p, nil, origin, t, src, strides)
		if err != nil {
			return err
		}
		src, strides, valid = b, bs, p.Shape
	}
	key := string(w.key)
	defer a.objects.drop(key)
	if _, summed := p.Summed(); (p.Plain() || summed) && p.Bytes > meta.PieceBytes && !a.opts.omitFill && !p.AsStored(strides, valid) {
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

// writePieces writes a chunk of plain elements that lie scattered in memory, piece by piece, so that each is
// still in the cache when it is written, and the checksum behind them if the codecs add one.
func (a *Array) writePieces(ctx context.Context, st store.Writer, w *worker, p *meta.Pipeline, key string, src []byte, strides, valid []int) error {
	o, err := st.Create(ctx, key)
	if err != nil {
		return err
	}
	defer o.Abort()
	valid, strides = w.permute(p, valid, strides)
	rank := len(valid)
	piece := p.Piece(w.vector(rank))
	at, part, sizes := w.vector(rank), w.vector(rank), w.vector(rank)
	pitch := w.vector(rank)
	clear(at)
	buf, err := w.buffer(meta.PieceBytes + p.Size)
	if err != nil {
		return err
	}
	var sum hash.Hash32
	if c, ok := p.Summed(); ok {
		sum = c.New()
	}
	for { // pieces follow each other in the file
		t := time.Now()
		off, from := 0, 0
		inside := true
		for d := range rank {
			sizes[d] = min(piece[d], p.Stored[d]-at[d])
			part[d] = min(sizes[d], valid[d]-at[d])
			inside = inside && part[d] > 0
			off += at[d] * p.Strides[d]
			from += at[d] * strides[d]
		}
		n, _ := box.Volume(sizes, p.Size)
		if n > len(buf) {
			if buf, err = w.buffer(n); err != nil {
				return err
			}
		}
		b := buf[:n]
		if inside {
			a.gather(b, p, src[from:], strides, part, sizes, box.Strides(pitch, sizes, p.Size))
		} else {
			box.FillRun(b, a.meta.Fill)
		}
		if p.BigEndian {
			box.SwapBytes(b, p.DType.SwapSize())
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
			if at[d] += piece[d]; at[d] < p.Stored[d] {
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
		if _, err := o.WriteAt(b, int64(p.Bytes)); err != nil {
			return err
		}
		a.opts.meter.AddWritten(int64(len(b)))
	}
	return o.Commit()
}

// PutChunk stores one whole encoded chunk in a file of its own; for a sharded array use
// [ShardWriter.PutChunk]. It also stores chunks that hold only the fill value.
func (a *Array) PutChunk(ctx context.Context, index []int, c Stored) error {
	if a.meta.Pipeline.Shard != nil {
		return fmt.Errorf("%s: encoded chunks of a sharded array are stored with their shard", a.Location())
	}
	if _, err := a.ChunkRegion(index); err != nil {
		return err
	}
	st, err := a.writer()
	if err != nil {
		return err
	}
	key := a.ChunkKey(index)
	if err := c.check(a.meta.Pipeline); err != nil {
		return fmt.Errorf("%s: %w", st.Location(key), err)
	}
	defer a.writing.unlock(a.writing.lock([]byte(key)))
	defer a.objects.drop(key)
	start := time.Now()
	defer func() { a.opts.meter.Since(meter.Write, start) }()
	if c.Write == nil {
		err = st.Put(ctx, key, c.Bytes)
	} else {
		err = c.create(ctx, st, key)
	}
	if err != nil {
		return err
	}
	a.opts.meter.AddWritten(c.size())
	return nil
}

// WriteSlice writes a region from a slice of numbers, like [Array.Write]. T must be the array's element type;
// nothing is converted.
func WriteSlice[T dtype.Element](ctx context.Context, a *Array, r Region, src []T) error {
	if err := checkElement[T](a); err != nil {
		return err
	}
	return a.Write(ctx, r, dtype.Bytes(src))
}
