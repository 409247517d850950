// Package surface finds the tissue surface of a mosaic grid: of each A-line the plane where it brightens most.
package surface

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
	"strata/pkg/oct"
	"strata/pkg/oct/machine"
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
	*machine.Columns[T]
	search filter.InterfaceSearch
	res    oct.Resources
	y, x   []segment
	// found takes the interfaces of a rectangle, in C order, and the gradients
	// there; it is called by several workers at a time and keeps neither.
	Found func(ctx context.Context, r oct.Rectangle, depth []int32, gradient []float32) error

	nonFinite *atomic.Int64 // counts voxels that are not finite; nil: nobody does
	workers   int
	Strips    *mem.Pool

	mu    sync.Mutex
	seams map[[2]int]*seam // by segments, incomplete
	Late  [][2]int         // seams without memory
}

// segment is a stretch of outputs along one axis whose windows lie in the same tiles.
type segment struct {
	From, To    int // outputs
	In0, In1    int // samples that their windows cover
	First, Last int // tiles that these lie in
}

// Segments cuts an axis of n samples in tiles of so many.
func Segments(s *filter.InterfaceSearch, n, tile int) (out []segment) {
	at := func(i int) segment {
		w := s.Windows(i, i+1, n)
		lo, hi := slices.Min(w), slices.Max(w)
		return segment{i, i + 1, lo, hi + 1, lo / tile, hi / tile}
	}
	for i := 0; i < n; {
		g := at(i)
		if g.First == g.Last { // as far as its tile goes
			end := min((g.First+1)*tile, n)
			if end < n {
				end -= s.Window() / 2 // no window reaches further behind
			}
			if end > i {
				if far := at(end - 1); far.First == g.First && far.Last == g.First {
					g.To, g.In0, g.In1 = end, min(g.In0, far.In0), max(g.In1, far.In1)
				}
			}
		}
		i = g.To
		if k := len(out) - 1; k >= 0 && out[k].First == g.First && out[k].Last == g.Last {
			out[k].To = g.To
			out[k].In0, out[k].In1 = min(out[k].In0, g.In0), max(out[k].In1, g.In1)
			continue
		}
		out = append(out, g)
	}
	return out
}

// seam is the magnitudes under a rectangle of A-lines near tile borders.
type seam struct {
	box     oct.Rectangle // of the magnitudes
	swapped bool          // stored (z, x, y): a narrow upright strip
	left    int           // tiles to come
	buf     *mem.Buffer
	data    []float32
}

// PlanInterface decides how many workers there are; reserved is memory, of
// res.Mem, that others need meanwhile.
func PlanInterface[T dtype.Element](m *oct.Mosaic, search filter.InterfaceSearch, res oct.Resources, reserved int64) (*interfaceMap[T], error) {
	c, err := machine.NewColumns[T](m, res)
	if err != nil {
		return nil, err
	}
	p := &interfaceMap[T]{Columns: c, search: search, res: res, seams: map[[2]int]*seam{}}
	p.y, p.x = Segments(&p.search, m.Shape[1], m.Chunk[1]), Segments(&p.search, m.Shape[2], m.Chunk[2])
	tile := m.TileBytes()
	each := tile + c.Scratch + machine.Workspace(m) + 8*int64(m.Chunk[1])*int64(m.Chunk[2])
	available := res.Mem - reserved
	if each > available {
		return nil, fmt.Errorf("%s: searching tiles of %v voxels needs %d MiB of buffers, --mem grants %d MiB",
			m.Where, m.Tile(), (each+reserved)>>20+1, res.Mem>>20)
	}
	// a quarter for strips, unless one worker needs it
	p.workers = int(max(1, min(int64(res.Workers), available*3/4/each)))
	p.Strips = mem.NewPool(available - int64(p.workers)*each)
	return p, nil
}

// FindInterfaces finds the interfaces of a mosaic, on the device if there is one: see
// [interfaceMap]. found gets the gradients if they are wanted.
func FindInterfaces[T dtype.Element](ctx context.Context, m *oct.Mosaic, search filter.InterfaceSearch, res oct.Resources, reserved int64, gradients bool,
	found func(ctx context.Context, r oct.Rectangle, depth []int32, gradient []float32) error, nonFinite *atomic.Int64) error {
	if res.Device != nil {
		p, err := PlanDeviceSearch(m, search, res, reserved)
		if err != nil {
			return err
		}
		p.Found, p.gradients, p.nonFinite = found, gradients, nonFinite
		return p.Run(ctx)
	}
	p, err := PlanInterface[T](m, search, res, reserved)
	if err != nil {
		return err
	}
	p.Found, p.nonFinite = found, nonFinite
	return p.Run(ctx)
}

