// Package transfer moves pieces of a mosaic into the memory of the host or of a device, for the operators of package machine, and
// finished tiles out of the device. A [PlaneReader] and [Columns] read on the host; a [DeviceWorker] holds the streams and buffers
// with which [DeviceColumns] come to the device, and a [DeviceOutput] leaves it.
package transfer

import (
	"errors"
	"fmt"
	"sync"

	"strata/pkg/gpu"
	"strata/pkg/mem"
	"strata/pkg/zarr/zarrgpu"
)

// DeviceTeam lets workers begin one after the other. What a worker needs it takes at
// its beginning; one that the device has no memory for leaves the work to those that
// are there.
type DeviceTeam struct {
	mu    sync.Mutex
	ready int
}

// Join calls begin, and says whether the worker works.
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

// DeviceWorker is what a worker holds of the device.
type DeviceWorker struct {
	Stream *gpu.Stream
	Slots  []*zarrgpu.Slot
	host   []*mem.Buffer
	device []*gpu.Buffer
	aside  []*gpu.Stream

	leaving *DeviceOutput // nil: it takes no part in the output
}

func NewDeviceWorker(d *gpu.Device) (*DeviceWorker, error) {
	s, err := d.Stream()
	if err != nil {
		return nil, err
	}
	return &DeviceWorker{Stream: s}, nil
}

// Pinned is page-locked memory for as long as the worker works.
func (w *DeviceWorker) Pinned(n int) ([]byte, error) {
	b, err := w.Stream.Device().Host(n)
	if err != nil {
		return nil, err
	}
	w.host = append(w.host, b)
	return b.B, nil
}

// Memory is device memory for as long as the worker works; nothing for no bytes.
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

// Memories is device memory for as long as the worker works: all or none of it.
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

// MostSlots is how many regions of the input a worker has under way: one that the host reads, one that the device
// works on, and one that waits for it.
const MostSlots = 3

// SlotsInTurn is how many slots those take who wait for a region before they queue the next: one that the host reads, one that
// the device works on.
const SlotsInTurn = 2

// Begin takes memory for what goes to the device and what comes back: as many slots as a
// worker can use, or as there is memory for, at least one, and for each a place of so
// many bytes of page-locked memory. The worker's end gives it back.
func (w *DeviceWorker) Begin(r *zarrgpu.Reader, shape []int, bytes int) (places [][]byte, err error) {
	for range MostSlots {
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

// Aside opens another stream for as long as the worker works.
func (w *DeviceWorker) Aside() (*gpu.Stream, error) {
	s, err := w.Stream.Device().Stream()
	if err == nil {
		w.aside = append(w.aside, s)
	}
	return s, err
}

// End gives all back, once nothing runs any more.
func (w *DeviceWorker) End() error {
	err := errors.Join(w.Stream.Close(), w.leaving.end())
	for _, s := range w.aside {
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

// workersOnDevice is how many of so many workers the device's memory holds, at least
// one. each is what one takes of it.
func workersOnDevice(d *gpu.Device, workers int, each int64, where, what string) (int, error) {
	limit := d.Memory().Limit()
	n := min(int64(workers), limit/each)
	if n < 1 {
		return 0, fmt.Errorf("%s: %s takes %d MiB of device memory, there are %d MiB: %w", where, what, each>>20+1, limit>>20, gpu.ErrMemory)
	}
	return int(n), nil
}
