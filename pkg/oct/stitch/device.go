package stitch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/oct/machine"
	"strata/pkg/work"
)

// deviceFusion is a fusion on a device. The order of the work is that of the CPU, of
// the same kind of plan, made for the device's memory: tiles come one after the other, and
// what their columns become is decided in their order.
//
// A tile's planes of a slab go up once in a pass, where all columns that it lies on find them;
// with the weights of its situation, unless these are there, and a table. The columns come down
// once, with 8 bytes a tile that say whether there is anything on it. There is one pass
// where the device holds the columns on which a row of tiles lies; else more, as on the
// CPU. Tiles that are known to be empty do not go up again. Of one whose first slab is empty
// the others are looked at in the first pass.
type deviceFusion struct {
	*stitchPlan
	canvas
	avail    int64 // bytes of host memory
	reader   *machine.DeviceColumns
	writer   *ngffgpu.Writer
	weights  *deviceWeights
	out      *ngff.Writer
	pieces   int           // planes that the CPU reads at a time: seams are added up in this order
	inFlight int           // regions of the mosaic, and units of the slice, that a worker has under way
	odd      bool          // units do not all begin where one can be written from
	cells    int           // that a tile lies on, at most, those of seams counted twice
	keys     int           // seams in a column, at most
	begun    int           // seams in all columns on which a tile lies, at most
	empty    []tileContent // by tile
	shown    []int         // planes of each tile that are in the progress
}

// tileContent is what is known of a tile.
type tileContent int8

const (
	tileUnknown tileContent = iota
	tileEmpty
	tileSomething
)

func newDeviceFusion(c canvas, unit [3]int, avail int64) *deviceFusion {
	f := &deviceFusion{stitchPlan: &stitchPlan{unit: unit}, canvas: c, avail: avail, empty: make([]tileContent, len(c.places)), shown: make([]int, len(c.places))}
	f.columns, f.across = makeColumns(c.size, unit, c.places)
	count, seams := make([]int, len(c.places)), make([]int, len(c.places))
	for k := range f.columns {
		f.odd = f.odd || f.unitBytes(&f.columns[k])%unitAlignment != 0
		if c.seams != nil {
			n := len(seamKeys(&f.columns[k]))
			f.keys = max(f.keys, n)
			for _, t := range f.columns[k].tiles {
				seams[t] += n
				f.begun = max(f.begun, seams[t])
			}
		}
		for _, r := range f.columns[k].regions {
			for _, t := range r.who {
				count[t]++
				if len(r.who) == 2 {
					count[t]++
				}
				f.cells = max(f.cells, count[t])
			}
		}
	}
	return f
}

func (f *deviceFusion) isEmpty(t int) bool { return f.empty[t] == tileEmpty }

// write reads the tiles and writes the slice.
func (f *deviceFusion) write(ctx context.Context, w *ngff.Writer) (err error) {
	if f.reader, err = machine.NewDeviceColumns(f.mosaic, &f.res, f.res.Meter); err != nil {
		return err
	}
	src, err := pieceSource(f.mosaic, nil)
	if err != nil {
		return err
	}
	f.pieces = f.mosaic.Frames.Planes(src.TileShape(0))
	f.out, f.writer = w, f.res.Output(w)
	if err := f.makePlan(); err != nil {
		return err
	}
	defer f.weights.release()
	return f.run(ctx)
}

// unitAlignment is what the memory of a unit that is written begins at a multiple of.
const unitAlignment = 16

// unitBytes is the size of a column's units but the last.
func (f *deviceFusion) unitBytes(c *outColumn) int64 {
	return int64(f.unit[0]) * int64(c.box.Y1-c.box.Y0) * int64(c.box.X1-c.box.X0) * int64(f.mosaic.DType.Size())
}

// slot is the shape of the regions in which tiles come.
func (f *deviceFusion) slot() []int {
	return f.reader.SlotOf(f.slab * f.unit[0])
}

// unitShape is the shape of a whole unit of the output.
func (f *deviceFusion) unitShape() []int {
	return []int{min(f.unit[0], f.mosaic.Shape[0]), min(f.unit[1], f.size[0]), min(f.unit[2], f.size[1])}
}

// tableBytes is what a worker's table takes: cells, seams, and the sums of the seams of
// columns that begin.
func (f *deviceFusion) tableBytes() int {
	return f.cells*kernels.CellBytes + f.begun*(kernels.SeamBytes+kernels.SeamState)
}

// backBytes is what a worker brings back beside the output: whether a tile holds
// something, the sums of a column's seams.
func (f *deviceFusion) backBytes() int { return 8 + f.keys*kernels.SeamState }

