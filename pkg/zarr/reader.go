package zarr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"strata/pkg/meter"
	"strata/pkg/zarr/box"
	"strata/pkg/zarr/meta"
)

// reader decodes boxes of one chunk file for one worker.
type reader struct {
	a   *Array
	w   *worker
	ctx context.Context
	t   *task // what is read; nil: not for a caller
}

// span is a range of stored bytes, in an open file or in memory.
type span struct {
	f      *file // nil: in memory
	mem    []byte
	off, n int64 // in the file
}

func inMemory(b []byte) span { return span{mem: b, n: int64(len(b))} }

// sub returns n bytes of the span from off.
func (s span) sub(off, n int64) span {
	if s.f == nil {
		return inMemory(s.mem[off : off+n])
	}
	return span{f: s.f, off: s.off + off, n: n}
}

// readAt fills p from offset off of the span.
func (rd reader) readAt(s span, p []byte, off int64) error {
	if s.f == nil {
		copy(p, s.mem[off:off+int64(len(p))])
		return nil
	}
	n, err := s.f.object.ReadAt(rd.ctx, p, s.off+off)
	rd.a.opts.meter.AddRead(int64(n))
	return rd.checkRead(s, off, len(p), n, err)
}

// checkRead returns the error of a read at off of a span that wanted want bytes and got n.
func (rd reader) checkRead(s span, off int64, want, n int, err error) error {
	if n == want {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: read %d bytes at %d, got %d: %w", rd.a.st.Location(s.f.key), want, s.off+off, n, io.ErrUnexpectedEOF)
	}
	return err
}

// bytes returns the whole span, read into scratch memory if it is not in memory.
func (rd reader) bytes(s span) ([]byte, error) {
	if s.f == nil {
		return s.mem, nil
	}
	b, err := rd.w.buffer(int(s.n))
	if err != nil {
		return nil, err
	}
	t := time.Now()
	err = rd.readAt(s, b, 0)
	rd.a.opts.meter.Since(meter.Read, t)
	return b, err
}

// decoder returns the reader that decodes the bytes fetched by rd: rd itself, or a reader of the next free worker. The
// caller must call done after decoding.
func (rd reader) decoder() (d reader, done func()) {
	if rd.w.turns == nil {
		return rd, func() {}
	}
	return rd.decoderOf(rd.w.turns)
}

func (rd reader) decoderOf(turns *turns) (d reader, done func()) {
	turns.arrived()
	w := <-turns.free
	w.front = rd.w.front
	m := w.mark()
	rd.w = w
	return rd, func() {
		w.release(m)
		turns.free <- w
	}
}

// missingFile handles a whole chunk file that is not stored: it records it and fills the box.
func (rd reader) missingFile(dst []byte, strides, shape []int) error {
	if m := rd.a.opts.missing; m != nil && rd.t != nil {
		if err := m.noteBox(rd.a, rd.t.start, rd.t.shape); err != nil {
			return err
		}
	}
	return rd.missing(dst, strides, shape)
}

// missingInner handles inner chunk at, in stored order, of a shard of p that is not stored: it records it and
// fills the box.
func (rd reader) missingInner(p *meta.Pipeline, at []int, dst []byte, strides, shape []int) error {
	if m := rd.a.opts.missing; m != nil && rd.t != nil {
		start, box := rd.t.start, rd.t.shape // of an inner chunk in an inner chunk
		if p == rd.a.meta.Pipeline {
			start, box = p.Unpermuted(at), make([]int, len(at))
			start = slices.Clone(start)
			for d, n := range p.Unpermuted(p.Shard.Inner.Shape) {
				start[d], box[d] = rd.t.file[d]*p.Shape[d]+start[d]*n, 1
			}
		}
		if err := m.noteBox(rd.a, start, box); err != nil {
			return err
		}
	}
	return rd.missing(dst, strides, shape)
}

// missing fills a box of a chunk that is not stored with the fill value.
func (rd reader) missing(dst []byte, strides, shape []int) error {
	if s := rd.w.planes; s != nil {
		return s.fill(rd.a.meta.Fill)
	}
	box.Fill(dst, strides, shape, rd.a.meta.Fill)
	return nil
}
