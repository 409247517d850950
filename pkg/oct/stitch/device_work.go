package stitch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/meter"
	"strata/pkg/ngff/ngffgpu"
	"strata/pkg/oct"
	"strata/pkg/oct/machine"
)

// deviceFuser is a worker and its memory.
type deviceFuser struct {
	*devicePass
	*machine.DeviceWorker
	queued  *gpu.Event // what it queued last, for others to wait for
	tile    gpu.Span   // planes of a tile, as many as the slab has
	set     gpu.Span   // is there anything in them?
	table   gpu.Span
	scratch []gpu.Span       // to write units from that begin where that is not possible
	units   [2]*ngffgpu.Tile // that leave the device
	rows    []byte           // page-locked: the table
	back    []byte           // page-locked: set; sums of seams
	fill    int              // of rows
	visits  []deviceVisit
}

// deviceVisit is a column on which a tile lies.
type deviceVisit struct {
	*deviceOutColumn
	begins bool // the tile is its first
	ends   bool // and its last
}

// work adds tile after tile until none is left.
func (p *devicePass) work(ctx context.Context, team *machine.DeviceTeam) (err error) {
	worker, err := machine.NewDeviceWorker(p.res.Device)
	if err != nil {
		return p.runsShort(err)
	}
	w := &deviceFuser{devicePass: p, DeviceWorker: worker}
	defer func() {
		err = errors.Join(err, worker.End())
		for _, u := range w.units {
			if u != nil {
				u.Release() // of work that failed
			}
		}
	}()
	if works, err := team.Join(w.begin); !works {
		if err != nil {
			err = p.runsShort(err)
		}
		return err
	}
	for {
		k, ok := p.take()
		if !ok {
			return ctx.Err()
		}
		if ok, err := w.add(ctx, k); !ok {
			return err
		}
		p.finish(k)
	}
}

// begin takes the memory.
func (w *deviceFuser) begin() (err error) {
	m := w.mosaic
	plane := w.reader.Bytes([]int{1, m.Chunk[1], m.Chunk[2]})
	if w.tile, err = w.Memory(int64(w.z1-w.z0) * plane); err != nil {
		return err
	}
	if w.set, err = w.Memory(8); err != nil {
		return err
	}
	if w.table, err = w.Memory(int64(w.tableBytes())); err != nil {
		return err
	}
	if w.odd {
		for range w.inFlight {
			s, err := w.Memory(w.reader.Bytes(w.unitShape()))
			if err != nil {
				return err
			}
			w.scratch = append(w.scratch, s)
		}
	}
	if w.rows, err = w.Pinned(w.tableBytes()); err != nil {
		return err
	}
	if w.back, err = w.Pinned(w.backBytes()); err != nil {
		return err
	}
	for range w.inFlight {
		s, err := w.reader.Slot(w.slot())
		if err != nil {
			return err
		}
		w.Slots = append(w.Slots, s)
	}
	if w.queued, err = w.res.Device.Event(); err != nil {
		return err
	}
	w.mu.Lock()
	w.events = append(w.events, w.queued)
	w.mu.Unlock()
	return nil
}

// add brings the k-th tile of the pass to the device and adds it to the columns on which
// it lies. It is not ok when the work has failed, or is to end, here or elsewhere.
func (w *deviceFuser) add(ctx context.Context, k int) (ok bool, err error) {
	t := w.tiles[k]
	if w.empty[t] != tileEmpty {
		if err := w.bring(ctx, t); err != nil {
			return false, err
		}
	} else if err := w.wait(); err != nil { // the table is the tile's before
		return false, err
	}
	w.progress(t)
	var weights gpu.Span
	if w.empty[t] != tileEmpty {
		var done func()
		if weights, done, err = w.weights.of(t, w.Stream); err != nil {
			return false, w.runsShort(err)
		}
		w.Stream.After(done)
	}
	if !w.await(k) {
		return false, ctx.Err()
	}
	if err := w.enter(t); err != nil {
		return false, w.runsShort(err)
	}
	if w.before != nil {
		w.Stream.Follow(w.before)
	}
	if err := w.queue(t, weights); err != nil {
		return false, err
	}
	w.Stream.Record(w.queued)
	w.endTurn(w.queued)
	var complete []*deviceOutColumn
	for _, v := range w.visits {
		if v.ends {
			complete = append(complete, v.deviceOutColumn)
		}
	}
	if err := w.leave(ctx, complete); err != nil {
		return false, err
	}
	return true, nil
}