// makePlan makes the plan: as many workers as the host's memory holds, at most, and in the
// device's.
func (f *deviceFusion) makePlan() error {
	m, d := f.mosaic, f.res.Device
	plane := int64(m.Chunk[1]) * int64(m.Chunk[2])
	pinned, device := f.reader.Memory(f.reader.SlotShape())
	out, outDevice := f.writer.Memory(f.unitShape())
	weights := int64(0)
	if f.blending != BlendAverage {
		weights = mem.Pooled(4 * plane)
	}
	table := int64(mem.Size(f.tableBytes()))
	if f.odd {
		outDevice += mem.Pooled(f.reader.Bytes(f.unitShape()))
	}
	host := f.encoding(f.unit) + weights + table + int64(mem.Size(f.backBytes()))
	if f.blending == BlendDiffusion {
		host += diffusing * plane
	}
	if f.avail < host+f.reader.Scratch+pinned+out {
		f.reader.Untried()
	}
	host += f.reader.Scratch
	what := fmt.Sprintf("stitching tiles of this size into chunks of %v", f.unit)
	f.inFlight = machine.MostSlots
	if f.avail < host+int64(f.inFlight)*(pinned+out) {
		f.inFlight = 1
	}
	host += int64(f.inFlight) * (pinned + out)
	workers := int(min(int64(f.res.Workers), f.avail/host, int64(len(f.places))))
	if workers < 1 {
		return fmt.Errorf("%s: %s needs %d MiB of buffers, --mem leaves %d MiB for them: grant more, or ask for smaller --chunks", m.Where, what, host>>20+1, f.avail>>20)
	}
	limit := d.Memory().Limit()
	cost := costs{
		worker: int64(f.inFlight)*(device+outDevice) + weights + table + 2*int64(mem.Size(1)),
		plane:  plane*int64(m.DType.Size())*17/16 + 1, // as pools round
		column: f.columnMemory,
		fixed:  min(limit/32, 64*weights),
	}
	least, ok := f.plan(m.Shape[0], f.reader.Planes, workers, limit, cost)
	if !ok {
		return fmt.Errorf("%s: %s takes %d MiB of device memory, there are %d MiB: %w", m.Where, what, least>>20+1, limit>>20, gpu.ErrMemory)
	}
	f.weights = newDeviceWeights(newWeights(f.blending, f.places, overlapping(f.places), 0), d, cost.fixed+int64(f.workers)*weights)
	return nil
}

// run goes through the blocks, and the slabs of each.
func (f *deviceFusion) run(ctx context.Context) error {
	depth := f.mosaic.Shape[0]
	for b := range len(f.blocks) - 1 {
		for z := 0; z < depth; z += f.slab * f.unit[0] {
			g, gctx := work.WithContext(ctx)
			box := passBox{f.blocks[b], f.blocks[b+1], z, min(z+f.slab*f.unit[0], depth)}
			g.Go(func() error { return f.pass(gctx, box, f.workers, map[*outColumn]bool{}) })
			g.Go(func() error { return f.writeHoles(gctx, box) })
			if err := g.Wait(); err != nil {
				return err
			}
		}
	}
	return nil
}

// passBox is what a pass makes: columns x0 … x1−1 along x, planes z0 … z1−1.
type passBox struct{ x0, x1, z0, z1 int }

// pass makes the columns of a box that are not written. Where the device turns out to
// have less memory than was planned with, it makes them in narrower passes.
func (f *deviceFusion) pass(ctx context.Context, box passBox, workers int, written map[*outColumn]bool) error {
	p := newDevicePass(f, box, written)
	err := p.run(ctx, workers)
	var short shortOfMemory
	if !errors.As(err, &short) {
		return err
	}
	left, right := box, box
	switch {
	case box.x1-box.x0 > 1:
		left.x1 = (box.x0 + box.x1) / 2
		right.x0 = left.x1
	case box.z1-box.z0 > f.unit[0]:
		left.z1 = box.z0 + shrink((box.z1-box.z0+f.unit[0]-1)/f.unit[0])*f.unit[0]
		right.z0 = left.z1
	case workers > 1:
		return f.pass(ctx, box, 1, written)
	default:
		return err
	}
	if err := f.pass(ctx, left, workers, written); err != nil {
		return err
	}
	return f.pass(ctx, right, workers, written)
}

// shortOfMemory is an error of [gpu.ErrMemory] at a place where a narrower pass helps.
type shortOfMemory struct{ error }

func (e shortOfMemory) Unwrap() error { return e.error }

