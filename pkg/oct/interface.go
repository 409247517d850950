package oct

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/work"
)

// interfaceMap finds the tissue interface of every A-line of a mosaic (stages
// specification, focal, step 1), reading each tile once.
//
// The mean filter reaches across tile borders, by half its window. What a tile
// can say alone is computed when it is there; along a border the tiles on both
// sides hand in the strips that the filter needs, and who hands in the last
// computes the seam. Strips that find no room in memory are read again at the end.
type interfaceMap[T dtype.Element] struct {
	*columns[T]
	search filter.InterfaceSearch
	res    Resources
	y, x   []segment
	// found takes the interfaces of a rectangle, in C order, and the gradients
	// there; it is called by several workers at a time and keeps neither.
	found func(ctx context.Context, r rectangle, depth []int32, gradient []float32) error

	nonFinite *atomic.Int64 // counts voxels that are not finite; nil: nobody does
	workers   int
	strips    *mem.Pool

	mu    sync.Mutex
	seams map[[2]int]*seam // by segments, incomplete
	late  [][2]int         // seams without memory
}

// segment is a stretch of outputs along one axis whose windows lie in the same tiles.
type segment struct {
	from, to    int // outputs
	in0, in1    int // samples that their windows cover
	first, last int // tiles that these lie in
}

// segments cuts an axis of n samples in tiles of so many.
func segments(s *filter.InterfaceSearch, n, tile int) (out []segment) {
	at := func(i int) segment {
		w := s.Windows(i, i+1, n)
		lo, hi := slices.Min(w), slices.Max(w)
		return segment{i, i + 1, lo, hi + 1, lo / tile, hi / tile}
	}
	for i := 0; i < n; {
		g := at(i)
		if g.first == g.last { // as far as its tile goes
			end := min((g.first+1)*tile, n)
			if end < n {
				end -= s.Window() / 2 // no window reaches further behind
			}
			if end > i {
				if far := at(end - 1); far.first == g.first && far.last == g.first {
					g.to, g.in0, g.in1 = end, min(g.in0, far.in0), max(g.in1, far.in1)
				}
			}
		}
		i = g.to
		if k := len(out) - 1; k >= 0 && out[k].first == g.first && out[k].last == g.last {
			out[k].to = g.to
			out[k].in0, out[k].in1 = min(out[k].in0, g.in0), max(out[k].in1, g.in1)
			continue
		}
		out = append(out, g)
	}
	return out
}

// seam is the magnitudes under a rectangle of A-lines near tile borders.
type seam struct {
	box     rectangle // of the magnitudes
	swapped bool      // stored (z, x, y): a narrow upright strip
	left    int       // tiles to come
	buf     *mem.Buffer
	data    []float32
}

// workspace is about what a worker's filters take, of the search and the roll.
func workspace(m *mosaic) int64 { return 1<<20 + 2<<10*int64(m.shape[0]) }

// planInterface decides how many workers there are; reserved is memory, of
// res.Mem, that others need meanwhile.
func planInterface[T dtype.Element](m *mosaic, search filter.InterfaceSearch, res Resources, reserved int64) (*interfaceMap[T], error) {
	c, err := newColumns[T](m, res)
	if err != nil {
		return nil, err
	}
	p := &interfaceMap[T]{columns: c, search: search, res: res, seams: map[[2]int]*seam{}}
	p.y, p.x = segments(&p.search, m.shape[1], m.chunk[1]), segments(&p.search, m.shape[2], m.chunk[2])
	tile := m.tileBytes()
	each := tile + c.scratch + workspace(m) + 8*int64(m.chunk[1])*int64(m.chunk[2])
	available := res.Mem - reserved
	if each > available {
		return nil, fmt.Errorf("%s: searching tiles of %v voxels needs %d MiB of buffers, --mem grants %d MiB",
			m.where, m.tile(), (each+reserved)>>20+1, res.Mem>>20)
	}
	// a quarter for strips, unless one worker needs it
	p.workers = int(max(1, min(int64(res.Workers), available*3/4/each)))
	p.strips = mem.NewPool(available - int64(p.workers)*each)
	return p, nil
}

// findInterfaces finds the interfaces of a mosaic, on the device if there is one: see
// [interfaceMap]. found gets the gradients if they are wanted.
func findInterfaces[T dtype.Element](ctx context.Context, m *mosaic, search filter.InterfaceSearch, res Resources, reserved int64, gradients bool,
	found func(ctx context.Context, r rectangle, depth []int32, gradient []float32) error, nonFinite *atomic.Int64) error {
	if res.Device != nil {
		p, err := planDeviceSearch(m, search, res, reserved)
		if err != nil {
			return err
		}
		p.found, p.gradients, p.nonFinite = found, gradients, nonFinite
		return p.run(ctx)
	}
	p, err := planInterface[T](m, search, res, reserved)
	if err != nil {
		return err
	}
	p.found, p.nonFinite = found, nonFinite
	return p.run(ctx)
}

