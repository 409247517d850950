// Package transfer moves pieces of a mosaic into host or device memory for the operators of package compute, and
// finished tiles out of the device. [PlaneReader] and [Columns] read on the host. On a device, a [DeviceWorker]
// holds the streams and buffers, [DeviceColumns] uploads tiles, and [DeviceOutput] writes them.
package transfer

import (
	"errors"
	"sync"

	"strata/pkg/gpu"
	"strata/pkg/mem"
	"strata/pkg/zarr/zarrgpu"
)

// A DeviceTeam starts workers one at a time. Each allocates all its memory when it starts; if the device has none
// left, the workers already started do the work.
type DeviceTeam struct {
	mu    sync.Mutex
	ready int
}

// Join calls begin and reports whether the worker can work. It returns false without an error if the device is out
// of memory and other workers have started.
func (t *DeviceTeam) Join(begin func() error) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := begin()
	switch {
	case err == nil:
		t.ready++
		return true, nil
	case t.ready > 0 && errors.Is(err, gpu.ErrMemory):
		return false, nil
	}
	return false, err
}

// A DeviceWorker holds a worker's resources on the device.
type DeviceWorker struct {
	Stream *gpu.Stream
	Slots  []*zarrgpu.Slot
	host   []*mem.Buffer
	device []*gpu.Buffer
	more   []*gpu.Stream

	leaving *DeviceOutput // nil: it does not write output
}

// NewDeviceWorker returns a worker with a stream on d. End releases it.
func NewDeviceWorker(d *gpu.Device) (*DeviceWorker, error) {
	s, err := d.Stream()
	if err != nil {
		return nil, err
	}
	return &DeviceWorker{Stream: s}, nil
}

// Pinned allocates n bytes of page-locked host memory until End.
func (w *DeviceWorker) Pinned(n int) ([]byte, error) {
	b, err := w.Stream.Device().Host(n)
	if err != nil {
		return nil, err
	}
	w.host = append(w.host, b)
	return b.B, nil
}

// Memory allocates n bytes of device memory until End. For 0 bytes it returns an empty span.
func (w *DeviceWorker) Memory(n int64) (gpu.Span, error) {
	if n == 0 {
		return gpu.Span{}, nil
	}
	b, err := w.Stream.Device().Memory().Get(n)
	if err != nil {
		return gpu.Span{}, err
	}
	w.device = append(w.device, b)
	return b.Span, nil
}

// Memories allocates several spans of device memory until End: all or, after an error, none.
func (w *DeviceWorker) Memories(n ...int64) ([]gpu.Span, error) {
	var out []gpu.Span
	held := len(w.device)
	for _, n := range n {
		s, err := w.Memory(n)
		if err != nil {
			for _, b := range w.device[held:] {
				b.Release()
			}
			w.device = w.device[:held]
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// MostSlots is the maximum number of input regions that a worker has in flight: one that the host reads, one that
// the device processes, and one that waits.
const MostSlots = 3

// SlotsInTurn is the number of slots of a worker that waits for a region before it queues the next: one that the
// host reads and one that the device processes.
const SlotsInTurn = 2

// Begin allocates slots for uploads, up to the given number but at least one, as far as memory allows, and for each
// slot a place for downloads: page-locked memory of the given number of bytes. End releases them.
func (w *DeviceWorker) Begin(r *zarrgpu.Reader, shape []int, slots, bytes int) (places [][]byte, err error) {
	for range slots {
		p, err := w.Pinned(bytes)
		var s *zarrgpu.Slot
		if err == nil {
			s, err = r.Slot(shape)
		}
		if err != nil {
			if len(w.Slots) > 0 && errors.Is(err, gpu.ErrMemory) {
				break
			}
			return nil, err
		}
		places, w.Slots = append(places, p), append(w.Slots, s)
	}
	return places, nil
}

// NewStream opens another stream, which End closes.
func (w *DeviceWorker) NewStream() (*gpu.Stream, error) {
	s, err := w.Stream.Device().Stream()
	if err == nil {
		w.more = append(w.more, s)
	}
	return s, err
}

// End waits for the worker's streams and releases its resources.
func (w *DeviceWorker) End() error {
	err := errors.Join(w.Stream.Close(), w.leaving.end())
	for _, s := range w.more {
		err = errors.Join(err, s.Close())
	}
	for _, s := range w.Slots {
		s.Release()
	}
	for _, b := range w.host {
		b.Release()
	}
	for _, b := range w.device {
		b.Release()
	}
	return err
}
