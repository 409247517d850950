package czi

import (
	"context"
	"fmt"
	"image"
	"math"
	"slices"

	"strata/pkg/work"
)

// Region is a rectangle of a plane, put together from the tiles that meet it.
type Region struct {
	Plane Plane
	Scene int             // or AllScenes
	Rect  image.Rectangle // in the common pixel plane

	// Zoom is the size of the result relative to the rectangle; 0 means 1, full resolution. Pixels come from
	// the coarsest level that is fine enough and covers all tiles: exactly at the zoom of that level, by
	// nearest neighbour otherwise.
	Zoom float64
	// Background is the value of pixels that no tile covers; nil: zeros.
	Background []byte
	// Workers is the number of goroutines that decode tiles; 0: 1.
	Workers int
}

// Size returns the size of the region's result in pixels.
func (r Region) Size() (width, height int) {
	z := r.zoom()
	const slack = 1e-9 // three times a third is 1
	return int(float64(r.Rect.Dx())*z + slack), int(float64(r.Rect.Dy())*z + slack)
}

func (r Region) zoom() float64 {
	if r.Zoom == 0 {
		return 1
	}
	return r.Zoom
}

// ReadRegion fills dst with the pixels of a region: rows without gaps, in the pixel type of its channel.
// Where tiles overlap, the one with the highest mosaic index is on top, and of equal ones the last in the
// directory. Pixels that a tile's mask marks as invalid are not drawn.
func (f *File) ReadRegion(ctx context.Context, r Region, dst []byte) error {
	pixel, ok := f.PixelType(r.Plane.C)
	if !ok || pixel.Bytes() == 0 {
		return fmt.Errorf("%s: channel %d has no pixels that can be read (%s)", f.Name, r.Plane.C, pixel)
	}
	width, height := r.Size()
	if z := r.zoom(); !(z > 0 && z <= 1) {
		return fmt.Errorf("%s: zoom %v (must be above 0, at most 1)", f.Name, r.Zoom)
	}
	if need := tileBytes(width, height, pixel.Bytes()); need == 0 || int64(len(dst)) != need {
		return fmt.Errorf("%s: %d bytes of memory for a region of %d × %d pixels of %s", f.Name, len(dst), width, height, pixel)
	}
	if r.Background != nil && len(r.Background) != pixel.Bytes() {
		return fmt.Errorf("%s: a background of %d bytes for pixels of %s", f.Name, len(r.Background), pixel)
	}
	if i, ok := f.broken[brokenKey{r.Scene, r.Plane}]; ok {
		_, err := f.tile(ctx, int(i))
		return err
	}
	c := &composer{f: f, dst: dst, width: width, height: height, pixel: pixel, origin: r.Rect.Min, zoom: r.zoom()}
	c.factor = f.levelFor(r)
	c.tiles = f.Tiles(r.Scene, r.Plane, c.factor, r.Rect)
	if !f.masked.Load() {
		c.fillGaps(r)
		err := c.disjoint(ctx, r)
		if err != errInOrder {
			return err
		}
	}
	fillPixels(dst, r.Background)
	return c.inOrder(ctx, r)
}

// brokenKey locates a sub-block of impossible size, as far as known.
type brokenKey struct {
	scene int
	plane Plane
}

// noteBroken records a sub-block of impossible size, for its scene and for AllScenes.
func (f *File) noteBroken(e *entry, v views, i int32) {
	if f.broken == nil {
		f.broken = map[brokenKey]int32{}
	}
	p := Plane{int(e.c), int(e.z), int(e.t), int(v.r), int(v.i), int(v.h), int(v.v), int(v.b)}
	f.broken[brokenKey{int(e.s), p}], f.broken[brokenKey{AllScenes, p}] = i, i
}

// Broken reports whether a plane of a scene has sub-blocks of impossible sizes. Since their extent is
// unknown, no region can be read.
func (f *File) Broken(scene int, p Plane) bool {
	_, ok := f.broken[brokenKey{scene, p}]
	return ok
}

