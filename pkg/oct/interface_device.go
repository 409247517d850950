package oct

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// deviceSearch is [interfaceMap] on a device. Each voxel that the search sees goes there
// once; per A-line 4 bytes come back, 8 where the gradient is wanted. What a seam needs of
// the tiles on both sides is copied on the device, and stays there until the last of them
// has come.
//
// A device that does not hold a tile gets some rows of it at a time, and a seam between these.
type deviceSearch struct {
	mosaic    *mosaic
	search    filter.InterfaceSearch
	res       Resources
	columns   *deviceColumns
	kernels   *kernels.Searcher
	found     func(ctx context.Context, r rectangle, depth []int32, gradient []float32) error
	gradients bool          // found wants them
	nonFinite *atomic.Int64 // counts voxels that are not finite; nil: nobody does

	y, x    []segment // of pieces: tiles, or rows of these
	memory  searchMemory
	workers int
	team    deviceTeam
	next    atomic.Int64

	mu     sync.Mutex
	strips int64 // device memory that is left for seams
	seams  map[[2]int]*interfaceSeam
	late   [][2]int // seams without memory
}

// searchMemory is what a worker takes of the device, in bytes.
type searchMemory struct {
	piece, result, scratch int64 // voxels; what was found; filtered voxels
	aside, asideScratch    int64 // what was found in a seam, and its filtered voxels
}

func (m *searchMemory) all() int64 {
	return mem.Pooled(m.piece) + mem.Pooled(m.result) + mem.Pooled(m.scratch) + mem.Pooled(m.aside) + mem.Pooled(m.asideScratch)
}

// interfaceSeam is the voxels under a rectangle of A-lines near the borders of pieces.
type interfaceSeam struct {
	box   rectangle
	left  int // pieces to come
	buf   *gpu.Buffer
	bytes int64 // of strips
}

const (
	deviceScratch = 128 << 20 // of filtered voxels: what keeps a device busy
	asideLines    = 64 << 10  // A-lines of a seam that are searched at a time
)

// planDeviceSearch decides what is on the device at a time; reserved is memory of the host,
// of res.Mem, that others need meanwhile.
func planDeviceSearch(m *mosaic, search filter.InterfaceSearch, res Resources, reserved int64) (*deviceSearch, error) {
	p := &deviceSearch{mosaic: m, search: search, res: res, seams: map[[2]int]*interfaceSeam{}}
	var err error
	if p.columns, err = newDeviceColumns(m, &p.res, res.Meter); err != nil {
		return nil, err
	}
	p.columns.depth = seenPlanes(m, &search)
	p.x = segments(&p.search, m.shape[2], m.chunk[2])
	weights := mem.Pooled(kernels.SearcherBytes(search))
	limit := res.Device.Memory().Limit() - weights
	var each, strips int64
	for {
		p.y = segments(&p.search, m.shape[1], p.columns.rows)
		_, slot := p.columns.Memory(p.columns.slot())
		strips = min(p.plan(limit-slot), limit/4)
		for each = p.memory.all() + slot; each > limit-strips && p.shrink(); {
			each = p.memory.all() + slot
		}
		if each <= limit || !p.columns.less() {
			break
		}
	}
	p.workers, err = p.columns.workers(&p.res, res.Mem-reserved, mem.Pooled(p.memory.aside), mem.Pooled(p.memory.result), p.memory.all()+weights,
		"searching "+p.columns.pieces())
	if err != nil {
		return nil, err
	}
	// seams come before more workers
	_, slot := p.columns.Memory(p.columns.slot())
	each = p.memory.all() + mostSlots*slot
	p.workers = int(max(1, min(int64(p.workers), (limit-strips)/each)))
	p.strips = max(0, limit-int64(p.workers)*each)
	return p, nil
}

