package stack

import (
	"context"
	"errors"
	"slices"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/machine"
	"strata/pkg/work"
	"strata/pkg/zarr/store"
)

// deviceAssembly is a volume under construction on a device. The planes of the canvas
// from z = freed on are there, plane z in slot z mod slots; those below done are the
// writer's, which makes of them what is stored, brings that to the host and stores it
// while slices are placed.
type deviceAssembly struct {
	*deviceStack
	result *Result
	writer *ngff.PlaneWriter
	worker *machine.DeviceWorker
	ny, nx int
	limits []int // by slice: planes below stay as they are once it is placed
	batch  int   // planes of the canvas that are handed over: a multiple of it, up to the last

	level  *deviceLevel // what is made of the canvas there; nil: the canvas is stored
	stored [3]int       // shape of what is stored
	made   gpu.Span     // planes of it that are written at a time; of a level only

	canvas gpu.Span
	slots  int
	placed []bool // by slot: something was put there
	done   int
	freed  int

	moving gpu.Span // planes of a slice that are to be blended, of the canvas' size
	most   int      // that there may be
	loaded [2]int   // planes of the slice that they are

	raw   gpu.Span // planes of a slice that are to be resampled
	piece int      // that there may be
	fills *kernels.Selector

	medians [2]*kernels.Selector
	sums    [2]gpu.Span // float64, for the mean planes
	mean    gpu.Span    // float32
	weights gpu.Span
	counts  gpu.Span // uint64: positive voxels of two planes

	table   []byte      // page-locked: weights
	numbers []byte      // page-locked: numbers that are looked at
	planes  [][]float32 // page-locked: planes that are written at a time
	means   [2][]byte   // page-locked: mean planes
	batches chan planeBatch
	back    chan int // planes below are written, or on the host
}

// planeBatch is planes of the canvas that are to be written.
type planeBatch struct {
	z      int
	placed []bool
}

// assemble is [assemble] on the device: a plane of the output's level 0 comes back once,
// and what is below it is made of it on the host.
func (d *deviceStack) assemble(ctx context.Context, out store.Writer, layout oct.Layout, result *Result) (err error) {
	p := d.plan
	w, stored, err := createStack(ctx, p, out, layout, *d.res, func(ctx context.Context, st store.Writer, path string, spec ngff.ImageSpec, levels [][]int) (*ngff.PlaneWriter, error) {
		if len(levels) > 0 && !slices.Equal(levels[0], spec.Shape) {
			return ngff.CreateMadePlanes(ctx, st, path, spec, levels)
		}
		return ngff.CreatePlanes(ctx, st, path, spec, levels)
	})
	if err != nil {
		return err
	}
	defer w.Abort()
	worker, err := machine.NewDeviceWorker(d.device)
	if err != nil {
		return err
	}
	a := &deviceAssembly{
		deviceStack: d, result: result, writer: w, worker: worker, ny: p.canvas[0], nx: p.canvas[1], limits: p.limits(), batch: w.Batch(), stored: stored,
	}
	defer func() { err = errors.Join(err, a.end()) }()
	if err := a.begin(); err != nil {
		return err
	}
	g, inner := work.WithContext(ctx)
	g.Go(func() error { return a.write(inner) })
	g.Go(func() error { return a.place(inner) })
	if err := g.Wait(); err != nil {
		return err
	}
	return w.Close(ctx)
}

// end gives all back, once nothing runs any more.
func (a *deviceAssembly) end() error {
	err := a.worker.End()
	if a.level != nil {
		a.level.release()
	}
	for _, s := range []*kernels.Selector{a.fills, a.medians[0], a.medians[1]} {
		if s != nil {
			s.Release()
		}
	}
	return err
}

// area is the pixels of a canvas plane, plane those of one that is stored.
func (a *deviceAssembly) area() int    { return a.ny * a.nx }
func (a *deviceAssembly) plane() int64 { return int64(a.stored[1]) * int64(a.stored[2]) }

