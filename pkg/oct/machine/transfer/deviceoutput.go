package transfer

import (
	"context"

	"strata/pkg/gpu"
	"strata/pkg/ngff/ngffgpu"
)

// DeviceOutput is how a worker's tiles leave the device: while the device works on the
// next tile, one is written, with a stream of its own for what that takes.
type DeviceOutput struct {
	writer *ngffgpu.Writer
	aside  *gpu.Stream
	tiles  []*ngffgpu.Tile // by place
}

// Output lets tiles leave the device, one at each place, until the worker's end.
func (w *DeviceWorker) Output(writer *ngffgpu.Writer, places int) (*DeviceOutput, error) {
	s, err := w.Stream.Device().Stream()
	if err != nil {
		return nil, err
	}
	w.leaving = &DeviceOutput{writer: writer, aside: s, tiles: make([]*ngffgpu.Tile, places)}
	return w.leaving, nil
}

// Begin queues what the device does for a tile that lies at the beginning of src.
func (o *DeviceOutput) Begin(s *gpu.Stream, place int, start, shape []int, src gpu.Span) (err error) {
	o.tiles[place].Release() // of a job that is done again
	o.tiles[place], err = o.writer.Begin(s, start, shape, src)
	return err
}

// Write writes the tile, once the stream that it began on has been waited for.
func (o *DeviceOutput) Write(ctx context.Context, place int) error {
	return o.tiles[place].Write(ctx, o.aside)
}

// end gives all back, once nothing runs any more on the worker's stream.
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

// Leaving is what a worker takes for tiles of a shape that leave the device: for each
// place of page-locked memory, and altogether of the device, unless that has no room for it
// beside what the worker has and its slots: then tiles come down as they are.
func (c *DeviceColumns) Leaving(w *ngffgpu.Writer, d *gpu.Device, tile []int, has int64) (place, device int64) {
	place, device = w.Memory(tile)
	if _, slot := c.Memory(c.SlotShape()); has+MostSlots*(slot+device) > d.Memory().Limit() {
		return place, 0
	}
	return place, MostSlots * device
}