// plan is the memory of a worker, with as much scratch as is of use, and the memory that
// seams take at a time.
func (p *deviceSearch) plan(limit int64) (strips int64) {
	depth, rows, nx := p.columns.depth, p.columns.rows, p.mosaic.chunk[2]
	area := int64(rows) * int64(nx)
	p.memory = searchMemory{
		piece: p.columns.piece(), result: 8 + 8*area,
		scratch: max(p.row(), min(kernels.SearchScratch(depth, nx, rows, nx), deviceScratch)),
	}
	y, acrossY := largest(p.y)
	x, acrossX := largest(p.x)
	if acrossY.out+acrossX.out == 0 {
		return 0
	}
	lines := max(acrossY.out*x.out, y.out*acrossX.out)
	box := max(acrossY.in*x.in, y.in*acrossX.in)
	p.memory.aside = 8 * int64(max(x.out, min(lines, asideLines)))
	p.memory.asideScratch = max(p.row(), min(kernels.SearchScratch(depth, box, 1, lines), deviceScratch/8))
	ny, nxs := p.pieces()
	return mem.Pooled(int64(depth)*int64(box)*int64(p.mosaic.dtype.Size())) * int64(2*min(ny, nxs)+4*p.res.Workers)
}

// row is the scratch for one row of A-lines.
func (p *deviceSearch) row() int64 {
	x, _ := largest(p.x)
	nx := max(x.in, p.mosaic.chunk[2])
	return kernels.SearchScratch(p.columns.depth, nx, 1, nx)
}

// shrink lets a worker have less scratch, if it can do with less.
func (p *deviceSearch) shrink() bool {
	m, least := &p.memory, p.row()
	before := m.scratch + m.asideScratch
	m.scratch = max(least, m.scratch/2)
	m.asideScratch = min(m.asideScratch, max(least, m.asideScratch/2))
	return m.scratch+m.asideScratch < before
}

// stretch is how many outputs a segment has, and how many samples their windows cover.
type stretch struct{ out, in int }

// largest is the largest of all segments, and of those whose windows lie in several tiles.
func largest(all []segment) (any, across stretch) {
	for _, s := range all {
		any = stretch{max(any.out, s.to-s.from), max(any.in, s.in1-s.in0)}
		if s.first != s.last {
			across = stretch{max(across.out, s.to-s.from), max(across.in, s.in1-s.in0)}
		}
	}
	return any, across
}

// pieces is their number along y and x.
func (p *deviceSearch) pieces() (ny, nx int) {
	rows := p.columns.rows
	_, nx = p.mosaic.tiles()
	return (p.mosaic.shape[1] + rows - 1) / rows, nx
}

// extent is where piece (i, j) lies.
func (p *deviceSearch) extent(i, j int) rectangle {
	y, x := i*p.columns.rows, j*p.mosaic.chunk[2]
	return rectangle{y, min(y+p.columns.rows, p.mosaic.shape[1]), x, min(x+p.mosaic.chunk[2], p.mosaic.shape[2])}
}

// run finds all interfaces.
func (p *deviceSearch) run(ctx context.Context) (err error) {
	defer func() {
		for _, s := range p.seams { // of a run that failed: all streams have ended
			s.buf.Release()
		}
	}()
	s, err := p.res.Device.Stream()
	if err != nil {
		return err
	}
	p.kernels, err = kernels.NewSearcher(s, p.search)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	defer p.kernels.Release()
	g, ctx := work.WithContext(ctx)
	for range p.workers {
		g.Go(func() error { return p.work(ctx) })
	}
	return g.Wait()
}

// work searches pieces until none is left, and then the seams that found no memory.
func (p *deviceSearch) work(ctx context.Context) (err error) {
	worker, err := newDeviceWorker(p.res.Device)
	if err != nil {
		return err
	}
	w := &deviceSearcher{deviceSearch: p, worker: worker, stream: worker.stream}
	defer func() { err = errors.Join(err, w.end()) }()
	if works, err := p.team.join(w.begin); !works {
		return err
	}
	ny, nx := p.pieces()
	l := &deviceLoop{worker: worker, res: &p.res, next: func(place int) (*deviceJob, bool) {
		k := int(p.next.Add(1) - 1)
		if k >= ny*nx {
			return nil, false
		}
		// along the shorter side of the mosaic, so that fewer seams wait
		i, j := k/nx, k%nx
		if nx > ny {
			i, j = k%ny, k/ny
		}
		return w.job(i, j, place), true
	}}
	if err := l.run(ctx); err != nil {
		return err
	}
	for {
		p.mu.Lock()
		n := len(p.late)
		if n == 0 {
			p.mu.Unlock()
			return nil
		}
		key := p.late[n-1]
		p.late = p.late[:n-1]
		p.mu.Unlock()
		y, x := p.y[key[0]], p.x[key[1]]
		if err := w.readAgain(ctx, rectangle{y.from, y.to, x.from, x.to}); err != nil {
			return err
		}
	}
}

