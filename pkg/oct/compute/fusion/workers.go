package fusion

import (
	"context"
	"errors"
	"sync"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/oct/compute/transfer"
)

// hostFusion is the part of a fusion that workers share on the host. T is the voxel type, F the type in which
// voxels are blended.
type hostFusion[T dtype.Element, F float32 | float64] struct {
	*Plan
	apart   bool // means are kept apart from the voxels
	fixed   int64
	reader  *pieceReader[T]
	pool    *mem.Pool // of columns
	weights *weightCache
}

func hostFusionOf[T dtype.Element, F float32 | float64](f *Plan) (fusing, error) {
	_, same := any([]T(nil)).([]F)
	r, err := newPieceReader[T](f.Mosaic, 0, nil)
	return &hostFusion[T, F]{Plan: f, apart: !same, reader: r}, err
}

func (f *hostFusion[T, F]) memory() (Memory, error) {
	plane := int64(f.Mosaic.Chunk[1]) * int64(f.Mosaic.Chunk[2])
	f.fixed = min(max(f.Mem/64, 8*plane), 64*plane) // weights
	return Memory{
		Limit: f.Mem, Fixed: f.fixed, Worker: f.reader.bytes + 8*plane + f.Encoding + f.Weighing, Column: f.columnBytes,
		Workers: min(f.Res.Workers, f.Tiles), Piece: f.reader.planes,
	}, nil
}

func (f *hostFusion[T, F]) less() bool { return false }

func (f *hostFusion[T, F]) short(least int64) error { return f.shortOnHost(least) }

func (f *hostFusion[T, F]) open(workers int, columns int64) (err error) {
	f.weights = newWeightCache(f.fixed)
	f.pool = mem.NewPool(columns + 1)
	f.reader, err = newPieceReader[T](f.Mosaic, workers, f.Res.Meter)
	return err
}

func (f *hostFusion[T, F]) close() {
	f.reader.close()
	f.pool.Close()
}

func (f *hostFusion[T, F]) begin(ctx context.Context, p *Pass) (fusingWorker, error) {
	return &hostFuser[T, F]{hostFusion: f, fusedTile: fusedTile{pass: p, ctx: ctx}, in: piece[T]{pieceReader: f.reader}}, nil
}

// fusedTile holds the state of a worker: its current tile and its error.
type fusedTile struct {
	pass  *Pass
	ctx   context.Context
	err   error
	tile  Tile
	blank int // planes that are known to be zero
}

func (w *fusedTile) Failed() bool   { return w.err != nil }
func (w *fusedTile) failure() error { return w.err }

// try calls f unless an error has occurred, and keeps its error.
func (w *fusedTile) try(f func() error) {
	if w.err == nil {
		w.err = f()
	}
}

// take begins a tile with all weights 1.
func (w *hostFuser[T, F]) take(t Tile) {
	w.tile, w.own = t, nil
	if w.done != nil {
		w.done()
		w.done = nil
	}
}

func (w *hostFuser[T, F]) end() error {
	w.take(Tile{})
	w.in.release()
	return nil
}

// deviceFusion is the part of a fusion that workers share on a device.
//
// In each pass a tile's planes are uploaded once for all columns that it covers, with a table and, unless cached,
// the weights of its key. The columns are downloaded once, and for each tile 8 bytes that tell whether it holds
// anything.
type deviceFusion struct {
	*Plan
	reader    *transfer.DeviceColumns
	writer    *ngffgpu.Writer
	weights   *weightCache
	memories  Memory
	each      int64 // bytes of a plane of weights
	pieces    int   // planes that the host reads at a time: it determines the order of the seam sums
	inFlight  int   // regions of the mosaic, and units of the slice, that a worker has in flight
	odd       bool  // some units are not aligned for writing
	mostCells int   // maximum number of cells of a tile, those of seams counted twice
	mostSeams int   // maximum number of seams of a column
	mostBegun int   // maximum number of seams in all columns that a tile covers
}

