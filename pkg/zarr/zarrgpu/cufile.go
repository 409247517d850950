package zarrgpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/meter"
	"strata/pkg/zarr"
)

// aligned returns the room for n bytes in the slot's memory on the device: boxes are copied by 16 bytes
// wherever their rows allow it.
func aligned(n int64) int64 { return (n + 15) / 16 * 16 }

// page is the unit that cuFile moves straight, if file and memory are aligned alike. It copies other data.
const page = 4096

// straightBytes returns the room for n bytes that cuFile reads, wherever they are in a file: see
// [Slot.beside].
func straightBytes(n int64) int64 {
	if n < page {
		return aligned(n)
	}
	return aligned(n) + page
}

// beside returns where n bytes from off of a file on go to in the slot's memory, from byte at on: to where
// they lie in a page as in the file.
func (s *Slot) beside(at, n, off int64) int64 {
	here := int64(s.onDevice.chunks.Address()) + at
	if n < page && here%page != off%page {
		return aligned(at)
	}
	return at + ((off-here)%page+page)%page
}

// mostFiles is the maximum number of files that one Fetch has open at a time.
const mostFiles = 16

// fetchStraight reads the parts of chunks that a region needs straight into the device.
func (s *Slot) fetchStraight(ctx context.Context, region zarr.Region) error {
	r := s.reader
	begun := time.Now()
	to := kernels.Strides(region.Shape, r.size)
	s.boxes = s.boxes[:0]
	reads := &straightReads{pool: r.options.Files, meter: r.options.Meter}
	at := int64(0)
	err := r.array.Located(ctx, region, func(f *zarr.ChunkFile, chunks []zarr.Located) error {
		base := int64(0)
		if f != nil {
			var path string
			path, base = f.Path()
			if err := reads.open(path); err != nil {
				return err
			}
		}
		for _, c := range chunks {
			box, first, end := r.box(region, to, c.Start)
			if c.Size < 0 {
				box.Src = -1
			} else if c.Size != r.chunk {
				return fmt.Errorf("%s: a chunk of %d bytes, want %d", f.Location(), c.Size, r.chunk)
			} else {
				off := base + c.Offset + first
				box.Src = s.beside(at, end-first, off)
				reads.add(ctx, s.onDevice.chunks, box.Src, off, end-first)
				at = box.Src + end - first
			}
			s.boxes = append(s.boxes, box)
		}
		reads.begin(ctx, s.onDevice.chunks)
		return nil
	})
	err = errors.Join(err, reads.close())
	r.options.Meter.Since(meter.Read, begun)
	return err
}

// straightReads are the reads of a Fetch that are under way.
type straightReads struct {
	pool    *filelayer.Pool
	meter   *meter.Meter
	files   []*filelayer.File
	path    string // of the last of them
	pending []*filelayer.Pending
	bytes   int64
	run     struct{ at, off, n int64 } // that has not begun
}

// open makes a file the one that is read.
func (t *straightReads) open(path string) error {
	if len(t.files) > 0 && t.path == path {
		return nil
	}
	if len(t.files) == mostFiles {
		if err := t.close(); err != nil {
			return err
		}
	}
	f, err := t.pool.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	t.files, t.path = append(t.files, f), path
	return nil
}

// add adds a read of n bytes from offset off to byte at of dst. A read that continues the previous one, in
// the file and on the device, is merged with it.
func (t *straightReads) add(ctx context.Context, dst *gpu.Buffer, at, off, n int64) {
	if t.run.n > 0 && t.run.at+t.run.n == at && t.run.off+t.run.n == off {
		t.run.n += n
		return
	}
	t.begin(ctx, dst)
	t.run.at, t.run.off, t.run.n = at, off, n
}

// begin begins the added reads.
func (t *straightReads) begin(ctx context.Context, dst *gpu.Buffer) {
	if n := t.run.n; n > 0 {
		t.pending = append(t.pending, t.files[len(t.files)-1].GoRead(ctx, dst.From(t.run.at, n), t.run.off))
		t.bytes += n
		t.run.n = 0
	}
}

// close waits for all and closes the files.
func (t *straightReads) close() error {
	var errs []error
	for _, p := range t.pending {
		errs = append(errs, p.Wait())
	}
	for _, f := range t.files {
		errs = append(errs, f.Close())
	}
	err := errors.Join(errs...)
	if err == nil {
		t.meter.AddRead(t.bytes)
	}
	t.pending, t.files, t.bytes = nil, nil, 0
	return err
}