// writeHoles writes the columns on which no tile lies. Nothing of them comes from the
// device.
func (f *deviceFusion) writeHoles(ctx context.Context, box passBox) (err error) {
	var zeros []byte
	f.each(box.x0, box.x1, func(c *outColumn) {
		if len(c.tiles) > 0 || err != nil {
			return
		}
		if zeros == nil {
			zeros = make([]byte, f.reader.Bytes(f.unitShape()))
		}
		shape := []int{0, c.box.Y1 - c.box.Y0, c.box.X1 - c.box.X0}
		for z := box.z0; z < box.z1 && err == nil; z += f.unit[0] {
			shape[0] = min(f.unit[0], box.z1-z)
			err = f.out.WriteTile(ctx, f.mosaic.Index(z, c.box.Y0, c.box.X0), f.mosaic.BoxShape(shape[0], shape[1], shape[2]), zeros[:f.reader.Bytes(shape)])
		}
	})
	return err
}

// devicePass is the work on one box.
type devicePass struct {
	*deviceFusion
	passBox
	tiles []int // in the order in which they are taken

	// mu guards what follows; moved is called when any of it changes
	mu       sync.Mutex
	moved    sync.Cond
	written  map[*outColumn]bool
	live     map[*outColumn]*deviceOutColumn
	next     int        // tile that is taken next
	turn     int        // tile that is queued next
	before   *gpu.Event // behind what was queued last; nil: nothing was
	finished []bool     // tiles
	oldest   int        // first of them that is not
	events   []*gpu.Event
	short    error // of memory: no more tiles are begun
	failed   bool
}

func newDevicePass(f *deviceFusion, box passBox, written map[*outColumn]bool) *devicePass {
	p := &devicePass{deviceFusion: f, passBox: box, written: written, live: map[*outColumn]*deviceOutColumn{}}
	p.moved.L = &p.mu
	lies := make([]bool, len(f.places))
	f.each(box.x0, box.x1, func(c *outColumn) {
		if !written[c] {
			for _, t := range c.tiles {
				lies[t] = true
			}
		}
	})
	for t, yes := range lies {
		if yes {
			p.tiles = append(p.tiles, t)
		}
	}
	p.finished = make([]bool, len(p.tiles))
	return p
}

// run makes the columns. Those that were complete when the device was short of memory
// are written.
func (p *devicePass) run(ctx context.Context, workers int) error {
	g, gctx := work.WithContext(ctx)
	stop := context.AfterFunc(gctx, func() {
		p.mu.Lock()
		p.failed = true
		p.mu.Unlock()
		p.moved.Broadcast()
	})
	defer stop()
	team := machine.DeviceTeam{}
	for range min(workers, len(p.tiles)) {
		g.Go(func() error { return p.work(gctx, &team) })
	}
	err := g.Wait()
	for _, c := range p.live {
		c.buffer.Release()
	}
	for _, e := range p.events {
		err = errors.Join(err, e.Close())
	}
	if err == nil {
		err = p.short
	}
	return err
}

// stopped reports that no more is to be begun. mu is held.
func (p *devicePass) stopped() bool { return p.failed || p.short != nil }

// take is the place in the order of the next tile, as soon as it does not run too far
// ahead of the oldest: the plan's memory counts on that.
func (p *devicePass) take() (k int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == len(p.tiles) || p.stopped() {
		return 0, false
	}
	k = p.next
	p.next++
	for k >= p.oldest+p.window && !p.stopped() {
		p.moved.Wait()
	}
	return k, !p.stopped()
}

// await waits for a tile's turn.
func (p *devicePass) await(k int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.turn != k && !p.stopped() {
		p.moved.Wait()
	}
	return !p.stopped()
}

// endTurn ends a tile's turn.
func (p *devicePass) endTurn(queued *gpu.Event) {
	p.mu.Lock()
	p.turn++
	p.before = queued
	p.mu.Unlock()
	p.moved.Broadcast()
}

// finish notes that a tile has been added, and that what it completed is written.
func (p *devicePass) finish(k int) {
	p.mu.Lock()
	p.finished[k] = true
	for p.oldest < len(p.finished) && p.finished[p.oldest] {
		p.oldest++
	}
	p.mu.Unlock()
	p.moved.Broadcast()
}

// runsShort lets the pass end without beginning more, if err is that the device has no more
// memory; else err is a failure.
func (p *devicePass) runsShort(err error) error {
	if !errors.Is(err, gpu.ErrMemory) {
		return err
	}
	p.mu.Lock()
	if p.short == nil {
		p.short = shortOfMemory{err}
	}
	p.mu.Unlock()
	p.moved.Broadcast()
	return nil
}
