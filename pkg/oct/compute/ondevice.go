package compute

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/oct"
	"strata/pkg/oct/compute/transfer"
	"strata/pkg/zarr"
)

// onDevice is a worker on a device. It reads a region, queues its processing, and reads the next while the device
// works; it has as many regions in flight as slots. A separate goroutine writes the result of each piece of work.
type onDevice struct {
	dev     *transfer.DeviceWorker
	plan    *Plan
	ctx     context.Context
	err     error
	staging gpu.Span // streamed planes
	bad     gpu.Span // uint64: non-finite voxels of the piece of work
	some    gpu.Span // uint64: 0 if sums are
	blocks  []Block
	resize  deviceResizer
	roll    deviceRoller
	finder  deviceFinder
	places  [][]byte // page-locked: bad, followed by downloaded blocks
	leaving *transfer.DeviceOutput
	writing *deviceWriting

	steps  int       // regions fetched
	now    stretch   // being queued
	queued []stretch // before it, each up to a mark, oldest first
	piece  *deviceTile
}

// stretch is the device's work on one region, up to the next region.
type stretch struct {
	region int64       // bytes
	piece  *deviceTile // piece of work that ends with it; nil: none
}

const countsBytes = 16 // of bad and some

// deviceTile holds the results of a piece of work.
type deviceTile struct {
	place   int
	counted bool // bad counts
	filled  int  // bytes used in the place
	brought []func()
	write   func() error // nil: nothing to write
}

func (p *Plan) beginOnDevice() (begin func(context.Context, int) (running, error), workers int, err error) {
	output, workers, err := p.operator().planOnDevice(p)
	return p.starting(output), workers, err
}

// needsOnDevice returns the memory that a worker needs to write to output. If output is nil but the plan writes tiles,
// it assumes that tiles leave the device unencoded, which needs the least memory.
func (p *Plan) needsOnDevice(output *ngffgpu.Writer) transfer.Needs {
	c := p.Source.columns
	n := transfer.Needs{
		What: p.What, Mem: p.Memory.Host, Shared: p.Memory.Shared, Place: mem.Pooled(8 + p.Memory.Brought + p.look()),
		Device: mem.Pooled(c.Bytes(c.SlotShape())) + 4096,
	}
	p.operator().needs(p, &n)
	for _, bytes := range p.Memory.Blocks {
		n.Device += mem.Pooled(bytes)
	}
	if out := &p.Output; out.To != nil && out.Look == nil {
		n.Elements = mem.Pooled(p.tileBytes(out.To.Array(0).DType()))
		n.Leaves = n.Elements
	}
	if output != nil {
		n.Leaves, n.Leaving = output.Memory(p.Output.Tile)
	}
	return n
}

// starting returns a function that starts workers on a device. They write to output unless it is nil.
func (p *Plan) starting(output *ngffgpu.Writer) func(ctx context.Context, _ int) (running, error) {
	team := &transfer.DeviceTeam{}
	return func(ctx context.Context, _ int) (running, error) {
		worker, err := transfer.NewDeviceWorker(p.Source.res.Device)
		if err != nil {
			return nil, err
		}
		w := &onDevice{dev: worker, plan: p, ctx: ctx}
		works, err := team.Join(func() error { return w.begin(output) })
		if !works {
			err = errors.Join(err, worker.End())
			w.resize.release()
			w.roll.free()
			return nil, err
		}
		return w, nil
	}
}

// look returns the size in bytes of a tile that Look inspects on the host, or 0 without Look.
func (p *Plan) look() int64 {
	if p.Output.Look == nil {
		return 0
	}
	return p.tileBytes(p.Output.To.Array(0).DType())
}

// tileBytes returns the size of a tile of the output.
func (p *Plan) tileBytes(t dtype.Type) int64 {
	n := int64(t.Size())
	for _, k := range p.Output.Tile {
		n *= int64(k)
	}
	return n
}

