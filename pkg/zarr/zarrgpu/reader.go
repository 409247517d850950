package zarrgpu

import (
	"context"
	"fmt"

	"strata/pkg/gpu"
	"strata/pkg/meter"
	"strata/pkg/zarr"
)

// Options say how an array is read. Zero values are good ones.
type Options struct {
	Backend string               // as the flag --backend; "": auto
	Workers int                  // goroutines of one Fetch that decode, at least 1
	Meter   *meter.Meter         // may be nil
	Warn    func(message string) // called for what the user should know; may be nil
}

// Reader brings regions of an array to a device. Several goroutines may use it.
type Reader struct {
	array  *zarr.Array
	device *gpu.Device
	size   int // bytes of an element
}

// NewReader makes the reader of an array. A backend that cannot serve the array is a
// [*BackendError].
func NewReader(a *zarr.Array, d *gpu.Device, o Options) (*Reader, error) {
	switch o.Backend {
	case "", "auto", "host":
	default:
		return nil, &BackendError{Backend: o.Backend, Where: a.Location(), Reason: "chunks are read and decoded by the host only"}
	}
	return &Reader{
		array:  a.With(zarr.Workers(max(o.Workers, 1)), zarr.Meter(o.Meter)),
		device: d,
		size:   a.DType().Size(),
	}, nil
}

// BackendError is a backend that was asked for and cannot serve an array.
type BackendError struct {
	Backend string // as the flag --backend
	Where   string // the array
	Reason  string
}

func (e *BackendError) Error() string {
	return fmt.Sprintf("--backend %s cannot read %s: %s", e.Backend, e.Where, e.Reason)
}

// DecodeError is a chunk that the device could not decode. Perhaps the host can: see
// [Slot.FetchOnHost].
type DecodeError struct {
	Where string // the chunk
	Err   error
}

func (e *DecodeError) Error() string { return fmt.Sprintf("%s: decode on the GPU: %v", e.Where, e.Err) }
func (e *DecodeError) Unwrap() error { return e.Err }

// Bytes is the size of a region of that shape.
func (r *Reader) Bytes(shape []int) int64 {
	n := int64(r.size)
	for _, s := range shape {
		n *= int64(s)
	}
	return n
}

// Memory is what a slot for regions of that shape takes, in bytes, of page-locked
// memory and of the device. What Into fills is not in it.
func (r *Reader) Memory(shape []int) (pinned, device int64) {
	return pooled(r.Bytes(shape)), 0
}

// Scratch is about what one Fetch by one goroutine takes of the host's memory beside
// that, in bytes.
func (r *Reader) Scratch() int64 {
	codecs, plain := len(r.array.Codecs()), r.array.Order() == 'C'
	if codecs == 0 && plain {
		return 256 << 10
	}
	chunk := r.Bytes(r.array.Chunks())
	if r.array.InBlocks() {
		return chunk + chunk/64 + 2*min(chunk, 2<<20) // encoded, and two blocks
	}
	copies := int64(max(codecs, 1))
	shape := r.array.Shape()
	for d, n := range r.array.Chunks() {
		if !plain || shape[d]%n != 0 {
			copies++ // a chunk is decoded, then cut
			break
		}
	}
	return copies * (chunk + chunk/64 + 4096)
}

// Slot takes the memory that regions of at most that shape need. Where there is not as
// much it is an error of [gpu.ErrMemory].
func (r *Reader) Slot(shape []int) (*Slot, error) {
	s := &Slot{reader: r}
	var err error
	if s.host, err = r.device.Host(int(r.Bytes(shape))); err != nil {
		return nil, err
	}
	return s, nil
}

// Fetch fetches a region into a slot of its own.
func (r *Reader) Fetch(ctx context.Context, region zarr.Region) (*Slot, error) {
	s, err := r.Slot(region.Shape)
	if err != nil {
		return nil, err
	}
	if err := s.Fetch(ctx, region); err != nil {
		s.Release()
		return nil, err
	}
	return s, nil
}

// Read brings a region to dst, which holds it for what is queued on s behind it.
func (r *Reader) Read(ctx context.Context, s *gpu.Stream, region zarr.Region, dst gpu.Span) error {
	f, err := r.Fetch(ctx, region)
	if err != nil {
		return err
	}
	f.Into(s, dst)
	s.After(f.Release)
	return nil
}
