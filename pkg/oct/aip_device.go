package oct

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/meter"
	"strata/pkg/ngff"
)

// deviceProjection is a running AIP on a device. Per tile its voxels are copied there,
// and its mean and 8 bytes are copied back.
type deviceProjection struct {
	mosaic *mosaic
	res    Resources
	reader *planeReader
	writer *ngff.Writer
	team   deviceTeam
	seen   func(mean []float32) // for the picture; nil: there is none
}

// onDevice is the work of AIP on a device and how many workers do it.
func (p *projection[T]) onDevice() (work func(context.Context, *atomic.Int64) error, workers int, err error) {
	m, res := p.mosaic, p.res
	d := &deviceProjection{mosaic: m, res: res, reader: newPlaneReader(m, devicePiece, res.Meter), writer: p.writer}
	if p.range16 != nil {
		d.seen = p.range16.Add
	}
	pixels := int64(m.chunk[1]) * int64(m.chunk[2])
	what := fmt.Sprintf("projecting chunks of %v voxels", m.chunk)
	each := d.reader.bytes() + 4*pixels
	workers = int(min(int64(res.Workers), (res.Mem-p.pyramidMem)/each))
	if workers < 1 {
		return nil, 0, fmt.Errorf("%s: %s takes %d MiB of buffers, --mem grants %d MiB", m.where, what, (each+p.pyramidMem)>>20+1, res.Mem>>20)
	}
	workers, err = workersOnDevice(res.Device, workers, int64(d.reader.buffer())+12*pixels+4096, m.where, what)
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
	for {
		i := int(next.Add(1) - 1)
		if i >= ny*nx {
			return nil
		}
		if err := c.project(ctx, i/nx, i%nx); err != nil {
			return err
		}
	}
}

// deviceColumn is a worker's memory for one chunk column after the other.
type deviceColumn struct {
	*deviceProjection
	stream  *gpu.Stream
	in, out []byte   // page-locked: planes; the number of non-finite voxels and, behind it, their mean
	planes  gpu.Span // as in
	acc     gpu.Span // float64
	result  gpu.Span // as out
}

// begin takes the memory.
func (c *deviceColumn) begin(w *deviceWorker) (err error) {
	n := int64(c.mosaic.chunk[1]) * int64(c.mosaic.chunk[2])
	if c.in, err = w.pinned(c.reader.buffer()); err != nil {
		return err
	}
	if c.out, err = w.pinned(int(4*n) + 8); err != nil {
		return err
	}
	if c.planes, err = w.memory(int64(c.reader.buffer())); err != nil {
		return err
	}
	if c.acc, err = w.memory(8 * n); err != nil {
		return err
	}
	c.result, err = w.memory(4*n + 8)
	return err
}

func (c *deviceColumn) project(ctx context.Context, i, j int) error {
	m := c.mosaic
	y, x := i*m.chunk[1], j*m.chunk[2]
	ny, nx := min(m.chunk[1], m.shape[1]-y), min(m.chunk[2], m.shape[2]-x)
	n := int64(ny) * int64(nx)
	out := c.out[:8+4*n]
	bad, mean := c.result.From(0, 8), c.result.From(8, 4*n)
	c.stream.Zero(bad)
	begin := true
	err := c.reader.read(ctx, c.in, y, ny, x, nx, func(planes []byte) error {
		start := time.Now()
		c.stream.Upload(c.planes, planes)
		if err := kernels.AddPlanes(c.stream, c.acc, c.planes, bad, m.dtype, len(planes)/int(n)/m.dtype.Size(), n, begin); err != nil {
			return err
		}
		begin = false
		err := c.stream.Wait() // the planes' memory is the reader's again
		c.res.Meter.Since(meter.Compute, start)
		c.res.progress(int64(len(planes)))
		return err
	})
	if err != nil {
		return err
	}
	start := time.Now()
	if err := kernels.Mean(c.stream, mean, c.acc, m.shape[0], n); err != nil {
		return err
	}
	c.stream.Download(out, c.result)
	if err := c.stream.Wait(); err != nil {
		return err
	}
	c.res.Meter.Since(meter.Compute, start)
	c.res.Meter.AddNonFinite(int64(binary.LittleEndian.Uint64(out)))
	if c.seen != nil {
		c.seen(dtype.Slice[float32](out[8:]))
	}
	return c.writer.WriteTile(ctx, []int{y, x}, []int{ny, nx}, out[8:])
}
