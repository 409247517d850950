package surface

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
	"strata/pkg/oct"
	"strata/pkg/oct/machine"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// DeviceSearch is [interfaceMap] on a device. Each voxel that the search sees goes there
// once; per A-line 4 bytes come back, 8 where the gradient is wanted. What a seam needs of
// the tiles on both sides is copied on the device, and stays there until the last of them
// has come.
//
// A device that does not hold a tile gets some rows of it at a time, and a seam between these.
type DeviceSearch struct {
	mosaic    *oct.Mosaic
	search    filter.InterfaceSearch
	res       oct.Resources
	columns   *machine.DeviceColumns
	kernels   *kernels.Searcher
	Found     func(ctx context.Context, r oct.Rectangle, depth []int32, gradient []float32) error
	gradients bool          // found wants them
	nonFinite *atomic.Int64 // counts voxels that are not finite; nil: nobody does

	y, x    []segment // of pieces: tiles, or rows of these
	memory  searchMemory
	workers int
	team    machine.DeviceTeam
	next    atomic.Int64

	mu     sync.Mutex
	Strips int64 // device memory that is left for seams
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
	box   oct.Rectangle
	left  int // pieces to come
	buf   *gpu.Buffer
	bytes int64 // of strips
}

const (
	deviceScratch = 128 << 20 // of filtered voxels: what keeps a device busy
	asideLines    = 64 << 10  // A-lines of a seam that are searched at a time
)

// PlanDeviceSearch decides what is on the device at a time; reserved is memory of the host,
// of res.Mem, that others need meanwhile.
func PlanDeviceSearch(m *oct.Mosaic, search filter.InterfaceSearch, res oct.Resources, reserved int64) (*DeviceSearch, error) {
	p := &DeviceSearch{mosaic: m, search: search, res: res, seams: map[[2]int]*interfaceSeam{}}
	var err error
	if p.columns, err = machine.NewDeviceColumns(m, &p.res, res.Meter); err != nil {
		return nil, err
	}
	p.columns.Depth = SeenPlanes(m, &search)
	p.x = Segments(&p.search, m.Shape[2], m.Chunk[2])
	weights := mem.Pooled(kernels.SearcherBytes(search))
	limit := res.Device.Memory().Limit() - weights
	var each, strips int64
	for {
		p.y = Segments(&p.search, m.Shape[1], p.columns.Rows)
		_, slot := p.columns.Memory(p.columns.SlotShape())
		strips = min(p.plan(limit-slot), limit/4)
		for each = p.memory.all() + slot; each > limit-strips && p.shrink(); {
			each = p.memory.all() + slot
		}
		if each <= limit || !p.columns.Less() {
			break
		}
	}
	p.workers, err = p.columns.Workers(&p.res, res.Mem-reserved, mem.Pooled(p.memory.aside), mem.Pooled(p.memory.result), p.memory.all()+weights,
		"searching "+p.columns.Pieces())
	if err != nil {
		return nil, err
	}
	// seams come before more workers
	_, slot := p.columns.Memory(p.columns.SlotShape())
	each = p.memory.all() + machine.MostSlots*slot
	p.workers = int(max(1, min(int64(p.workers), (limit-strips)/each)))
	p.Strips = max(0, limit-int64(p.workers)*each)
	return p, nil
}

// plan is the memory of a worker, with as much scratch as is of use, and the memory that
// seams take at a time.
func (p *DeviceSearch) plan(limit int64) (strips int64) {
	depth, rows, nx := p.columns.Depth, p.columns.Rows, p.mosaic.Chunk[2]
	area := int64(rows) * int64(nx)
	p.memory = searchMemory{
		piece: p.columns.Piece(), result: 8 + 8*area,
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
	return mem.Pooled(int64(depth)*int64(box)*int64(p.mosaic.DType.Size())) * int64(2*min(ny, nxs)+4*p.res.Workers)
}

// row is the scratch for one row of A-lines.
func (p *DeviceSearch) row() int64 {
	x, _ := largest(p.x)
	nx := max(x.in, p.mosaic.Chunk[2])
	return kernels.SearchScratch(p.columns.Depth, nx, 1, nx)
}

// shrink lets a worker have less scratch, if it can do with less.
func (p *DeviceSearch) shrink() bool {
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
		any = stretch{max(any.out, s.To-s.From), max(any.in, s.In1-s.In0)}
		if s.First != s.Last {
			across = stretch{max(across.out, s.To-s.From), max(across.in, s.In1-s.In0)}
		}
	}
	return any, across
}

