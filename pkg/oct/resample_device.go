package oct

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/meter"
)

// resampleTilesOnDevice resamples tiles until none is left. Per tile its voxels are
// copied to the device, and the resampled tile and 8 bytes are copied back.
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
	for {
		start, ok := p.another()
		if !ok {
			return nil
		}
		if err := t.resample(ctx, start[1]/p.grid.axes[1].out, start[2]/p.grid.axes[2].out); err != nil {
			return err
		}
	}
}

// deviceTile is the memory in which one tile after the other is resampled.
type deviceTile struct {
	*resampler
	stream       *gpu.Stream
	in, out      []byte   // page-locked: planes; the resampled tile, behind it the number of non-finite voxels
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
	size := int64(t.mosaic.dtype.Size())
	outElements := int64(1)
	for _, n := range t.grid.tile() {
		outElements *= int64(n)
	}
	if t.in, err = w.pinned(t.reader.buffer()); err != nil {
		return err
	}
	if t.out, err = w.pinned(int(outElements*size) + 8); err != nil {
		return err
	}
	if t.tile, err = w.memory(t.mosaic.tileBytes()); err != nil {
		return err
	}
	if t.result, err = w.memory(outElements * size); err != nil {
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
	return nil
}

// resample resamples tile (i, j) and writes it.
func (t *deviceTile) resample(ctx context.Context, i, j int) error {
	y, ny, outY, outNY := t.grid.axes[1].span(i)
	x, nx, outX, outNX := t.grid.axes[2].span(j)
	kind := t.mosaic.dtype
	r := t.resizers[[2]int{ny, nx}]
	at := int64(0)
	err := t.reader.read(ctx, t.in, y, ny, x, nx, func(planes []byte) error {
		start := time.Now()
		n := int64(len(planes))
		t.stream.Upload(t.tile.From(at, n), planes)
		at += n
		err := t.stream.Wait() // the planes' memory is the reader's again
		t.res.Meter.Since(meter.Compute, start)
		t.res.progress(n)
		return err
	})
	if err != nil {
		return err
	}
	shape := []int{t.grid.axes[0].length(), outNY, outNX}
	elements := int64(shape[0]) * int64(outNY) * int64(outNX)
	stored := int(elements) * kind.Size()
	start := time.Now()
	t.stream.Zero(t.bad)
	if err := kernels.CountNonFinite(t.stream, t.bad, t.tile, kind, at/int64(kind.Size())); err != nil {
		return err
	}
	volume, err := r.Run(t.stream, t.tile, kind)
	if err != nil {
		return err
	}
	if err := kernels.FromFloat32(t.stream, t.result, volume, kind, elements); err != nil {
		return err
	}
	t.stream.Download(t.out[:stored], t.result)
	t.stream.Download(t.out[stored:stored+8], t.bad)
	if err := t.stream.Wait(); err != nil {
		return err
	}
	t.res.Meter.Since(meter.Compute, start)
	t.res.Meter.AddNonFinite(int64(binary.LittleEndian.Uint64(t.out[stored:])))
	return t.writer.WriteTile(ctx, []int{0, outY, outX}, shape, t.out[:stored])
}

// deviceBytes is the device memory that a worker of [Resample] takes.
func (p *resampler) deviceBytes() int64 {
	in := [3]int{p.mosaic.shape[0], p.mosaic.chunk[1], p.mosaic.chunk[2]}
	out := [3]int(p.grid.tile())
	n := p.mosaic.tileBytes() + int64(out[0])*int64(out[1])*int64(out[2])*int64(p.mosaic.dtype.Size())
	kinds := int64(1) // of tiles: whole, and at each far edge
	for _, d := range []int{1, 2} {
		if p.mosaic.shape[d]%p.mosaic.chunk[d] != 0 && p.mosaic.shape[d] > p.mosaic.chunk[d] {
			kinds *= 2
		}
	}
	return n + kinds*kernels.ResizerBytes(in, out) + 1<<20
}
