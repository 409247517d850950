package zarrgpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/gpu/nvcomp"
	"strata/pkg/gpu/trial"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/zarr"
)

// Options configure how an array is read. The zero value is useful.
type Options struct {
	Backend string               // as the flag --backend; "": auto
	Files   *filelayer.Pool      // reads files straight into the device where it can; may be nil
	Workers int                  // goroutines of one Fetch that decode, at least 1
	Meter   *meter.Meter         // may be nil
	Counts  *Counts              // may be nil
	Trials  *trial.Book          // tries the best way beside the host's, unless Backend names one; nil: the best way is taken
	Warn    func(message string) // called with warnings for the user; may be nil
	Debug   func(message string) // called with the reason why an array takes no better way, each once; may be nil
}

// Reader reads regions of an array to a device. Several goroutines may use it.
type Reader struct {
	array   *zarr.Array
	device  *gpu.Device
	options Options
	way     Way
	why     string
	cuFile  atomic.Bool  // it is there, as far as way needs it
	trial   *trial.Trial // of way, and of what byHost returns

	size   int     // bytes of an element
	chunk  int64   // bytes of a decoded chunk
	shape  []int   // of a chunk
	grid   []int   // number of chunks along each dimension
	within []int64 // bytes between neighbours in a chunk
	fill   []byte

	library    *nvcomp.Library // where chunks are decoded on the device
	first      sync.Once       // chunk that the device decodes is compared with the host's
	wrong      error           // what came of that
	mistrusted atomic.Bool     // the same, for those that come later
	warned     sync.Once       // of a region that was read again
	noted      sync.Once       // why regions are left to the host
}

// NewReader returns a reader of an array. If the requested backend cannot serve the array, the error is a
// [*BackendError].
func NewReader(a *zarr.Array, d *gpu.Device, o Options) (*Reader, error) {
	r := &Reader{
		array:  a.With(zarr.Workers(max(o.Workers, 1)), zarr.Meter(o.Meter)),
		device: d, options: o,
		size: a.DType().Size(), shape: a.Chunks(), fill: a.Fill(),
	}
	r.chunk = r.Bytes(r.shape)
	for d, n := range a.Shape() {
		r.grid = append(r.grid, (n+r.shape[d]-1)/r.shape[d])
	}
	r.within = kernels.Strides(r.shape, r.size)
	var err error
	if r.way, r.why, err = r.choose(o.Backend); err != nil {
		return nil, err
	}
	if r.why != "" {
		r.because(r.way, errors.New(r.why))
	}
	if auto := o.Backend == "" || o.Backend == "auto"; auto && r.onDevice() {
		r.trial = o.Trials.Of("read", a.Location(), r.kind(), r.way.String(), r.byHost().String())
	}
	return r, nil
}

// kind returns what the speed of decoding depends on: many arrays of a run are alike, and one trial is enough for
// them. Where files lie matters to raw chunks.
func (r *Reader) kind() string {
	if r.way != NVComp {
		return ""
	}
	var names []string
	for _, c := range r.array.Codecs() {
		names = append(names, c.Name())
	}
	format, streams, largest := r.array.Codecs().Streams(int(r.chunk))
	return fmt.Sprint(names, format, streams, largest, r.chunk, r.array.DType())
}

// Untried makes regions come by the reader's way without trying the host's, whose decoders [Reader.Scratch]
// otherwise includes. Call it before the first slot is taken.
func (r *Reader) Untried() { r.trial = nil }

// onDevice reports whether regions come by a way that may be left for the host's.
func (r *Reader) onDevice() bool { return r.way == GDS || r.way == NVComp }

// byHost returns the way for regions that the host reads.
func (r *Reader) byHost() Way {
	if r.way == Bounce || r.way == GDS {
		return Bounce
	}
	return Host
}

// because records why the reader does not use the best way.
func (r *Reader) because(w Way, reason error) {
	text := fmt.Sprintf("%s is read by way of %s: %v", r.array.Location(), w, reason)
	if r.options.Counts.because(fmt.Sprintf("%s: %v", w, reason)) && r.options.Debug != nil {
		r.options.Debug(text)
	}
}

// BackendError reports that a requested backend cannot serve an array.
type BackendError struct {
	Backend string // as the flag --backend
	Where   string // the array
	Reason  string
	Err     error // the reason, as the error of a call that failed where it was one
}

func (e *BackendError) Error() string {
	return fmt.Sprintf("--backend %s cannot read %s: %s", e.Backend, e.Where, e.Reason)
}

// Unwrap returns the reason.
func (e *BackendError) Unwrap() error { return e.Err }

// Array returns the reader's array.
func (r *Reader) Array() *zarr.Array { return r.array }

// Way returns the way that regions take, and the reason against a better one.
func (r *Reader) Way() (w Way, why string) { return r.way, r.why }

