package oct

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/ngff"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/zarr/zarrgpu"
)

// deviceProjection is a running AIP on a device. Per tile its voxels are copied there,
// and its mean, as it is stored, and 8 bytes are copied back; as it is, where there is a
// picture to be made.
type deviceProjection struct {
	mosaic *mosaic
	res    Resources
	reader *deviceColumns
	writer *ngff.Writer
	output *ngffgpu.Writer // nil: the host needs the mean
	team   deviceTeam
	seen   func(mean []float32) // for the picture; nil: there is none
}

// onDevice is the work of AIP on a device and how many workers do it.
func (p *projection[T]) onDevice() (work func(context.Context, *atomic.Int64) error, workers int, err error) {
	m, res := p.mosaic, p.res
	d := &deviceProjection{mosaic: m, res: res, writer: p.writer}
	if d.reader, err = newDeviceColumns(m, &d.res, res.Meter); err != nil {
		return nil, 0, err
	}
	pixels := int64(m.chunk[1]) * int64(m.chunk[2])
	place, device := int64(4096), d.reader.Bytes(d.reader.slot())+12*pixels+4096
	if p.range16 != nil {
		d.seen = p.range16.Add
		place += 4 * pixels
	} else {
		d.output = d.res.output(p.writer)
		pinned, leaving := d.reader.leaving(d.output, res.Device, m.chunk[1:], device)
		place, device = place+pinned, device+leaving
	}
	workers, err = d.reader.workers(&d.res, res.Mem-p.pyramidMem, 0, place, device, fmt.Sprintf("projecting chunks of %v voxels", m.chunk))
	return d.work, workers, err
}

// work projects chunk columns until none is left.
func (p *deviceProjection) work(ctx context.Context, next *atomic.Int64) (err error) {
	w, err := newDeviceWorker(p.res.Device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.end()) }()
	c := &deviceColumn{deviceProjection: p, stream: w.stream}
	if works, err := p.team.join(func() error { return c.begin(w) }); !works {
		return err
	}
	ny, nx := p.mosaic.tiles()
	l := &deviceLoop{worker: w, res: &p.res, next: func(place int) (*deviceJob, bool) {
		i := int(next.Add(1) - 1)
		if i >= ny*nx {
			return nil, false
		}
		return c.job(i/nx, i%nx, place), true
	}}
	return l.run(ctx)
}

// deviceColumn is a worker's memory for one chunk column after the other.
type deviceColumn struct {
	*deviceProjection
	stream *gpu.Stream
	out    [][]byte // page-locked, for each slot: the number of non-finite voxels and, if the host needs it, behind it their mean
	leave  *deviceOutput
	planes gpu.Span
	acc    gpu.Span // float64
	mean   gpu.Span
	bad    gpu.Span
}

// begin takes the memory.
func (c *deviceColumn) begin(w *deviceWorker) (err error) {
	n := int64(c.mosaic.chunk[1]) * int64(c.mosaic.chunk[2])
	if c.planes, err = w.memory(c.reader.Bytes(c.reader.slot())); err != nil {
		return err
	}
	if c.acc, err = w.memory(8 * n); err != nil {
		return err
	}
	if c.mean, err = w.memory(4 * n); err != nil {
		return err
	}
	if c.bad, err = w.memory(8); err != nil {
		return err
	}
	if c.output != nil {
		n = 0
	}
	if c.out, err = w.begin(c.reader.Reader, c.reader.slot(), int(4*n)+8); err != nil || c.output == nil {
		return err
	}
	c.leave, err = w.output(c.output, len(c.out))
	return err
}

// job makes the mean of chunk column (i, j).
func (c *deviceColumn) job(i, j, place int) *deviceJob {
	m := c.mosaic
	y, x := i*m.chunk[1], j*m.chunk[2]
	ny, nx := min(m.chunk[1], m.shape[1]-y), min(m.chunk[2], m.shape[2]-x)
	n := int64(ny) * int64(nx)
	out, start, shape := c.out[place], []int{y, x}, []int{ny, nx}
	job := &deviceJob{regions: c.reader.regions(y, ny, x, nx)}
	job.queue = func(k int, in *zarrgpu.Slot) error {
		if k == 0 {
			c.stream.Zero(c.bad)
		}
		in.Into(c.stream, c.planes)
		planes := m.frames.planes(job.regions[k].Shape)
		if err := kernels.AddPlanes(c.stream, c.acc, c.planes, c.bad, m.dtype, planes, n, k == 0); err != nil {
			return err
		}
		if k < len(job.regions)-1 {
			return nil
		}
		if err := kernels.Mean(c.stream, c.mean, c.acc, m.shape[0], n); err != nil {
			return err
		}
		c.stream.Download(out[:8], c.bad)
		if c.leave != nil {
			return c.leave.begin(c.stream, place, start, shape, c.mean)
		}
		c.stream.Download(out[8:8+4*n], c.mean)
		return nil
	}
	job.write = func(ctx context.Context) error {
		c.res.Meter.AddNonFinite(int64(binary.LittleEndian.Uint64(out)))
		if c.leave != nil {
			return c.leave.write(ctx, place)
		}
		c.seen(dtype.Slice[float32](out[8 : 8+4*n]))
		return c.writer.WriteTile(ctx, start, shape, out[8:8+4*n])
	}
	return job
}