func (w *deviceFuser) wait() error {
	start := time.Now()
	defer func() { w.res.Meter.Since(meter.Compute, start) }()
	return w.Stream.Wait()
}

// progress counts the planes of a tile that are not in the progress.
func (w *deviceFuser) progress(t int) {
	n := w.grid.extentOf(t)
	if more := w.z1 - w.shown[t]; more > 0 {
		w.shown[t] = w.z1
		w.res.Done(w.reader.Bytes([]int{more, n[0], n[1]}))
	}
}

// bring brings the slab's planes of a tile to the device, and finds out whether the tile
// holds anything, unless an earlier pass did. Only the worker that has the tile asks.
func (w *deviceFuser) bring(ctx context.Context, t int) error {
	if w.empty[t] == tileSomething {
		return w.fetch(ctx, t, w.z0, w.z1, false)
	}
	parts := [][2]int{{w.z0, w.z1}}
	for _, rest := range [][2]int{{0, w.z0}, {w.z1, w.mosaic.Shape[0]}} {
		for z := rest[0]; z < rest[1]; z += w.z1 - w.z0 {
			parts = append(parts, [2]int{z, min(z+w.z1-w.z0, rest[1])})
		}
	}
	w.empty[t] = tileEmpty
	for i, z := range parts {
		if err := w.fetch(ctx, t, z[0], z[1], true); err != nil {
			return err
		}
		if binary.LittleEndian.Uint64(w.back) == 0 {
			continue
		}
		w.empty[t] = tileSomething
		if i > 0 { // the planes of the slab were zero
			w.Stream.Zero(w.tile)
		}
		break
	}
	return nil
}

// fetch brings planes z0 … z1−1 of a tile to the device and waits until they are there;
// with look, back begins with what counts what is not zero. The host fetches one region while that
// before goes to the device.
func (w *deviceFuser) fetch(ctx context.Context, t, z0, z1 int, look bool) error {
	n := w.grid.extentOf(t)
	y, x := t/w.grid.nx*w.grid.tile[0], t%w.grid.nx*w.grid.tile[1]
	regions := w.reader.PlanesOf(z0, z1, y, n[0], x, n[1])
	at := int64(0)
	for i, r := range regions {
		slot := w.Slots[i%len(w.Slots)]
		if i > 0 && len(w.Slots) == 1 {
			if err := w.wait(); err != nil {
				return err
			}
		}
		if err := slot.Fetch(ctx, r); err != nil {
			return oct.Readable(err)
		}
		if i > 0 && len(w.Slots) > 1 {
			if err := w.wait(); err != nil {
				return err
			}
		}
		n := w.reader.Bytes(r.Shape)
		slot.Into(w.Stream, w.tile.From(at, n))
		at += n
	}
	if look {
		w.Stream.Zero(w.set)
		if err := kernels.CountSet(w.Stream, w.set, w.tile.From(0, at)); err != nil {
			return err
		}
		w.Stream.Download(w.back[:8], w.set)
	}
	return w.wait()
}

// enter finds the columns of the box on which a tile lies, or begins them.
func (w *deviceFuser) enter(t int) error {
	w.visits = w.visits[:0]
	p := w.places[t]
	w.mu.Lock()
	defer w.mu.Unlock()
	for y := p.Y0 / w.unit[1]; y*w.unit[1] < p.Y1; y++ {
		for x := max(p.X0/w.unit[2], w.x0); x < w.x1 && x*w.unit[2] < p.X1; x++ {
			c := &w.columns[y*w.across+x]
			if w.written[c] {
				continue
			}
			m := w.live[c]
			begins := m == nil
			if begins {
				var err error
				if m, err = w.newDeviceColumn(c); err != nil {
					return fmt.Errorf("a column of the slice: %w", err)
				}
				w.live[c] = m
			}
			m.left--
			w.visits = append(w.visits, deviceVisit{m, begins, m.left == 0})
		}
	}
	return nil
}

