package tiffstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"strata/pkg/dtype"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tilecodec"
	"strata/pkg/zarr"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/virtual"
)

// array is one array of the hierarchy. Roles of axes: 't' times, 'c' channels, 'p' pages along depth, 'z' tiles along
// depth, 'y', 'x', 's' planes of samples, 'i' interleaved samples.
type array struct {
	axes   []virtual.Axis
	image  *tiff.Image // nil: of a page
	level  int
	first  *tiff.Page // any that is there
	layout *tiff.Layout
	joined bool // the strips of a page lie one behind the other and are one chunk
	raw    bool // chunks are stored as they are
	codecs []any
	format *tilecodec.Format // of chunks that this package decodes
	bytes  int64             // of a decoded chunk
	fill   any               // what is not stored
	colors []uint16          // of a palette image that is shown in them: red, then green, then blue of each index
}

// Dims returns the axes.
func (a *array) Dims() []virtual.Axis { return a.axes }

// locate finds the page of a chunk, nil if it is not in the file, and the number of its tile.
func (a *array) locate(index []int) (*tiff.Page, int64) {
	var t, c, page, s, z, y, x int
	for d, i := range index {
		switch a.axes[d].Role {
		case 't':
			t = i
		case 'c':
			if c = i; a.layout.Separate {
				c, s = i/a.layout.Samples, i%a.layout.Samples
			}
		case 'p':
			page = i
		case 's':
			s = i
		case 'z':
			z = i
		case 'y':
			y = i
		case 'x':
			x = i
		}
	}
	p := a.first
	if a.image != nil {
		p = a.image.Page(a.level, t, c, page)
	}
	g := a.layout.Grid()
	return p, int64(s)*int64(g[1])*int64(g[2])*int64(g[3]) + (int64(z)*int64(g[2])+int64(y))*int64(g[3]) + int64(x)
}

// pageArray shows the samples of one page.
func (s *Store) pageArray(ctx context.Context, p *tiff.Page) (*array, error) {
	if p.Err != nil {
		return nil, &zarr.FormatError{Path: p.File().Name, Err: virtual.Bare(p.Err, p.File().Name)}
	}
	a := &array{first: p, layout: p.Layout}
	l := p.Layout
	if l.Separate {
		a.axes = append(a.axes, virtual.Along('s', "c", l.Samples, 1))
	}
	if l.Depth > 1 {
		a.axes = append(a.axes, virtual.Along('z', "z", l.Depth, l.TileDepth))
	}
	a.axes = append(a.axes, virtual.Along('y', "y", l.Height, l.TileHeight), virtual.Along('x', "x", l.Width, l.TileWidth))
	if l.Interleaved() > 1 {
		a.axes = append(a.axes, virtual.Along('i', "c", l.Samples, l.Samples))
	}
	return a, a.store(ctx, []*tiff.Page{p})
}

// levelArray shows one level of an image.
func (s *Store) levelArray(ctx context.Context, im *tiff.Image, level int) (*array, error) {
	pages := im.Levels[level].Pages
	l := im.Levels[level].Layout()
	a := &array{image: im, level: level, layout: l}
	if i := slices.IndexFunc(pages, func(p *tiff.Page) bool { return p != nil }); i >= 0 {
		a.first = pages[i]
	}
	if im.Times > 1 {
		a.axes = append(a.axes, virtual.Along('t', "t", im.Times, 1))
	}
	var err error
	if a.colors, err = palette(ctx, im, a.first); err != nil {
		return nil, &zarr.FormatError{Path: a.first.File().Name, Err: virtual.Bare(err, a.first.File().Name)}
	}
	if a.colors != nil {
		a.axes = append(a.axes, virtual.Along('i', "c", 3, 3))
	} else if n := im.Channels * l.Samples; n > 1 {
		a.axes = append(a.axes, virtual.Along('c', "c", n, l.Interleaved()))
	}
	switch {
	case im.Depths > 1 && l.Depth > 1:
		return nil, &zarr.FormatError{Path: s.where, Err: fmt.Errorf("%s: a stack of pages that are volumes themselves is not supported; see pages/0", a.first.Name())}
	case im.Depths > 1:
		a.axes = append(a.axes, virtual.Along('p', "z", im.Depths, 1))
	case l.Depth > 1:
		a.axes = append(a.axes, virtual.Along('z', "z", l.Depth, l.TileDepth))
	}
	a.axes = append(a.axes, virtual.Along('y', "y", l.Height, l.TileHeight), virtual.Along('x', "x", l.Width, l.TileWidth))
	return a, a.store(ctx, pages)
}

