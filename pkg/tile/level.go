package tile

import (
	"context"
	"errors"
	"fmt"

	"strata/pkg/dtype"
)

// levelShape holds a source's answers about one level.
type levelShape struct{ shape, tile []int }

// describe asks a source for its levels and checks the answers.
func describe(src Source) ([]levelShape, error) {
	if src == nil {
		return nil, errors.New("no source")
	}
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	axes := len(src.DimensionNames())
	if axes == 0 {
		fail("the image has no axes")
	}
	if err := convertible(src.DType()); err != nil {
		fail("%w", err)
	}
	n := src.Levels()
	if n < 1 {
		fail("%d pyramid levels (must be at least 1)", n)
	}
	out := make([]levelShape, max(n, 0))
	for k := range out {
		s := levelShape{src.Shape(k), src.TileShape(k)}
		out[k] = s
		for _, v := range []struct {
			what  string
			shape []int
		}{{"shape", s.shape}, {"tile", s.tile}} {
			if len(v.shape) != axes {
				fail("level %d: %s %v has %d axes (there are %d dimension names)", k, v.what, v.shape, len(v.shape), axes)
			}
			for _, x := range v.shape {
				if x < 1 {
					fail("level %d: %s %v (every axis must be at least 1)", k, v.what, v.shape)
					break
				}
			}
		}
	}
	return out, errors.Join(errs...)
}

// level is one pyramid level of a loader: its geometry, its tile cache and the memory of its views.
type level[T dtype.Element] struct {
	l           *Loader[T]
	number      int
	shape, tile []int
	radii, grid []int
	viewShape   []int
	viewStrides []int
	tileStrides []int
	lo, hi      []int // tiles of the region
	tilePixels  int
	viewPixels  int
	viewBytes   int
	direct      bool // radius 0: the central tile is loaded into the view
	releases    int32
	inPlace     bool        // cached tiles lie where views show them: see ends.go
	tileStart   int         // of a cached tile's first pixel in its memory
	cache       *cache[T]   // of tiles
	ends        []*cache[T] // of the ends of tiles along each axis; nil where there are none

	// slots, under l.mu
	most int          // views that may exist
	made int          // that do
	idle []*buffer[T] // the last released is the first used: it is in the processor's cache
}

func newLevel[T dtype.Element](l *Loader[T], number int, shape, tile, radii []int) (*level[T], error) {
	n := len(shape)
	lv := &level[T]{
		l: l, number: number, shape: shape, tile: tile, radii: radii,
		grid: grid(shape, tile), viewShape: make([]int, n),
		lo: make([]int, n), tilePixels: product(tile), direct: true,
	}
	for a := range n {
		lv.viewShape[a] = tile[a] + 2*radii[a]
		lv.direct = lv.direct && radii[a] == 0
	}
	if err := fits(lv.viewShape); err != nil {
		return nil, err
	}
	lv.viewPixels = product(lv.viewShape)
	lv.viewStrides, lv.tileStrides = stridesOf(lv.viewShape), stridesOf(tile)
	lv.viewBytes = lv.viewPixels * sizeOf[T]()
	if lv.direct {
		lv.viewBytes = tileBytes[T](l.src.DType(), lv.viewPixels)
	}
	lv.setInPlace()
	lv.hi = lv.grid
	if r, ok := l.cfg.regions[number]; ok {
		if len(r.start) != n || len(r.shape) != n {
			return nil, fmt.Errorf("region %v + %v does not have %d axes", r.start, r.shape, n)
		}
		lv.hi = make([]int, n)
		for a := range n {
			if r.start[a] < 0 || r.shape[a] < 1 || r.start[a] > shape[a]-r.shape[a] {
				return nil, fmt.Errorf("region %v + %v is empty or outside the image of %v", r.start, r.shape, shape)
			}
			lv.lo[a], lv.hi[a] = r.start[a]/tile[a], ceilDiv(r.start[a]+r.shape[a], tile[a])
		}
	}
	views, err := perLevel(l.cfg.views, number, l.src.Levels(), "views available")
	if err != nil {
		return nil, err
	}
	releases, err := perLevel(l.cfg.release, number, l.src.Levels(), "release counts")
	if err != nil {
		return nil, err
	}
	lv.most, lv.releases = views, int32(releases)
	return lv, nil
}

// fits refuses shapes whose size in bytes would not fit in an int.
func fits(shape []int) error {
	n := 1
	for _, x := range shape {
		if x > (1<<56)/n {
			return fmt.Errorf("a view of %v is too large for any memory", shape)
		}
		n *= x
	}
	return nil
}

// perLevel picks a level's value from one for all or one for each.
func perLevel[V any](values []V, level, levels int, what string) (V, error) {
	switch len(values) {
	case 1:
		return values[0], nil
	case levels:
		return values[level], nil
	}
	var none V
	return none, fmt.Errorf("%d %s (must be 1, or %d as there are levels)", len(values), what, levels)
}

func (lv *level[T]) geometry(index []int) Geometry {
	return newGeometry(lv.number, lv.shape, lv.tile, lv.radii, index)
}

// view makes the handle of a view that is about to be built.
func (lv *level[T]) view(buf *buffer[T], index []int, plan *schedule, position int) *View[T] {
	v := &View[T]{Geometry: lv.geometry(index), lv: lv, buf: buf, plan: plan, position: position}
	v.left.Store(lv.releases)
	return v
}

// piece is the contribution of one tile to a view.
type piece struct {
	tile    []int
	direct  bool // the whole tile, straight into the view
	central bool // the boxes are of the central tile: the first is all of it
	boxes   []Copy
}