// row is the next so many bytes of the table, here and on the device.
func (w *deviceFuser) row(n int) ([]byte, gpu.Span) {
	at := w.fill
	w.fill += n
	return w.rows[at:w.fill], w.table.From(int64(at), int64(n))
}

// queue queues what adds a tile to its columns.
func (w *deviceFuser) queue(t int, weights gpu.Span) error {
	w.fill = 0
	w.prepare()
	tile := kernels.Tile{
		At: w.tile, Type: w.mosaic.DType, Planes: w.z1 - w.z0, NY: w.places[t].Y1 - w.places[t].Y0, NX: w.places[t].X1 - w.places[t].X0, Behind: w.places[t].frac,
	}
	var cells, compared []kernels.Cell
	var seams []deviceSeam
	most := 0
	for _, v := range w.visits {
		first := len(seams)
		for i := range v.cells {
			l := &v.cells[i]
			at := -1
			for k, o := range l.who {
				if o == t {
					at = k
				}
			}
			if at < 0 {
				continue
			}
			c, ok := w.cellOf(v.deviceOutColumn, l, t, at)
			if ok {
				cells = append(cells, c)
				most = max(most, c.NY*c.NX)
			}
			if w.isEmpty(t) {
				continue
			}
			if l.key >= 0 && at == 1 && l.seen == 1 {
				seams = append(seams, deviceSeam{key: l.key, sums: v.states.From(int64(l.key*kernels.SeamState), kernels.SeamState), cell: c})
			}
			l.seen++
		}
		seams, compared = bySeam(seams, first, compared)
	}
	if len(seams) > 0 {
		rows, at := w.row(len(compared) * kernels.CellBytes)
		for i := range compared {
			kernels.PutCell(rows, i, &compared[i])
		}
		list, where := w.row(len(seams) * kernels.SeamBytes)
		for i, s := range seams {
			kernels.PutSeam(list, i, s.sums, s.first, s.count)
		}
		w.Stream.Upload(at, rows)
		w.Stream.Upload(where, list)
		if err := kernels.Seams(w.Stream, tile, at, where, len(seams), w.z0, w.pieces); err != nil {
			return err
		}
	}
	if len(cells) == 0 {
		return nil
	}
	rows, at := w.row(len(cells) * kernels.CellBytes)
	for i := range cells {
		kernels.PutCell(rows, i, &cells[i])
	}
	w.Stream.Upload(at, rows)
	return kernels.Fuse(w.Stream, tile, at, len(cells), most, weights, w.blending == BlendNone)
}

// deviceSeam is a seam of a column, with the cells in which the tile is compared: count
// of them in the table from first on. Before they are gathered it has one.
type deviceSeam struct {
	key          int
	sums         gpu.Span
	first, count int
	cell         kernels.Cell
}

// bySeam gathers the cells of a column's seams, which are those from first on.
func bySeam(seams []deviceSeam, first int, cells []kernels.Cell) ([]deviceSeam, []kernels.Cell) {
	single := seams[first:]
	seams = seams[:first:first]
	for i, s := range single {
		if s.count > 0 {
			continue // it is another's
		}
		s.first = len(cells)
		for k := i; k < len(single); k++ {
			if single[k].key == s.key {
				cells = append(cells, single[k].cell)
				single[k].count++
			}
		}
		s.count = len(cells) - s.first
		seams = append(seams, s)
	}
	return seams, cells
}

