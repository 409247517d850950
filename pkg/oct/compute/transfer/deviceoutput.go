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
	writes *gpu.Stream
	tiles  []*ngffgpu.Tile // by place
}

// Output prepares the worker for writing tiles, one at each place, until End.
func (w *DeviceWorker) Output(writer *ngffgpu.Writer, places int) (*DeviceOutput, error) {
	s, err := w.Stream.Device().Stream()
	if err != nil {
		return nil, err
	}
	w.leaving = &DeviceOutput{writer: writer, writes: s, tiles: make([]*ngffgpu.Tile, places)}
	return w.leaving, nil
}

// Begin queues the device's part of writing the tile at the beginning of src.
func (o *DeviceOutput) Begin(s *gpu.Stream, place int, start, shape []int, src gpu.Span) (err error) {
	o.tiles[place].Release() // of a job that is done again
	o.tiles[place], err = o.writer.Begin(s, start, shape, src)
	return err
}

// Await is Begin for a tile that found no memory: it waits for tiles that are being written. Whatever this worker began
// must be delivered to be written.
func (o *DeviceOutput) Await(ctx context.Context, s *gpu.Stream, place int, start, shape []int, src gpu.Span) (err error) {
	o.tiles[place].Release()
	o.tiles[place], err = o.writer.Await(ctx, s, start, shape, src)
	return err
}

// Write writes the tile at a place. The caller must have waited for the stream passed to Begin.
func (o *DeviceOutput) Write(ctx context.Context, place int) error {
	return o.tiles[place].Write(ctx, o.writes)
}

// end releases the resources. Nothing may be running on the worker's stream.
func (o *DeviceOutput) end() error {
	if o == nil {
		return nil
	}
	err := o.writes.Close()
	for _, t := range o.tiles { // of a run that failed
		t.Release()
	}
	return err
}
