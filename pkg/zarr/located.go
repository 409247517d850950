package zarr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"strata/pkg/meter"
	"strata/pkg/zarr/meta"
	"strata/pkg/zarr/store"
)

// Located gives the place of a chunk's stored form, for callers that read and decode in their own way.
type Located struct {
	Start []int // index of the chunk's first element in the array
	// The stored form occupies Size bytes at Offset of the chunk file. Size -1 marks a chunk that is not
	// stored; its elements have the fill value.
	Offset, Size int64
}

// ChunkFile reads from an open file of chunks.
type ChunkFile struct {
	array  *Array
	key    string
	object store.Object
}

// Location returns the place of the file as its store names it.
func (f *ChunkFile) Location() string { return f.array.st.Location(f.key) }

// Path returns the path of the local file that holds the chunks, and the position in it that chunk offsets
// count from.
func (f *ChunkFile) Path() (path string, off int64) {
	if named, ok := f.object.(store.NamedFile); ok {
		return named.Path()
	}
	return f.Location(), 0
}

// ReadAt fills p from offset off of the file. A short read is an error.
func (f *ChunkFile) ReadAt(ctx context.Context, p []byte, off int64) error {
	t := time.Now()
	n, err := f.object.ReadAt(ctx, p, off)
	f.array.opts.meter.Since(meter.Read, t)
	f.array.opts.meter.AddRead(int64(n))
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: read %d bytes at %d, got %d: %w", f.Location(), len(p), off, n, io.ErrUnexpectedEOF)
	}
	return err
}

// Located calls take once for each file with chunks that a region touches, and with a nil file for chunks
// whose file does not exist. Chunks are those of [Array.Chunks], in C order. Their stored form is the result
// of [Array.Codecs] on all elements of a chunk, including those beyond the array's edge; see
// [Array.Elementary]. The file stays open until take returns.
func (a *Array) Located(ctx context.Context, r Region, take func(f *ChunkFile, chunks []Located) error) error {
	if err := a.Elementary(); err != nil {
		return err
	}
	if _, err := a.regionBytes(r); err != nil {
		return err
	}
	w := takeWorker()
	defer w.giveBack()
	rank := len(r.Shape)
	c := w.newCursor(r, a.meta.Chunks, nil)
	t := w.newTask(rank)
	var chunks []Located
	for c.next(t) {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.key = a.appendKey(w.key[:0], t.file)
		m := w.mark()
		var err error
		if a.meta.Pipeline.Shard == nil {
			chunks, err = a.locateChunk(ctx, w, t, chunks[:0], take)
		} else {
			chunks, err = a.locateInShard(ctx, w, t, chunks[:0], take)
		}
		if err != nil {
			return err
		}
		w.release(m)
	}
	return nil
}

// locateChunk passes on a chunk that has a file of its own, at the task's index.
func (a *Array) locateChunk(ctx context.Context, w *worker, t *task, chunks []Located, take func(*ChunkFile, []Located) error) ([]Located, error) {
	start := make([]int, len(t.file))
	for d, i := range t.file {
		start[d] = i * a.meta.Chunks[d]
	}
	key := string(w.key)
	o, err := a.st.Open(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		if m := a.opts.missing; m != nil {
			if err := m.note(a, t.file); err != nil {
				return chunks, err
			}
		}
		chunks = append(chunks, Located{Start: start, Size: -1})
		return chunks, take(nil, chunks)
	}
	if err != nil {
		return chunks, err
	}
	defer o.Close()
	chunks = append(chunks, Located{Start: start, Size: o.Size()})
	return chunks, take(&ChunkFile{a, key, o}, chunks)
}

// locateInShard passes on the chunks of a shard that the task's box touches.
func (a *Array) locateInShard(ctx context.Context, w *worker, t *task, chunks []Located, take func(*ChunkFile, []Located) error) ([]Located, error) {
	sh := a.meta.Pipeline.Shard
	origin := w.vector(len(t.file))
	for d, i := range t.file {
		origin[d] = i * a.meta.Chunks[d]
	}
	file, err := a.objects.open(ctx, a.st, w.key, -1)
	rd := reader{a: a, w: w, ctx: ctx}
	var x *shardIndex
	var s span
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return chunks, err
	default:
		defer a.objects.release(file)
		s = span{f: file, n: file.size}
		if x, err = rd.index(sh, s); err != nil {
			return chunks, inFileUnlessNamed(a.st, file.key, err)
		}
	}
	inner := w.newCursor(Region{Start: t.start, Shape: t.shape}, sh.Inner.Shape, nil)
	in := w.newTask(len(t.file))
	for inner.next(in) {
		l := Located{Start: make([]int, len(in.file)), Size: -1}
		for d, i := range in.file {
			l.Start[d] = i * sh.Inner.Shape[d]
		}
		if x != nil {
			off, n, ok, err := rd.lookup(sh, x, s, sh.Ordinal(origin, l.Start))
			if err != nil {
				return chunks, meta.InFile(a.st, file.key, err)
			}
			if ok {
				l.Offset, l.Size = off, n
			}
		}
		if m := a.opts.missing; m != nil && l.Size < 0 {
			if err := m.note(a, in.file); err != nil {
				return chunks, err
			}
		}
		chunks = append(chunks, l)
	}
	if x == nil {
		return chunks, take(nil, chunks)
	}
	return chunks, take(&ChunkFile{a, file.key, file.object}, chunks)
}

// Elementary returns nil if callers can decode the array's chunks by undoing the codecs alone: each chunk is
// encoded by itself, in a file of its own or in a shard of only such chunks and an index, and decodes to C
// order and native byte order. Otherwise the error gives the reason.
func (a *Array) Elementary() error {
	outer, inner := a.meta.Pipeline, a.innermost()
	switch {
	case outer.Perm != nil || inner.Perm != nil:
		return errors.New("chunks are not stored in C order")
	case inner.BigEndian:
		return errors.New("elements are stored most significant byte first")
	case outer != inner && !outer.Addressable():
		return errors.New("shards are encoded as a whole")
	case outer != inner && outer.Shard.Inner != inner:
		return errors.New("shards lie in shards")
	}
	return nil
}