func newDeviceFusion(fusion *Plan) (fusing, error) {
	f := &deviceFusion{Plan: fusion, inFlight: transfer.SlotsInTurn}
	var err error
	if f.reader, err = transfer.NewDeviceColumns(f.Mosaic, f.Res, f.Res.Meter); err != nil {
		return nil, err
	}
	src, err := pieceSource(f.Mosaic, nil)
	if err != nil {
		return nil, err
	}
	f.pieces = f.Mosaic.Frames.Planes(src.TileShape(0))
	f.writer = f.Res.Output(f.Output)
	cells, seams := make([]int, f.Tiles), make([]int, f.Tiles)
	for k := range f.Columns {
		c := &f.Columns[k]
		whole := f.reader.Bytes([]int{f.Unit[0], c.Box.Height(), c.Box.Width()}) // all its units but the last
		f.odd = f.odd || whole%unitAlignment != 0
		f.mostSeams = max(f.mostSeams, len(c.Seams))
		for _, t := range c.Tiles {
			seams[t] += len(c.Seams)
			f.mostBegun = max(f.mostBegun, seams[t])
		}
		for _, r := range c.Regions {
			for _, t := range r.Who {
				cells[t]++
				if len(r.Who) == 2 {
					cells[t]++
				}
				f.mostCells = max(f.mostCells, cells[t])
			}
		}
	}
	return f, nil
}

// unit returns the shape of a whole unit of the output.
func (f *deviceFusion) unit() []int {
	return []int{min(f.Unit[0], f.Mosaic.Shape[0]), min(f.Unit[1], f.Size[0]), min(f.Unit[2], f.Size[1])}
}

// tableBytes returns the size of a worker's table: cells, seams, and the seam sums of columns that begin.
func (f *deviceFusion) tableBytes() int {
	return f.mostCells*kernels.CellBytes + f.mostBegun*(kernels.SeamBytes+kernels.SeamState)
}

// backBytes returns the number of bytes that a worker downloads in addition to the output: a flag for a tile that is
// not empty, and the seam sums of a column.
func (f *deviceFusion) backBytes() int { return 8 + f.mostSeams*kernels.SeamState }

// memory returns the device memory of the fusion, for at most as many workers as fit into host and page-locked memory.
func (f *deviceFusion) memory() (m Memory, err error) {
	plane := int64(f.Mosaic.Chunk[1]) * int64(f.Mosaic.Chunk[2])
	pinned, device := f.reader.Memory(f.reader.SlotShape())
	out, outDevice := f.writer.Memory(f.unit())
	if f.Weighs {
		f.each = mem.Pooled(4 * plane)
	}
	table := int64(mem.Size(f.tableBytes()))
	if f.odd {
		outDevice += mem.Pooled(f.reader.Bytes(f.unit()))
	}
	host := f.Encoding + f.Weighing
	host = max(1, host+f.reader.Decoding(host, f.Mem))
	locked, available := f.each+table+int64(mem.Size(f.backBytes())), transfer.PinnedFor(f.Res.Device)
	if available < locked+int64(f.inFlight)*(pinned+out) {
		f.inFlight = 1
	}
	locked += int64(f.inFlight) * (pinned + out)
	what := f.Mosaic.Where + ": " + f.What
	switch {
	case f.Mem < host:
		return m, transfer.NoHostMemory(f.Res, host+f.Res.Mem-f.Mem, what)
	case available < locked && f.reader.ByHost():
		f.inFlight = transfer.SlotsInTurn
		return f.memory()
	case available < locked:
		return m, transfer.NoPinnedMemory(f.Res.Device, locked, what)
	}
	workers := int(min(int64(f.Res.Workers), f.Mem/host, available/locked, int64(f.Tiles)))
	limit := f.Res.Device.Memory().Limit()
	f.memories = Memory{
		Limit: limit, Fixed: min(limit/32, 64*f.each), Worker: int64(f.inFlight)*(device+outDevice) + f.each + table + 2*int64(mem.Size(1)),
		Plane:  plane*int64(f.Mosaic.DType.Size())*17/16 + 1, // as pools round
		Column: f.columnBytes, Workers: workers, Piece: f.reader.Planes,
	}
	return f.memories, nil
}