// begin takes the memory. Of the device: what cannot be done without; then planes to
// be blended, so that they are read once, then so many to be resampled as chunks have,
// then so many of the canvas that whole chunks of a slice find room.
func (a *deviceAssembly) begin() (err error) {
	p := a.plan
	area := 4 * int64(a.area())
	var least, nice struct{ canvas, moving, raw int }
	depth, mix, plane := 0, 1, 0
	for i, s := range p.slices {
		depth = max(depth, a.region(s)[0])
		if i == 0 {
			continue
		}
		m := p.moving[i-1]
		blend, _ := p.planes(m)
		if n := blend[1] - blend[0]; n > 0 {
			nice.moving, mix = max(nice.moving, n), max(mix, m.mix)
		}
		if m.resampled() {
			least.raw, nice.raw = 1, max(nice.raw, a.region(s)[0])
			plane = max(plane, s.shape[1]*s.shape[2])
		}
	}
	var rows, sums, tables int64 // of a level
	if from := [3]int{p.depth, a.ny, a.nx}; a.stored != from {
		var y, x *filter.Weights
		a.level, y, x = planLevel(from, a.stored)
		if err := a.level.begin(a.worker.Stream, y, x); err != nil {
			return err
		}
		rows, sums, tables = a.level.bytes(y, x)
		a.batch = 1
	}
	least.canvas, least.moving = p.planesNeeded(a.limits, a.batch, false), min(nice.moving, leastPiece)
	nice.canvas = min(least.canvas+depth+a.batch, p.depth)
	least.canvas = min(least.canvas, p.depth)

	refine := nice.moving > 0 && p.opt.BlendRefinementPx > 0
	if err := a.beginHost(mix, refine); err != nil {
		return err
	}
	made := int64(0)
	if a.level != nil {
		made = 4 * int64(len(a.planes)) * a.plane()
	}
	other := int64(16+8*mix) + rows + sums + made
	if refine {
		other += 5 * area
	}
	size := func(canvas, moving, raw int) (sum int64) {
		for _, n := range []int64{other, int64(canvas) * area, int64(moving) * area, 4 * int64(raw) * int64(plane),
			kernels.SelectorBytes(1), kernels.SelectorBytes(1), kernels.SelectorBytes(raw)} {
			sum += mem.Pooled(n)
		}
		return sum + tables
	}
	if nice.moving > 0 {
		for i := range a.medians {
			if a.medians[i], err = kernels.NewSelector(a.device, 50, 1, false); err != nil {
				return err
			}
		}
	}
	need := size(least.canvas, least.moving, least.raw)
	for room := a.room(); ; room -= room / 8 { // less if the driver has less
		if need > room {
			if err != nil {
				return err
			}
			return a.noDeviceMemory(need+a.held, "blending up to %d planes of %d × %d pixels", least.canvas+least.moving, a.ny, a.nx)
		}
		n := least
		for _, grow := range []struct {
			v  *int
			to int
		}{{&n.moving, nice.moving}, {&n.raw, nice.raw}, {&n.canvas, nice.canvas}} {
			for *grow.v < grow.to {
				if *grow.v++; size(n.canvas, n.moving, n.raw) > room {
					*grow.v--
					break
				}
			}
		}
		a.slots, a.most, a.piece = n.canvas, n.moving, n.raw
		var v []gpu.Span
		v, err = a.worker.Memories(int64(n.canvas)*area, int64(n.moving)*area, 4*int64(n.raw)*int64(plane), other)
		if err == nil {
			a.canvas, a.moving, a.raw = v[0], v[1], v[2]
			rest := v[3]
			take := func(n int64) (s gpu.Span) {
				s, rest = rest.From(0, n), rest.From(n, rest.Bytes()-n)
				return s
			}
			a.counts, a.weights = take(16), take(8*int64(mix))
			if refine {
				a.sums, a.mean = [2]gpu.Span{take(2 * area), take(2 * area)}, take(area)
			}
			if a.level != nil {
				a.level.rows, a.level.acc, a.made = take(rows), take(sums), take(made)
			}
			break
		}
		if !errors.Is(err, gpu.ErrMemory) {
			return err
		}
	}
	a.placed = make([]bool, a.slots)
	a.batches, a.back = make(chan planeBatch, p.depth+1), make(chan int, p.depth+1)
	if a.piece > 0 {
		a.fills, err = kernels.NewSelector(a.device, 1, a.piece, true)
	}
	return err
}

