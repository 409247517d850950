package crop

import (
	"context"
	"errors"
	"sync/atomic"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/pkg/oct/machine"
	"strata/pkg/work"
	"strata/pkg/zarr/zarrgpu"
)

// devicePercentile is the search for the percentile of the magnitudes on a device. All
// voxels go there once, or more often if the tile in the middle does not say where it
// lies; counts come back.
type devicePercentile struct {
	mosaic  *oct.Mosaic
	res     oct.Resources
	columns *machine.DeviceColumns
	workers int
	counts  *kernels.MagnitudePercentile
	stream  *gpu.Stream
	team    machine.DeviceTeam
}

// percentileOnDevice is [cropper.percentile] on a device.
func (p *cropper[T]) percentileOnDevice(ctx context.Context) (value float32, err error) {
	d, err := planDevicePercentile(p.Mosaic, p.c.PercentileMax, p.res)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	if err := d.find(ctx); err != nil {
		return 0, err
	}
	p.nonFinite.Store(d.counts.NonFinite())
	return d.counts.Value(), nil
}

func planDevicePercentile(m *oct.Mosaic, percent float64, res oct.Resources) (*devicePercentile, error) {
	p := &devicePercentile{mosaic: m, res: res}
	var err error
	if p.columns, err = machine.NewDeviceColumns(m, &p.res, res.Meter); err != nil {
		return nil, err
	}
	counters := res.Device.Memory().Limit() / 32
	each := func() int64 { // a worker has one region on the device at a time
		return mem.Pooled(p.columns.Bytes(p.columns.SlotShape())) + kernels.PercentileBytes(m.DType, counters)
	}
	for {
		_, slot := p.columns.Memory(p.columns.SlotShape())
		if each()+slot <= res.Device.Memory().Limit() || !p.columns.Less() {
			break
		}
	}
	if p.workers, err = p.columns.Workers(&p.res, res.Mem, 1<<20, mem.Pooled(1), each(), "counting "+p.columns.Pieces()); err != nil {
		return nil, err
	}
	if p.stream, err = res.Device.Stream(); err != nil {
		return nil, err
	}
	if p.counts, err = kernels.NewMagnitudePercentile(p.stream, m.DType, percent, counters); err != nil {
		return nil, errors.Join(err, p.stream.Close())
	}
	return p, nil
}

func (p *devicePercentile) end() error {
	p.counts.Release()
	return p.stream.Close()
}

// find looks at the tile in the middle, if that helps, and then counts all voxels.
func (p *devicePercentile) find(ctx context.Context) error {
	ny, nx := p.mosaic.Tiles()
	if p.counts.Looks() {
		progress := p.res.Progress
		p.res.Progress = nil
		if err := p.count(ctx, 1, func(int) (int, int) { return ny / 2, nx / 2 }); err != nil {
			return err
		}
		p.res.Progress = progress
	}
	for {
		more, err := p.counts.Begin(p.stream)
		if err != nil || !more {
			return err
		}
		if err := p.count(ctx, ny*nx, func(k int) (int, int) { return k / nx, k % nx }); err != nil {
			return err
		}
		p.res.Progress = nil // of further passes
	}
}

// count counts the voxels of n tiles.
func (p *devicePercentile) count(ctx context.Context, n int, tile func(k int) (i, j int)) error {
	p.team = machine.DeviceTeam{}
	var next atomic.Int64
	g, ctx := work.WithContext(ctx)
	for range min(p.workers, n) {
		g.Go(func() (err error) {
			w, err := machine.NewDeviceWorker(p.res.Device)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, w.End()) }()
			var voxels gpu.Span
			works, err := p.team.Join(func() (err error) {
				if voxels, err = w.Memory(p.columns.Bytes(p.columns.SlotShape())); err == nil {
					_, err = w.Begin(p.columns.Reader, p.columns.SlotShape(), 1)
				}
				return err
			})
			if !works {
				return err
			}
			l := &machine.DeviceLoop{Worker: w, Res: &p.res, Next: func(int) (*machine.DeviceJob, bool) {
				k := int(next.Add(1) - 1)
				if k >= n {
					return nil, false
				}
				i, j := tile(k)
				return p.job(w.Stream, voxels, p.mosaic.Extent(i, j)), true
			}}
			return l.Run(ctx)
		})
	}
	return g.Wait()
}

// job counts the voxels of a tile. Of it nothing comes back.
func (p *devicePercentile) job(s *gpu.Stream, voxels gpu.Span, at oct.Rectangle) *machine.DeviceJob {
	job := &machine.DeviceJob{}
	for y := at.Y0; y < at.Y1; y += p.columns.Rows {
		job.Regions = append(job.Regions, p.columns.Regions(y, min(p.columns.Rows, at.Y1-y), at.X0, at.Width())...)
	}
	job.Queue = func(_ int, in *zarrgpu.Slot) error {
		in.Into(s, voxels)
		return p.counts.Add(s, voxels, in.Bytes()/int64(p.mosaic.DType.Size()))
	}
	job.Write = func(context.Context) error { return nil }
	return job
}
