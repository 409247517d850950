package oct

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/zarr/zarrgpu"
)

// resampleTilesOnDevice resamples tiles until none is left. Per tile its voxels are
// copied to the device, and the resampled tile, as it is stored, and 8 bytes are copied back.
func resampleTilesOnDevice(ctx context.Context, p *resampler) (err error) {
	w, err := newDeviceWorker(p.res.Device)
	if err != nil {
		return err
	}
	t := &deviceTile{resampler: p, stream: w.stream, resizers: map[[2]int]*kernels.Resizer{}}
	defer t.release() // when nothing runs any more
	defer func() { err = errors.Join(err, w.end()) }()
	if works, err := p.team.join(func() error { return t.begin(w) }); !works {
		return err
	}
	l := &deviceLoop{worker: w, res: &p.res, next: func(place int) (*deviceJob, bool) {
		start, ok := p.another()
		if !ok {
			return nil, false
		}
		return t.job(start[1]/p.grid.axes[1].out, start[2]/p.grid.axes[2].out, place), true
	}}
	return l.run(ctx)
}

// deviceTile is the memory in which one tile after the other is resampled.
type deviceTile struct {
	*resampler
	stream       *gpu.Stream
	out          [][]byte // page-locked, for each slot: the number of non-finite voxels
	leave        *deviceOutput
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
func (t *deviceTile) begin(w *deviceWorker) (err error) {
	size := t.resultBytes()
	if t.tile, err = w.memory(t.mosaic.tileBytes()); err != nil {
		return err
	}
	if t.result, err = w.memory(size); err != nil {
		return err
	}
	if t.bad, err = w.memory(8); err != nil {
		return err
	}
	for _, y := range t.weights[1] {
		for _, x := range t.weights[2] {
			if y == nil || x == nil {
				continue
			}
			if t.resizers[[2]int{y.In(), x.In()}], err = kernels.NewResizer(w.stream, t.weights[0][0], y, x); err != nil {
				return err
			}
		}
	}
	if t.out, err = w.begin(t.columns.Reader, t.columns.slot(), 8); err != nil {
		return err
	}
	t.leave, err = w.output(t.output, len(t.out))
	return err
}

// job resamples tile (i, j).
func (t *deviceTile) job(i, j, place int) *deviceJob {
	y, ny, outY, outNY := t.grid.axes[1].span(i)
	x, nx, outX, outNX := t.grid.axes[2].span(j)
	kind := t.mosaic.dtype
	r := t.resizers[[2]int{ny, nx}]
	shape := []int{t.grid.axes[0].length(), outNY, outNX}
	elements := int64(shape[0]) * int64(outNY) * int64(outNX)
	start, bad := []int{0, outY, outX}, t.out[place][:8]
	job := &deviceJob{regions: t.columns.regions(y, ny, x, nx)}
	job.queue = func(k int, in *zarrgpu.Slot) error {
		plane := t.columns.Bytes([]int{1, ny, nx})
		in.Into(t.stream, t.tile.From(int64(job.regions[k].Start[0])*plane, int64(job.regions[k].Shape[0])*plane))
		if k < len(job.regions)-1 {
			return nil
		}
		t.stream.Zero(t.bad)
		if err := kernels.CountNonFinite(t.stream, t.bad, t.tile, kind, int64(t.mosaic.shape[0])*int64(ny)*int64(nx)); err != nil {
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
		return t.leave.begin(t.stream, place, start, shape, t.result)
	}
	job.write = func(ctx context.Context) error {
		t.res.Meter.AddNonFinite(int64(binary.LittleEndian.Uint64(bad)))
		return t.leave.write(ctx, place)
	}
	return job
}

// resultBytes is the size of a resampled tile as it is stored.
func (p *resampler) resultBytes() int64 {
	n := int64(p.mosaic.dtype.Size())
	for _, s := range p.grid.tile() {
		n *= int64(s)
	}
	return n
}

// planOnDevice decides how tiles are read, and how many workers have them in flight.
func (p *resampler) planOnDevice() (err error) {
	if p.columns, err = newDeviceColumns(p.mosaic, &p.res, p.reading); err != nil {
		return err
	}
	p.output = p.res.output(p.writer)
	device := p.deviceBytes()
	place, leaving := p.columns.leaving(p.output, p.res.Device, p.grid.tile(), device)
	what := fmt.Sprintf("resampling tiles of %v voxels", p.mosaic.tile())
	p.inFlight, err = p.columns.workers(&p.res, p.res.Mem-p.pyramidMem, p.resultBytes(), place+4096, device+leaving, what)
	return err
}

// deviceBytes is the device memory that a worker of [Resample] takes beside its slots.
func (p *resampler) deviceBytes() int64 {
	in := [3]int{p.mosaic.shape[0], p.mosaic.chunk[1], p.mosaic.chunk[2]}
	n := p.mosaic.tileBytes() + p.resultBytes()
	kinds := int64(1) // of tiles: whole, and at each far edge
	for _, d := range []int{1, 2} {
		if p.mosaic.shape[d]%p.mosaic.chunk[d] != 0 && p.mosaic.shape[d] > p.mosaic.chunk[d] {
			kinds *= 2
		}
	}
	return n + kinds*kernels.ResizerBytes(in, [3]int(p.grid.tile())) + 1<<20
}
