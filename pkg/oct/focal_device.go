package oct

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// deviceRoll is the second pass on a device. The correction goes there once; each tile
// goes there and comes back once, with 8 bytes where voxels may be no numbers.
//
// A device that does not hold a tile twice gets some rows of it at a time, which are put
// together on the host.
type deviceRoll struct {
	*rolling
	columns *deviceColumns
	output  *ngffgpu.Writer // nil: tiles do not lie on the device whole
	workers int
	team    deviceTeam
}

// rollOnDevice plans the pass on the device, once the output is created.
func rollOnDevice(r *rolling) (*deviceRoll, error) {
	p := &deviceRoll{rolling: r}
	var err error
	if p.columns, err = newDeviceColumns(r.mosaic, &p.res, r.res.Meter); err != nil {
		return nil, err
	}
	m, limit := r.mosaic, r.res.Device.Memory().Limit()
	correction := mem.Pooled(4 * int64(m.chunk[1]) * int64(m.chunk[2]))
	each := func() int64 { // beside slots
		return 2*mem.Pooled(p.columns.piece()) + mem.Pooled(8)
	}
	for {
		_, slot := p.columns.Memory(p.columns.slot())
		if each()+slot+correction <= limit || !p.columns.less() {
			break
		}
	}
	_, slot := p.columns.Memory(p.columns.slot())
	worker := each()
	host, place := r.chunk, mem.Pooled(8)
	if p.columns.rows == m.chunk[1] {
		p.output = r.res.output(r.writer)
		pinned, leaving := p.output.Memory(m.tile())
		place += pinned
		if worker+mostSlots*(slot+leaving)+correction <= limit { // else the writer does without
			worker += mostSlots * leaving
		}
	} else { // put together on the host
		host += mostSlots * mem.Pooled(m.tileBytes())
		place = mem.Pooled(p.columns.piece() + 8)
	}
	if p.workers, err = p.columns.workers(&p.res, r.res.Mem-r.pyramidMem, host, place, worker+correction, "rolling "+p.columns.pieces()); err != nil {
		return nil, err
	}
	p.workers = int(max(1, min(int64(p.workers), (limit-correction)/(worker+mostSlots*slot))))
	return p, nil
}

// run rolls all tiles.
func (p *deviceRoll) run(ctx context.Context, corr []float32) error {
	correction, err := p.bring(corr)
	if err != nil {
		return err
	}
	defer correction.Release()
	return p.inOrder(ctx, p.workers, func(ctx context.Context) error { return p.work(ctx, correction.Span) })
}

// bring brings the correction to the device.
func (p *deviceRoll) bring(corr []float32) (_ *gpu.Buffer, err error) {
	s, err := p.res.Device.Stream()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	host, err := p.res.Device.Host(4 * len(corr))
	if err != nil {
		return nil, err
	}
	defer host.Release()
	copy(host.B, dtype.Bytes(corr))
	b, err := p.res.Device.Memory().Get(int64(len(host.B)))
	if err != nil {
		return nil, err
	}
	s.Upload(b.Span, host.B)
	if err := s.Wait(); err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}

// work rolls tiles until none is left.
func (p *deviceRoll) work(ctx context.Context, correction gpu.Span) (err error) {
	worker, err := newDeviceWorker(p.res.Device)
	if err != nil {
		return err
	}
	w := &deviceRoller{deviceRoll: p, worker: worker, stream: worker.stream, correction: correction}
	defer func() { err = errors.Join(err, w.end()) }()
	if works, err := p.team.join(w.begin); !works {
		return err
	}
	l := &deviceLoop{worker: worker, res: &p.res, next: func(place int) (*deviceJob, bool) {
		at, ok := p.another()
		if !ok {
			return nil, false
		}
		return w.job(at, place), true
	}}
	return l.run(ctx)
}

// deviceRoller is a worker. What a tile has become is written while the next one is on the
// device, with a stream of its own for what that takes.
type deviceRoller struct {
	*deviceRoll
	worker          *deviceWorker
	stream, aside   *gpu.Stream
	correction, bad gpu.Span
	in, rolled      gpu.Span        // the tile, or rows of it
	out             [][]byte        // page-locked, for each slot: rows, if tiles are not whole; behind them how many voxels are no numbers
	leaving         []*ngffgpu.Tile // for each slot
	together        [][]byte        // for each slot: a tile that is put together from several pieces
}

