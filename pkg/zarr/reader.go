package zarr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strata/pkg/meter"
	"time"
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
