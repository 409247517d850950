package focal

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
	"strata/pkg/oct"
	"strata/pkg/oct/machine"
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
	columns *machine.DeviceColumns
	output  *ngffgpu.Writer // nil: tiles do not lie on the device whole
	workers int
	team    machine.DeviceTeam
}

// rollOnDevice plans the pass on the device, once the output is created.
func rollOnDevice(r *rolling) (*deviceRoll, error) {
	p := &deviceRoll{rolling: r}
	var err error
	if p.columns, err = machine.NewDeviceColumns(r.mosaic, &p.res, r.res.Meter); err != nil {
		return nil, err
	}
	m, limit := r.mosaic, r.res.Device.Memory().Limit()
	correction := mem.Pooled(4 * int64(m.Chunk[1]) * int64(m.Chunk[2]))
	each := func() int64 { // beside slots
		return 2*mem.Pooled(p.columns.Piece()) + mem.Pooled(8)
	}
	for {
		_, slot := p.columns.Memory(p.columns.SlotShape())
		if each()+slot+correction <= limit || !p.columns.Less() {
			break
		}
	}
	_, slot := p.columns.Memory(p.columns.SlotShape())
	worker := each()
	host, place := r.chunk, mem.Pooled(8)
	if p.columns.Rows == m.Chunk[1] {
		p.output = r.res.Output(r.writer)
		pinned, leaving := p.output.Memory(m.Tile())
		place += pinned
		if worker+machine.MostSlots*(slot+leaving)+correction <= limit { // else the writer does without
			worker += machine.MostSlots * leaving
		}
	} else { // put together on the host
		host += machine.MostSlots * mem.Pooled(m.TileBytes())
		place = mem.Pooled(p.columns.Piece() + 8)
	}
	if p.workers, err = p.columns.Workers(&p.res, r.res.Mem-r.pyramidMem, host, place, worker+correction, "rolling "+p.columns.Pieces()); err != nil {
		return nil, err
	}
	p.workers = int(max(1, min(int64(p.workers), (limit-correction)/(worker+machine.MostSlots*slot))))
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
	worker, err := machine.NewDeviceWorker(p.res.Device)
	if err != nil {
		return err
	}
	w := &deviceRoller{deviceRoll: p, worker: worker, stream: worker.Stream, correction: correction}
	defer func() { err = errors.Join(err, w.end()) }()
	if works, err := p.team.Join(w.begin); !works {
		return err
	}
	l := &machine.DeviceLoop{Worker: worker, Res: &p.res, Next: func(place int) (*machine.DeviceJob, bool) {
		at, ok := p.another()
		if !ok {
			return nil, false
		}
		return w.job(at, place), true
	}}
	return l.Run(ctx)
}

// deviceRoller is a worker. What a tile has become is written while the next one is on the
// device, with a stream of its own for what that takes.
type deviceRoller struct {
	*deviceRoll
	worker          *machine.DeviceWorker
	stream, aside   *gpu.Stream
	correction, bad gpu.Span
	in, rolled      gpu.Span        // the tile, or rows of it
	out             [][]byte        // page-locked, for each slot: rows, if tiles are not whole; behind them how many voxels are no numbers
	leaving         []*ngffgpu.Tile // for each slot
	together        [][]byte        // for each slot: a tile that is put together from several pieces
}

// begin takes the memory.
func (w *deviceRoller) begin() (err error) {
	n := w.columns.Piece()
	spans, err := w.worker.Memories(n, n, 8)
	if err != nil {
		return err
	}
	w.in, w.rolled, w.bad = spans[0], spans[1], spans[2]
	place := int64(8)
	if w.output == nil {
		place += n
	}
	if w.out, err = w.worker.Begin(w.columns.Reader, w.columns.SlotShape(), int(place)); err != nil {
		return err
	}
	w.leaving = make([]*ngffgpu.Tile, len(w.out))
	for range w.out {
		if w.columns.Rows < w.mosaic.Chunk[1] {
			b, err := mem.Alloc(int(w.mosaic.TileBytes()))
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
	err = errors.Join(err, w.worker.End())
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
	at   oct.Rectangle
	last int // of the job's regions
}

// job rolls the tile at a place of the mosaic.
func (w *deviceRoller) job(at oct.Rectangle, place int) *machine.DeviceJob {
	m := w.mosaic
	job := &machine.DeviceJob{}
	var pieces []rows
	for y := at.Y0; y < at.Y1; y += w.columns.Rows {
		r := oct.Rect(y, min(y+w.columns.Rows, at.Y1), at.X0, at.X1)
		job.Regions = append(job.Regions, w.columns.Regions(r.Y0, r.Height(), r.X0, r.Width())...)
		pieces = append(pieces, rows{r, len(job.Regions) - 1})
	}
	count, out := m.DType.IsFloat(), w.out[place]
	bad, out := out[len(out)-8:], out[:len(out)-8]
	job.Queue = func(k int, in *zarrgpu.Slot) error {
		i := 0
		for k > pieces[i].last {
			i++
		}
		if k == 0 && count {
			w.stream.Zero(w.bad)
		}
		if err := w.queue(in, job.Regions[k], pieces[i].at, at, k == pieces[i].last, place); err != nil {
			return err
		}
		if k == len(job.Regions)-1 && count {
			w.stream.Download(bad, w.bad)
		}
		return nil
	}
	job.Write = func(ctx context.Context) error {
		if count {
			w.nonFinite.Add(int64(binary.LittleEndian.Uint64(bad)))
		}
		start, shape := []int{0, at.Y0, at.X0}, []int{m.Shape[0], at.Height(), at.Width()}
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
func (w *deviceRoller) queue(in *zarrgpu.Slot, g zarr.Region, r, at oct.Rectangle, last bool, place int) error {
	m, plane := w.mosaic, w.columns.Bytes([]int{1, r.Height(), r.Width()})
	in.Into(w.stream, w.in.From(int64(g.Start[0])*plane, int64(g.Shape[0])*plane))
	if !last {
		return nil
	}
	skip := 4 * int64(r.Y0-at.Y0) * int64(m.Chunk[2])
	shift := w.correction.From(skip, w.correction.Bytes()-skip)
	if err := kernels.Roll(w.stream, w.rolled, w.in, w.bad, m.DType, m.Shape[0], r.Height(), r.Width(), shift, m.Chunk[2]); err != nil {
		return err
	}
	if w.output != nil {
		var err error
		w.leaving[place], err = w.output.Begin(w.stream, []int{0, at.Y0, at.X0}, []int{m.Shape[0], at.Height(), at.Width()}, w.rolled)
		return err
	}
	out := w.out[place][:int64(m.Shape[0])*plane]
	w.stream.Download(out, w.rolled)
	if w.together != nil {
		whole := w.columns.Bytes([]int{1, at.Height(), at.Width()})
		from := w.columns.Bytes([]int{1, r.Y0 - at.Y0, r.Width()})
		w.stream.After(func() {
			for z := range int64(m.Shape[0]) {
				copy(w.together[place][z*whole+from:], out[z*plane:(z+1)*plane])
			}
		})
	}
	return nil
}
