// Package ngffgpu writes images whose level 0 is made on a device.
//
// A [Writer] takes tiles of level 0 in device memory. What it can do there it does there,
// so that a tile leaves the device once, as what is stored: its chunks, and its part of
// level 1, from which the host makes the levels below, with strips of its edges where
// neighbours need these for theirs. Where chunks are encoded by the host, the tile's elements
// come down as they are.
package ngffgpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
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
	tile := w.clipped(shape)
	pinned = pooled(w.bytes(tile[:]))
	if !w.leaves() {
		return pinned, 0
	}
	n := int64(w.grid(tile).volume())
	parts, tables := w.partBytes()
	if w.gathers(tile) {
		device += pooled(n * aligned(w.chunkBytes))
		tables += kernels.ScatterTable(1 + rank)
	}
	device += pooled(n*parts) + pooled(n*tables)
	return max(pinned, pooled(n*parts)+pooled(n*tables)+pooled(n*w.chunkBytes)), device
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
	if err := w.check(start, shape, src); err != nil {
		return w.idle(s, err)
	}
	if w.leaves() {
		if written, err := w.writeStored(ctx, s, start, shape, src); written || err != nil {
			return err
		}
	}
	host, err := w.device.Host(int(w.bytes(shape)))
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

func (w *Writer) check(start, shape []int, src gpu.Span) error {
	if err := w.out.CheckTile(start, shape); err != nil {
		return err
	}
	if n := w.bytes(shape); src.Bytes() < n || src.Address()%alignment != 0 {
		return fmt.Errorf("%s: tile of shape %v in %d bytes of device memory at %#x, must be %d at a multiple of %d",
			w.out.Array(0).Location(), shape, src.Bytes(), src.Address(), n, alignment)
	}
	return nil
}

// writeStored brings down a tile as it is stored, and what it gives to level 1. It reports
// false, and nothing has been written, where there is not the memory for that.
func (w *Writer) writeStored(ctx context.Context, s *gpu.Stream, start, shape []int, src gpu.Span) (written bool, err error) {
	t := &tile{Writer: w, stream: s, shape: padded(shape, 1), src: src}
	defer t.release()
	chunks, err := t.leave(start)
	if errors.Is(err, gpu.ErrMemory) {
		return false, w.wait(s)
	}
	if err != nil {
		return false, w.idle(s, err)
	}
	if err := w.wait(s); err != nil {
		return false, err
	}
	return true, w.out.StoreTile(ctx, start, shape, t.stored(chunks))
}

// leave queues all that the device does for a tile. Errors here are of what was asked of
// the device's pools and of its driver, not of what is queued: that of memory leaves the tile as it is.
func (t *tile) leave(start []int) ([]zarr.Stored, error) {
	if err := t.plan(start); err != nil {
		return nil, err
	}
	if err := t.gather(); err != nil {
		return nil, err
	}
	if err := t.halve(); err != nil {
		return nil, err
	}
	return t.raw()
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