// seam finds a seam or makes it. One that finds no memory is left to the end.
func (p *deviceSearch) seam(key [2]int) *interfaceSeam {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.seams[key]; s != nil {
		return s
	}
	y, x := p.y[key[0]], p.x[key[1]]
	s := &interfaceSeam{box: rectangle{y.in0, y.in1, x.in0, x.in1}, left: (y.last - y.first + 1) * (x.last - x.first + 1)}
	p.seams[key] = s
	n := int64(p.columns.depth) * int64(s.box.area()) * int64(p.mosaic.dtype.Size())
	if s.bytes = mem.Pooled(n); s.bytes <= p.strips {
		var err error
		if s.buf, err = p.res.Device.Memory().Get(n); err == nil {
			p.strips -= s.bytes
			return s
		}
		// the device has less than there should be; another error shows again
	}
	s.bytes = 0
	p.late = append(p.late, key)
	return s
}

// came notes that a piece's part of a seam is there. It returns the seam with its last.
func (p *deviceSearch) came(key [2]int) *interfaceSeam {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seams[key]
	if s.left--; s.left > 0 {
		return nil
	}
	delete(p.seams, key)
	if s.buf == nil {
		return nil
	}
	return s
}

// drop gives a seam's memory back.
func (p *deviceSearch) drop(s *interfaceSeam) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.buf.Release()
	p.strips += s.bytes
}

// deviceSearcher is a worker. Seams are searched on a stream of their own, while the next
// piece is on the other.
type deviceSearcher struct {
	*deviceSearch
	worker                  *deviceWorker
	stream, aside           *gpu.Stream
	out                     [][]byte // page-locked, for each slot: as result
	piece, result, scratch  gpu.Span
	asideOut                []byte
	asideResult, asideSpace gpu.Span
}

// begin takes the memory: of scratch as much as the device has, if that is less than planned.
func (w *deviceSearcher) begin() (err error) {
	m, row := &w.memory, w.row()
	for _, n := range []struct {
		span         *gpu.Span
		bytes, least int64
	}{{&w.piece, m.piece, m.piece}, {&w.result, m.result, m.result}, {&w.asideResult, m.aside, m.aside},
		{&w.scratch, m.scratch, row}, {&w.asideSpace, m.asideScratch, min(row, m.asideScratch)}} {
		*n.span, err = w.worker.memory(n.bytes)
		for ; errors.Is(err, gpu.ErrMemory) && n.bytes > n.least; *n.span, err = w.worker.memory(n.bytes) {
			n.bytes = max(n.least, n.bytes/2)
		}
		if err != nil {
			return err
		}
	}
	if w.asideOut, err = w.worker.pinned(int(m.aside)); err != nil {
		return err
	}
	if w.out, err = w.worker.begin(w.columns.Reader, w.columns.slot(), int(m.result)); err != nil {
		return err
	}
	w.aside, err = w.res.Device.Stream()
	return err
}

func (w *deviceSearcher) end() (err error) {
	if w.aside != nil {
		err = w.aside.Close()
	}
	return errors.Join(err, w.worker.end())
}

// findings is where the results of some A-lines lie in memory of 8 bytes each.
func findings(result gpu.Span, n int64) (arg, peak gpu.Span) {
	return result.From(0, 4*n), result.From(4*n, 4*n)
}

