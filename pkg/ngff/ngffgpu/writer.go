// Package ngffgpu writes images whose level 0 is made on a device.
//
// A [Writer] takes tiles of level 0 in device memory. What it can do there it does there,
// so that a tile leaves the device once, as what is stored: its chunks, and its part of
// level 1, from which the host makes the levels below. Where chunks are encoded by the host, or
// a part of level 1 depends on neighbours, the tile's elements come down as they are.
package ngffgpu

import (
	"context"
	"errors"
	"fmt"
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
	layout
}

// NewWriter writes the image of out from the memory of d. Creating, closing and
// aborting the image stay with out.
func NewWriter(out *ngff.Writer, d *gpu.Device, o Options) *Writer {
	return &Writer{out: out, device: d, options: o, layout: layoutOf(out)}
}

// Memory is what one [Writer.WriteTile] of a tile of that shape holds at most while it
// works, of [gpu.Device.Pinned] and of [gpu.Device.Memory]. src is the caller's, and not
// counted. Where the device has not as much, the tile comes down as it is, which takes none
// of it.
func (w *Writer) Memory(shape []int) (pinned, device int64) {
	shape = w.clipped(shape)
	pinned = pooled(w.tileBytes(shape))
	if !w.raw() {
		return pinned, 0
	}
	below, taps := pooled(w.belowBytes(shape)), pooled(w.tapBytes(shape))
	chunks := int64(w.grid(shape).volume()) * w.chunkBytes
	if w.gathers(shape) {
		device += pooled(chunks)
	}
	device += below + taps
	return max(pinned, below+max(taps, pooled(chunks))), device
}

// pooled is what n bytes take of a pool.
func pooled(n int64) int64 {
	if n == 0 {
		return 0
	}
	return int64(mem.Size(int(n)))
}

// WriteTile is [ngff.Writer.WriteTile] of a tile that lies at the beginning of src, in C
// order and native byte order, once what is queued on the stream has run. src begins at a
// multiple of 16 bytes, as buffers do. It waits for the stream: after it, the stream is idle and
// src the caller's again.
func (w *Writer) WriteTile(ctx context.Context, s *gpu.Stream, start, shape []int, src gpu.Span) error {
	err := w.out.CheckTile(start, shape)
	if n := w.tileBytes(shape); err == nil && (src.Bytes() < n || src.Address()%16 != 0) {
		err = fmt.Errorf("%s: tile of shape %v in %d bytes of device memory at %#x, must be %d at a multiple of 16", w.out.Array(0).Location(), shape, src.Bytes(), src.Address(), n)
	}
	if err != nil {
		return w.idle(s, err)
	}
	if w.raw() {
		if written, err := w.writeStored(ctx, s, start, shape, src); written || err != nil {
			return err
		}
	}
	return w.writeElements(ctx, s, start, shape, src)
}

// writeElements brings down the elements of a tile, of which the host makes all else.
func (w *Writer) writeElements(ctx context.Context, s *gpu.Stream, start, shape []int, src gpu.Span) error {
	host, err := w.device.Host(int(w.tileBytes(shape)))
	if err != nil {
		return w.idle(s, err)
	}
	defer host.Release()
	s.Download(host.B, src)
	if err := w.wait(s); err != nil {
		return err
	}
	return w.out.WriteTile(ctx, start, shape, host.B)
}

// writeStored brings down a tile as it is stored, and its part of level 1. It reports
// false, and nothing has been written, where that cannot be.
func (w *Writer) writeStored(ctx context.Context, s *gpu.Stream, start, shape []int, src gpu.Span) (written bool, err error) {
	below, alone := w.out.Below(start, shape)
	if !alone || !w.halves(shape) {
		return false, nil
	}
	t := &tile{Writer: w, stream: s, shape: shape, src: src}
	defer t.release()
	if w.tapBytes(shape) > 0 {
		// Taps are waited for, and an error then must not be that of work before this.
		if err := w.wait(s); err != nil {
			return false, err
		}
	}
	if err := t.make(below.Shape); err != nil {
		if errors.Is(err, gpu.ErrMemory) {
			return false, s.Wait()
		}
		return false, w.idle(s, err)
	}
	if err := w.wait(s); err != nil {
		return false, err
	}
	return true, w.out.StoreTile(ctx, start, shape, t.chunks, t.below)
}

// wait waits for the stream.
func (w *Writer) wait(s *gpu.Stream) error {
	begun := time.Now()
	defer w.options.Meter.Since(meter.Compute, begun)
	return s.Wait()
}

// idle waits for the stream before an error is returned: the first that there was.
func (w *Writer) idle(s *gpu.Stream, err error) error {
	own := s.Wait()
	if lost := w.device.Lost(); lost != nil {
		return lost
	}
	if own != nil {
		return own
	}
	return err
}