// begin takes the memory.
func (w *deviceRoller) begin() (err error) {
	n := w.columns.piece()
	spans, err := w.worker.memories(n, n, 8)
	if err != nil {
		return err
	}
	w.in, w.rolled, w.bad = spans[0], spans[1], spans[2]
	place := int64(8)
	if w.output == nil {
		place += n
	}
	if w.out, err = w.worker.begin(w.columns.Reader, w.columns.slot(), int(place)); err != nil {
		return err
	}
	w.leaving = make([]*ngffgpu.Tile, len(w.out))
	for range w.out {
		if w.columns.rows < w.mosaic.chunk[1] {
			b, err := mem.Alloc(int(w.mosaic.tileBytes()))
			if err != nil {
				return fmt.Errorf("memory for a tile: %w", err)
			}
			w.together = append(w.together, b)
		}
	}
	w.aside, err = w.res.Device.Stream()
	return err
}

func (w *deviceRoller) end() (err error) {
	if w.aside != nil {
		err = w.aside.Close()
	}
	err = errors.Join(err, w.worker.end())
	for _, t := range w.leaving { // of a run that failed
		if t != nil {
			t.Release()
		}
	}
	for _, b := range w.together {
		mem.Free(b)
	}
	return err
}

// rows is a stretch of rows of a tile that is on the device at a time.
type rows struct {
	at   rectangle
	last int // of the job's regions
}

// job rolls the tile at a place of the mosaic.
func (w *deviceRoller) job(at rectangle, place int) *deviceJob {
	m := w.mosaic
	job := &deviceJob{}
	var pieces []rows
	for y := at.y0; y < at.y1; y += w.columns.rows {
		r := rectangle{y, min(y+w.columns.rows, at.y1), at.x0, at.x1}
		job.regions = append(job.regions, w.columns.regions(r.y0, r.height(), r.x0, r.width())...)
		pieces = append(pieces, rows{r, len(job.regions) - 1})
	}
	count, out := m.dtype.IsFloat(), w.out[place]
	bad, out := out[len(out)-8:], out[:len(out)-8]
	job.queue = func(k int, in *zarrgpu.Slot) error {
		i := 0
		for k > pieces[i].last {
			i++
		}
		if k == 0 && count {
			w.stream.Zero(w.bad)
		}
		if err := w.queue(in, job.regions[k], pieces[i].at, at, k == pieces[i].last, place); err != nil {
			return err
		}
		if k == len(job.regions)-1 && count {
			w.stream.Download(bad, w.bad)
		}
		return nil
	}
	job.write = func(ctx context.Context) error {
		if count {
			w.nonFinite.Add(int64(binary.LittleEndian.Uint64(bad)))
		}
		start, shape := []int{0, at.y0, at.x0}, []int{m.shape[0], at.height(), at.width()}
		if w.output != nil {
			return w.leaving[place].Write(ctx, w.aside)
		}
		if w.together != nil {
			out = w.together[place]
		}
		return w.writer.WriteTile(ctx, start, shape, out[:w.columns.Bytes(shape)])
	}
	return job
}

// queue queues what is to be done with region g of some rows of the tile at a place, the
// last one or not.
func (w *deviceRoller) queue(in *zarrgpu.Slot, g zarr.Region, r, at rectangle, last bool, place int) error {
	m, plane := w.mosaic, w.columns.Bytes([]int{1, r.height(), r.width()})
	in.Into(w.stream, w.in.From(int64(g.Start[0])*plane, int64(g.Shape[0])*plane))
	if !last {
		return nil
	}
	skip := 4 * int64(r.y0-at.y0) * int64(m.chunk[2])
	shift := w.correction.From(skip, w.correction.Bytes()-skip)
	if err := kernels.Roll(w.stream, w.rolled, w.in, w.bad, m.dtype, m.shape[0], r.height(), r.width(), shift, m.chunk[2]); err != nil {
		return err
	}
	if w.output != nil {
		var err error
		w.leaving[place], err = w.output.Begin(w.stream, []int{0, at.y0, at.x0}, []int{m.shape[0], at.height(), at.width()}, w.rolled)
		return err
	}
	out := w.out[place][:int64(m.shape[0])*plane]
	w.stream.Download(out, w.rolled)
	if w.together != nil {
		whole := w.columns.Bytes([]int{1, at.height(), at.width()})
		from := w.columns.Bytes([]int{1, r.y0 - at.y0, r.width()})
		w.stream.After(func() {
			for z := range int64(m.shape[0]) {
				copy(w.together[place][z*whole+from:], out[z*plane:(z+1)*plane])
			}
		})
	}
	return nil
}