// Run finds all interfaces.
func (p *interfaceMap[T]) Run(ctx context.Context) error {
	defer p.Strips.Close()
	ny, nx := p.Mosaic.Tiles()
	tile := p.Mosaic.TileBytes()
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
	late := p.Late
	slices.SortFunc(late, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	// all the memory that seams had is free for them
	return p.each(ctx, len(late), tile+p.Strips.Limit()/int64(p.workers), func(ctx context.Context, w *searcher[T], k int) error {
		y, x := p.y[late[k][0]], p.x[late[k][1]]
		return w.readAgain(ctx, oct.Rect(y.From, y.To, x.From, x.To))
	})
}

// each lets the workers do n pieces of work, with memory for that many bytes of
// voxels each.
func (p *interfaceMap[T]) each(ctx context.Context, n int, bytes int64, do func(ctx context.Context, w *searcher[T], k int) error) error {
	g, ctx := work.WithContext(ctx)
	var next atomic.Int64
	for range min(p.workers, n) {
		g.Go(func() error {
			v, err := machine.NewTileBuffer[T](bytes)
			if err != nil {
				return err
			}
			defer v.Free()
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
	n := p.Mosaic.Shape[0]
	if p.search.Planes == 0 {
		return n
	}
	step := 1
	if p.Whole() && p.Mosaic.Chunk[0] < n {
		step = p.Mosaic.Chunk[0]
	}
	return min(n, (p.seen()+step-1)/step*step)
}

// seen is how many planes the search sees, where it is not all.
func (p *interfaceMap[T]) seen() int { return SeenPlanes(p.Mosaic, &p.search) }

// SeenPlanes is how many planes of a mosaic a search sees.
func SeenPlanes(m *oct.Mosaic, s *filter.InterfaceSearch) int {
	if s.Planes == 0 {
		return m.Shape[0]
	}
	return min(m.Shape[0], s.Planes+s.Reach())
}

// searcher is a worker.
type searcher[T dtype.Element] struct {
	*interfaceMap[T]
	volume    *machine.TileBuffer[T]
	workspace filter.Workspace
	column    []T
	depth     []int32
	gradient  []float32
}

// tile does all that one tile allows.
func (w *searcher[T]) tile(ctx context.Context, i, j int) error {
	planes, at := w.planes(), w.Mosaic.Extent(i, j)
	if err := w.Read(ctx, w.volume, 0, planes, at); err != nil {
		return err
	}
	if w.nonFinite != nil {
		w.nonFinite.Add(filter.CountNonFinite(w.volume.Data[:w.seen()*at.Area()]))
	}
	for a, y := range w.y {
		if i < y.First || i > y.Last {
			continue
		}
		for b, x := range w.x {
			if j < x.First || j > x.Last {
				continue
			}
			var err error
			if y.First == y.Last && x.First == x.Last {
				err = searchIn(ctx, w, filter.Slab[T]{Data: w.volume.Data}, at, oct.Rect(y.From, y.To, x.From, x.To))
			} else {
				err = w.contribute(ctx, [2]int{a, b}, at)
			}
			if err != nil {
				return err
			}
		}
	}
	w.res.Done(int64(w.Mosaic.Shape[0] * at.Area() * w.Mosaic.DType.Size()))
	return nil
}

// searchIn finds the interfaces of a rectangle in voxels of a box around it.
func searchIn[T, S dtype.Element](ctx context.Context, w *searcher[T], slab filter.Slab[S], box, r oct.Rectangle) error {
	start := time.Now()
	n := r.Area()
	if len(w.depth) < n {
		w.depth, w.gradient = make([]int32, n), make([]float32, n)
	}
	rows, columns := w.search.Windows(r.Y0, r.Y1, w.Mosaic.Shape[1]), w.search.Windows(r.X0, r.X1, w.Mosaic.Shape[2])
	for i := range rows {
		rows[i] -= box.Y0
	}
	for i := range columns {
		columns[i] -= box.X0
	}
	slab.Planes, slab.PlaneStride, slab.RowStride = w.planes(), box.Area(), box.Width()
	if slab.Swapped {
		slab.RowStride = box.Height()
		filter.Interfaces(&w.search, &w.workspace, w.depth[:n], w.gradient[:n], slab, columns, rows)
		w.turn(r)
	} else {
		filter.Interfaces(&w.search, &w.workspace, w.depth[:n], w.gradient[:n], slab, rows, columns)
	}
	w.res.Meter.Since(meter.Compute, start)
	return w.Found(ctx, r, w.depth[:n], w.gradient[:n])
}

// turn brings the outputs of a swapped slab into C order.
func (w *searcher[T]) turn(r oct.Rectangle) {
	depth, gradient := slices.Clone(w.depth[:r.Area()]), slices.Clone(w.gradient[:r.Area()])
	for x := range r.Width() {
		for y := range r.Height() {
			from, to := x*r.Height()+y, y*r.Width()+x
			w.depth[to], w.gradient[to] = depth[from], gradient[from]
		}
	}
}

// contribute hands in what a seam needs of a tile, and computes the seam when
// that was the last.
func (w *searcher[T]) contribute(ctx context.Context, key [2]int, at oct.Rectangle) error {
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
	return searchIn(ctx, w, filter.Slab[float32]{Data: s.data, Ready: true, Swapped: s.swapped}, s.box, oct.Rect(y.From, y.To, x.From, x.To))
}

// seam finds a seam or makes it. w.mu is held.
func (w *searcher[T]) seam(key [2]int, y, x segment) (*seam, error) {
	if s := w.seams[key]; s != nil {
		return s, nil
	}
	s := &seam{box: oct.Rect(y.In0, y.In1, x.In0, x.In1), left: (y.Last - y.First + 1) * (x.Last - x.First + 1)}
	s.swapped = s.box.Width() < s.box.Height()
	n := w.planes() * s.box.Area()
	buf, err := w.Strips.TryGet(4 * n)
	if err != nil {
		return nil, err
	}
	if buf == nil {
		w.Late = append(w.Late, key)
	} else {
		s.buf, s.data = buf, dtype.Slice[float32](buf.B)[:n]
	}
	w.seams[key] = s
	return s, nil
}

// copy puts the magnitudes of a tile into a seam.
func (w *searcher[T]) copy(s *seam, at oct.Rectangle) {
	part := s.box.And(at)
	for z := range w.planes() {
		from := w.volume.Data[z*at.Area():]
		to := s.data[z*s.box.Area():]
		if !s.swapped {
			for y := part.Y0; y < part.Y1; y++ {
				filter.Magnitudes(&w.search, to[(y-s.box.Y0)*s.box.Width()+part.X0-s.box.X0:],
					from[(y-at.Y0)*at.Width()+part.X0-at.X0:][:part.Width()])
			}
			continue
		}
		w.column = slices.Grow(w.column[:0], part.Height())[:part.Height()]
		for x := part.X0; x < part.X1; x++ {
			k := (part.Y0-at.Y0)*at.Width() + x - at.X0
			for i := range w.column {
				w.column[i] = from[k]
				k += at.Width()
			}
			filter.Magnitudes(&w.search, to[(x-s.box.X0)*s.box.Height()+part.Y0-s.box.Y0:], w.column)
		}
	}
}

// readAgain finds the interfaces of a rectangle from voxels that are read for
// it, in as many pieces as memory asks for.
func (w *searcher[T]) readAgain(ctx context.Context, r oct.Rectangle) error {
	bounds := func(from, to, n int) (int, int) {
		in := w.search.Windows(from, to, n)
		return slices.Min(in), slices.Max(in) + 1
	}
	var box oct.Rectangle
	box.Y0, box.Y1 = bounds(r.Y0, r.Y1, w.Mosaic.Shape[1])
	box.X0, box.X1 = bounds(r.X0, r.X1, w.Mosaic.Shape[2])
	if int64(w.planes())*int64(box.Area())*int64(w.Mosaic.DType.Size()) <= int64(len(w.volume.Raw)) {
		if err := w.Read(ctx, w.volume, 0, w.planes(), box); err != nil {
			return err
		}
		return searchIn(ctx, w, filter.Slab[T]{Data: w.volume.Data}, box, r)
	}
	a, b := r, r
	switch {
	case r.Height() >= r.Width() && r.Height() > 1:
		a.Y1 = r.Y0 + r.Height()/2
		b.Y0 = a.Y1
	case r.Width() > 1:
		a.X1 = r.X0 + r.Width()/2
		b.X0 = a.X1
	default:
		return fmt.Errorf("%s: a mean filter of %d pixels over %d planes does not fit into --mem %d MiB", w.Mosaic.Where, w.search.Window(), w.planes(), w.res.Mem>>20)
	}
	if err := w.readAgain(ctx, a); err != nil {
		return err
	}
	return w.readAgain(ctx, b)
}
