package oct

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
	"strata/pkg/work"
	"strata/pkg/zarr/zarrgpu"
)

// deviceProjector makes the average projections of tiles on a device, bit by bit those
// of the CPU: a tile goes up once, its projection and 16 bytes come down. Neighbours
// are compared on the host: what their correlation decides must not depend on the order
// in which a device adds, and projections are small.
type deviceProjector struct {
	*deviceProjection
	grid    grid
	workers int
	counted []bool            // tiles whose bytes are in the progress, of this pass or another
	done    func(bytes int64) // the progress
}

func newDeviceProjector(m *mosaic, counted []bool, res Resources) (projector, error) {
	p := &deviceProjector{deviceProjection: &deviceProjection{mosaic: m, res: res}, grid: gridOf(m), counted: counted, done: res.progress}
	p.res.Progress = nil // tiles come again, and are counted once
	var err error
	if p.reader, err = newDeviceColumns(m, &p.res, res.Meter); err != nil {
		return nil, err
	}
	pixels := int64(m.chunk[1]) * int64(m.chunk[2])
	tile := p.reader.Bytes(p.reader.slot())
	p.workers, err = p.reader.workers(&p.res, res.Mem/2, 0, 4*pixels+2*4096, tile+12*pixels+2*4096, fmt.Sprintf("projecting tiles of %v voxels", m.tile()))
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
	team := deviceTeam{}
	for range min(p.workers, len(tiles)) {
		g.Go(func() error { return p.projectTiles(gctx, &team, &next, tiles, out) })
	}
	return out, g.Wait()
}

// projectTiles projects tiles until none is left.
func (p *deviceProjector) projectTiles(ctx context.Context, team *deviceTeam, next *atomic.Int64, tiles []int, out [][]float32) (err error) {
	w, err := newDeviceWorker(p.res.Device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.end()) }()
	c := &deviceColumn{deviceProjection: p.deviceProjection, stream: w.stream}
	var set gpu.Span
	var back []byte // page-locked: set, for each place
	works, err := team.join(func() (err error) {
		if set, err = w.memory(8); err != nil {
			return err
		}
		if back, err = w.pinned(8 * mostSlots); err != nil {
			return err
		}
		return c.begin(w)
	})
	if !works {
		return err
	}
	l := &deviceLoop{worker: w, res: &p.res, next: func(place int) (*deviceJob, bool) {
		k := int(next.Add(1) - 1)
		if k >= len(tiles) {
			return nil, false
		}
		t := tiles[k]
		n := p.grid.extentOf(t)
		pixels := int64(n[0]) * int64(n[1])
		something := back[8*place:][:8]
		job := c.job(t/p.grid.nx, t%p.grid.nx, place)
		add := job.queue
		job.queue = func(i int, in *zarrgpu.Slot) error {
			if err := add(i, in); err != nil || i < len(job.regions)-1 {
				return err
			}
			w.stream.Zero(set)
			if err := kernels.CountSet(w.stream, set, c.acc.From(0, 8*pixels)); err != nil {
				return err
			}
			w.stream.Download(something, set)
			return nil
		}
		job.write = func(context.Context) error {
			if binary.LittleEndian.Uint64(something) != 0 {
				out[k] = slices.Clone(dtype.Slice[float32](c.out[place][8 : 8+4*pixels]))
			}
			if !p.counted[t] {
				p.counted[t] = true
				p.done(p.reader.Bytes([]int{p.mosaic.shape[0], n[0], n[1]}))
			}
			return nil
		}
		return job, true
	}}
	return l.run(ctx)
}
