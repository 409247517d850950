package transfer

import (
	"context"

	"strata/pkg/gpu"
	"strata/pkg/ngff/ngffgpu"
)

// A DeviceOutput writes a worker's tiles from the device. A tile is written, with a stream of its own, while the
// device computes the next one.
type DeviceOutput struct {
	writer *ngffgpu.Writer
	aside  *gpu.Stream
	tiles  []*ngffgpu.Tile // by place
}

// Output prepares the worker for writing tiles, one at each place, until End.
func (w *DeviceWorker) Output(writer *ngffgpu.Writer, places int) (*DeviceOutput, error) {
	s, err := w.Stream.Device().Stream()
	if err != nil {
		return nil, err
	}
	w.leaving = &DeviceOutput{writer: writer, aside: s, tiles: make([]*ngffgpu.Tile, places)}
	return w.leaving, nil
}

// Begin queues the device's part of writing the tile at the beginning of src.
func (o *DeviceOutput) Begin(s *gpu.Stream, place int, start, shape []int, src gpu.Span) (err error) {
	o.tiles[place].Release() // of a job that is done again
	o.tiles[place], err = o.writer.Begin(s, start, shape, src)
	return err
}

// Write writes the tile at a place. The caller must have waited for the stream passed to Begin.
func (o *DeviceOutput) Write(ctx context.Context, place int) error {
	return o.tiles[place].Write(ctx, o.aside)
}

// end releases the resources. Nothing may be running on the worker's stream.
func (o *DeviceOutput) end() error {
	if o == nil {
		return nil
	}
	err := o.aside.Close()
	for _, t := range o.tiles { // of a run that failed
		t.Release()
	}
	return err
}

// Leaving returns the memory that a worker needs to write tiles of a shape: page-locked memory per place, and
// device memory in total. The latter is 0 if it does not fit besides the worker's own memory and slots; tiles are
// then downloaded unencoded.
func (c *DeviceColumns) Leaving(w *ngffgpu.Writer, d *gpu.Device, tile []int, has int64) (place, device int64) {
	place, device = w.Memory(tile)
	if _, slot := c.Memory(c.SlotShape()); has+MostSlots*(slot+device) > d.Memory().Limit() {
		return place, 0
	}
	return place, MostSlots * device
}