// run finds all interfaces.
func (p *interfaceMap[T]) run(ctx context.Context) error {
	defer p.strips.Close()
	ny, nx := p.mosaic.tiles()
	tile := p.mosaic.tileBytes()
	err := p.each(ctx, ny*nx, tile, func(ctx context.Context, w *searcher[T], k int) error {
		// along the shorter side of the mosaic, so that fewer seams wait
		i, j := k/nx, k%nx
		if nx > ny {
			i, j = k%ny, k/ny
		}
		return w.tile(ctx, i, j)
	})
	if err != nil {
		return err
	}
	late := p.late
	slices.SortFunc(late, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	// all the memory that seams had is free for them
	return p.each(ctx, len(late), tile+p.strips.Limit()/int64(p.workers), func(ctx context.Context, w *searcher[T], k int) error {
		y, x := p.y[late[k][0]], p.x[late[k][1]]
		return w.readAgain(ctx, rectangle{y.from, y.to, x.from, x.to})
	})
}

// each lets the workers do n pieces of work, with memory for that many bytes of
// voxels each.
func (p *interfaceMap[T]) each(ctx context.Context, n int, bytes int64, do func(ctx context.Context, w *searcher[T], k int) error) error {
	g, ctx := work.WithContext(ctx)
	var next atomic.Int64
	for range min(p.workers, n) {
		g.Go(func() error {
			v, err := newTileBuffer[T](bytes)
			if err != nil {
				return err
			}
			defer v.free()
			w := &searcher[T]{interfaceMap: p, volume: v}
			for {
				k := int(next.Add(1) - 1)
				if k >= n {
					return nil
				}
				if err := do(ctx, w, k); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// planes is how many planes are read: those that the search sees, and of
// several chunks along Z that are decoded whole the rest.
func (p *interfaceMap[T]) planes() int {
	n := p.mosaic.shape[0]
	if p.search.Planes == 0 {
		return n
	}
	step := 1
	if p.whole() && p.mosaic.chunk[0] < n {
		step = p.mosaic.chunk[0]
	}
	return min(n, (p.seen()+step-1)/step*step)
}

// seen is how many planes the search sees, where it is not all.
func (p *interfaceMap[T]) seen() int { return seenPlanes(p.mosaic, &p.search) }

// seenPlanes is how many planes of a mosaic a search sees.
func seenPlanes(m *mosaic, s *filter.InterfaceSearch) int {
	if s.Planes == 0 {
		return m.shape[0]
	}
	return min(m.shape[0], s.Planes+s.Reach())
}

// searcher is a worker.
type searcher[T dtype.Element] struct {
	*interfaceMap[T]
	volume    *tileBuffer[T]
	workspace filter.Workspace
	column    []T
	depth     []int32
	gradient  []float32
}

// tile does all that one tile allows.
func (w *searcher[T]) tile(ctx context.Context, i, j int) error {
	planes, at := w.planes(), w.mosaic.extent(i, j)
	if err := w.read(ctx, w.volume, 0, planes, at); err != nil {
		return err
	}
	if w.nonFinite != nil {
		w.nonFinite.Add(filter.CountNonFinite(w.volume.data[:w.seen()*at.area()]))
	}
	for a, y := range w.y {
		if i < y.first || i > y.last {
			continue
		}
		for b, x := range w.x {
			if j < x.first || j > x.last {
				continue
			}
			var err error
			if y.first == y.last && x.first == x.last {
				err = searchIn(ctx, w, filter.Slab[T]{Data: w.volume.data}, at, rectangle{y.from, y.to, x.from, x.to})
			} else {
				err = w.contribute(ctx, [2]int{a, b}, at)
			}
			if err != nil {
				return err
			}
		}
	}
	w.res.progress(int64(w.mosaic.shape[0] * at.area() * w.mosaic.dtype.Size()))
	return nil
}

// searchIn finds the interfaces of a rectangle in voxels of a box around it.
func searchIn[T, S dtype.Element](ctx context.Context, w *searcher[T], slab filter.Slab[S], box, r rectangle) error {
	start := time.Now()
	n := r.area()
	if len(w.depth) < n {
		w.depth, w.gradient = make([]int32, n), make([]float32, n)
	}
	rows, columns := w.search.Windows(r.y0, r.y1, w.mosaic.shape[1]), w.search.Windows(r.x0, r.x1, w.mosaic.shape[2])
	for i := range rows {
		rows[i] -= box.y0
	}
	for i := range columns {
		columns[i] -= box.x0
	}
	slab.Planes, slab.PlaneStride, slab.RowStride = w.planes(), box.area(), box.width()
	if slab.Swapped {
		slab.RowStride = box.height()
		filter.Interfaces(&w.search, &w.workspace, w.depth[:n], w.gradient[:n], slab, columns, rows)
		w.turn(r)
	} else {
		filter.Interfaces(&w.search, &w.workspace, w.depth[:n], w.gradient[:n], slab, rows, columns)
	}
	w.res.Meter.Since(meter.Compute, start)
	return w.found(ctx, r, w.depth[:n], w.gradient[:n])
}

// turn brings the outputs of a swapped slab into C order.
func (w *searcher[T]) turn(r rectangle) {
	depth, gradient := slices.Clone(w.depth[:r.area()]), slices.Clone(w.gradient[:r.area()])
	for x := range r.width() {
		for y := range r.height() {
			from, to := x*r.height()+y, y*r.width()+x
			w.depth[to], w.gradient[to] = depth[from], gradient[from]
		}
	}
}

// contribute hands in what a seam needs of a tile, and computes the seam when
// that was the last.
func (w *searcher[T]) contribute(ctx context.Context, key [2]int, at rectangle) error {
	y, x := w.y[key[0]], w.x[key[1]]
	w.mu.Lock()
	s, err := w.seam(key, y, x)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	if s.buf != nil {
		start := time.Now()
		w.copy(s, at)
		w.res.Meter.Since(meter.Compute, start)
	}
	w.mu.Lock()
	s.left--
	last := s.left == 0
	if last {
		delete(w.seams, key)
	}
	w.mu.Unlock()
	if !last || s.buf == nil {
		return nil
	}
	defer s.buf.Release()
	return searchIn(ctx, w, filter.Slab[float32]{Data: s.data, Ready: true, Swapped: s.swapped}, s.box, rectangle{y.from, y.to, x.from, x.to})
}

// seam finds a seam or makes it. w.mu is held.
func (w *searcher[T]) seam(key [2]int, y, x segment) (*seam, error) {
	if s := w.seams[key]; s != nil {
		return s, nil
	}
	s := &seam{box: rectangle{y.in0, y.in1, x.in0, x.in1}, left: (y.last - y.first + 1) * (x.last - x.first + 1)}
	s.swapped = s.box.width() < s.box.height()
	n := w.planes() * s.box.area()
	buf, err := w.strips.TryGet(4 * n)
	if err != nil {
		return nil, err
	}
	if buf == nil {
		w.late = append(w.late, key)
	} else {
		s.buf, s.data = buf, dtype.Slice[float32](buf.B)[:n]
	}
	w.seams[key] = s
	return s, nil
}

// copy puts the magnitudes of a tile into a seam.
func (w *searcher[T]) copy(s *seam, at rectangle) {
	part := s.box.and(at)
	for z := range w.planes() {
		from := w.volume.data[z*at.area():]
		to := s.data[z*s.box.area():]
		if !s.swapped {
			for y := part.y0; y < part.y1; y++ {
				filter.Magnitudes(&w.search, to[(y-s.box.y0)*s.box.width()+part.x0-s.box.x0:],
					from[(y-at.y0)*at.width()+part.x0-at.x0:][:part.width()])
			}
			continue
		}
		w.column = slices.Grow(w.column[:0], part.height())[:part.height()]
		for x := part.x0; x < part.x1; x++ {
			k := (part.y0-at.y0)*at.width() + x - at.x0
			for i := range w.column {
				w.column[i] = from[k]
				k += at.width()
			}
			filter.Magnitudes(&w.search, to[(x-s.box.x0)*s.box.height()+part.y0-s.box.y0:], w.column)
		}
	}
}

// readAgain finds the interfaces of a rectangle from voxels that are read for
// it, in as many pieces as memory asks for.
func (w *searcher[T]) readAgain(ctx context.Context, r rectangle) error {
	bounds := func(from, to, n int) (int, int) {
		in := w.search.Windows(from, to, n)
		return slices.Min(in), slices.Max(in) + 1
	}
	var box rectangle
	box.y0, box.y1 = bounds(r.y0, r.y1, w.mosaic.shape[1])
	box.x0, box.x1 = bounds(r.x0, r.x1, w.mosaic.shape[2])
	if int64(w.planes())*int64(box.area())*int64(w.mosaic.dtype.Size()) <= int64(len(w.volume.raw)) {
		if err := w.read(ctx, w.volume, 0, w.planes(), box); err != nil {
			return err
		}
		return searchIn(ctx, w, filter.Slab[T]{Data: w.volume.data}, box, r)
	}
	a, b := r, r
	switch {
	case r.height() >= r.width() && r.height() > 1:
		a.y1 = r.y0 + r.height()/2
		b.y0 = a.y1
	case r.width() > 1:
		a.x1 = r.x0 + r.width()/2
		b.x0 = a.x1
	default:
		return fmt.Errorf("%s: a mean filter of %d pixels over %d planes does not fit into --mem %d MiB", w.mosaic.where, w.search.Window(), w.planes(), w.res.Mem>>20)
	}
	if err := w.readAgain(ctx, a); err != nil {
		return err
	}
	return w.readAgain(ctx, b)
}
