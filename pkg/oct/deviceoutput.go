package oct

import (
	"context"

	"strata/pkg/gpu"
	"strata/pkg/ngff"
	"strata/pkg/ngff/ngffgpu"
)

// output writes an image of which tiles lie on the device. With the backend host its
// files are byte for byte those of a run without one.
func (r *Resources) output(w *ngff.Writer) *ngffgpu.Writer {
	return ngffgpu.NewWriter(w, r.Device, ngffgpu.Options{Files: r.Files, Meter: r.Meter, ByHost: r.Backend == "host", Debug: r.Debug})
}

// deviceOutput is how a worker's tiles leave the device: while the device works on the
// next tile, one is written, with a stream of its own for what that takes.
type deviceOutput struct {
	writer *ngffgpu.Writer
	aside  *gpu.Stream
	tiles  []*ngffgpu.Tile // by place
}

// output lets tiles leave the device, one at each place, until the worker's end.
func (w *deviceWorker) output(writer *ngffgpu.Writer, places int) (*deviceOutput, error) {
	s, err := w.stream.Device().Stream()
	if err != nil {
		return nil, err
	}
	w.leaving = &deviceOutput{writer: writer, aside: s, tiles: make([]*ngffgpu.Tile, places)}
	return w.leaving, nil
}

// begin queues what the device does for a tile that lies at the beginning of src.
func (o *deviceOutput) begin(s *gpu.Stream, place int, start, shape []int, src gpu.Span) (err error) {
	o.tiles[place].Release() // of a job that is done again
	o.tiles[place], err = o.writer.Begin(s, start, shape, src)
	return err
}

// write writes the tile, once the stream that it began on has been waited for.
func (o *deviceOutput) write(ctx context.Context, place int) error {
	return o.tiles[place].Write(ctx, o.aside)
}

// end gives all back, once nothing runs any more on the worker's stream.
func (o *deviceOutput) end() error {
	if o == nil {
		return nil
	}
	err := o.aside.Close()
	for _, t := range o.tiles { // of a run that failed
		t.Release()
	}
	return err
}

// leaving is what a worker takes for tiles of a shape that leave the device: for each
// place of page-locked memory, and altogether of the device, unless that has no room for it
// beside what the worker has and its slots: then tiles come down as they are.
func (c *deviceColumns) leaving(w *ngffgpu.Writer, d *gpu.Device, tile []int, has int64) (place, device int64) {
	place, device = w.Memory(tile)
	if _, slot := c.Memory(c.slot()); has+mostSlots*(slot+device) > d.Memory().Limit() {
		return place, 0
	}
	return place, mostSlots * device
}
