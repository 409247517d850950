package oct

import (
	"context"
	"fmt"

	"strata/pkg/gpu"
	"strata/pkg/mem"
)

// A stage that is given a device keeps a tile there from the upload of its voxels to
// the download of what is stored. Reading, decoding, encoding and writing are the
// host's; of these, one worker does while the device computes for another.

// devicePiece is how much is uploaded at a time: enough that the call does not count.
const devicePiece = 8 << 20

// deviceWorker is what a worker holds of the device.
type deviceWorker struct {
	ctx    context.Context
	stream *gpu.Stream
	host   []*mem.Buffer
	device []*gpu.Buffer
}

func newDeviceWorker(ctx context.Context, d *gpu.Device) (*deviceWorker, error) {
	s, err := d.Stream()
	if err != nil {
		return nil, err
	}
	return &deviceWorker{ctx: ctx, stream: s}, nil
}

// pinned is page-locked memory for as long as the worker works.
func (w *deviceWorker) pinned(n int) ([]byte, error) {
	b, err := w.stream.Device().Pinned().Get(w.ctx, n)
	if err != nil {
		return nil, err
	}
	w.host = append(w.host, b)
	return b.B, nil
}

// memory is device memory for as long as the worker works.
func (w *deviceWorker) memory(n int64) (gpu.Span, error) {
	b, err := w.stream.Device().Memory().Get(w.ctx, n)
	if err != nil {
		return gpu.Span{}, err
	}
	w.device = append(w.device, b)
	return b.Span, nil
}

// end gives all back, once nothing runs any more.
func (w *deviceWorker) end() error {
	err := w.stream.Close()
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
