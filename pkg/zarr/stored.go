package zarr

import (
	"context"
	"fmt"

	"strata/pkg/zarr/meta"
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
func (c *Stored) check(p *meta.Pipeline) error {
	n := c.size()
	lo, hi := p.Chain.EncodedSize(p.Bytes)
	if n < int64(lo) || n > p.MaxSize || lo == hi && n != int64(lo) {
		return fmt.Errorf("%d bytes cannot be the stored form of %d", n, p.Bytes)
	}
	if c.Write == nil {
		return p.Chain.Plausible(c.Bytes, p.Bytes)
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