// less has a region of the mosaic and a unit of the slice in flight at a time, or chunks decoded on the host.
func (f *deviceFusion) less() bool {
	if f.inFlight > 1 {
		f.inFlight = 1
		return true
	}
	f.inFlight = transfer.SlotsInTurn
	return f.reader.ByHost()
}

func (f *deviceFusion) short(least int64) error {
	return transfer.NoDeviceMemory(f.Res.Device, least, f.Mosaic.Where+": "+f.What)
}

func (f *deviceFusion) open(workers int, _ int64) error {
	f.weights = newWeightCache(f.memories.Fixed + int64(workers)*f.each)
	return nil
}

func (f *deviceFusion) close() { f.weights.release() }

func (f *deviceFusion) begin(ctx context.Context, p *Pass) (fusingWorker, error) {
	worker, err := transfer.NewDeviceWorker(f.Res.Device)
	if err != nil {
		return nil, shortOfMemory(err)
	}
	w := &deviceFuser{deviceFusion: f, fusedTile: fusedTile{pass: p, ctx: ctx}, dev: worker}
	if works, err := p.team.Join(w.begin); !works {
		if err != nil {
			err = shortOfMemory(err)
		}
		return nil, errors.Join(err, worker.End())
	}
	return w, nil
}

// begin allocates the worker's memory.
func (w *deviceFuser) begin() (err error) {
	m, p := w.Mosaic, w.pass
	spans, err := w.dev.Memories(int64(p.Z1-p.Z0)*w.reader.Bytes([]int{1, m.Chunk[1], m.Chunk[2]}), 8, int64(w.tableBytes()))
	if err != nil {
		return err
	}
	w.planes, w.set, w.table = spans[0], spans[1], spans[2]
	if w.odd {
		for range w.inFlight {
			s, err := w.dev.Memory(w.reader.Bytes(w.unit()))
			if err != nil {
				return err
			}
			w.scratch = append(w.scratch, s)
		}
	}
	if w.rows, err = w.dev.Pinned(w.tableBytes()); err != nil {
		return err
	}
	if w.back, err = w.dev.Pinned(w.backBytes()); err != nil {
		return err
	}
	for range w.inFlight {
		s, err := w.reader.Slot(w.reader.SlotOf(p.Z1 - p.Z0))
		if err != nil {
			return err
		}
		w.dev.Slots = append(w.dev.Slots, s)
	}
	w.queued, err = p.order.event(w.Res.Device)
	return err
}

// take begins a tile with all weights 1.
func (w *deviceFuser) take(t Tile) { w.tile, w.own = t, gpu.Span{} }

func (w *deviceFuser) end() error {
	err := w.dev.End()
	for _, u := range w.units {
		u.Release() // of work that failed
	}
	return err
}

// deviceOrder orders the work that the workers of a pass queue, each on its own stream.
type deviceOrder struct {
	mu     sync.Mutex
	last   *gpu.Event // after the latest queued work; nil: none
	events []*gpu.Event
}

// event returns an event that lives until close, so that other streams may follow it.
func (o *deviceOrder) event(d *gpu.Device) (*gpu.Event, error) {
	e, err := d.Event()
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
	return e, nil
}

// queue calls f to queue work on stream s after all work queued by earlier calls, and records done after it.
func (o *deviceOrder) queue(s *gpu.Stream, done *gpu.Event, f func() error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last != nil {
		s.Follow(o.last)
	}
	if err := f(); err != nil {
		return err
	}
	s.Record(done)
	o.last = done
	return nil
}

// follow makes stream s wait for all work queued so far.
func (o *deviceOrder) follow(s *gpu.Stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last != nil {
		s.Follow(o.last)
	}
}

func (o *deviceOrder) close() (err error) {
	for _, e := range o.events {
		err = errors.Join(err, e.Close())
	}
	return err
}