// beginHost takes the host's memory: planes that are written at a time, and what is
// looked at.
func (a *deviceAssembly) beginHost(mix int, refine bool) (err error) {
	area, plane := 4*int64(a.area()), 4*a.plane()
	batch, depth := a.writer.Batch(), a.stored[0]
	other := a.writer.Bytes() + plane + a.pinned // and a plane of zeros
	if refine {
		other += 18 * area // mean planes, and their spectra
	}
	n := min(batch, depth)
	for n < depth && n < 8 && other+int64(n+batch)*plane <= a.res.Mem/2 {
		n += batch
	}
	n = min(n, depth)
	if need := other + int64(n)*plane; need > a.res.Mem {
		return tooLittle(*a.res, need, "writing %d planes of %d × %d pixels", n, a.stored[1], a.stored[2])
	}
	if a.table, err = a.worker.Pinned(8 * mix); err != nil {
		return err
	}
	if a.numbers, err = a.worker.Pinned(24); err != nil {
		return err
	}
	b, err := a.worker.Pinned(n * int(plane))
	if err != nil {
		return err
	}
	for len(b) > 0 {
		a.planes = append(a.planes, dtype.Slice[float32](b[:plane]))
		b = b[plane:]
	}
	if !refine {
		return nil
	}
	for i := range a.means {
		if a.means[i], err = a.worker.Pinned(int(area)); err != nil {
			return err
		}
	}
	return nil
}