// job does all that piece (i, j) allows.
func (w *deviceSearcher) job(i, j, place int) *deviceJob {
	at, size := w.extent(i, j), w.mosaic.dtype.Size()
	var alone []rectangle
	var shared [][2]int
	for a, y := range w.y {
		if i < y.first || i > y.last {
			continue
		}
		for b, x := range w.x {
			switch {
			case j < x.first || j > x.last:
			case y.first == y.last && x.first == x.last:
				alone = append(alone, rectangle{y.from, y.to, x.from, x.to})
			default:
				shared = append(shared, [2]int{a, b})
			}
		}
	}
	count := w.nonFinite != nil && w.mosaic.dtype.IsFloat()
	out := w.out[place]
	plane := int64(at.area()) * int64(size)
	job := &deviceJob{regions: w.columns.regions(at.y0, at.height(), at.x0, at.width())}
	job.queue = func(k int, in *zarrgpu.Slot) error {
		g := job.regions[k]
		in.Into(w.stream, w.piece.From(int64(g.Start[0])*plane, int64(g.Shape[0])*plane))
		if k < len(job.regions)-1 {
			return nil
		}
		voxels := w.piece.From(0, int64(w.columns.depth)*plane)
		for _, key := range shared {
			if err := w.contribute(key, voxels, at); err != nil {
				return err
			}
		}
		bad, results, down := w.result.From(0, 8), w.result.From(8, w.result.Bytes()-8), out[8:]
		if count {
			w.stream.Zero(bad)
			if err := kernels.CountNonFinite(w.stream, bad, voxels, w.mosaic.dtype, voxels.Bytes()/int64(size)); err != nil {
				return err
			}
			w.stream.Download(out[:8], bad)
		}
		for _, r := range alone {
			n := int64(r.area())
			if err := w.searchIn(w.stream, results, w.scratch, voxels, at, r); err != nil {
				return err
			}
			w.bring(w.stream, down, results, n)
			results, down = results.From(8*n, results.Bytes()-8*n), down[8*n:]
		}
		return nil
	}
	job.write = func(ctx context.Context) error {
		if count {
			w.nonFinite.Add(int64(binary.LittleEndian.Uint64(out)))
		}
		rest := out[8:]
		for _, r := range alone {
			if err := w.take(ctx, r, rest); err != nil {
				return err
			}
			rest = rest[8*r.area():]
		}
		for _, key := range shared {
			if s := w.came(key); s != nil {
				err := w.seamOf(ctx, key, s)
				w.drop(s)
				if err != nil {
					return err
				}
			}
		}
		w.res.progress(int64(w.mosaic.shape[0]-w.columns.depth) * plane) // not read
		return nil
	}
	return job
}

// contribute queues the copy of what a seam needs of a piece.
func (w *deviceSearcher) contribute(key [2]int, voxels gpu.Span, at rectangle) error {
	s := w.seam(key)
	if s.buf == nil {
		return nil
	}
	part := s.box.and(at)
	brick := func(span gpu.Span, box rectangle) kernels.Brick {
		size := int64(w.mosaic.dtype.Size())
		skip := (int64(part.y0-box.y0)*int64(box.width()) + int64(part.x0-box.x0)) * size
		return kernels.Brick{At: span.From(skip, span.Bytes()-skip), Pitch: int64(box.width()) * size, Stride: int64(box.area()) * size}
	}
	return kernels.CopyBox(w.stream, brick(s.buf.Span, s.box), brick(voxels, at), w.columns.depth, part.height(), int64(part.width()*w.mosaic.dtype.Size()))
}

// searchIn queues the search for a rectangle in voxels of a box around it.
func (w *deviceSearcher) searchIn(s *gpu.Stream, result, scratch, voxels gpu.Span, box, r rectangle) error {
	arg, peak := findings(result, int64(r.area()))
	f := kernels.Field{
		At: voxels, Type: w.mosaic.dtype, Planes: w.columns.depth, Shape: [2]int{box.height(), box.width()}, Pitch: box.width(), Stride: int64(box.area()),
		First: [2]int{box.y0, box.x0}, Length: [2]int{w.mosaic.shape[1], w.mosaic.shape[2]},
	}
	rows := int(scratch.Bytes() / kernels.SearchScratch(f.Planes, box.width(), 1, r.width()))
	for y := r.y0; y < r.y1; y += rows {
		n := min(rows, r.y1-y)
		skip, lines := 4*int64(y-r.y0)*int64(r.width()), 4*int64(n)*int64(r.width())
		if err := w.kernels.Run(s, arg.From(skip, lines), peak.From(skip, lines), f, [2]int{y, r.x0}, [2]int{y + n, r.x1}, scratch); err != nil {
			return err
		}
	}
	return nil
}

// bring queues the copy of what was found in n A-lines to the host.
func (w *deviceSearcher) bring(s *gpu.Stream, out []byte, result gpu.Span, n int64) {
	arg, peak := findings(result, n)
	s.Download(out[:4*n], arg)
	if w.gradients {
		s.Download(out[4*n:8*n], peak)
	}
}

