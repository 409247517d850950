package zarrgpu

import (
	"context"
	"fmt"

	"strata/pkg/gpu"
	"strata/pkg/mem"
	"strata/pkg/zarr"
)

// Slot is the memory through which regions go to the device, one after the other. One
// goroutine at a time may use it.
type Slot struct {
	reader *Reader
	host   *mem.Buffer
	bytes  int // of the region that was fetched
}

// Fetch reads a region from storage. It blocks. What Into queued for the region before
// must have been waited for.
func (s *Slot) Fetch(ctx context.Context, region zarr.Region) error {
	n := int(s.reader.Bytes(region.Shape))
	if n > len(s.host.B) {
		return fmt.Errorf("%s: region %v has %d bytes, its slot %d", s.reader.array.Location(), region, n, len(s.host.B))
	}
	s.bytes = n
	return s.reader.array.Read(ctx, region, s.host.B[:n])
}

// FetchOnHost is Fetch of a region that the host decodes, whatever the reader's way.
func (s *Slot) FetchOnHost(ctx context.Context, region zarr.Region) error {
	return s.Fetch(ctx, region)
}

// Reader is the reader that the slot is of.
func (s *Slot) Reader() *Reader { return s.reader }

// Bytes is the size of the region that was fetched.
func (s *Slot) Bytes() int64 { return int64(s.bytes) }

// Into queues what brings the fetched region to dst, in C order and native byte order.
// Faults come out of the stream's Wait.
func (s *Slot) Into(stream *gpu.Stream, dst gpu.Span) {
	stream.Upload(dst, s.host.B[:s.bytes])
}

// Release gives the slot's memory back. What Into queued must have been waited for:
// stream.After(slot.Release) sees to that.
func (s *Slot) Release() { s.host.Release() }

// pooled is what n bytes take of a pool.
func pooled(n int64) int64 { return int64(mem.Size(int(n))) }
