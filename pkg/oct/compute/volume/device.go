package volume

import (
	"context"
	"errors"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/zarr/zarrgpu"
)

// device is a [Memory] on a device.
//
// It computes sums in the CPU's order, and exact percentiles. Its results differ from the CPU's at most in the payload
// of a NaN.
type device struct {
	sticky
	ctx     context.Context
	cancel  context.CancelFunc
	res     *oct.Resources
	gpu     *gpu.Device
	sources []*Source
	readers map[*Source]*zarrgpu.Reader
	loaders []*loaderWorker
	held    int64 // device memory of the loaders and of what they fetch
	locked  int64 // page-locked memory of the same
	worker  *transfer.DeviceWorker

	decoding int64 // host memory of the loaders
	loading  loading

	overlaps *deviceOverlaps
	canvas   *Canvas
	pool     *devicePool // planes
	writer   *planeWriter

	raw       gpu.Span // planes to be resampled
	rawPlanes int
	fills     *kernels.Selector
	medians   [2]*kernels.Selector
	sums      [2]gpu.Span // float64, for the mean planes
	mean      gpu.Span    // float32
	weights   gpu.Span
	mixing    *Mix     // owner of weights
	counts    gpu.Span // uint64: positive voxels of two planes

	table   []byte    // page-locked: weights
	numbers []byte    // page-locked: numbers inspected on the host
	means   [2][]byte // page-locked: mean planes
}

// room returns the device memory that is left after the loaders' share.
func (d *device) room() int64 { return d.gpu.Memory().Limit() - d.held }

// noMemory returns the error for missing device memory.
func (d *device) noMemory(need int64, what string) error {
	return transfer.NoDeviceMemory(d.gpu, need, d.sources[0].path+": "+what)
}

// wait waits for queued work.
func (d *device) wait() error {
	start := time.Now()
	err := d.worker.Stream.Wait()
	d.res.Meter.Since(meter.Compute, start)
	return err
}

func (d *device) Err() error {
	if d.writer != nil {
		if err := d.writer.failed(); err != nil {
			return err
		}
	}
	return d.err
}

func (d *device) Close() (err error) {
	d.cancel()
	if d.writer != nil {
		d.writer.abandon()
	}
	for _, l := range d.loaders {
		err = errors.Join(err, l.End())
	}
	err = errors.Join(err, d.overlaps.end())
	if d.worker != nil {
		err = errors.Join(err, d.worker.End())
	}
	if d.writer != nil {
		d.writer.level.release()
	}
	for _, s := range []*kernels.Selector{d.fills, d.medians[0], d.medians[1]} {
		if s != nil {
			s.Release()
		}
	}
	return err
}

// Begin allocates the memory. On the device, it allocates in this order while there is room: the indispensable minimum;
// planes to be blended, so that they are read only once; as many planes to be resampled as a chunk has; and as many
// planes as whole chunks of a slice need.
func (d *device) Begin(c *Canvas) { d.begin(c, nil) }

// begin is Begin. It continues the image begun, which the host has started, unless begun is nil.
func (d *device) begin(c *Canvas, begun *ngff.PlaneWriter) {
	d.try(func() error {
		d.canvas = c
		w, err := newPlaneWriter(d, c, begun)
		if err != nil {
			return err
		}
		d.writer = w
		if err := d.beginHost(); err != nil {
			return err
		}
		if c.Matched {
			for i := range d.medians {
				if d.medians[i], err = kernels.NewSelector(d.gpu, 50, 1, false); err != nil {
					return err
				}
			}
		}
		planes, err := d.beginPlanes()
		if err != nil {
			return err
		}
		if d.rawPlanes > 0 {
			if d.fills, err = kernels.NewSelector(d.gpu, outside, d.rawPlanes, true); err != nil {
				return err
			}
		}
		d.pool = newDevicePool(planes)
		w.start()
		return nil
	})
}

// beginPlanes allocates the device memory and returns the planes.
func (d *device) beginPlanes() (planes []Plane, err error) {
	c, w := d.canvas, d.writer
	area := 4 * int64(c.area())
	rows, sums, tables := w.level.bytes()
	other := 16 + 8*int64(c.Mixed) + rows + sums + w.madeBytes()
	if c.Refined {
		other += 5 * area
	}
	selectors := int64(0)
	if c.Matched {
		selectors = 2 * mem.Pooled(kernels.SelectorBytes(1))
	}
	size := func(planes, raw int) int64 {
		return mem.Pooled(other) + mem.Pooled(int64(planes)*area) + mem.Pooled(4*int64(raw)*c.RawArea) + mem.Pooled(kernels.SelectorBytes(raw)) + selectors + tables
	}
	depth := 0 // planes that are fetched at a time
	for _, s := range d.sources {
		depth = max(depth, d.region(s)[0])
	}
	least := c.Least(d.Batch())
	need := size(least, c.leastRaw())
	for fewer := true; fewer && need > d.room(); {
		if fewer, err = d.fewerLoaders(); err != nil {
			return nil, err
		}
	}
	for room := d.room(); ; room -= room / 8 { // less if the driver has less
		if need > room {
			if err != nil {
				return nil, err
			}
			return nil, d.noMemory(need+d.held, c.what(least))
		}
		n, raw := c.fit(least, min(least+c.Once+depth+d.Batch(), least+c.planes()), max(c.leastRaw(), min(c.RawDepth, depth)), room, size)
		var v []gpu.Span
		v, err = d.worker.Memories(int64(n)*area, 4*int64(raw)*c.RawArea, other)
		if errors.Is(err, gpu.ErrMemory) {
			continue
		}
		if err != nil {
			return nil, err
		}
		d.raw, d.rawPlanes = v[1], raw
		rest := v[2]
		take := func(n int64) (s gpu.Span) {
			s, rest = rest.From(0, n), rest.From(n, rest.Bytes()-n)
			return s
		}
		d.counts, d.weights = take(16), take(8*int64(c.Mixed))
		if c.Refined {
			d.sums, d.mean = [2]gpu.Span{take(2 * area), take(2 * area)}, take(area)
		}
		w.begin(take(rows), take(sums), take(w.madeBytes()))
		return planesOn(v[0], n, c.Image.Shape[1], c.Image.Shape[2]), nil
	}
}

// beginHost allocates the host memory: planes to be written, and values inspected on the host.
func (d *device) beginHost() (err error) {
	c := d.canvas
	area := 4 * int64(c.area())
	other, locked := int64(0), mem.Pooled(int64(8*max(1, c.Mixed)))+mem.Pooled(24)
	if c.Refined {
		other += 16 * area // spectra of mean planes
		locked += 2 * mem.Pooled(area)
	}
	err = d.writer.beginHost(other+d.decoding, locked+d.locked)
	for errors.Is(err, gpu.ErrMemory) {
		if fewer, ended := d.fewerLoaders(); !fewer || ended != nil {
			return errors.Join(ended, err)
		}
		err = d.writer.beginHost(other+d.decoding, locked+d.locked)
	}
	if err != nil {
		return err
	}
	if d.table, err = d.worker.Pinned(8 * max(1, c.Mixed)); err != nil {
		return err
	}
	if d.numbers, err = d.worker.Pinned(24); err != nil || !c.Refined {
		return err
	}
	for i := range d.means {
		if d.means[i], err = d.worker.Pinned(int(area)); err != nil {
			return err
		}
	}
	return nil
}