// pieces is their number along y and x.
func (p *DeviceSearch) pieces() (ny, nx int) {
	rows := p.columns.Rows
	_, nx = p.mosaic.Tiles()
	return (p.mosaic.Shape[1] + rows - 1) / rows, nx
}

// extent is where piece (i, j) lies.
func (p *DeviceSearch) extent(i, j int) oct.Rectangle {
	y, x := i*p.columns.Rows, j*p.mosaic.Chunk[2]
	return oct.Rect(y, min(y+p.columns.Rows, p.mosaic.Shape[1]), x, min(x+p.mosaic.Chunk[2], p.mosaic.Shape[2]))
}

// Run finds all interfaces.
func (p *DeviceSearch) Run(ctx context.Context) (err error) {
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
func (p *DeviceSearch) work(ctx context.Context) (err error) {
	worker, err := machine.NewDeviceWorker(p.res.Device)
	if err != nil {
		return err
	}
	w := &deviceSearcher{DeviceSearch: p, worker: worker, stream: worker.Stream}
	defer func() { err = errors.Join(err, w.end()) }()
	if works, err := p.team.Join(w.begin); !works {
		return err
	}
	ny, nx := p.pieces()
	l := &machine.DeviceLoop{Worker: worker, Res: &p.res, Next: func(place int) (*machine.DeviceJob, bool) {
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
	if err := l.Run(ctx); err != nil {
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
		if err := w.readAgain(ctx, oct.Rect(y.From, y.To, x.From, x.To)); err != nil {
			return err
		}
	}
}

// seam finds a seam or makes it. One that finds no memory is left to the end.
func (p *DeviceSearch) seam(key [2]int) *interfaceSeam {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.seams[key]; s != nil {
		return s
	}
	y, x := p.y[key[0]], p.x[key[1]]
	s := &interfaceSeam{box: oct.Rect(y.In0, y.In1, x.In0, x.In1), left: (y.Last - y.First + 1) * (x.Last - x.First + 1)}
	p.seams[key] = s
	n := int64(p.columns.Depth) * int64(s.box.Area()) * int64(p.mosaic.DType.Size())
	if s.bytes = mem.Pooled(n); s.bytes <= p.Strips {
		var err error
		if s.buf, err = p.res.Device.Memory().Get(n); err == nil {
			p.Strips -= s.bytes
			return s
		}
		// the device has less than there should be; another error shows again
	}
	s.bytes = 0
	p.late = append(p.late, key)
	return s
}

// came notes that a piece's part of a seam is there. It returns the seam with its last.
func (p *DeviceSearch) came(key [2]int) *interfaceSeam {
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
func (p *DeviceSearch) drop(s *interfaceSeam) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.buf.Release()
	p.Strips += s.bytes
}

// deviceSearcher is a worker. Seams are searched on a stream of their own, while the next
// piece is on the other.
type deviceSearcher struct {
	*DeviceSearch
	worker                  *machine.DeviceWorker
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
		*n.span, err = w.worker.Memory(n.bytes)
		for ; errors.Is(err, gpu.ErrMemory) && n.bytes > n.least; *n.span, err = w.worker.Memory(n.bytes) {
			n.bytes = max(n.least, n.bytes/2)
		}
		if err != nil {
			return err
		}
	}
	if w.asideOut, err = w.worker.Pinned(int(m.aside)); err != nil {
		return err
	}
	if w.out, err = w.worker.Begin(w.columns.Reader, w.columns.SlotShape(), int(m.result)); err != nil {
		return err
	}
	w.aside, err = w.res.Device.Stream()
	return err
}

func (w *deviceSearcher) end() (err error) {
	if w.aside != nil {
		err = w.aside.Close()
	}
	return errors.Join(err, w.worker.End())
}

// findings is where the results of some A-lines lie in memory of 8 bytes each.
func findings(result gpu.Span, n int64) (arg, peak gpu.Span) {
	return result.From(0, 4*n), result.From(4*n, 4*n)
}

// job does all that piece (i, j) allows.
func (w *deviceSearcher) job(i, j, place int) *machine.DeviceJob {
	at, size := w.extent(i, j), w.mosaic.DType.Size()
	var alone []oct.Rectangle
	var shared [][2]int
	for a, y := range w.y {
		if i < y.First || i > y.Last {
			continue
		}
		for b, x := range w.x {
			switch {
			case j < x.First || j > x.Last:
			case y.First == y.Last && x.First == x.Last:
				alone = append(alone, oct.Rect(y.From, y.To, x.From, x.To))
			default:
				shared = append(shared, [2]int{a, b})
			}
		}
	}
	count := w.nonFinite != nil && w.mosaic.DType.IsFloat()
	out := w.out[place]
	plane := int64(at.Area()) * int64(size)
	job := &machine.DeviceJob{Regions: w.columns.Regions(at.Y0, at.Height(), at.X0, at.Width())}
	job.Queue = func(k int, in *zarrgpu.Slot) error {
		g := job.Regions[k]
		in.Into(w.stream, w.piece.From(int64(g.Start[0])*plane, int64(g.Shape[0])*plane))
		if k < len(job.Regions)-1 {
			return nil
		}
		voxels := w.piece.From(0, int64(w.columns.Depth)*plane)
		for _, key := range shared {
			if err := w.contribute(key, voxels, at); err != nil {
				return err
			}
		}
		bad, results, down := w.result.From(0, 8), w.result.From(8, w.result.Bytes()-8), out[8:]
		if count {
			w.stream.Zero(bad)
			if err := kernels.CountNonFinite(w.stream, bad, voxels, w.mosaic.DType, voxels.Bytes()/int64(size)); err != nil {
				return err
			}
			w.stream.Download(out[:8], bad)
		}
		for _, r := range alone {
			n := int64(r.Area())
			if err := w.searchIn(w.stream, results, w.scratch, voxels, at, r); err != nil {
				return err
			}
			w.bring(w.stream, down, results, n)
			results, down = results.From(8*n, results.Bytes()-8*n), down[8*n:]
		}
		return nil
	}
	job.Write = func(ctx context.Context) error {
		if count {
			w.nonFinite.Add(int64(binary.LittleEndian.Uint64(out)))
		}
		rest := out[8:]
		for _, r := range alone {
			if err := w.take(ctx, r, rest); err != nil {
				return err
			}
			rest = rest[8*r.Area():]
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
		w.res.Done(int64(w.mosaic.Shape[0]-w.columns.Depth) * plane) // not read
		return nil
	}
	return job
}

// contribute queues the copy of what a seam needs of a piece.
func (w *deviceSearcher) contribute(key [2]int, voxels gpu.Span, at oct.Rectangle) error {
	s := w.seam(key)
	if s.buf == nil {
		return nil
	}
	part := s.box.And(at)
	brick := func(span gpu.Span, box oct.Rectangle) kernels.Brick {
		size := int64(w.mosaic.DType.Size())
		skip := (int64(part.Y0-box.Y0)*int64(box.Width()) + int64(part.X0-box.X0)) * size
		return kernels.Brick{At: span.From(skip, span.Bytes()-skip), Pitch: int64(box.Width()) * size, Stride: int64(box.Area()) * size}
	}
	return kernels.CopyBox(w.stream, brick(s.buf.Span, s.box), brick(voxels, at), w.columns.Depth, part.Height(), int64(part.Width()*w.mosaic.DType.Size()))
}

// searchIn queues the search for a rectangle in voxels of a box around it.
func (w *deviceSearcher) searchIn(s *gpu.Stream, result, scratch, voxels gpu.Span, box, r oct.Rectangle) error {
	arg, peak := findings(result, int64(r.Area()))
	f := kernels.Field{
		At: voxels, Type: w.mosaic.DType, Planes: w.columns.Depth, Shape: [2]int{box.Height(), box.Width()}, Pitch: box.Width(), Stride: int64(box.Area()),
		First: [2]int{box.Y0, box.X0}, Length: [2]int{w.mosaic.Shape[1], w.mosaic.Shape[2]},
	}
	rows := int(scratch.Bytes() / kernels.SearchScratch(f.Planes, box.Width(), 1, r.Width()))
	for y := r.Y0; y < r.Y1; y += rows {
		n := min(rows, r.Y1-y)
		skip, lines := 4*int64(y-r.Y0)*int64(r.Width()), 4*int64(n)*int64(r.Width())
		if err := w.kernels.Run(s, arg.From(skip, lines), peak.From(skip, lines), f, [2]int{y, r.X0}, [2]int{y + n, r.X1}, scratch); err != nil {
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
func (w *deviceSearcher) take(ctx context.Context, r oct.Rectangle, out []byte) error {
	n := r.Area()
	depth := dtype.Slice[int32](out[:4*n])
	for i, z := range depth {
		depth[i] = w.search.Depth(z)
	}
	var gradient []float32
	if w.gradients {
		gradient = dtype.Slice[float32](out[4*n : 8*n])
	}
	return w.Found(ctx, r, depth, gradient)
}

// seamOf finds the interfaces of a seam that is complete, some rows at a time.
func (w *deviceSearcher) seamOf(ctx context.Context, key [2]int, s *interfaceSeam) error {
	y, x := w.y[key[0]], w.x[key[1]]
	rows := int(w.memory.aside/8) / (x.To - x.From)
	for ; y.From < y.To; y.From += rows {
		r := oct.Rect(y.From, min(y.From+rows, y.To), x.From, x.To)
		if err := w.now(ctx, w.aside, w.asideOut, w.asideResult, w.asideSpace, s.buf.Span, s.box, r); err != nil {
			return err
		}
	}
	return nil
}

// now searches a rectangle, waits and hands on what was found.
func (w *deviceSearcher) now(ctx context.Context, s *gpu.Stream, out []byte, result, scratch, voxels gpu.Span, box, r oct.Rectangle) error {
	start := time.Now()
	if err := w.searchIn(s, result, scratch, voxels, box, r); err != nil {
		return err
	}
	w.bring(s, out, result, int64(r.Area()))
	err := s.Wait()
	w.res.Meter.Since(meter.Compute, start)
	if err != nil {
		return err
	}
	return w.take(ctx, r, out)
}

// readAgain finds the interfaces of a rectangle from voxels that are read for it, in as
// many parts as memory asks for.
func (w *deviceSearcher) readAgain(ctx context.Context, r oct.Rectangle) error {
	bounds := func(from, to, n int) (int, int) {
		in := w.search.Windows(from, to, n)
		return slices.Min(in), slices.Max(in) + 1
	}
	var box oct.Rectangle
	box.Y0, box.Y1 = bounds(r.Y0, r.Y1, w.mosaic.Shape[1])
	box.X0, box.X1 = bounds(r.X0, r.X1, w.mosaic.Shape[2])
	slot := w.columns.SlotShape()
	if box.Height() <= slot[1] && box.Width() <= slot[2] {
		if err := w.fetch(ctx, slot[0], box); err != nil {
			return err
		}
		result := w.result.From(8, w.result.Bytes()-8)
		return w.now(ctx, w.stream, w.out[0][8:], result, w.scratch, w.piece, box, r)
	}
	a, b := r, r
	switch {
	case r.Height() > 1 && box.Height() > slot[1]:
		a.Y1 = r.Y0 + r.Height()/2
		b.Y0 = a.Y1
	case r.Width() > 1 && box.Width() > slot[2]:
		a.X1 = r.X0 + r.Width()/2
		b.X0 = a.X1
	default:
		n := int64(w.columns.Depth) * int64(box.Area()) * int64(w.mosaic.DType.Size())
		return fmt.Errorf("%s: a mean filter of %d pixels over %d planes takes %d MiB of device memory: %w",
			w.mosaic.Where, w.search.Window(), w.columns.Depth, n>>20+1, gpu.ErrMemory)
	}
	if err := w.readAgain(ctx, a); err != nil {
		return err
	}
	return w.readAgain(ctx, b)
}

// fetch brings all planes of a box to the device, some at a time.
func (w *deviceSearcher) fetch(ctx context.Context, planes int, box oct.Rectangle) error {
	slot, plane := w.worker.Slots[0], int64(box.Area())*int64(w.mosaic.DType.Size())
	for z := 0; z < w.columns.Depth; z += planes {
		n := min(planes, w.columns.Depth-z)
		g := zarr.Region{Start: []int{z, box.Y0, box.X0}, Shape: []int{n, box.Height(), box.Width()}}
		if err := slot.Fetch(ctx, g); err != nil {
			return oct.Readable(err)
		}
		slot.Into(w.stream, w.piece.From(int64(z)*plane, int64(n)*plane))
		if err := w.stream.Wait(); err != nil {
			return err
		}
	}
	return nil
}