// begin allocates the worker's memory.
func (w *onDevice) begin(output *ngffgpu.Writer) (err error) {
	c := w.plan.Source.columns
	err = w.plan.operator().beginOnDevice(w)
	if err != nil {
		return err
	}
	for _, n := range w.plan.Memory.Blocks {
		s, err := w.dev.Memory(n)
		if err != nil {
			return err
		}
		w.blocks = append(w.blocks, Block{device: s})
	}
	counts := w.finder.counts
	if counts.Bytes() == 0 {
		if counts, err = w.dev.Memory(countsBytes); err != nil {
			return err
		}
	}
	w.bad, w.some = counts.From(0, 8), counts.From(8, 8)
	if w.places, err = w.dev.Begin(c.Reader, c.SlotShape(), c.Slots, 8+int(w.plan.Memory.Brought+w.plan.look()+w.roll.back)); err != nil {
		return err
	}
	if output != nil {
		if w.leaving, err = w.dev.Output(output, len(w.places)); err != nil {
			return err
		}
	}
	w.writing = startWriting(len(w.places))
	return nil
}

// stage allocates the memory to which planes are streamed.
func (w *onDevice) stage() (err error) {
	c := w.plan.Source.columns
	w.staging, err = w.dev.Memory(c.Bytes(c.SlotShape()))
	return err
}

func (w *onDevice) failed() error { return cmp.Or(w.err, w.writing.failed()) }
func (w *onDevice) start()        {}

// try calls f unless an error has occurred, and keeps its error.
func (w *onDevice) try(f func() error) {
	if w.err == nil {
		err := f()
		w.err = cmp.Or(w.err, err) // what an earlier piece left may have failed meanwhile
	}
}

// tile returns the results of the piece of work being queued. It waits for a free place if needed.
func (w *onDevice) tile() *deviceTile {
	for w.piece == nil {
		place, ok := w.writing.place(len(w.queued) == 0)
		if ok {
			w.piece = &deviceTile{place: place, filled: 8}
			break
		}
		w.pass()
	}
	return w.piece
}

// nonFinite returns the counter of the non-finite voxels in the piece of work.
func (w *onDevice) nonFinite() gpu.Span {
	if t := w.tile(); !t.counted {
		w.dev.Stream.Zero(w.bad)
		t.counted = true
	}
	return w.bad
}

func (w *onDevice) Block(i int) Block { return w.blocks[i] }

func (w *onDevice) Stream(part oct.Rectangle, take func(z, n int, planes Block)) {
	w.load(part, func(int, int64) gpu.Span { return w.staging }, take)
}

// load fetches the regions of a part and copies each to the span that to returns for its first plane z and the
// size of a plane in bytes; then it calls take.
func (w *onDevice) load(part oct.Rectangle, to func(z int, plane int64) gpu.Span, take func(z, n int, planes Block)) {
	c := w.plan.Source.columns
	plane := c.Bytes(w.plan.Source.mosaic.BoxShape(1, part.Height(), part.Width()))
	w.fetch(c.Regions(part.Y0, part.Height(), part.X0, part.Width()), func(z, _ int) gpu.Span { return to(z, plane) }, take)
}

// fetch fetches regions and copies each to the span that to returns for its n planes from z on; then it calls take.
func (w *onDevice) fetch(regions []zarr.Region, to func(z, n int) gpu.Span, take func(z, n int, planes Block)) {
	s := w.plan.Source
	for _, g := range regions {
		if w.now != (stretch{}) {
			w.mark()
		}
		for len(w.queued) >= len(w.dev.Slots) {
			w.pass()
		}
		if w.err = w.failed(); w.err != nil {
			return
		}
		slot := w.dev.Slots[w.steps%len(w.dev.Slots)]
		w.steps++
		if w.err = oct.Readable(slot.Fetch(w.ctx, g)); w.err != nil {
			return
		}
		z, bytes := s.mosaic.First(g.Start), s.columns.Bytes(g.Shape)
		n := s.mosaic.Planes(g.Shape)
		span := to(z, n).From(0, bytes)
		slot.Into(w.dev.Stream, span)
		take(z, n, Block{device: span})
		w.now.region = bytes
	}
}

