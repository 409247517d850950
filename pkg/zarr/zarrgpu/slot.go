package zarrgpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/gpu/trial"
	"strata/pkg/mem"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
)

// Slot holds the memory through which regions go to the device, one after the other. Only one goroutine at a
// time may use it.
type Slot struct {
	reader *Reader

	host     *mem.Buffer // the region, or its chunks as they are stored
	table    *mem.Buffer // of boxes
	onDevice struct {
		table  *gpu.Buffer
		packed *gpu.Buffer // chunks as they are stored
		chunks *gpu.Buffer // chunks, or parts of them, for the boxes to be taken from
	}

	way    Way            // by which the region came
	bytes  int64          // of it
	boxes  []kernels.Part // of which it is put together
	packed []packedChunk  // where chunks are decoded on the device
	stored int64          // bytes of these
	stream *gpu.Stream    // on which they are, and a trial watches what Fetch does

	tried *tried // of the region that was fetched; nil: nobody wants to know how long it took
	watch [2]trial.Watch
}

// tried is a region of which a trial wants to know how long it took.
type tried struct {
	piece   *trial.Piece
	seconds float64 // that Fetch took
	queued  bool    // the second watch is on what Into queued
}

// reserve takes memory, or more of it.
func (s *Slot) reserve(n needs) error {
	d := s.reader.device
	if (s.reader.way == NVComp || s.reader.trial != nil) && s.stream == nil {
		stream, err := d.Stream()
		if err != nil {
			return err
		}
		s.stream = stream
	}
	for _, b := range []struct {
		buffer **mem.Buffer
		bytes  int64
	}{{&s.host, n.host}, {&s.table, n.table}} {
		if b.bytes == 0 || *b.buffer != nil && int64(len((*b.buffer).B)) >= b.bytes {
			continue
		}
		got, err := d.Host(int(b.bytes))
		if err != nil {
			return err
		}
		(*b.buffer).Release()
		*b.buffer = got
	}
	for _, b := range []struct {
		buffer **gpu.Buffer
		bytes  int64
	}{{&s.onDevice.table, n.table}, {&s.onDevice.packed, n.packed}, {&s.onDevice.chunks, n.chunks}} {
		if b.bytes == 0 || *b.buffer != nil && (*b.buffer).Bytes() >= b.bytes {
			continue
		}
		got, err := d.Memory().Get(b.bytes)
		if err != nil {
			return err
		}
		(*b.buffer).Release()
		*b.buffer = got
	}
	return nil
}

// Release frees the slot's memory. The work queued by Into must have been waited for, as by
// stream.After(slot.Release).
func (s *Slot) Release() {
	s.took()
	for i := range s.watch {
		_ = s.watch[i].Close() // a lost device has them no more
	}
	if s.stream != nil {
		_ = s.stream.Close() // all that was queued on it has been waited for
		s.stream = nil
	}
	s.host.Release()
	s.table.Release()
	s.onDevice.table.Release()
	s.onDevice.packed.Release()
	s.onDevice.chunks.Release()
}

// Reader returns the slot's reader.
func (s *Slot) Reader() *Reader { return s.reader }

// Bytes returns the size of the region that was fetched.
func (s *Slot) Bytes() int64 { return s.bytes }

// Fetch reads a region from storage and blocks. The work that Into queued for the previous region must have
// been waited for. If another way than the host's fails midway, the host reads the region again.
func (s *Slot) Fetch(ctx context.Context, region zarr.Region) error {
	s.took()
	r := s.reader
	if !r.onDevice() || r.mistrusted.Load() || r.waits() {
		return s.fetch(ctx, region, r.byHost())
	}
	piece := r.trial.Next()
	if !piece.Timed() || s.watch[0].Begin(s.stream) != nil {
		defer piece.Drop()
		return s.by(ctx, region, piece.Way)
	}
	err := s.by(ctx, region, piece.Way)
	s.watch[0].End(s.stream)
	waited := s.stream.Wait()
	piece.Left()
	if n, unknown := s.watch[0].Seconds(); cmp.Or(err, waited, unknown) == nil {
		s.tried = &tried{piece: piece, seconds: n}
	} else {
		piece.Drop()
	}
	return err
}