// Bytes returns the size of a region of that shape.
func (r *Reader) Bytes(shape []int) int64 {
	n := int64(r.size)
	for _, s := range shape {
		n *= int64(s)
	}
	return n
}

// chunks returns the number of chunks of a region of the given shape that begins with one.
func (r *Reader) chunks(shape []int) int64 {
	n := int64(1)
	for d, s := range shape {
		n *= int64(min((s+r.shape[d]-1)/r.shape[d], r.grid[d]))
	}
	return n
}

// touched returns the number of chunks that a region touches.
func (r *Reader) touched(region zarr.Region) int64 {
	n := int64(1)
	for d, s := range region.Shape {
		if s == 0 {
			return 0
		}
		n *= int64((region.Start[d]+s-1)/r.shape[d] - region.Start[d]/r.shape[d] + 1)
	}
	return n
}

// Memory returns the page-locked and the device memory, in bytes, of a slot for regions of the given shape,
// not counting the destination of Into. A region that begins inside a chunk touches more chunks: it takes
// more memory if available, and is otherwise read by the host.
func (r *Reader) Memory(shape []int) (pinned, device int64) {
	s := r.needs(shape, r.chunks(shape))
	if r.way == NVComp {
		pinned, device = r.decoding(int(r.chunks(shape)))
	}
	for _, n := range s.pinned() {
		pinned += mem.Pooled(n)
	}
	for _, n := range s.onDevice() {
		device += mem.Pooled(n)
	}
	return pinned, device
}

// needs is the memory of a slot, in bytes.
type needs struct {
	host   int64 // the region, or its chunks as they are stored
	table  int64 // of boxes, on both sides
	packed int64 // on the device: chunks as they are stored
	chunks int64 // on the device: chunks, or the parts of them that are read
}

func (n needs) pinned() []int64   { return []int64{n.host, n.table} }
func (n needs) onDevice() []int64 { return []int64{n.table, n.packed, n.chunks} }

func (r *Reader) needs(shape []int, chunks int64) needs {
	n := needs{host: r.Bytes(shape)}
	switch r.way {
	case GDS:
		n.table = kernels.ScatterTable(int(chunks))
		n.chunks = chunks * straightBytes(r.cover(shape))
	case NVComp:
		n.packed = chunks * r.storedBytes()
		n.host = max(n.host, n.packed)
		n.table = kernels.ScatterTable(int(chunks))
		n.chunks = chunks * aligned(r.chunk)
	}
	return n
}

// cover returns the number of bytes between the first and the last element, in a chunk, of a region of the
// given shape.
func (r *Reader) cover(shape []int) int64 {
	n := int64(r.size)
	for d, s := range shape {
		if s == 0 {
			return 0
		}
		n += int64(min(s, r.shape[d])-1) * r.within[d]
	}
	return n
}

// Scratch returns the approximate additional host memory, in bytes, that one Fetch by one goroutine needs.
func (r *Reader) Scratch() int64 {
	const own = 256 << 10 // of what goes to the device as it is stored
	switch {
	case r.way != NVComp:
		return r.array.ScratchBytes(false)
	case r.trial != nil:
		return max(own, r.array.ScratchBytes(false))
	}
	return own
}

// Slot allocates the memory for regions of at most the given shape. If there is too little, the error is
// [gpu.ErrMemory].
func (r *Reader) Slot(shape []int) (*Slot, error) {
	s := &Slot{reader: r}
	if err := s.reserve(r.needs(shape, r.chunks(shape))); err != nil {
		s.Release()
		return nil, err
	}
	return s, nil
}

// Fetch reads a region into a new slot.
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

// Read reads a region to dst, where it is ready for work queued later on s.
func (r *Reader) Read(ctx context.Context, s *gpu.Stream, region zarr.Region, dst gpu.Span) error {
	f, err := r.Fetch(ctx, region)
	if err != nil {
		return err
	}
	f.Into(s, dst)
	s.After(f.Release)
	return nil
}

// box returns the part of a region that lies in the chunk that begins at start. first and end are the bytes
// of the chunk from its first to its last element; the box's Src counts from first.
func (r *Reader) box(region zarr.Region, to []int64, start []int) (b kernels.Part, first, end int64) {
	b = kernels.Part{Shape: make([]int, len(start)), From: r.within, To: to}
	end = int64(r.size)
	for d, s := range start {
		lo, hi := max(s, region.Start[d]), min(s+r.shape[d], region.Start[d]+region.Shape[d])
		b.Shape[d] = hi - lo
		b.Dst += int64(lo-region.Start[d]) * to[d]
		first += int64(lo-s) * r.within[d]
		end += int64(hi-lo-1) * r.within[d]
	}
	return b, first, first + end
}