// mark ends the stretch being queued.
func (w *onDevice) mark() {
	w.dev.Stream.Mark()
	w.queued = append(w.queued, w.now)
	w.now = stretch{}
}

// pass waits for the oldest stretch, and delivers the piece of work that ends with it.
func (w *onDevice) pass() {
	s, res := w.queued[0], w.plan.Source.res
	w.queued = w.queued[1:]
	start := time.Now()
	err := w.dev.Stream.Passed()
	res.Meter.Since(meter.Compute, start)
	if w.err = cmp.Or(w.err, err); w.err == nil {
		res.Done(s.region)
	}
	if s.piece != nil {
		w.deliver(s.piece)
	}
}

// settle waits for everything queued.
func (w *onDevice) settle() {
	w.mark()
	for len(w.queued) > 0 {
		w.pass()
	}
}

// deliver hands over the results of a piece of work that the device has completed.
func (w *onDevice) deliver(t *deviceTile) {
	if t.counted && w.err == nil {
		w.plan.nonFinite(int64(binary.LittleEndian.Uint64(w.places[t.place])))
	}
	for _, f := range t.brought {
		if w.err == nil {
			f()
		}
	}
	if w.err != nil {
		t.write = nil
	}
	w.writing.write(t)
}

func (w *onDevice) next() {
	w.try(func() error {
		t := w.tile()
		if t.counted {
			w.dev.Stream.Download(w.places[t.place][:8], w.bad)
		}
		w.now.piece, w.piece = t, nil
		w.mark()
		return nil
	})
}

func (w *onDevice) finish() {
	if w.err == nil {
		w.settle()
	}
	w.err = cmp.Or(w.err, w.writing.end())
}

func (w *onDevice) end() error {
	_ = w.writing.end() // of a worker that panicked
	err := w.dev.End()
	w.resize.release() // nothing runs any more
	w.roll.free()
	return err
}

func (w *onDevice) Bring(b Block, f func([]byte)) {
	w.try(func() error {
		t := w.tile()
		to := w.down(t, b)
		t.brought = append(t.brought, func() { f(to) })
		return nil
	})
}

func (w *onDevice) Then(f func() error) {
	w.try(func() error {
		t := w.tile()
		t.brought = append(t.brought, func() { w.err = f() })
		return nil
	})
}

// down queues the download of a block to the piece of work's place on the host, and returns its bytes there.
func (w *onDevice) down(t *deviceTile, b Block) []byte {
	to := w.places[t.place][t.filled:][:b.device.Bytes()]
	t.filled += len(to)
	w.dev.Stream.Download(to, b.device)
	return to
}

// leave queues the device's part of writing a tile. If the page-locked memory for it is in use, it waits for tiles that
// are being written, its own and those of other workers.
func (w *onDevice) leave(place int, start, shape []int, tile gpu.Span) error {
	err := w.leaving.Begin(w.dev.Stream, place, start, shape, tile)
	if !errors.Is(err, gpu.ErrMemory) {
		return err
	}
	w.settle() // else its own tiles would wait for it
	if w.err != nil {
		return w.err
	}
	return w.leaving.Await(w.ctx, w.dev.Stream, place, start, shape, tile)
}

func (w *onDevice) Write(start, shape []int, tile Block) {
	w.try(func() error {
		t, out := w.tile(), &w.plan.Output
		if out.Look == nil {
			t.write = func() error { return w.leaving.Write(w.ctx, t.place) }
			return w.leave(t.place, start, shape, tile.device)
		}
		b := w.down(t, tile) // who looks writes
		t.write = func() error {
			out.Look(b)
			return out.To.WriteTile(w.ctx, start, shape, b)
		}
		return nil
	})
}