// write stores the batches. It has a stream of its own: planes come to the host while
// others are placed.
func (a *deviceAssembly) write(ctx context.Context) (err error) {
	stream, err := a.device.Stream()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	w := &planeStore{deviceAssembly: a, stream: stream}
	defer func() { mem.Free(w.zero) }()
	take := w.storeCanvas
	if a.level != nil {
		take = w.storeLevel
	}
	for {
		select {
		case b, more := <-a.batches:
			if !more {
				return nil
			}
			if err := take(ctx, b); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// planeStore brings planes to the host and stores them.
type planeStore struct {
	*deviceAssembly
	stream *gpu.Stream
	zero   []byte // a plane of zeros
	first  int    // of the level's planes that are made and not written
	have   int    // how many are
}

// storeCanvas stores planes of the canvas, as many at a time as the host has room for.
func (w *planeStore) storeCanvas(ctx context.Context, b planeBatch) (err error) {
	for len(b.placed) > 0 {
		n := min(len(w.planes), len(b.placed))
		planes := make([][]float32, n)
		for i, there := range b.placed[:n] {
			if !there {
				if w.zero == nil {
					if w.zero, err = mem.Alloc(4 * w.area()); err != nil {
						return err
					}
				}
				planes[i] = dtype.Slice[float32](w.zero)
				continue
			}
			planes[i] = w.planes[i]
			w.stream.Download(dtype.Bytes(planes[i]), w.slot(b.z+i))
		}
		if err := w.stream.Wait(); err != nil {
			return err
		}
		b.z, b.placed = b.z+n, b.placed[n:]
		w.back <- b.z
		if err := w.writer.Write(ctx, planes); err != nil {
			return err
		}
	}
	return nil
}

// mostWaiting is how many planes of the canvas a level takes before their slots are free.
const mostWaiting = 8

// storeLevel makes planes of the level of planes of the canvas and stores those that are
// complete, as many at a time as the host has room for.
func (w *planeStore) storeLevel(ctx context.Context, b planeBatch) error {
	n := 4 * w.plane()
	place := func(int) (gpu.Span, error) {
		if w.have == len(w.planes) {
			if err := w.storeMade(ctx); err != nil {
				return gpu.Span{}, err
			}
		}
		w.have++
		return w.made.From(n*int64(w.have-1), n), nil
	}
	for i, there := range b.placed {
		var plane gpu.Span
		if there {
			plane = w.slot(b.z + i)
		}
		if err := w.level.add(w.stream, b.z+i, plane, place); err != nil {
			return err
		}
		if (i+1)%mostWaiting != 0 && i+1 < len(b.placed) {
			continue
		}
		if err := w.stream.Wait(); err != nil {
			return err
		}
		w.back <- b.z + i + 1
	}
	if w.have > 0 && w.first+w.have == w.stored[0] {
		return w.storeMade(ctx)
	}
	return nil
}

// storeMade stores the planes of the level that are made.
func (w *planeStore) storeMade(ctx context.Context) error {
	n := 4 * w.plane()
	for i := range w.have {
		w.stream.Download(dtype.Bytes(w.planes[i]), w.made.From(n*int64(i), n))
	}
	if err := w.stream.Wait(); err != nil {
		return err
	}
	planes := w.planes[:w.have]
	w.first, w.have = w.first+w.have, 0
	return w.writer.Write(ctx, planes)
}

// slot is the memory of a canvas plane.
func (a *deviceAssembly) slot(z int) gpu.Span {
	n := 4 * int64(a.area())
	return a.canvas.From(int64(z%a.slots)*n, n)
}

// runs are planes of the canvas from z on, at a pixel: one run, or two where the
// slots begin anew. They count from first.
func (a *deviceAssembly) runs(z, n, first, y, x int) (out []planeRun) {
	area := int64(a.area())
	for n > 0 {
		slot := z % a.slots
		k := min(n, a.slots-slot)
		at := planeRun{at: kernels.Planes{At: a.canvas.From(4*int64(slot)*area, 4*int64(k)*area), Pitch: a.nx, Stride: area}}
		out = append(out, planeRun{first, k, at.from(0, y, x)})
		z, n, first = z+k, n-k, first+k
	}
	return out
}

// beside are the planes that are to be blended from the i-th of them on, at a pixel.
func (a *deviceAssembly) beside(i, y, x int) kernels.Planes {
	run := planeRun{at: kernels.Planes{At: a.moving, Pitch: a.nx, Stride: int64(a.area())}}
	return run.from(i, y, x)
}

// place places all slices.
func (a *deviceAssembly) place(ctx context.Context) error {
	defer close(a.batches)
	p := a.plan
	first := p.firstSlice()
	if err := a.put(ctx, first, [2]int{0, first.end}, a.limits[0]); err != nil {
		return err
	}
	p.slices[0].finished(a.res)
	for i, m := range p.moving {
		if err := a.next(ctx, m, a.limits[i+1]); err != nil {
			return err
		}
		m.slice.finished(a.res)
	}
	return a.flush(p.depth)
}

// next blends or puts a moving slice.
func (a *deviceAssembly) next(ctx context.Context, m *movingSlice, limit int) error {
	blend, rest := a.plan.planes(m)
	if m.place.empty() {
		return a.flush(limit)
	}
	if n := blend[1] - blend[0]; n > 0 {
		// chunks that reach beyond what is blended are decoded once, if there is room
		to := blend[1]
		if end := min(m.chunkEnd(blend[1]), rest[1]); n <= a.most && end > to {
			free, err := a.free(ctx, m.start+to, end-to)
			if err != nil {
				return err
			}
			if free == end-to {
				to = end
			}
		}
		if err := a.blend(ctx, m, blend, to); err != nil {
			return err
		}
		if to > blend[1] {
			if err := a.brighten(m, m.gains, blend[1], a.runs(m.start+blend[1], to-blend[1], 0, m.place.y0, m.place.x0)); err != nil {
				return err
			}
			rest[0] = to
		}
	}
	return a.put(ctx, m, rest, limit)
}

// chunkEnd is the plane behind those that share a chunk with plane k−1. Planes count
// from the first used.
func (m *movingSlice) chunkEnd(k int) int {
	depth := m.slice.chunk[0]
	return (m.movingZ+k+depth-1)/depth*depth - m.movingZ
}

// free is how many of n planes of the canvas from z on have slots, which it waits for.
func (a *deviceAssembly) free(ctx context.Context, z, n int) (int, error) {
	for {
		for more := true; more; {
			select {
			case z := <-a.back:
				a.release(z)
			default:
				more = false
			}
		}
		room := min(n, a.freed+a.slots-z)
		if room == n || a.freed == a.done {
			return room, nil
		}
		select {
		case z := <-a.back:
			a.release(z)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// release makes the slots of planes below z free.
func (a *deviceAssembly) release(z int) {
	for ; a.freed < z; a.freed++ {
		a.placed[a.freed%a.slots] = false
	}
}

// put places planes k of a slice, in pieces for which there is room, and hands over
// what is settled.
func (a *deviceAssembly) put(ctx context.Context, m *movingSlice, k [2]int, limit int) error {
	for k[0] < k[1] {
		z := m.start + k[0]
		n, err := a.free(ctx, z, min(k[1], m.chunkEnd(k[0]+1))-k[0])
		if err != nil {
			return err
		}
		if n <= 0 {
			return errors.New("internal error: no room for a plane of the stack")
		}
		n = min(k[1]-k[0], a.freed+a.slots-z) // all that there is room for
		n = wholeChunks(m, k[0], k[0]+n, k[1]) - k[0]
		if err := a.bring(ctx, m, k[0], k[0]+n, m.gains, a.runsOf(m, z, n, 0)); err != nil {
			return err
		}
		k[0] += n
		if err := a.flush(min(limit, m.start+k[0])); err != nil {
			return err
		}
	}
	return a.flush(limit)
}

// runsOf makes planes of the canvas from z on ready for a slice, and is where it goes:
// outside it they are zero unless something is there.
func (a *deviceAssembly) runsOf(m *movingSlice, z, n, first int) []planeRun {
	r := m.place
	whole := r.y0 == 0 && r.x0 == 0 && r.y1 == a.ny && r.x1 == a.nx
	for i := z; i < z+n; i++ {
		if there := &a.placed[i%a.slots]; !*there {
			if !whole {
				a.worker.Stream.Zero(a.slot(i))
			}
			*there = true
		}
	}
	return a.runs(z, n, first, r.y0, r.x0)
}

// brighten multiplies planes of a slice from k0 on, which are where the runs say, by
// their factors.
func (a *deviceAssembly) brighten(m *movingSlice, gains planeGains, k0 int, runs []planeRun) error {
	r := m.place
	for _, run := range runs {
		err := gains.alike(k0+run.first, run.n, func(at, n int, gain float32) error {
			if gain == 1 {
				return nil
			}
			return kernels.Brighten(a.worker.Stream, run.from(at, 0, 0), n, r.y1-r.y0, r.x1-r.x0, gain)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// flush hands the planes below limit to the writer, as far as they are whole batches.
func (a *deviceAssembly) flush(limit int) error {
	n := limit - a.done
	if limit < a.plan.depth {
		n = n / a.batch * a.batch
	}
	if n <= 0 {
		return nil
	}
	if err := a.wait(); err != nil {
		return err
	}
	b := planeBatch{z: a.done}
	for range n { // planes behind those that have slots are empty
		b.placed = append(b.placed, a.done < a.freed+a.slots && a.placed[a.done%a.slots])
		a.done++
	}
	a.batches <- b
	return nil
}

// wait waits for what is queued.
func (a *deviceAssembly) wait() error {
	start := time.Now()
	err := a.worker.Stream.Wait()
	a.res.Meter.Since(meter.Compute, start)
	return err
}

// bring brings planes k0 … k1−1 of a slice, counted from its first used one, to where the
// runs say, and scales them.
func (a *deviceAssembly) bring(ctx context.Context, m *movingSlice, k0, k1 int, gains planeGains, to []planeRun) error {
	s, r := m.slice, m.place
	ny, nx := s.shape[1], s.shape[2]
	anew := k0 >= m.counted // else planes come again for another pass
	m.counted = max(m.counted, k1)
	box := kernels.Box{Y: r.y0 - r.dy, X: r.x0 - r.dx, Height: r.y1 - r.y0, Width: r.x1 - r.x0}
	if !m.resampled() {
		if err := a.wait(); err != nil {
			return err
		}
		gain, same := gains.same()
		if !same {
			gain = 1
		}
		err := a.load(ctx, &stackLoad{
			slice: s, start: [3]int{m.movingZ + k0, box.Y, box.X}, shape: [3]int{k1 - k0, box.Height, box.Width}, gain: gain, to: to, anew: anew,
		})
		if err != nil || same {
			return err
		}
		return a.brighten(m, gains, k0, to)
	}
	stream := a.worker.Stream
	raw := planeRun{at: kernels.Planes{At: a.raw, Pitch: nx, Stride: int64(ny) * int64(nx)}}
	for k, end := k0, 0; k < k1; k = end {
		end = wholeChunks(m, k, min(k+a.piece, k1), k1)
		raw.n = end - k
		if err := a.wait(); err != nil {
			return err
		}
		if err := a.load(ctx, &stackLoad{
			slice: s, start: [3]int{m.movingZ + k, 0, 0}, shape: [3]int{raw.n, ny, nx}, gain: 1, to: []planeRun{raw}, anew: anew,
		}); err != nil {
			return err
		}
		// outside is the 1st percentile of the plane's positive values
		a.fills.Begin(stream)
		for range kernels.Passes {
			if err := a.fills.Add(stream, raw.at, raw.at, raw.n, ny, nx); err != nil {
				return err
			}
			if err := a.fills.Next(stream); err != nil {
				return err
			}
		}
		for _, run := range to {
			lo, hi := max(run.first, k-k0), min(run.first+run.n, end-k0)
			if lo >= hi {
				continue
			}
			i := lo - (k - k0)
			fills := a.fills.Values.From(8*int64(i), 8*int64(hi-lo))
			dst := run.from(lo-run.first, 0, 0)
			if err := kernels.ResampleRigid(stream, dst, raw.from(i, 0, 0).At, m.rigid, hi-lo, ny, nx, box, fills); err != nil {
				return err
			}
			there := planeRun{first: lo, n: hi - lo, at: dst}
			if err := a.brighten(m, gains, k0, []planeRun{there}); err != nil {
				return err
			}
		}
	}
	return nil
}
