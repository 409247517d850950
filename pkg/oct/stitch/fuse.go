package stitch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/mem"
	"strata/pkg/meter"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/work"
)

// fusion puts the tiles of a mosaic onto the canvas and writes it. T is the type
// of the voxels, F the one in which they are blended.
type fusion[T dtype.Element, F float32 | float64] struct {
	*stitchPlan
	canvas
	reader  *tileReader[T]
	writer  *ngff.Writer
	weights *weights
	zeros   []int // of each tile: pieces at its beginning that are zero; below 0: not looked at
}

// newFusion makes the plan of a fusion in so much memory, of which the output is written in
// units of a shape.
func newFusion[T dtype.Element, F float32 | float64](c canvas, unit [3]int, avail int64) (*fusion[T, F], error) {
	m := c.mosaic
	p := &stitchPlan{unit: unit}
	p.columns, p.across = makeColumns(c.size, unit, c.places)
	r, err := newTileReader[T](m, 0, oct.Resources{})
	if err != nil {
		return nil, err
	}
	plane := int64(m.Chunk[1]) * int64(m.Chunk[2])
	cost := costs{worker: r.bytes + 8*plane + c.encoding(unit)}
	sum := 0
	if _, same := any([]T(nil)).([]F); !same {
		sum = dtype.Of[F]().Size()
	}
	cost.column = func(col *outColumn, planes int) int64 { return p.columnBytes(col, planes, m.DType.Size(), sum) }
	if c.blending == BlendDiffusion {
		cost.worker += diffusing * plane
	}
	cost.fixed = min(max(avail/64, 8*plane), 64*plane) // weights
	f := &fusion[T, F]{stitchPlan: p, canvas: c, zeros: slices.Repeat([]int{-1}, len(c.places))}
	f.weights = newWeights(c.blending, c.places, overlapping(c.places), cost.fixed)
	if least, ok := p.plan(m.Shape[0], r.planes, min(c.res.Workers, len(c.places)), avail, cost); !ok {
		return nil, fmt.Errorf("%s: stitching tiles of this size into chunks of %v needs %d MiB of buffers, --mem leaves %d MiB for them: grant more, or ask for smaller --chunks",
			m.Where, unit, least>>20+1, avail>>20)
	}
	return f, nil
}

// diffusing is how many bytes a pixel the grids of the diffusion's equation take.
const diffusing = 13

// encoding is the memory in which a worker encodes a unit of the output.
func (c *canvas) encoding(unit [3]int) int64 {
	if !c.coded {
		return 0
	}
	n := int64(min(unit[0], c.mosaic.Shape[0])) * int64(min(unit[1], c.size[0])) * int64(min(unit[2], c.size[1])) * int64(c.mosaic.DType.Size())
	return n + n/16
}

// write reads the tiles and writes the slice.
func (f *fusion[T, F]) write(ctx context.Context, w *ngff.Writer) (err error) {
	f.writer = w
	if f.reader, err = newTileReader[T](f.mosaic, f.workers, f.res); err != nil {
		return err
	}
	defer f.reader.close()
	return f.run(ctx)
}

