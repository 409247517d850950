package zarr

import (
	"context"
	"fmt"
	"time"

	"strata/pkg/meter"
	"strata/pkg/zarr/store"
)

// Stored is a chunk that the caller has encoded: the result of the array's codecs on all its elements, with
// the fill value beyond the array's edge.
type Stored struct {
	// Bytes holds the encoded chunk.
	Bytes []byte
	// Write, if set, replaces Bytes: it writes the chunk's Size bytes to o at off.
	Write func(o store.PendingObject, off int64) error
	Size  int64
}

// size returns the number of bytes of the chunk.
func (c *Stored) size() int64 {
	if c.Write == nil {
		return int64(len(c.Bytes))
	}
	return c.Size
}

// check refuses a chunk that cannot come from the pipeline, judged by its length and first bytes. Its
// elements are not checked.
func (c *Stored) check(p *pipeline) error {
	n := c.size()
	lo, hi := p.chain.EncodedSize(p.nbytes)
	if n < int64(lo) || n > p.maxSize || lo == hi && n != int64(lo) {
		return fmt.Errorf("%d bytes cannot be the stored form of %d", n, p.nbytes)
	}
	if c.Write == nil {
		return p.chain.Plausible(c.Bytes, p.nbytes)
	}
	return nil
}

// put writes the chunk to a file.
func (c *Stored) put(o store.PendingObject, off int64) error {
	if c.Write != nil {
		return c.Write(o, off)
	}
	_, err := o.WriteAt(c.Bytes, off)
	return err
}

// PutChunk stores one whole encoded chunk in a file of its own; for a sharded array use
// [ShardWriter.PutChunk]. It also stores chunks that hold only the fill value.
func (a *Array) PutChunk(ctx context.Context, index []int, c Stored) error {
	if a.meta.pipe.shard != nil {
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
	if err := c.check(a.meta.pipe); err != nil {
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

// create writes the chunk to a new file.
func (c *Stored) create(ctx context.Context, st store.Writer, key string) error {
	o, err := st.Create(ctx, key)
	if err != nil {
		return err
	}
	defer o.Abort()
	if err := c.Write(o, 0); err != nil {
		return err
	}
	return o.Commit()
}

// PutChunk stores a chunk that is encoded already; otherwise it works like [ShardWriter.WriteChunk].
func (s *ShardWriter) PutChunk(ctx context.Context, index []int, c Stored) error {
	i, _, err := s.place(ctx, index)
	if err != nil {
		return err
	}
	if err := c.check(s.a.meta.pipe.shard.inner); err != nil {
		return fmt.Errorf("%s: chunk %v: %w", s.a.st.Location(s.f.key), index, err)
	}
	return s.f.append(ctx, i, &c)
}
