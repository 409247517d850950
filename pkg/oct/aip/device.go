package aip

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
	"strata/pkg/oct"
	"strata/pkg/oct/machine"
	"strata/pkg/zarr/zarrgpu"
)

// DeviceProjection is a running AIP on a device. Per tile its voxels are copied there,
// and its mean, as it is stored, and 8 bytes are copied back; as it is, where there is a
// picture to be made.
type DeviceProjection struct {
	Mosaic *oct.Mosaic
	Res    oct.Resources
	Reader *machine.DeviceColumns
	writer *ngff.Writer
	output *ngffgpu.Writer // nil: the host needs the mean
	team   machine.DeviceTeam
	seen   func(mean []float32) // for the picture; nil: there is none
}

// onDevice is the work of AIP on a device and how many workers do it.
func (p *projection[T]) onDevice() (work func(context.Context, *atomic.Int64) error, workers int, err error) {
	m, res := p.mosaic, p.res
	d := &DeviceProjection{Mosaic: m, Res: res, writer: p.writer}
	if d.Reader, err = machine.NewDeviceColumns(m, &d.Res, res.Meter); err != nil {
		return nil, 0, err
	}
	pixels := int64(m.Chunk[1]) * int64(m.Chunk[2])
	place, device := int64(4096), d.Reader.Bytes(d.Reader.SlotShape())+12*pixels+4096
	if p.range16 != nil {
		d.seen = p.range16.Add
		place += 4 * pixels
	} else {
		d.output = d.Res.Output(p.writer)
		pinned, leaving := d.Reader.Leaving(d.output, res.Device, m.Chunk[1:], device)
		place, device = place+pinned, device+leaving
	}
	workers, err = d.Reader.Workers(&d.Res, res.Mem-p.pyramidMem, 0, place, device, fmt.Sprintf("projecting chunks of %v voxels", m.Chunk))
	return d.work, workers, err
}

// work projects chunk columns until none is left.
func (p *DeviceProjection) work(ctx context.Context, next *atomic.Int64) (err error) {
	w, err := machine.NewDeviceWorker(p.Res.Device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.End()) }()
	c := &DeviceColumn{DeviceProjection: p, Stream: w.Stream}
	if works, err := p.team.Join(func() error { return c.Begin(w) }); !works {
		return err
	}
	ny, nx := p.Mosaic.Tiles()
	l := &machine.DeviceLoop{Worker: w, Res: &p.Res, Next: func(place int) (*machine.DeviceJob, bool) {
		i := int(next.Add(1) - 1)
		if i >= ny*nx {
			return nil, false
		}
		return c.Job(i/nx, i%nx, place), true
	}}
	return l.Run(ctx)
}

// DeviceColumn is a worker's memory for one chunk column after the other.
type DeviceColumn struct {
	*DeviceProjection
	Stream *gpu.Stream
	Out    [][]byte // page-locked, for each slot: the number of non-finite voxels and, if the host needs it, behind it their mean
	leave  *machine.DeviceOutput
	planes gpu.Span
	Acc    gpu.Span // float64
	mean   gpu.Span
	bad    gpu.Span
}

// Begin takes the memory.
func (c *DeviceColumn) Begin(w *machine.DeviceWorker) (err error) {
	n := int64(c.Mosaic.Chunk[1]) * int64(c.Mosaic.Chunk[2])
	if c.planes, err = w.Memory(c.Reader.Bytes(c.Reader.SlotShape())); err != nil {
		return err
	}
	if c.Acc, err = w.Memory(8 * n); err != nil {
		return err
	}
	if c.mean, err = w.Memory(4 * n); err != nil {
		return err
	}
	if c.bad, err = w.Memory(8); err != nil {
		return err
	}
	if c.output != nil {
		n = 0
	}
	if c.Out, err = w.Begin(c.Reader.Reader, c.Reader.SlotShape(), int(4*n)+8); err != nil || c.output == nil {
		return err
	}
	c.leave, err = w.Output(c.output, len(c.Out))
	return err
}

// Job makes the mean of chunk column (i, j).
func (c *DeviceColumn) Job(i, j, place int) *machine.DeviceJob {
	m := c.Mosaic
	y, x := i*m.Chunk[1], j*m.Chunk[2]
	ny, nx := min(m.Chunk[1], m.Shape[1]-y), min(m.Chunk[2], m.Shape[2]-x)
	n := int64(ny) * int64(nx)
	out, start, shape := c.Out[place], []int{y, x}, []int{ny, nx}
	job := &machine.DeviceJob{Regions: c.Reader.Regions(y, ny, x, nx)}
	job.Queue = func(k int, in *zarrgpu.Slot) error {
		if k == 0 {
			c.Stream.Zero(c.bad)
		}
		in.Into(c.Stream, c.planes)
		planes := m.Frames.Planes(job.Regions[k].Shape)
		if err := kernels.AddPlanes(c.Stream, c.Acc, c.planes, c.bad, m.DType, planes, n, k == 0); err != nil {
			return err
		}
		if k < len(job.Regions)-1 {
			return nil
		}
		if err := kernels.Mean(c.Stream, c.mean, c.Acc, m.Shape[0], n); err != nil {
			return err
		}
		c.Stream.Download(out[:8], c.bad)
		if c.leave != nil {
			return c.leave.Begin(c.Stream, place, start, shape, c.mean)
		}
		c.Stream.Download(out[8:8+4*n], c.mean)
		return nil
	}
	job.Write = func(ctx context.Context) error {
		c.Res.Meter.AddNonFinite(int64(binary.LittleEndian.Uint64(out)))
		if c.leave != nil {
			return c.leave.Write(ctx, place)
		}
		c.seen(dtype.Slice[float32](out[8 : 8+4*n]))
		return c.writer.WriteTile(ctx, start, shape, out[8:8+4*n])
	}
	return job
}