// palette returns the colours of an image of indices into them; nil: it is none.
func palette(ctx context.Context, im *tiff.Image, p *tiff.Page) ([]uint16, error) {
	l := p.Layout
	if l.Photometric != tiff.Palette || l.Samples != 1 || im.Channels != 1 || l.Depth > 1 || !l.Type.IsInteger() {
		return nil, nil
	}
	colors, err := p.ColorMap(ctx)
	if err != nil || l.Bits > 16 || len(colors) != 3<<l.Bits {
		return nil, err
	}
	return colors, nil
}

// elem returns the type of the array's elements.
func (a *array) elem() dtype.Type {
	if a.colors != nil {
		return dtype.Uint8
	}
	return a.layout.Type
}

// paint turns indices into the upper bytes of their colours.
func (a *array) paint(dst, indices []byte) {
	n := len(a.colors) / 3
	wide := a.layout.Type.Size() == 2
	for i := range len(dst) / 3 {
		k := 0
		if wide {
			k = int(indices[2*i]) | int(indices[2*i+1])<<8
		} else {
			k = int(indices[i])
		}
		if k >= n {
			k = n - 1
		}
		dst[3*i], dst[3*i+1], dst[3*i+2] = byte(a.colors[k]>>8), byte(a.colors[n+k]>>8), byte(a.colors[2*n+k]>>8)
	}
}

// store decides how chunks are read.
func (a *array) store(ctx context.Context, pages []*tiff.Page) error {
	l := a.layout
	a.fill = a.fillOf(ctx)
	whole := l.Bits == 8*l.Type.Size() && l.FillOrder != 2 && (l.Photometric != tiff.YCbCr || l.Subsampling == [2]int{1, 1} || l.Samples != 3)
	whole = whole && a.colors == nil
	a.raw = l.Compression == tilecodec.None && whole
	if a.joined = a.raw && !l.Tiled && joined(ctx, pages); a.joined {
		for d := range a.axes {
			if a.axes[d].Role == 'y' {
				a.axes[d].Chunk = l.Height
			}
		}
	}
	a.bytes = int64(a.elem().Size())
	order, last := []int{}, -1
	for d, x := range a.axes {
		a.bytes *= int64(x.Chunk)
		if x.Name == "c" && x.Chunk > 1 && d < len(a.axes)-1 {
			last = d
		} else {
			order = append(order, d)
		}
	}
	if last >= 0 { // a tile has the samples of a pixel together
		a.codecs = append(a.codecs, virtual.Object("transpose", map[string]any{"order": append(order, last)}))
	}
	switch {
	case a.raw:
		a.codecs = append(a.codecs, a.bytesCodec())
	case whole && l.Predictor <= 1 && (l.Tiled || l.Height%l.TileHeight == 0) && zarrCodec(l.Compression) != nil && !a.first.Uncounted(ctx) && !a.cropped(ctx):
		a.codecs = append(a.codecs, a.bytesCodec(), zarrCodec(l.Compression))
	default:
		return a.ownCodec(ctx)
	}
	return nil
}

// bytesCodec returns the codec that converts elements to bytes.
func (a *array) bytesCodec() any {
	endian := "little"
	if a.format == nil && a.first.File().BigEndian() { // what is decoded here is not
		endian = "big"
	}
	if a.elem().Size() == 1 {
		return virtual.Object("bytes", nil)
	}
	return virtual.Object("bytes", map[string]any{"endian": endian})
}

// zarrCodec returns the Zarr codec that is equivalent to a TIFF compression, or nil.
func zarrCodec(compression int) any {
	switch compression {
	case tilecodec.Zstd:
		return virtual.Object("zstd", map[string]any{"level": 1, "checksum": false})
	case tilecodec.Deflate, tilecodec.DeflateOld:
		return virtual.Object("numcodecs.zlib", map[string]any{"level": 1})
	}
	return nil
}

// ownCodec makes the store decode the chunks.
func (a *array) ownCodec(ctx context.Context) error {
	file := a.first.File().Name
	tables, err := a.first.Tables(ctx)
	if err != nil {
		return &zarr.FormatError{Path: file, Err: virtual.Bare(err, file)}
	}
	a.format = FormatOf(a.first, tables)
	if err := a.format.Check(); err != nil {
		return &zarr.FormatError{Path: file, Field: a.first.Name(), Err: err}
	}
	a.codecs = append(a.codecs, a.bytesCodec(), virtual.Object(codec.OfStoreName, map[string]any{"encoding": tilecodec.Name(a.layout.Compression)}))
	return nil
}

