package stitch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/oct"
	"strata/pkg/oct/aip"
	"strata/pkg/oct/machine"
	"strata/pkg/work"
	"strata/pkg/zarr/zarrgpu"
)

// deviceProjector makes the average projections of tiles on a device, bit by bit those
// of the CPU: a tile goes up once, its projection and 16 bytes come down. Neighbours
// are compared on the host: what their correlation decides must not depend on the order
// in which a device adds, and projections are small.
type deviceProjector struct {
	*aip.DeviceProjection
	grid    grid
	workers int
	counted []bool            // tiles whose bytes are in the progress, of this pass or another
	done    func(bytes int64) // the progress
}

func newDeviceProjector(m *oct.Mosaic, counted []bool, res oct.Resources) (projector, error) {
	p := &deviceProjector{DeviceProjection: &aip.DeviceProjection{Mosaic: m, Res: res}, grid: gridOf(m), counted: counted, done: res.Done}
	p.Res.Progress = nil // tiles come again, and are counted once
	var err error
	if p.Reader, err = machine.NewDeviceColumns(m, &p.Res, res.Meter); err != nil {
		return nil, err
	}
	pixels := int64(m.Chunk[1]) * int64(m.Chunk[2])
	tile := p.Reader.Bytes(p.Reader.SlotShape())
	p.workers, err = p.Reader.Workers(&p.Res, res.Mem/2, 0, 4*pixels+2*4096, tile+12*pixels+2*4096, fmt.Sprintf("projecting tiles of %v voxels", m.Tile()))
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (p *deviceProjector) close() {}

func (p *deviceProjector) project(ctx context.Context, tiles []int) ([][]float32, error) {
	out := make([][]float32, len(tiles))
	g, gctx := work.WithContext(ctx)
	var next atomic.Int64
	team := machine.DeviceTeam{}
	for range min(p.workers, len(tiles)) {
		g.Go(func() error { return p.projectTiles(gctx, &team, &next, tiles, out) })
	}
	return out, g.Wait()
}

// projectTiles projects tiles until none is left.
func (p *deviceProjector) projectTiles(ctx context.Context, team *machine.DeviceTeam, next *atomic.Int64, tiles []int, out [][]float32) (err error) {
	w, err := machine.NewDeviceWorker(p.Res.Device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.End()) }()
	c := &aip.DeviceColumn{DeviceProjection: p.DeviceProjection, Stream: w.Stream}
	var set gpu.Span
	var back []byte // page-locked: set, for each place
	works, err := team.Join(func() (err error) {
		if set, err = w.Memory(8); err != nil {
			return err
		}
		if back, err = w.Pinned(8 * machine.MostSlots); err != nil {
			return err
		}
		return c.Begin(w)
	})
	if !works {
		return err
	}
	l := &machine.DeviceLoop{Worker: w, Res: &p.Res, Next: func(place int) (*machine.DeviceJob, bool) {
		k := int(next.Add(1) - 1)
		if k >= len(tiles) {
			return nil, false
		}
		t := tiles[k]
		n := p.grid.extentOf(t)
		pixels := int64(n[0]) * int64(n[1])
		something := back[8*place:][:8]
		job := c.Job(t/p.grid.nx, t%p.grid.nx, place)
		add := job.Queue
		job.Queue = func(i int, in *zarrgpu.Slot) error {
			if err := add(i, in); err != nil || i < len(job.Regions)-1 {
				return err
			}
			w.Stream.Zero(set)
			if err := kernels.CountSet(w.Stream, set, c.Acc.From(0, 8*pixels)); err != nil {
				return err
			}
			w.Stream.Download(something, set)
			return nil
		}
		job.Write = func(context.Context) error {
			if binary.LittleEndian.Uint64(something) != 0 {
				out[k] = slices.Clone(dtype.Slice[float32](c.Out[place][8 : 8+4*pixels]))
			}
			if !p.counted[t] {
				p.counted[t] = true
				p.done(p.Reader.Bytes([]int{p.Mosaic.Shape[0], n[0], n[1]}))
			}
			return nil
		}
		return job, true
	}}
	return l.Run(ctx)
}