// prepare queues what columns begin with: zeros where no tile lies, and the sums of
// their seams from the slab before.
func (w *deviceFuser) prepare() {
	for _, v := range w.visits {
		if !v.begins {
			continue
		}
		if v.hasHoles() {
			w.Stream.Zero(v.voxels)
		}
		if len(v.keys) == 0 {
			continue
		}
		rows, _ := w.row(len(v.keys) * kernels.SeamState)
		clear(rows)
		w.seams.mu.Lock()
		for i, k := range v.keys {
			if s := w.seams.sums[k]; s != nil {
				s.put(rows[i*kernels.SeamState:])
			}
		}
		w.seams.mu.Unlock()
		w.Stream.Upload(v.states, rows)
	}
}

// deviceUnit is a unit of a column on its way out.
type deviceUnit struct {
	column *deviceOutColumn
	last   bool // of the column
	tile   *ngffgpu.Tile
}

// leave writes columns that are complete. While one unit leaves the device, the host
// writes that before.
func (w *deviceFuser) leave(ctx context.Context, columns []*deviceOutColumn) error {
	var before *deviceUnit
	k := 0 // units
	for _, m := range columns {
		sums := w.back[8:][:len(m.keys)*kernels.SeamState]
		w.Stream.Download(sums, m.states)
		ny, nx := m.box.Y1-m.box.Y0, m.box.X1-m.box.X0
		at := int64(0)
		for z := w.z0; z < w.z1; z += w.unit[0] {
			shape := []int{min(w.unit[0], w.z1-z), ny, nx}
			n := w.reader.Bytes(shape)
			src := m.voxels.From(at, n)
			if at%unitAlignment != 0 {
				to := w.scratch[k%w.inFlight]
				w.Stream.Copy(to, src)
				src = to.From(0, n)
			}
			t, err := w.writer.Begin(w.Stream, w.mosaic.Index(z, m.box.Y0, m.box.X0), w.mosaic.BoxShape(shape[0], shape[1], shape[2]), src)
			if err != nil {
				return err
			}
			w.units[k%2] = t
			now := &deviceUnit{m, z+w.unit[0] >= w.z1, t}
			if before != nil {
				if err := w.write(ctx, before); err != nil {
					return err
				}
				before = nil
			}
			if err := w.wait(); err != nil {
				return err
			}
			if z == w.z0 {
				w.seamsOf(m, sums)
			}
			if w.inFlight > 1 {
				before = now
			} else if err := w.write(ctx, now); err != nil {
				return err
			}
			at += n
			k++
		}
	}
	if before == nil {
		return nil
	}
	return w.write(ctx, before)
}

// seamsOf notes the sums of a column's seams.
func (w *deviceFuser) seamsOf(m *deviceOutColumn, sums []byte) {
	if len(m.keys) == 0 {
		return
	}
	w.seams.mu.Lock()
	defer w.seams.mu.Unlock()
	for i, k := range m.keys {
		s := &seamSum{}
		s.get(sums[i*kernels.SeamState:])
		w.seams.sums[k] = s
	}
}

// write writes a unit that has left the device, or leaves it straight to its file. With
// the last one its column is gone.
func (w *deviceFuser) write(ctx context.Context, u *deviceUnit) error {
	if err := u.tile.Write(ctx, w.Stream); err != nil || !u.last {
		return err
	}
	w.mu.Lock()
	delete(w.live, u.column.outColumn)
	w.written[u.column.outColumn] = true
	w.mu.Unlock()
	u.column.buffer.Release()
	return nil
}

// fields are what kernels have of the sums, in their order, without the number.
func (s *seamSum) fields() [7]*float64 {
	return [7]*float64{&s.abs, &s.a, &s.b, &s.aa, &s.bb, &s.ab, &s.offset}
}

// put writes the sums as kernels have them.
func (s *seamSum) put(b []byte) {
	binary.LittleEndian.PutUint64(b, math.Float64bits(float64(s.n)))
	for i, f := range s.fields() {
		binary.LittleEndian.PutUint64(b[8+8*i:], math.Float64bits(*f))
	}
}

// get reads them.
func (s *seamSum) get(b []byte) {
	s.n = int64(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	for i, f := range s.fields() {
		*f = math.Float64frombits(binary.LittleEndian.Uint64(b[8+8*i:]))
	}
}