// take hands on what came back.
func (w *deviceSearcher) take(ctx context.Context, r rectangle, out []byte) error {
	n := r.area()
	depth := dtype.Slice[int32](out[:4*n])
	for i, z := range depth {
		depth[i] = w.search.Depth(z)
	}
	var gradient []float32
	if w.gradients {
		gradient = dtype.Slice[float32](out[4*n : 8*n])
	}
	return w.found(ctx, r, depth, gradient)
}

// seamOf finds the interfaces of a seam that is complete, some rows at a time.
func (w *deviceSearcher) seamOf(ctx context.Context, key [2]int, s *interfaceSeam) error {
	y, x := w.y[key[0]], w.x[key[1]]
	rows := int(w.memory.aside/8) / (x.to - x.from)
	for ; y.from < y.to; y.from += rows {
		r := rectangle{y.from, min(y.from+rows, y.to), x.from, x.to}
		if err := w.now(ctx, w.aside, w.asideOut, w.asideResult, w.asideSpace, s.buf.Span, s.box, r); err != nil {
			return err
		}
	}
	return nil
}

// now searches a rectangle, waits and hands on what was found.
func (w *deviceSearcher) now(ctx context.Context, s *gpu.Stream, out []byte, result, scratch, voxels gpu.Span, box, r rectangle) error {
	start := time.Now()
	if err := w.searchIn(s, result, scratch, voxels, box, r); err != nil {
		return err
	}
	w.bring(s, out, result, int64(r.area()))
	err := s.Wait()
	w.res.Meter.Since(meter.Compute, start)
	if err != nil {
		return err
	}
	return w.take(ctx, r, out)
}

// readAgain finds the interfaces of a rectangle from voxels that are read for it, in as
// many parts as memory asks for.
func (w *deviceSearcher) readAgain(ctx context.Context, r rectangle) error {
	bounds := func(from, to, n int) (int, int) {
		in := w.search.Windows(from, to, n)
		return slices.Min(in), slices.Max(in) + 1
	}
	var box rectangle
	box.y0, box.y1 = bounds(r.y0, r.y1, w.mosaic.shape[1])
	box.x0, box.x1 = bounds(r.x0, r.x1, w.mosaic.shape[2])
	slot := w.columns.slot()
	if box.height() <= slot[1] && box.width() <= slot[2] {
		if err := w.fetch(ctx, slot[0], box); err != nil {
			return err
		}
		result := w.result.From(8, w.result.Bytes()-8)
		return w.now(ctx, w.stream, w.out[0][8:], result, w.scratch, w.piece, box, r)
	}
	a, b := r, r
	switch {
	case r.height() > 1 && box.height() > slot[1]:
		a.y1 = r.y0 + r.height()/2
		b.y0 = a.y1
	case r.width() > 1 && box.width() > slot[2]:
		a.x1 = r.x0 + r.width()/2
		b.x0 = a.x1
	default:
		n := int64(w.columns.depth) * int64(box.area()) * int64(w.mosaic.dtype.Size())
		return fmt.Errorf("%s: a mean filter of %d pixels over %d planes takes %d MiB of device memory: %w",
			w.mosaic.where, w.search.Window(), w.columns.depth, n>>20+1, gpu.ErrMemory)
	}
	if err := w.readAgain(ctx, a); err != nil {
		return err
	}
	return w.readAgain(ctx, b)
}

// fetch brings all planes of a box to the device, some at a time.
func (w *deviceSearcher) fetch(ctx context.Context, planes int, box rectangle) error {
	slot, plane := w.worker.slots[0], int64(box.area())*int64(w.mosaic.dtype.Size())
	for z := 0; z < w.columns.depth; z += planes {
		n := min(planes, w.columns.depth-z)
		g := zarr.Region{Start: []int{z, box.y0, box.x0}, Shape: []int{n, box.height(), box.width()}}
		if err := slot.Fetch(ctx, g); err != nil {
			return readable(err)
		}
		slot.Into(w.stream, w.piece.From(int64(z)*plane, int64(n)*plane))
		if err := w.stream.Wait(); err != nil {
			return err
		}
	}
	return nil
}