// FormatOf returns the format for decoding the tiles of a page.
func FormatOf(p *tiff.Page, tables []byte) *tilecodec.Format {
	l := p.Layout
	return &tilecodec.Format{
		Compression: l.Compression, Predictor: l.Predictor, Type: l.Type, Bits: l.Bits, Samples: l.Interleaved(),
		Width: l.TileWidth, Height: l.TileHeight, Depth: l.TileDepth, BigEndian: p.File().BigEndian(), FillOrder: l.FillOrder,
		Photometric: l.Photometric, Subsampling: l.Subsampling, Tables: tables,
	}
}

// mostStrips bounds the offsets that are looked at before the first pixel is read.
const mostStrips = 1 << 16

// joined reports whether the strips of each page lie one behind the other.
func joined(ctx context.Context, pages []*tiff.Page) bool {
	looked := int64(0)
	for _, p := range pages {
		if p == nil {
			continue
		}
		g := p.Grid()
		n := int64(g[2])
		if looked += n; g[0] > 1 || n > 1 && looked > mostStrips {
			return false
		}
		next := int64(-1)
		for i := int64(0); n > 1 && i < n; i++ {
			off, bytes, err := p.Segment(ctx, i)
			if err != nil || next >= 0 && off != next || bytes != p.Packed(p.SegmentRows(i)) {
				return false
			}
			next = off + bytes
		}
	}
	return true
}

// document returns the array's zarr.json.
func (a *array) document() ([]byte, error) {
	return virtual.FilledDocument(a.axes, a.elem(), a.codecs, a.fill)
}

// fillOf returns the value of samples that a page does not store, in the form that a metadata document needs.
func (a *array) fillOf(ctx context.Context) any {
	v, ok := a.first.Fill(ctx)
	switch {
	case !ok || a.colors != nil:
		return 0
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 0):
		return map[bool]string{true: "Infinity", false: "-Infinity"}[v > 0]
	}
	return v
}

// cropped reports whether the page's last tile is one that the writer cut at the image's edges: these the store
// decodes.
func (a *array) cropped(ctx context.Context) bool {
	l, g := a.layout, a.layout.Grid()
	if !l.Tiled || l.Height%l.TileHeight == 0 && l.Width%l.TileWidth == 0 || l.TileDepth > 1 {
		return false
	}
	last := int64(g[0])*int64(g[1])*int64(g[2])*int64(g[3]) - 1
	off, n, err := a.first.Segment(ctx, last)
	if err != nil || n == 0 {
		return false
	}
	f := FormatOf(a.first, nil)
	if _, most := f.EncodedSize(); n > int64(most) {
		return false
	}
	src := make([]byte, n)
	if _, err := a.first.File().Source().ReadAt(ctx, src, off); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	var c scratch
	dst := make([]byte, f.Bytes())
	if f.Decode(ctx, &c.codec, dst, src, l.TileHeight) == nil {
		return false
	}
	return decodeCropped(ctx, &c, f, dst, src, a.first.SegmentColumns(last), a.first.SegmentRows(last)) == nil
}

// decodeCropped decodes a tile that its writer has cut off at the image's edges. Pixels beyond the edges become 0.
func decodeCropped(ctx context.Context, c *scratch, f *tilecodec.Format, dst, src []byte, columns, rows int) error {
	err := errNotCropped
	for _, size := range [][2]int{{f.Width, rows}, {columns, f.Height}, {columns, rows}} {
		if size == [2]int{f.Width, f.Height} || f.Depth > 1 {
			continue
		}
		g := *f
		g.Width, g.Height = size[0], size[1]+1
		c.part = slices.Grow(c.part[:0], g.Bytes())[:g.Bytes()]
		if g.Compression != tilecodec.JPEG && g.Decode(ctx, &c.codec, c.part, src, g.Height) == nil {
			continue // there is more, so that it is something else
		}
		g.Height--
		part := c.part[:g.Bytes()]
		if err = g.Decode(ctx, &c.codec, part, src, g.Height); err != nil {
			continue
		}
		clear(dst)
		wide, narrow := len(dst)/f.Height, len(part)/g.Height
		for y := range g.Height {
			copy(dst[y*wide:][:narrow], part[y*narrow:])
		}
		return nil
	}
	return err
}

var errNotCropped = errors.New("the tile is whole")