// fillPixels repeats a pixel.
func fillPixels(dst, pixel []byte) {
	if pixel == nil {
		clear(dst)
		return
	}
	for n := copy(dst, pixel); n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// levelFor returns the factor of the level that a region is read from.
func (f *File) levelFor(r Region) int {
	level := 1
	if r.zoom() == 1 {
		return level
	}
	for _, k := range f.Factors(r.Scene) {
		if float64(k)*r.zoom() > 1+1e-9 || !f.Covers(r.Scene, r.Plane, k, r.Rect) {
			break
		}
		level = k
	}
	return level
}

// Limits of the search for the visible parts of overlapping tiles.
const (
	mostPieces = 64   // that the gaps between tiles have
	mostNear   = 1024 // tiles that meet one; where there are more, they are drawn one after the other
)

// Covers reports whether the sub-blocks of a factor cover all tiles of level 0 within a rectangle, up to less
// than one of their pixels.
func (f *File) Covers(scene int, p Plane, factor int, r image.Rectangle) bool {
	tiles := f.Tiles(scene, p, 1, r)
	var pieces []image.Rectangle
	for _, i := range tiles {
		pieces = append(pieces[:0], f.entries[i].rect().Intersect(r))
		near := f.Tiles(scene, p, factor, pieces[0])
		if len(near) > mostNear {
			return false
		}
		for _, k := range near {
			pieces = subtract(pieces, f.entries[k].rect())
		}
		for _, left := range pieces {
			if left.Dx() >= factor && left.Dy() >= factor {
				return false
			}
		}
	}
	return true
}

// subtract removes a rectangle from other rectangles that do not overlap each other.
func subtract(from []image.Rectangle, r image.Rectangle) []image.Rectangle {
	n := len(from)
	for i := 0; i < n; {
		p := from[i]
		x := p.Intersect(r)
		if x.Empty() {
			i++
			continue
		}
		from[i] = from[n-1]
		from[n-1] = from[len(from)-1]
		from = from[:len(from)-1]
		n--
		for _, q := range [4]image.Rectangle{
			{p.Min, image.Pt(p.Max.X, x.Min.Y)}, {image.Pt(p.Min.X, x.Max.Y), p.Max},
			{image.Pt(p.Min.X, x.Min.Y), image.Pt(x.Min.X, x.Max.Y)}, {image.Pt(x.Max.X, x.Min.Y), image.Pt(p.Max.X, x.Max.Y)},
		} {
			if !q.Empty() {
				from = append(from, q)
			}
		}
	}
	return from
}

// composer draws tiles into a region.
type composer struct {
	f             *File
	dst           []byte
	width, height int
	pixel         PixelType
	origin        image.Point
	zoom          float64
	factor        int   // of the level that is drawn
	tiles         []int // the lowest first
}

// disjoint draws the part of each tile that no higher one hides, so that workers never write to the same
// place. It returns errInOrder if a tile turns out to be partly transparent, or if too many overlap.
func (c *composer) disjoint(ctx context.Context, r Region) error {
	return work.Each(ctx, max(r.Workers, 1), len(c.tiles), func(_, n int) error {
		i := c.tiles[n]
		pieces, ok := c.visible(r, i)
		if !ok {
			return errInOrder
		}
		if len(pieces) == 0 {
			return nil
		}
		return c.draw(ctx, i, pieces, false)
	})
}

// visible returns the parts of a tile that no tile above it hides; ok is false if there are too many parts.
func (c *composer) visible(r Region, i int) (pieces []image.Rectangle, ok bool) {
	pieces = []image.Rectangle{c.f.entries[i].rect().Intersect(r.Rect)}
	near := c.f.Tiles(r.Scene, r.Plane, c.factor, pieces[0])
	if len(near) > mostNear {
		return nil, false
	}
	for _, over := range near[slices.Index(near, i)+1:] {
		pieces = subtract(pieces, c.f.entries[over].rect())
	}
	return pieces, true
}

// fillGaps draws the background where no tile is. Where that is in too many pieces, it draws it everywhere.
func (c *composer) fillGaps(r Region) {
	gaps := []image.Rectangle{r.Rect}
	for _, i := range c.tiles {
		if gaps = subtract(gaps, c.f.entries[i].rect()); len(gaps) > mostPieces {
			fillPixels(c.dst, r.Background)
			return
		}
	}
	size := c.pixel.Bytes()
	for _, g := range gaps {
		x0, x1, y0, y1 := c.frame(g)
		for y := y0; y < y1 && x0 < x1; y++ {
			fillPixels(c.dst[(y*c.width+x0)*size:(y*c.width+x1)*size], r.Background)
		}
	}
}

// frame returns the ranges of result pixels whose centres lie in a piece of the plane.
func (c *composer) frame(piece image.Rectangle) (x0, x1, y0, y1 int) {
	x0, x1 = c.span(piece.Min.X-c.origin.X, piece.Max.X-c.origin.X, c.width)
	y0, y1 = c.span(piece.Min.Y-c.origin.Y, piece.Max.Y-c.origin.Y, c.height)
	return x0, x1, y0, y1
}

// inOrder draws whole tiles from the lowest to the highest.
func (c *composer) inOrder(ctx context.Context, r Region) error {
	for _, i := range c.tiles {
		if err := c.draw(ctx, i, []image.Rectangle{c.f.entries[i].rect().Intersect(r.Rect)}, true); err != nil {
			return err
		}
	}
	return nil
}

// draw draws parts of a tile.
func (c *composer) draw(ctx context.Context, i int, pieces []image.Rectangle, masks bool) error {
	t, err := c.f.tile(ctx, i)
	if err != nil {
		return err
	}
	if t.kind.pixel != c.pixel {
		return t.errorf("is %s in a channel of %s", t.kind.pixel, c.pixel)
	}
	var mask *Mask
	if t.AttachmentBytes > 0 {
		mask, _ = t.mask(ctx) // one that cannot be read leaves pixels that can
		if mask != nil && !masks {
			c.f.masked.Store(true)
			return errInOrder
		}
	}
	// of a raw tile the rows that are drawn, else all
	rows := image.Rect(0, 0, 0, int(t.entry.sh))
	if t.kind.compression == None && !t.kept() {
		var all image.Rectangle
		for _, p := range pieces {
			all = all.Union(p)
		}
		rows.Min.Y, rows.Max.Y = t.row(all.Min.Y), min(t.row(all.Max.Y-1)+2, int(t.entry.sh))
	}
	row := int64(t.entry.sw) * int64(c.pixel.Bytes())
	pixels, done, err := t.pixels(ctx, i, rows.Min.Y, row*int64(rows.Dy()))
	if err != nil {
		return err
	}
	defer done()
	for _, p := range pieces {
		c.copy(t, p, pixels, rows.Min.Y, mask)
	}
	return nil
}

// kept reports whether the cache takes the tile.
func (t *tile) kept() bool {
	c := t.f.cache
	return c != nil && (t.kind.compression != None || t.f.far) && t.bytes <= c.limit/8
}

// Fetch reads the tiles of a region into the cache, if there is one. Faulty tiles are reported when they are
// drawn.
func (f *File) Fetch(ctx context.Context, r Region) error {
	c := &composer{f: f, factor: f.levelFor(r)}
	c.tiles = f.Tiles(r.Scene, r.Plane, c.factor, r.Rect)
	for _, i := range c.tiles {
		if pieces, ok := c.visible(r, i); ok && len(pieces) == 0 {
			continue
		} else if !ok {
			return nil
		}
		if t, err := f.tile(ctx, i); err == nil && t.kept() {
			if _, done, err := f.cache.get(ctx, i, t); err == nil {
				done()
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// pixels returns n bytes of the tile's rows from a row on; done gives them back.
func (t *tile) pixels(ctx context.Context, i, row int, n int64) (b []byte, done func(), err error) {
	if t.kept() {
		return t.f.cache.get(ctx, i, t)
	}
	more, err := t.readBytes()
	if err != nil {
		return nil, nil, err
	}
	m, err := t.room(ctx, n+more) // in one piece: who waits for room holds none
	if err != nil {
		return nil, nil, err
	}
	if err := t.read(ctx, m.B[:n], int64(row)*int64(t.entry.sw)*int64(t.kind.pixel.Bytes()), m.B[n:]); err != nil {
		m.Release()
		return nil, nil, err
	}
	return m.B[:n], m.Release, nil
}

// row returns the stored row that a row of the plane falls into.
func (t *tile) row(y int) int {
	return int(int64(y-int(t.entry.y)) * int64(t.entry.sh) / int64(t.entry.h))
}

// span returns the pixels of the result whose centres lie in [from, to) of the rectangle.
func (c *composer) span(from, to, size int) (first, end int) {
	at := func(x int) int { return int(math.Ceil(float64(x)*c.zoom - 0.5)) }
	return max(at(from), 0), min(at(to), size)
}

// samples returns the stored pixels along one axis that the pixels first to end of the result show, of a tile that
// begins at start and has stored pixels for size of the plane.
func (c *composer) samples(first, end, start, size, stored int) []int {
	s := make([]int, end-first)
	for i := range s {
		x := (float64(first+i)+0.5)/c.zoom - float64(start)
		s[i] = min(max(int(x*float64(stored)/float64(size)), 0), stored-1)
	}
	return s
}

// copy draws a part of a tile, of which pixels has the rows from firstRow on.
func (c *composer) copy(t *tile, piece image.Rectangle, pixels []byte, firstRow int, mask *Mask) {
	e := t.entry
	x0, x1, y0, y1 := c.frame(piece)
	if x0 >= x1 || y0 >= y1 {
		return
	}
	xs := c.samples(x0, x1, int(e.x)-c.origin.X, int(e.w), int(e.sw))
	ys := c.samples(y0, y1, int(e.y)-c.origin.Y, int(e.h), int(e.sh))
	size := c.pixel.Bytes()
	direct := mask == nil
	for i := 1; direct && i < len(xs); i++ {
		direct = xs[i] == xs[i-1]+1
	}
	rows := len(pixels) / (int(e.sw) * size)
	for i, y := range ys {
		y = min(max(y-firstRow, 0), rows-1)
		from := pixels[y*int(e.sw)*size:][:int(e.sw)*size]
		to := c.dst[((y0+i)*c.width+x0)*size:][:len(xs)*size]
		switch {
		case direct:
			copy(to, from[xs[0]*size:])
		case mask != nil:
			for k, x := range xs {
				if mask.Valid(x, ys[i]) {
					copy(to[k*size:][:size], from[x*size:])
				}
			}
		default:
			for k, x := range xs {
				copy(to[k*size:][:size], from[x*size:])
			}
		}
	}
}