// run goes through the blocks, and the slabs of each.
func (f *fusion[T, F]) run(ctx context.Context) error {
	depth := f.mosaic.Shape[0]
	pool := mem.NewPool(f.bytes + 1)
	defer pool.Close()
	var order, position []int
	for b := range len(f.blocks) - 1 {
		order, position = f.order(f.blocks[b], f.blocks[b+1], order, position)
		for z := 0; z < depth; z += f.slab * f.unit[0] {
			p := &pass[T, F]{
				fusion: f, pool: pool, tiles: order, position: position, first: f.blocks[b],
				z0: z, z1: min(z+f.slab*f.unit[0], depth), finished: make([]bool, len(order)),
			}
			if err := p.run(ctx, f.blocks[b+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// pass is the work on one block and slab.
type pass[T dtype.Element, F float32 | float64] struct {
	*fusion[T, F]
	pool     *mem.Pool
	tiles    []int // in the order in which they are read
	position []int // of a tile in tiles
	first    int   // column along x
	z0, z1   int

	// mu guards what follows, and the progress of the columns; moved is called
	// when any of it changes
	mu       sync.Mutex
	moved    sync.Cond
	next     int
	finished []bool
	oldest   int // the first tile of the order that is not finished
	live     map[*outColumn]*liveColumn[T, F]
	failed   bool
}

// liveColumn is a column in memory.
type liveColumn[T dtype.Element, F float32 | float64] struct {
	*outColumn
	done   []int // of each of its tiles: planes up to this one have been added
	left   int   // tiles to come
	units  []*mem.Buffer
	voxels [][]T
	side   *mem.Buffer // running means, where they are not kept in voxels
	cells  []cell[F]
}

// cell is a region in memory.
type cell[F float32 | float64] struct {
	region
	who []int     // indices in the column's tiles
	sum []float32 // of the weights so far; shared regions only
	any bool      // a tile that is not empty has come
	acc []F       // running means (z, y, x)
}

func (p *pass[T, F]) run(ctx context.Context, end int) error {
	p.moved.L = &p.mu
	p.live = map[*outColumn]*liveColumn[T, F]{}
	g, gctx := work.WithContext(ctx)
	stop := context.AfterFunc(gctx, func() {
		p.mu.Lock()
		p.failed = true
		p.mu.Unlock()
		p.moved.Broadcast()
	})
	defer stop()
	for range min(p.workers, len(p.tiles)) {
		g.Go(func() error { return p.work(gctx) })
	}
	g.Go(func() error { return p.writeHoles(gctx, end) })
	err := g.Wait()
	for _, c := range p.live {
		c.release()
	}
	return err
}

func (c *liveColumn[T, F]) release() {
	for _, u := range c.units {
		u.Release()
	}
	c.side.Release()
}

// writeHoles writes the columns on which no tile lies.
func (p *pass[T, F]) writeHoles(ctx context.Context, end int) (err error) {
	var zeros []byte
	p.each(p.first, end, func(c *outColumn) {
		if len(c.tiles) > 0 || err != nil {
			return
		}
		if zeros == nil {
			zeros = make([]byte, p.unit[0]*p.unit[1]*p.unit[2]*p.mosaic.DType.Size())
		}
		shape := []int{0, c.box.Y1 - c.box.Y0, c.box.X1 - c.box.X0}
		for z := p.z0; z < p.z1 && err == nil; z += p.unit[0] {
			shape[0] = min(p.unit[0], p.z1-z)
			err = p.writer.WriteTile(ctx, p.mosaic.Index(z, c.box.Y0, c.box.X0), p.mosaic.BoxShape(shape[0], shape[1], shape[2]), zeros[:shape[0]*shape[1]*shape[2]*p.mosaic.DType.Size()])
		}
	})
	return err
}

// work adds tile after tile until none is left.
func (p *pass[T, F]) work(ctx context.Context) error {
	w := &fuser[T, F]{pass: p, in: piece[T]{tileReader: p.reader}}
	defer w.in.release()
	for {
		t, ok := p.take()
		if !ok {
			return ctx.Err()
		}
		if err := w.add(ctx, t); err != nil {
			return err
		}
		p.mu.Lock()
		p.finished[p.position[t]] = true
		for p.oldest < len(p.finished) && p.finished[p.oldest] {
			p.oldest++
		}
		p.mu.Unlock()
		p.moved.Broadcast()
	}
}

// take is the next tile, as soon as it does not run too far ahead of the oldest:
// the plan's memory counts on that.
func (p *pass[T, F]) take() (t int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == len(p.tiles) {
		return 0, false
	}
	k := p.next
	p.next++
	for k >= p.oldest+p.window && !p.failed {
		p.moved.Wait()
	}
	return p.tiles[k], !p.failed
}

// column is a column in memory, made when its first tile asks for it.
func (p *pass[T, F]) column(c *outColumn) (*liveColumn[T, F], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.live[c]; m != nil {
		return m, nil
	}
	m := &liveColumn[T, F]{outColumn: c, done: make([]int, len(c.tiles)), left: len(c.tiles)}
	p.live[c] = m
	for i := range m.done {
		m.done[i] = p.z0
	}
	area := (c.box.Y1 - c.box.Y0) * (c.box.X1 - c.box.X0)
	get := func(n int) (*mem.Buffer, error) {
		b, err := p.pool.TryGet(n)
		if b == nil && err == nil {
			err = fmt.Errorf("%s: a stitched column does not find the %d bytes that were set aside for it", p.mosaic.Where, n)
		}
		return b, err
	}
	for z := p.z0; z < p.z1; z += p.unit[0] {
		b, err := get(min(p.unit[0], p.z1-z) * area * p.mosaic.DType.Size())
		if err != nil {
			return nil, err
		}
		m.units = append(m.units, b)
		m.voxels = append(m.voxels, dtype.Slice[T](b.B))
	}
	var side []F
	if _, same := any(m.voxels[0]).([]F); !same && c.shared > 0 {
		var err error
		if m.side, err = get((p.z1 - p.z0) * c.shared * dtype.Of[F]().Size()); err != nil {
			return nil, err
		}
		side = dtype.Slice[F](m.side.B)
	}
	sums := make([]float32, c.shared)
	for _, r := range c.regions {
		l := cell[F]{region: r}
		for i, t := range c.tiles {
			for _, o := range r.who {
				if o == t {
					l.who = append(l.who, i)
				}
			}
		}
		if n := (r.Y1 - r.Y0) * (r.X1 - r.X0); len(r.who) > 1 {
			l.sum, sums = sums[:n], sums[n:]
			if side != nil {
				k := n * (p.z1 - p.z0)
				l.acc, side = side[:k], side[k:]
			}
		}
		if len(r.who) == 0 { // nothing else writes there
			for z := p.z0; z < p.z1; z++ {
				for y := r.Y0; y < r.Y1; y++ {
					clear(m.row(p.stitchPlan, z-p.z0, y, r.X0, r.X1))
				}
			}
		}
		m.cells = append(m.cells, l)
	}
	return m, nil
}

// row is a row of the column's voxels, of plane z of the slab.
func (m *liveColumn[T, F]) row(p *stitchPlan, z, y, x0, x1 int) []T {
	nx := m.box.X1 - m.box.X0
	ny := m.box.Y1 - m.box.Y0
	return m.voxels[z/p.unit[0]][(z%p.unit[0]*ny+y-m.box.Y0)*nx+x0-m.box.X0:][:x1-x0]
}

// mean is a row of a shared cell's running means.
func (m *liveColumn[T, F]) mean(p *stitchPlan, l *cell[F], z, y int) []F {
	if l.acc == nil {
		return any(m.row(p, z, y, l.X0, l.X1)).([]F)
	}
	nx := l.X1 - l.X0
	return l.acc[(z*(l.Y1-l.Y0)+y-l.Y0)*nx:][:nx]
}

// fuser is a worker and its memory.
type fuser[T dtype.Element, F float32 | float64] struct {
	*pass[T, F]
	in     piece[T]
	visits []visit[T, F]
	rows   [4][]F
	waited time.Duration
}

// visit is what a tile does to a column.
type visit[T dtype.Element, F float32 | float64] struct {
	*liveColumn[T, F]
	self  int         // index of the tile in the column's tiles
	alpha [][]float32 // of the shared cells that it lies on; by cell
}

// add reads a tile and adds it to the columns on which it lies.
func (w *fuser[T, F]) add(ctx context.Context, t int) error {
	if err := w.look(ctx, t); err != nil {
		return err
	}
	if err := w.enter(t); err != nil {
		return err
	}
	plane := w.weights.of(t)
	for k := w.z0 / w.in.planes; k < w.in.pieces && k*w.in.planes < w.z1; k++ {
		src, n, err := w.source(ctx, k, t)
		if err != nil {
			return err
		}
		first := src.first
		start := time.Now()
		w.waited = 0
		lo, hi := max(first, w.z0), min(first+n, w.z1)
		for c := range w.visits {
			w.alone(&w.visits[c], t, src, lo, hi)
		}
		for c := range w.visits {
			v := &w.visits[c]
			if !w.shared(v, t, src, plane, lo, hi) {
				return ctx.Err()
			}
			w.advance(v, hi)
		}
		w.res.Meter.Since(meter.Compute, start.Add(w.waited))
		if w.places[t].X0 >= w.first*w.unit[2] { // in the first of its blocks
			w.res.Done(int64(hi-lo) * int64(src.extent[0]) * int64(src.extent[1]) * int64(w.mosaic.DType.Size()))
		}
	}
	for c := range w.visits {
		if err := w.leave(ctx, &w.visits[c]); err != nil {
			return err
		}
	}
	return nil
}

// enter finds the columns of the block on which a tile lies.
func (w *fuser[T, F]) enter(t int) error {
	w.visits = w.visits[:0]
	p := w.places[t]
	end := w.first
	for _, b := range w.blocks {
		if b > w.first {
			end = b
			break
		}
	}
	for y := p.Y0 / w.unit[1]; y*w.unit[1] < p.Y1; y++ {
		for x := max(p.X0/w.unit[2], w.first); x < end && x*w.unit[2] < p.X1; x++ {
			c := &w.columns[y*w.across+x]
			m, err := w.column(c)
			if err != nil {
				return err
			}
			v := visit[T, F]{liveColumn: m}
			for c.tiles[v.self] != t {
				v.self++
			}
			w.visits = append(w.visits, v)
		}
	}
	return nil
}

// look finds out where a tile begins to hold something, unless an earlier pass did.
// Only the worker that has the tile asks, and the passes follow each other.
func (w *fuser[T, F]) look(ctx context.Context, t int) (err error) {
	if w.zeros[t] < 0 {
		w.zeros[t], err = w.in.zeros(ctx, t/w.grid.nx, t%w.grid.nx)
	}
	return err
}

// isEmpty says that a tile that has been looked at holds nothing but zeros.
func (f *fusion[T, F]) isEmpty(t int) bool { return f.zeros[t] == f.reader.pieces }

// source reads a piece of n planes of a tile, unless it is known to be zero.
func (w *fuser[T, F]) source(ctx context.Context, k, t int) (src source[T], n int, err error) {
	i, j := t/w.grid.nx, t%w.grid.nx
	src = source[T]{first: k * w.in.planes, pitch: w.mosaic.Chunk, extent: w.grid.extent(i, j)}
	if k < w.zeros[t] {
		return src, min(w.in.planes, w.mosaic.Shape[0]-src.first), nil
	}
	src.data, src.first, n, err = w.in.load(ctx, k, i, j)
	return src, n, err
}

// source is a piece of a tile.
type source[T dtype.Element] struct {
	data   []T // nil: zeros
	first  int // plane
	pitch  [3]int
	extent [2]int
}

// row is a row of the tile from column x on.
func (s *source[T]) row(z, y int) []T {
	return s.data[((z-s.first)*s.pitch[1]+y)*s.pitch[2]:][:s.extent[1]]
}

// alone copies what only this tile has seen.
func (w *fuser[T, F]) alone(v *visit[T, F], t int, src source[T], lo, hi int) {
	p := &w.places[t]
	for i := range v.cells {
		l := &v.cells[i]
		if len(l.who) != 1 || l.who[0] != v.self {
			continue
		}
		for z := lo; z < hi; z++ {
			for y := l.Y0; y < l.Y1; y++ {
				dst := v.row(w.stitchPlan, z-w.z0, y, l.X0, l.X1)
				if p.frac == [2]float32{} && src.data != nil {
					copy(dst, src.row(z, y-p.Y0)[l.X0-p.X0:])
				} else {
					storeRow(dst, w.sample(src, p, z, y, l.X0, l.X1))
				}
			}
		}
	}
}

// shared blends what other tiles have seen too, after those of them that come
// first in order. It is false where the work has failed elsewhere.
func (w *fuser[T, F]) shared(v *visit[T, F], t int, src source[T], plane []float32, lo, hi int) bool {
	p := &w.places[t]
	for i := range v.cells {
		l := &v.cells[i]
		if len(l.who) < 2 {
			continue
		}
		at := -1
		for k, o := range l.who {
			if o == v.self {
				at = k
			}
		}
		if at < 0 {
			continue
		}
		if at > 0 {
			start := time.Now()
			if !w.await(v, l.who[at-1], hi) {
				return false
			}
			w.waited += time.Since(start)
		}
		if lo == w.z0 {
			w.weigh(v, i, at, p, plane, w.isEmpty(t))
		}
		alpha := v.alpha[i]
		if alpha == nil && at > 0 {
			continue // an empty tile
		}
		nx := l.X1 - l.X0
		for z := lo; z < hi; z++ {
			for y := l.Y0; y < l.Y1; y++ {
				acc := v.mean(w.stitchPlan, l, z-w.z0, y)
				if alpha == nil { // empty: anything is better
					for x := range acc {
						acc[x] = F(math.NaN())
					}
					continue
				}
				s := w.sample(src, p, z, y, l.X0, l.X1)
				if at == 0 {
					copy(acc, s)
					continue
				}
				if w.seams != nil && at == 1 && len(l.who) == 2 && z%seamStep == 0 && !w.isEmpty(v.tiles[l.who[0]]) {
					seamRow(w.seams, v.tiles[l.who[0]], t, v.outColumn, acc, s)
				}
				filter.Blend(acc, s, alpha[(y-l.Y0)*nx:][:nx])
			}
		}
	}
	return true
}

// weigh works out how far a tile moves the running means of a cell: its part
// of the sum of the weights up to and with it.
func (w *fuser[T, F]) weigh(v *visit[T, F], i, at int, p *place, plane []float32, empty bool) {
	l := &v.cells[i]
	for len(v.alpha) < len(v.cells) {
		v.alpha = append(v.alpha, nil)
	}
	if at == 0 {
		clear(l.sum)
	}
	if empty {
		return
	}
	l.any = true
	nx := l.X1 - l.X0
	alpha := make([]float32, len(l.sum))
	for y := l.Y0; y < l.Y1; y++ {
		a, sum := alpha[(y-l.Y0)*nx:][:nx], l.sum[(y-l.Y0)*nx:][:nx]
		var own []float32
		if plane != nil {
			own = plane[(y-p.Y0)*(p.X1-p.X0)+l.X0-p.X0:][:nx]
		}
		for x := range a {
			one := float32(1)
			if own != nil {
				one = own[x]
			}
			if w.weights.blending == BlendNone {
				if one > sum[x] {
					sum[x], a[x] = one, 1
				}
				continue
			}
			sum[x] += one
			a[x] = one / sum[x]
		}
	}
	v.alpha[i] = alpha
}

// await waits until another tile of a column has been added up to plane z.
func (p *pass[T, F]) await(v *visit[T, F], tile, z int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for v.done[tile] < z && !p.failed {
		p.moved.Wait()
	}
	return !p.failed
}

// advance says that a tile has been added up to plane z.
func (p *pass[T, F]) advance(v *visit[T, F], z int) {
	p.mu.Lock()
	v.done[v.self] = z
	p.mu.Unlock()
	p.moved.Broadcast()
}

// leave writes a column when this was the last of its tiles.
func (w *fuser[T, F]) leave(ctx context.Context, v *visit[T, F]) error {
	w.mu.Lock()
	v.left--
	last := v.left == 0
	w.mu.Unlock()
	if !last {
		return nil
	}
	start := time.Now()
	for i := range v.cells {
		l := &v.cells[i]
		if len(l.who) < 2 || l.acc == nil && l.any {
			continue
		}
		for z := range w.z1 - w.z0 {
			for y := l.Y0; y < l.Y1; y++ {
				if !l.any { // empty tiles only
					clear(v.row(w.stitchPlan, z, y, l.X0, l.X1))
					continue
				}
				storeRow(v.row(w.stitchPlan, z, y, l.X0, l.X1), v.mean(w.stitchPlan, l, z, y))
			}
		}
	}
	w.res.Meter.Since(meter.Compute, start)
	ny, nx := v.box.Y1-v.box.Y0, v.box.X1-v.box.X0
	for k, u := range v.units {
		z := w.z0 + k*w.unit[0]
		if err := w.writer.WriteTile(ctx, w.mosaic.Index(z, v.box.Y0, v.box.X0), w.mosaic.BoxShape(min(w.unit[0], w.z1-z), ny, nx), u.B); err != nil {
			return err
		}
	}
	w.mu.Lock()
	delete(w.live, v.outColumn)
	w.mu.Unlock()
	v.release()
	return nil
}

// storeRow rounds a row to the type of the voxels: half to even, and clamped.
func storeRow[T dtype.Element, F float32 | float64](dst []T, v []F) {
	if same, ok := any(dst).([]F); ok {
		copy(same, v)
		return
	}
	dtype.ConvertSlice(dst, dtype.Bytes(v), dtype.Of[F]())
}

// sample is a row of the canvas, as a tile has seen it: linear between its voxels
// where it does not lie on whole ones, its outermost voxels repeated beyond
// their centres. It is valid until the next call.
func (w *fuser[T, F]) sample(src source[T], p *place, z, y, x0, x1 int) []F {
	ty, x0, x1 := y-p.Y0, x0-p.X0, x1-p.X0
	if src.data == nil {
		w.rows[3] = slices.Grow(w.rows[3][:0], x1-x0)[:x1-x0]
		clear(w.rows[3])
		return w.rows[3]
	}
	fy, fx := p.frac[0], p.frac[1]
	// the columns that are needed
	a, b := x0, x1
	if fx > 0 {
		a = max(a-1, 0)
	} else if fx < 0 {
		b = min(b+1, src.extent[1])
	}
	row := w.convert(0, src.row(z, ty)[a:b])
	if fy != 0 {
		o := ty - 1
		if fy < 0 {
			o, fy = ty+1, -fy
		}
		next := w.convert(1, src.row(z, min(max(o, 0), src.extent[0]-1))[a:b])
		w.rows[2] = slices.Grow(w.rows[2][:0], b-a)[:b-a]
		filter.Between(w.rows[2], row, next, F(fy))
		row = w.rows[2]
	}
	if fx == 0 {
		return row
	}
	n := x1 - x0
	out := slices.Grow(w.rows[3][:0], n)[:n]
	w.rows[3] = out
	switch {
	case fx < 0 && b == x1: // nothing beyond the last column
		out[n-1] = row[n-1]
		filter.Between(out[:n-1], row[:n-1], row[1:], F(-fx))
	case fx < 0:
		filter.Between(out, row, row[1:], F(-fx))
	case a == x0: // nothing before the first
		out[0] = row[0]
		filter.Between(out[1:], row[1:], row, F(fx))
	default:
		filter.Between(out, row[1:], row, F(fx))
	}
	return out
}

// convert makes a row of numbers to blend, in the worker's memory k unless they
// are such already.
func (w *fuser[T, F]) convert(k int, row []T) []F {
	if same, ok := any(row).([]F); ok {
		return same
	}
	w.rows[k] = slices.Grow(w.rows[k][:0], len(row))[:len(row)]
	for i, v := range row {
		w.rows[k][i] = F(v)
	}
	return w.rows[k]
}
