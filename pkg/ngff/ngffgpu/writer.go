// Package ngffgpu writes images whose level 0 is made on a device.
package ngffgpu

import (
	"context"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
)

// Options say how a [Writer] works. Zero values are good.
type Options struct {
	Meter *meter.Meter // may be nil
}

// Writer writes level 0 of an image from the memory of a device, and what follows from
// it. Its methods are safe for concurrent use, each goroutine with a stream of its own.
type Writer struct {
	out     *ngff.Writer
	device  *gpu.Device
	options Options
	size    int64 // bytes of an element
}

// NewWriter writes the image of out from the memory of d. Creating, closing and
// aborting the image stay with out.
func NewWriter(out *ngff.Writer, d *gpu.Device, o Options) *Writer {
	return &Writer{out: out, device: d, options: o, size: int64(out.Array(0).DType().Size())}
}

// Memory is what one [Writer.WriteTile] of a tile of that shape holds at most while it
// works, of [gpu.Device.Pinned] and of [gpu.Device.Memory]. src is the caller's, and not counted.
func (w *Writer) Memory(shape []int) (pinned, device int64) {
	return int64(mem.Size(int(w.bytes(shape)))), 0
}

// bytes is how many bytes the elements of a tile take.
func (w *Writer) bytes(shape []int) int64 {
	n := w.size
	for _, s := range shape {
		n *= int64(s)
	}
	return n
}

// WriteTile is [ngff.Writer.WriteTile] of a tile that lies at the beginning of src, in C
// order and native byte order, once what is queued on the stream has run. It waits for the
// stream: after it, the stream is idle and src the caller's again.
func (w *Writer) WriteTile(ctx context.Context, s *gpu.Stream, start, shape []int, src gpu.Span) error {
	n := w.bytes(shape)
	host, err := w.device.Host(int(n))
	if err != nil {
		return w.idle(s, err)
	}
	defer host.Release()
	begun := time.Now()
	s.Download(host.B, src)
	err = s.Wait()
	w.options.Meter.Since(meter.Compute, begun)
	if err != nil {
		return err
	}
	return w.out.WriteTile(ctx, start, shape, host.B)
}

// idle waits for the stream, whose own error comes first, before an error is returned.
func (w *Writer) idle(s *gpu.Stream, err error) error {
	if e := s.Wait(); e != nil {
		return e
	}
	return err
}