// pieces lists the tiles that a view is made of. The central one is first, since copying it into the view may overwrite
// the border and the halo.
func (lv *level[T]) pieces(g Geometry) ([]piece, error) {
	var extra []Copy
	if lv.l.border != nil && !g.Whole() {
		extra = lv.l.border.Copies(g)
	}
	if lv.direct && len(extra) == 0 {
		return []piece{{tile: g.Index, direct: true}}, nil
	}
	byNumber := map[int]int{}
	var out []piece
	add := func(tile []int, c Copy) {
		number := linear(lv.grid, tile)
		k, ok := byNumber[number]
		if !ok {
			k = len(out)
			byNumber[number] = k
			out = append(out, piece{tile: append([]int{}, tile...)})
		}
		out[k].boxes = append(out[k].boxes, c)
	}
	lv.split(Copy{From: g.MinPos, Shape: g.ViewReal, To: g.Front}, add)
	for _, c := range extra {
		if err := c.check(g); err != nil {
			return nil, err
		}
		lv.split(c, add)
	}
	if k := byNumber[linear(lv.grid, g.Index)]; lv.inPlace {
		out[k].central = true
		out[0], out[k] = out[k], out[0]
	}
	return out, nil
}

// split cuts a copy at tile borders.
func (lv *level[T]) split(c Copy, add func(tile []int, part Copy)) {
	n := len(c.From)
	lo, hi := make([]int, n), make([]int, n)
	for a := range n {
		if c.Shape[a] == 0 {
			return
		}
		lo[a] = c.From[a] / lv.tile[a]
		hi[a] = ceilDiv(c.From[a]+c.Shape[a], lv.tile[a])
	}
	tile := append([]int{}, lo...)
	for more := true; more; more = next(tile, lo, hi) {
		room := make([]int, 3*n)
		p := Copy{room[:n], room[n : 2*n], room[2*n:], c.Reversed}
		for a := range n {
			start := max(c.From[a], tile[a]*lv.tile[a])
			end := min(c.From[a]+c.Shape[a], (tile[a]+1)*lv.tile[a])
			p.From[a], p.Shape[a] = start, end-start
			p.To[a] = c.To[a] + start - c.From[a]
			if c.Reversed != nil && c.Reversed[a] {
				p.To[a] = c.To[a] + c.From[a] + c.Shape[a] - end
			}
		}
		add(tile, p)
	}
}

// build makes a whole view in the caller's goroutine.
func (lv *level[T]) build(ctx context.Context, v *View[T]) error {
	pieces, err := lv.pieces(v.Geometry)
	if err != nil {
		return &Error{v.Level, v.Index, nil, err}
	}
	defer lv.done(v, pieces)
	for _, p := range pieces {
		if err := lv.place(ctx, v, p); err != nil {
			return err
		}
	}
	lv.finish(v)
	return nil
}

// place brings one piece into a view.
func (lv *level[T]) place(ctx context.Context, v *View[T], p piece) error {
	if p.direct {
		from := lv.l.src.DType()
		raw := v.buf.mem.B
		err := lv.l.src.LoadTile(ctx, lv.number, p.tile, loadArea[T](from, raw, lv.viewPixels))
		if err != nil {
			return &Error{v.Level, v.Index, p.tile, err}
		}
		convert[T](from, raw, lv.viewPixels)
		return nil
	}
	var err error
	if p.central {
		err = lv.center(ctx, v, p)
	} else {
		err = lv.gather(ctx, v, p)
	}
	if err != nil {
		return &Error{v.Level, v.Index, p.tile, err}
	}
	return nil
}

// gather copies the boxes of a tile into a view.
func (lv *level[T]) gather(ctx context.Context, v *View[T], p piece) error {
	for _, c := range p.boxes {
		if a, end, ok := lv.end(p.tile, c); ok {
			if err := lv.gatherEnd(ctx, v, p.tile, a, end, c); err != nil {
				return err
			}
			continue
		}
		t, _, err := lv.cache.get(ctx, p.tile)
		if err != nil {
			return err
		}
		lv.copyTile(v, c, t.data, p.tile)
		lv.cache.unpin(t)
	}
	return nil
}

// copyTile copies a box of a tile from the memory of its cache.
func (lv *level[T]) copyTile(v *View[T], c Copy, data []T, tile []int) {
	lv.copy(v, c, data[lv.tileStart:], lv.origin(tile), lv.tileStrides)
}

// copy copies a box of the image to its place; data holds the part of the image from origin on.
func (lv *level[T]) copy(v *View[T], c Copy, data []T, origin, strides []int) {
	if tokens := lv.l.copies; tokens != nil {
		tokens <- struct{}{} // held while copying only: no need to look at ctx
		defer func() { <-tokens }()
	}
	strides = append(make([]int, 0, 8), strides...)
	src, dst := 0, 0
	for a, from := range c.From {
		from -= origin[a]
		if c.Reversed != nil && c.Reversed[a] {
			src += (from + c.Shape[a] - 1) * strides[a]
			strides[a] = -strides[a]
		} else {
			src += from * strides[a]
		}
		dst += c.To[a] * lv.viewStrides[a]
	}
	copyBox(v.buf.data, dst, lv.viewStrides, data, src, strides, c.Shape)
}

// origin returns the first pixel of a tile.
func (lv *level[T]) origin(tile []int) []int {
	o := make([]int, len(tile), 8)
	for a, i := range tile {
		o[a] = i * lv.tile[a]
	}
	return o
}

// finish fills the border, after the last piece.
func (lv *level[T]) finish(v *View[T]) {
	if lv.l.border != nil && !v.Whole() {
		lv.l.border.Fill(v)
	}
}