// took tells the trial how long the previous region took: to be fetched, and then to reach the destination of
// Into.
func (s *Slot) took() {
	if s.tried == nil {
		return
	}
	if s.tried.queued {
		if n, err := s.watch[1].Seconds(); err == nil {
			s.tried.piece.Took(s.bytes, s.tried.seconds+n)
		}
	}
	s.tried.piece.Drop()
	s.tried = nil
}

// by reads a region by a way of the trial.
func (s *Slot) by(ctx context.Context, region zarr.Region, way int) error {
	r := s.reader
	if way > 0 {
		return s.fetch(ctx, region, r.byHost())
	}
	err := s.reserve(r.needs(region.Shape, r.touched(region)))
	switch {
	case err != nil:
	case r.way == GDS:
		err = s.fetchStraight(ctx, region)
	default:
		err = s.fetchPacked(ctx, region)
	}
	if err == nil {
		s.way, s.bytes = r.way, r.Bytes(region.Shape)
		r.options.Counts.add(s.way, s.bytes)
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if lost := r.device.Lost(); lost != nil {
		return lost
	}
	if errors.Is(err, gpu.ErrMemory) || errors.Is(err, codec.ErrWhole) { // nothing is wrong
		// The first reason speaks for all: it names a chunk, or bytes, and others would name others.
		r.noted.Do(func() { r.because(Host, err) })
		return s.fetch(ctx, region, Host)
	}
	return s.again(ctx, region, err)
}

// again makes the host read what failed another way. If the host fails as well, its error describes the
// fault.
func (s *Slot) again(ctx context.Context, region zarr.Region, because error) error {
	if err := s.fetch(ctx, region, Host); err != nil {
		return err
	}
	r := s.reader
	if c := r.options.Counts; c != nil {
		c.fallbacks.Add(1)
	}
	r.warned.Do(func() {
		if r.options.Warn != nil {
			r.options.Warn(fmt.Sprintf("%s: a region was read again by the host: %v", r.array.Location(), because))
		}
	})
	return nil
}

// fetch reads a region by the host, and counts it as one that came by that way.
func (s *Slot) fetch(ctx context.Context, region zarr.Region, way Way) error {
	r := s.reader
	n := r.Bytes(region.Shape)
	if err := s.reserve(needs{host: n}); err != nil {
		return fmt.Errorf("%s: region %v: %w", r.array.Location(), region, err)
	}
	s.way, s.bytes, s.boxes = way, n, nil
	if n == 0 {
		return nil
	}
	if err := r.array.Read(ctx, region, s.host.B[:n]); err != nil {
		return err
	}
	r.options.Counts.add(s.way, n)
	return nil
}

// Into queues the work that brings the fetched region to dst, in C order and native byte order. The stream's
// Wait returns its errors.
func (s *Slot) Into(stream *gpu.Stream, dst gpu.Span) {
	if dst.Bytes() < s.bytes {
		fail(stream, fmt.Errorf("%s: a region of %d bytes for %d of the device", s.reader.array.Location(), s.bytes, dst.Bytes()))
		return
	}
	if s.bytes == 0 {
		return
	}
	if s.tried != nil && s.watch[1].Begin(stream) == nil {
		s.tried.queued = true
		defer s.watch[1].End(stream)
	}
	switch s.way {
	case Host, Bounce:
		stream.Upload(dst, s.host.B[:s.bytes])
	default:
		s.scatter(stream, dst.From(0, s.bytes))
	}
}

// scatter queues the putting together of a region.
func (s *Slot) scatter(stream *gpu.Stream, dst gpu.Span) {
	if len(s.boxes) == 1 && s.boxes[0].Src >= 0 && s.reader.Bytes(s.boxes[0].Shape) == s.bytes && s.reader.cover(s.boxes[0].Shape) == s.bytes {
		stream.Copy(dst, s.onDevice.chunks.From(s.boxes[0].Src, s.bytes))
		return
	}
	var chunks gpu.Span
	if s.onDevice.chunks != nil {
		chunks = s.onDevice.chunks.Span
	}
	if err := kernels.Scatter(stream, dst, chunks, s.boxes, s.reader.fill, s.table.B, s.onDevice.table.Span); err != nil {
		fail(stream, err)
	}
}

// fail makes an error the stream's.
func fail(s *gpu.Stream, err error) { s.Queue(func(uintptr) error { return err }) }
