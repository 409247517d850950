package zarrgpu

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/zarrgpu/unpack"
)

// packedChunk is a stored chunk in the slot's page-locked memory.
type packedChunk struct {
	at, size int64
	start    []int // of its first element in the array
	pieces   codec.Pieces
}

// storedBytes returns the usual maximum length of a stored chunk.
func (r *Reader) storedBytes() int64 { return aligned(r.chunk + r.chunk/64 + 4096) }

// decoding returns the memory for decoding the given number of chunks, which is held until the stream has
// been waited for.
func (r *Reader) decoding(chunks int) (pinned, device int64) {
	pinned, device, err := unpack.Memory(r.library, r.device, r.array.Codecs(), int(r.chunk), chunks)
	if err != nil {
		// nvCOMP does not say: about what version 6 takes for Zstandard, the most of all formats.
		return 0, 4 * mem.Pooled(int64(chunks)*r.chunk)
	}
	return pinned, device
}

// fetchPacked reads the stored chunks that a region touches, and lets the device decode them.
func (s *Slot) fetchPacked(ctx context.Context, region zarr.Region) error {
	r := s.reader
	to := kernels.Strides(region.Shape, r.size)
	s.boxes, s.packed = s.boxes[:0], s.packed[:0]
	chain := r.array.Codecs()
	end := int64(0)
	err := r.array.Located(ctx, region, func(f *zarr.ChunkFile, chunks []zarr.Located) error {
		first := len(s.packed)
		var run struct{ at, off, n int64 } // of the file, not read yet
		read := func() error {
			if run.n == 0 {
				return nil
			}
			if err := s.grow(run.at, run.at+run.n); err != nil {
				return err
			}
			n := run.n
			run.n = 0
			return f.ReadAt(ctx, s.host.B[run.at:run.at+n], run.off)
		}
		for _, c := range chunks {
			box, skip, _ := r.box(region, to, c.Start)
			if box.Src = -1; c.Size >= 0 {
				if most := 2*r.storedBytes() + 64<<10; c.Size > most {
					return fmt.Errorf("%s: %d bytes are too many for a chunk of %d bytes", f.Location(), c.Size, r.chunk)
				}
				if run.n == 0 || run.off+run.n != c.Offset {
					if err := read(); err != nil {
						return err
					}
					run.at, run.off = aligned(end), c.Offset
				}
				p := s.another()
				p.at, p.size, p.start = run.at+run.n, c.Size, c.Start
				run.n += c.Size
				end = run.at + run.n
				box.Src = int64(len(s.packed)-1)*aligned(r.chunk) + skip
			}
			s.boxes = append(s.boxes, box)
		}
		if err := read(); err != nil {
			return err
		}
		begun := time.Now()
		defer func() { r.options.Meter.Since(meter.Decode, begun) }()
		for i := first; i < len(s.packed); i++ {
			p := &s.packed[i]
			if err := chain.Pieces(&p.pieces, s.host.B[p.at:p.at+p.size], int(r.chunk)); err != nil {
				return fmt.Errorf("%s: %w", f.Location(), err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.stored = end
	if err := s.reserve(needs{packed: end}); err != nil {
		return err
	}
	return s.unpack()
}

// another returns one more packed chunk, with the list of an earlier one.
func (s *Slot) another() *packedChunk {
	if n := len(s.packed); n < cap(s.packed) {
		s.packed = s.packed[:n+1]
	} else {
		s.packed = append(s.packed, packedChunk{})
	}
	return &s.packed[len(s.packed)-1]
}

// grow sees to it that there are n bytes of page-locked memory, of which the first keep are
// in use.
func (s *Slot) grow(keep, n int64) error {
	if s.host != nil && int64(len(s.host.B)) >= n {
		return nil
	}
	b, err := s.reader.device.Host(int(n))
	if err != nil {
		return err
	}
	if s.host != nil {
		copy(b.B[:keep], s.host.B)
		s.host.Release()
	}
	s.host = b
	return nil
}

// unpack decodes the chunks on the device, on the slot's own stream, concurrently with other work of the
// device.
func (s *Slot) unpack() error {
	r := s.reader
	if len(s.packed) == 0 {
		return nil
	}
	packed := s.onDevice.packed.Span
	list := make([]unpack.Chunk, len(s.packed))
	for i, p := range s.packed {
		list[i] = unpack.Chunk{Name: r.name(p.start), Pieces: p.pieces, Stored: packed.From(p.at, p.size), Dst: s.onDevice.chunks.From(int64(i)*aligned(r.chunk), r.chunk)}
	}
	begun := time.Now()
	defer func() { r.options.Meter.Since(meter.Decode, begun) }()
	s.stream.Upload(packed, s.host.B[:s.stored])
	err := unpack.Queue(r.library, s.stream, list)
	if err = cmp.Or(s.stream.Wait(), err); err != nil {
		return err
	}
	r.first.Do(func() {
		if r.wrong = s.compare(&s.packed[0], list[0]); r.wrong != nil && r.device.Lost() == nil {
			r.mistrusted.Store(true)
		}
	})
	return r.wrong
}

// comparing is held by the reader that compares: one has memory for it at a time.
var comparing sync.Mutex

// compare also decodes a chunk on the host and returns an error if the device's result differs. It skips
// chunks larger than any plan expects.
func (s *Slot) compare(p *packedChunk, c unpack.Chunk) error {
	r := s.reader
	if r.chunk > mem.Unplanned() {
		return nil
	}
	comparing.Lock()
	defer comparing.Unlock()
	want, err := mem.Alloc(int(r.chunk))
	if err != nil {
		return nil // the host has no memory for it now
	}
	defer mem.Free(want)
	if err := r.array.Codecs().Decode(codec.NewScratch(), want, s.host.B[p.at:p.at+p.size]); err != nil {
		return fmt.Errorf("%s: the device decodes it, the host does not: %w", c.Name, err)
	}
	s.stream.Uncounted(true)
	defer s.stream.Uncounted(false)
	got := s.host.B // the stored bytes have done their work
	for at := int64(0); at < r.chunk; at += int64(len(got)) {
		n := min(int64(len(got)), r.chunk-at)
		s.stream.Download(got[:n], c.Dst.From(at, n))
		if err := s.stream.Wait(); err != nil {
			return err
		}
		if !bytes.Equal(got[:n], want[at:at+n]) {
			return fmt.Errorf("%s: nvCOMP %s decodes it otherwise than the host", c.Name, r.library.Version())
		}
	}
	return nil
}

// name returns the name in errors of the chunk that begins at start.
func (r *Reader) name(start []int) string {
	index := make([]int, len(start))
	for d, n := range start {
		index[d] = n / r.shape[d]
	}
	return fmt.Sprintf("%s: chunk %v", r.array.Location(), index)
}
