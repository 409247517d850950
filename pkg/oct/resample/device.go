package resample

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/oct/machine"
	"strata/pkg/zarr/zarrgpu"
)

// resampleTilesOnDevice resamples tiles until none is left. Per tile its voxels are
// copied to the device, and the resampled tile, as it is stored, and 8 bytes are copied back.
func resampleTilesOnDevice(ctx context.Context, p *resampler) (err error) {
	w, err := machine.NewDeviceWorker(p.res.Device)
	if err != nil {
		return err
	}
	t := &deviceTile{resampler: p, stream: w.Stream, resizers: map[[2]int]*kernels.Resizer{}}
	defer t.release() // when nothing runs any more
	defer func() { err = errors.Join(err, w.End()) }()
	if works, err := p.team.Join(func() error { return t.begin(w) }); !works {
		return err
	}
	l := &machine.DeviceLoop{Worker: w, Res: &p.res, Next: func(place int) (*machine.DeviceJob, bool) {
		start, ok := p.another()
		if !ok {
			return nil, false
		}
		return t.job(start[1]/p.grid.axes[1].out, start[2]/p.grid.axes[2].out, place), true
	}}
	return l.Run(ctx)
}

// deviceTile is the memory in which one tile after the other is resampled.
type deviceTile struct {
	*resampler
	stream       *gpu.Stream
	out          [][]byte // page-locked, for each slot: the number of non-finite voxels
	leave        *machine.DeviceOutput
	tile, result gpu.Span // of the mosaic's type
	bad          gpu.Span
	resizers     map[[2]int]*kernels.Resizer // by the tile's height and width
}

func (t *deviceTile) release() {
	for _, r := range t.resizers {
		if r != nil { // else it failed to begin
			r.Release()
		}
	}
}

// begin takes the memory and brings the weights to the device: of whole tiles and those
// at the far edges.
func (t *deviceTile) begin(w *machine.DeviceWorker) (err error) {
	size := t.resultBytes()
	if t.tile, err = w.Memory(t.mosaic.TileBytes()); err != nil {
		return err
	}
	if t.result, err = w.Memory(size); err != nil {
		return err
	}
	if t.bad, err = w.Memory(8); err != nil {
		return err
	}
	for _, y := range t.weights[1] {
		for _, x := range t.weights[2] {
			if y == nil || x == nil {
				continue
			}
			if t.resizers[[2]int{y.In(), x.In()}], err = kernels.NewResizer(w.Stream, t.weights[0][0], y, x); err != nil {
				return err
			}
		}
	}
	if t.out, err = w.Begin(t.columns.Reader, t.columns.SlotShape(), 8); err != nil {
		return err
	}
	t.leave, err = w.Output(t.output, len(t.out))
	return err
}

// job resamples tile (i, j).
func (t *deviceTile) job(i, j, place int) *machine.DeviceJob {
	y, ny, outY, outNY := t.grid.axes[1].span(i)
	x, nx, outX, outNX := t.grid.axes[2].span(j)
	kind := t.mosaic.DType
	r := t.resizers[[2]int{ny, nx}]
	shape := []int{t.grid.axes[0].length(), outNY, outNX}
	elements := int64(shape[0]) * int64(outNY) * int64(outNX)
	start, bad := []int{0, outY, outX}, t.out[place][:8]
	job := &machine.DeviceJob{Regions: t.columns.Regions(y, ny, x, nx)}
	job.Queue = func(k int, in *zarrgpu.Slot) error {
		plane := t.columns.Bytes([]int{1, ny, nx})
		in.Into(t.stream, t.tile.From(int64(job.Regions[k].Start[0])*plane, int64(job.Regions[k].Shape[0])*plane))
		if k < len(job.Regions)-1 {
			return nil
		}
		t.stream.Zero(t.bad)
		if err := kernels.CountNonFinite(t.stream, t.bad, t.tile, kind, int64(t.mosaic.Shape[0])*int64(ny)*int64(nx)); err != nil {
			return err
		}
		volume, err := r.Run(t.stream, t.tile, kind)
		if err != nil {
			return err
		}
		if err := kernels.FromFloat32(t.stream, t.result, volume, kind, elements); err != nil {
			return err
		}
		t.stream.Download(bad, t.bad)
		return t.leave.Begin(t.stream, place, start, shape, t.result)
	}
	job.Write = func(ctx context.Context) error {
		t.res.Meter.AddNonFinite(int64(binary.LittleEndian.Uint64(bad)))
		return t.leave.Write(ctx, place)
	}
	return job
}

// resultBytes is the size of a resampled tile as it is stored.
func (p *resampler) resultBytes() int64 {
	n := int64(p.mosaic.DType.Size())
	for _, s := range p.grid.tile() {
		n *= int64(s)
	}
	return n
}

// planOnDevice decides how tiles are read, and how many workers have them in flight.
func (p *resampler) planOnDevice() (err error) {
	if p.columns, err = machine.NewDeviceColumns(p.mosaic, &p.res, p.reading); err != nil {
		return err
	}
	p.output = p.res.Output(p.writer)
	device := p.deviceBytes()
	place, leaving := p.columns.Leaving(p.output, p.res.Device, p.grid.tile(), device)
	what := fmt.Sprintf("resampling tiles of %v voxels", p.mosaic.Tile())
	p.inFlight, err = p.columns.Workers(&p.res, p.res.Mem-p.pyramidMem, p.resultBytes(), place+4096, device+leaving, what)
	return err
}

// deviceBytes is the device memory that a worker of [Run] takes beside its slots.
func (p *resampler) deviceBytes() int64 {
	in := [3]int{p.mosaic.Shape[0], p.mosaic.Chunk[1], p.mosaic.Chunk[2]}
	n := p.mosaic.TileBytes() + p.resultBytes()
	kinds := int64(1) // of tiles: whole, and at each far edge
	for _, d := range []int{1, 2} {
		if p.mosaic.Shape[d]%p.mosaic.Chunk[d] != 0 && p.mosaic.Shape[d] > p.mosaic.Chunk[d] {
			kinds *= 2
		}
	}
	return n + kinds*kernels.ResizerBytes(in, [3]int(p.grid.tile())) + 1<<20
}
