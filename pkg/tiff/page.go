package tiff

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"strata/pkg/dtype"
)

// Page is a picture, described by one image file directory.
type Page struct {
	*Layout
	Sub []*Page // of SubIFDs: mostly the same picture, reduced

	// Err reports a fault of the directory, which makes the page unreadable. Layout holds what is known.
	Err error

	Reduced     bool    // NewSubfileType marks it as a reduced version of another page
	SubfileType int     // tag 254
	XUM, YUM    float64 // size of a pixel in µm by the resolution tags; 0: they do not say

	f               *File
	offset          int64
	index, sub      int
	offsets, counts field
	segments        int64 // of the image
	shift           int64 // of an ImageJ plane that has no directory of its own
	description     field
	xmp             field
	software        field
	tables, colors  field
	nodata          field
	subOffsets      []uint64
	private         bool // it has tags of MetaMorph or Micro-Manager
}

// Layout holds the properties that the pages of an image share.
type Layout struct {
	Width, Height, Depth             int // pixels; Depth is 1 but for SGI's volumetric tiles
	Samples                          int // per pixel
	Bits                             int // of a sample as stored
	Type                             dtype.Type
	Separate                         bool // samples lie in planes of their own (PlanarConfiguration 2)
	Tiled                            bool // in tiles, not strips
	TileWidth, TileHeight, TileDepth int  // of a strip: the image's width and the rows of a strip
	Compression, Predictor           int
	Photometric, FillOrder           int
	Subsampling                      [2]int
}

// Name returns the page's name in messages: "IFD 2", "IFD 0 sub-IFD 1".
func (p *Page) Name() string {
	if p.sub > 0 {
		return fmt.Sprintf("IFD %d sub-IFD %d", p.index, p.sub-1)
	}
	return fmt.Sprintf("IFD %d", p.index)
}

// File returns the file that the page lies in.
func (p *Page) File() *File { return p.f }

// errorf returns an error about the page, or one of its tags.
func (p *Page) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", p.f.Name, p.Name(), fmt.Errorf(format, args...))
}

// page makes a page of a directory. If the directory is faulty, the page's Err says why.
func (d *directory) page(ctx context.Context) *Page {
	p := &Page{f: d.f, offset: d.offset, index: len(d.f.Pages)}
	var l Layout
	p.Err = d.layout(ctx, &l)
	if p.Err == nil {
		p.Err = l.check(d)
	}
	if p.Err == nil {
		p.Err = d.segments(p, &l)
	}
	if p.Layout = d.f.layouts[l]; p.Layout == nil {
		p.Layout = &l
		d.f.layouts[l] = p.Layout
	}
	kind, _ := d.number(ctx, tagNewSubfileType, 0)
	p.SubfileType, p.Reduced = int(kind&math.MaxUint32), kind&reducedImage != 0
	p.xmp = d.fields[tagXMP]
	p.description, p.software, p.tables, p.colors = d.fields[tagImageDescription], d.fields[tagSoftware], d.fields[tagJPEGTables], d.fields[tagColorMap]
	p.nodata = d.fields[tagGDALNoData]
	p.XUM, p.YUM = d.pixelSize(ctx)
	for _, tag := range []uint16{tagUIC1, tagUIC2, tagUIC4, tagMicroManager} {
		_, has := d.fields[tag]
		p.private = p.private || has
	}
	var err error
	if p.subOffsets, err = d.integers(ctx, tagSubIFDs, 1<<16); err != nil {
		d.f.Warnings = append(d.f.Warnings, err.Error())
	}
	return p
}

// layout reads the tags that say how pixels are stored.
func (d *directory) layout(ctx context.Context, l *Layout) error {
	var err error
	get := func(tag uint16, standard uint64) int {
		v, e := d.number(ctx, tag, standard)
		if err == nil && e != nil {
			err = e
		}
		if v > math.MaxInt32 {
			switch {
			case tag == tagRowsPerStrip: // 2³²−1: all rows
				return math.MaxInt32
			case err == nil:
				err = d.errorf(tag, "is %d, at most %d is supported", v, math.MaxInt32)
			}
			return 0
		}
		return int(v)
	}
	l.Width, l.Height, l.Depth = get(tagImageWidth, 0), get(tagImageLength, 0), get(tagImageDepth, 1)
	l.Samples, l.Compression, l.Predictor = get(tagSamplesPerPixel, 1), get(tagCompression, compressionNone), get(tagPredictor, 1)
	l.Photometric, l.FillOrder = get(tagPhotometricInterpretation, MinIsBlack), get(tagFillOrder, 1)
	l.Separate = get(tagPlanarConfiguration, 1) == 2 && l.Samples > 1
	l.TileWidth, l.TileHeight, l.TileDepth = get(tagTileWidth, 0), get(tagTileLength, 0), get(tagTileDepth, 1)
	if _, l.Tiled = d.fields[tagTileOffsets]; !l.Tiled {
		_, wide := d.fields[tagTileWidth]
		_, high := d.fields[tagTileLength]
		l.Tiled = wide && high // whose places may stand in the tags of strips, as libtiff writes old files
	}
	if !l.Tiled {
		l.TileWidth, l.TileHeight, l.TileDepth = l.Width, min(get(tagRowsPerStrip, math.MaxInt32), l.Height), 1
	}
	if err != nil {
		return err
	}
	if l.Bits, err = d.uniform(ctx, tagBitsPerSample, 1); err != nil {
		return err
	}
	kind, err := d.uniform(ctx, tagSampleFormat, 1)
	if err != nil {
		return err
	}
	if l.Photometric == YCbCr {
		sub, err := d.integers(ctx, tagYCbCrSubSampling, math.MaxUint16)
		if err != nil {
			return err
		}
		l.Subsampling = [2]int{2, 2}
		if len(sub) >= 2 && sub[0] <= 4 && sub[1] <= 4 {
			l.Subsampling = [2]int{int(sub[0]), int(sub[1])}
		}
	}
	var ok bool
	if l.Type, ok = sampleType(kind, l.Bits); !ok {
		return d.errorf(tagBitsPerSample, "samples of %d bits in format %d are not supported", l.Bits, kind)
	}
	return nil
}

// uniform reads a tag that has a value for each sample, which must all be the same.
func (d *directory) uniform(ctx context.Context, tag uint16, standard int) (int, error) {
	v, err := d.integers(ctx, tag, math.MaxUint16)
	if err != nil || len(v) == 0 {
		return standard, err
	}
	for _, x := range v {
		if x != v[0] {
			return 0, d.errorf(tag, "is %d and %d: samples that differ are not supported", v[0], x)
		}
	}
	return int(min(v[0], math.MaxInt32)), nil
}

// sampleType returns the element type of samples; SampleFormat is 1 or 4 for unsigned, 2 for signed integers,
// 3 for floats. Those of less than 8, 16 or 32 bits are unpacked.
func sampleType(format, bits int) (dtype.Type, bool) {
	switch {
	case (format == 1 || format == 4) && (bits == 1 || bits == 2 || bits == 4):
		return dtype.Uint8, true
	case (format == 1 || format == 4) && (bits == 10 || bits == 12 || bits == 14):
		return dtype.Uint16, true
	}
	t, ok := map[[2]int]dtype.Type{
		{1, 8}: dtype.Uint8, {1, 16}: dtype.Uint16, {1, 32}: dtype.Uint32, {1, 64}: dtype.Uint64,
		{4, 8}: dtype.Uint8, {4, 16}: dtype.Uint16, {4, 32}: dtype.Uint32, {4, 64}: dtype.Uint64,
		{2, 8}: dtype.Int8, {2, 16}: dtype.Int16, {2, 32}: dtype.Int32, {2, 64}: dtype.Int64,
		{1, 24}: dtype.Uint32, {4, 24}: dtype.Uint32, {2, 24}: dtype.Int32, {3, 24}: dtype.Float32,
		{3, 16}: dtype.Float16, {3, 32}: dtype.Float32, {3, 64}: dtype.Float64,
	}[[2]int{format, bits}]
	return t, ok
}

// check reports sizes that no image has.
func (l *Layout) check(d *directory) error {
	switch {
	case l.Width < 1 || l.Height < 1 || l.Depth < 1:
		return d.errorf(tagImageWidth, "the image has %d × %d × %d pixels", l.Width, l.Height, l.Depth)
	case l.Samples < 1:
		return d.errorf(tagSamplesPerPixel, "is %d", l.Samples)
	case l.TileWidth < 1 || l.TileHeight < 1 || l.TileDepth < 1:
		return d.errorf(tagTileWidth, "tiles have %d × %d × %d pixels", l.TileWidth, l.TileHeight, l.TileDepth)
	}
	// unpacked rows, and the rows of whole tiles, are counted in ints
	wide := uint64(max(l.Width, l.TileWidth))
	hi, n := bits.Mul64(wide*uint64(max(l.Height, l.TileHeight)), uint64(l.Samples*l.Type.Size()))
	if hi != 0 || n > math.MaxInt64/uint64(max(l.Depth, l.TileDepth)) {
		return d.errorf(tagImageWidth, "%d × %d × %d pixels of %d samples are more than can be counted", l.Width, l.Height, l.Depth, l.Samples)
	}
	return nil
}

// Grid returns the number of tiles or strips: planes of samples, along depth, height and width.
func (l *Layout) Grid() [4]int {
	g := [4]int{1, ceilDiv(l.Depth, l.TileDepth), ceilDiv(l.Height, l.TileHeight), ceilDiv(l.Width, l.TileWidth)}
	if l.Separate {
		g[0] = l.Samples
	}
	return g
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// Interleaved returns the number of samples that lie together in a tile.
func (l *Layout) Interleaved() int {
	if l.Separate {
		return 1
	}
	return l.Samples
}

// Packed returns the uncompressed length of a whole tile in bytes; rows of samples of Bits each begin at a
// byte.
func (l *Layout) Packed(rows int) int64 {
	row := (int64(l.TileWidth)*int64(l.Interleaved())*int64(l.Bits) + 7) / 8
	return row * int64(rows) * int64(l.TileDepth)
}

// segments finds the tables of offsets and byte counts.
func (d *directory) segments(p *Page, l *Layout) error {
	tags := [2]uint16{tagStripOffsets, tagStripByteCounts}
	if l.Tiled {
		tags = [2]uint16{tagTileOffsets, tagTileByteCounts}
		if _, ok := d.fields[tagTileOffsets]; !ok {
			tags[0] = tagStripOffsets // as some writers of tiles call them
		}
		if _, ok := d.fields[tagTileByteCounts]; !ok {
			tags[1] = tagStripByteCounts
		}
	}
	g := l.Grid()
	p.segments = 1
	for _, n := range g {
		hi, lo := bits.Mul64(uint64(p.segments), uint64(n))
		if hi != 0 || lo > math.MaxInt64 {
			return d.errorf(tags[0], "the image has more tiles than can be counted")
		}
		p.segments = int64(lo)
	}
	for i, tag := range tags {
		v, ok := d.fields[tag]
		switch {
		case !ok && i == 1 && l.Compression == compressionNone && p.segments == 1:
			continue // it follows from the size
		case !ok:
			return d.errorf(tag, "is missing")
		}
		if err := d.check(tag, v); err != nil {
			return err
		}
		switch v.kind {
		case 3, 4, 13, 16, 18:
		default:
			return d.errorf(tag, "values of type %d are not offsets", v.kind)
		}
		if i == 0 {
			p.offsets = v
		} else {
			p.counts = v
		}
	}
	return nil
}

// Segment returns the place of tile or strip number i in the file. A tile that is not stored has 0 bytes and
// reads as Fill. Tiles are numbered in grid order, planes of samples first.
func (p *Page) Segment(ctx context.Context, i int64) (offset, bytes int64, err error) {
	if p.Err != nil {
		return 0, 0, p.Err
	}
	if i < 0 || i >= p.segments {
		return 0, 0, p.errorf("no tile %d (there are %d)", i, p.segments)
	}
	if offset, err = p.entry(ctx, p.offsets, i); err != nil {
		return 0, 0, p.errorf("%s %d: offset: %w", p.segmentName(), i, err)
	}
	bytes = p.Packed(p.Height)
	if p.counts.count > 0 {
		if bytes, err = p.entry(ctx, p.counts, i); err != nil {
			return 0, 0, p.errorf("%s %d: byte count: %w", p.segmentName(), i, err)
		}
	}
	if bytes, err = p.counted(ctx, i, offset, bytes); err != nil {
		return 0, 0, p.errorf("%s %d: offset of the next one: %w", p.segmentName(), i, err)
	}
	if offset == 0 || bytes == 0 {
		return 0, 0, nil
	}
	offset += p.shift
	if size := p.f.blocks.src.Size(); offset < 0 || offset > size || bytes < 0 || bytes > size-offset {
		return 0, 0, p.errorf("%s %d: %d bytes at %d lie beyond the file's end at %d", p.segmentName(), i, bytes, offset, size)
	}
	return offset, bytes, nil
}

// counted returns the number of bytes to read of a tile or strip, given its byte count. A strip without a byte count
// extends to the next strip or to the end of the file, as in libtiff. A tile without one is not stored, as in slides.
// Of uncompressed data, it returns no more than the samples need.
func (p *Page) counted(ctx context.Context, i, offset, bytes int64) (int64, error) {
	room, whole := p.f.blocks.src.Size()-offset-p.shift, p.Packed(p.SegmentRows(i))
	switch {
	case offset == 0:
		return 0, nil
	case bytes == 0 && p.Tiled:
		return 0, nil
	case bytes == 0:
		bytes = max(room, 0)
		if i+1 < p.segments {
			next, err := p.entry(ctx, p.offsets, i+1)
			if err != nil {
				return 0, err
			}
			if next > offset {
				bytes = min(bytes, next-offset)
			}
		}
		if p.Compression == compressionNone {
			bytes = min(bytes, whole)
		}
	case p.Compression == compressionNone && bytes > room && room >= whole:
		bytes = whole
	}
	return bytes, nil
}

// Uncounted reports whether the page has no byte count for its first strip. Other data may then follow the strip's own.
func (p *Page) Uncounted(ctx context.Context) bool {
	if p.Tiled {
		return false
	}
	n, err := p.entry(ctx, p.counts, 0)
	return err == nil && n == 0
}

func (p *Page) segmentName() string {
	if p.Tiled {
		return "tile"
	}
	return "strip"
}

// entry looks up a number in a table of offsets or byte counts.
func (p *Page) entry(ctx context.Context, v field, i int64) (int64, error) {
	if i >= v.count {
		return 0, fmt.Errorf("the table ends after %d of %d", v.count, p.segments)
	}
	var b [8]byte
	n := v.size()
	if err := p.f.blocks.read(ctx, b[:n], v.at+i*n); err != nil {
		return 0, err
	}
	x := p.f.integer(b[:n])
	if x > math.MaxInt64 {
		return 0, fmt.Errorf("%d is beyond any file", x)
	}
	return int64(x), nil
}

// mostText is the maximum length of texts read as a whole: OME-XML of a file with many planes is long.
const mostText = 256 << 20

// Description returns the text of the ImageDescription tag, "" if it has none or it cannot be read.
func (p *Page) Description(ctx context.Context) string {
	text, _ := p.text(ctx, tagImageDescription, p.description) // what is wrong with the first page's is a warning of the file
	return text
}

// Software returns the text of the Software tag, "" if it has none or it cannot be read.
func (p *Page) Software(ctx context.Context) string {
	text, _ := p.text(ctx, tagSoftware, p.software)
	return text
}

func (p *Page) text(ctx context.Context, tag uint16, v field) (string, error) {
	b, err := p.raw(ctx, tag, v, mostText)
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b), err
}

// Tables returns the JPEG tables that all tiles of the page share; nil: there are none.
func (p *Page) Tables(ctx context.Context) ([]byte, error) {
	return p.raw(ctx, tagJPEGTables, p.tables, 1<<16)
}

// ColorMap returns the red, then the green, then the blue of each index of a palette image, from 0 to 65535;
// nil if it has none.
func (p *Page) ColorMap(ctx context.Context) ([]uint16, error) {
	d := &directory{f: p.f, name: p.Name(), fields: map[uint16]field{tagColorMap: p.colors}}
	if p.colors.count == 0 {
		return nil, nil
	}
	v, err := d.integers(ctx, tagColorMap, 3<<16)
	out := make([]uint16, len(v))
	for i, x := range v {
		out[i] = uint16(x)
	}
	return out, err
}

func (p *Page) raw(ctx context.Context, tag uint16, v field, most int64) ([]byte, error) {
	if v.count == 0 {
		return nil, nil
	}
	d := &directory{f: p.f, name: p.Name(), fields: map[uint16]field{tag: v}}
	return d.text(ctx, tag, most)
}

// credibleUM is the largest pixel that resolution tags are believed of: many writers state a
// screen's or a printer's resolution, such as 72 or 300 per inch.
const credibleUM = 50

// pixelSize returns the size of a pixel in µm by the resolution tags, or 0 if unknown.
func (d *directory) pixelSize(ctx context.Context) (x, y float64) {
	unit, err := d.number(ctx, tagResolutionUnit, 2)
	per := map[uint64]float64{2: 25400, 3: 10000}[unit]
	x, y = per/d.rational(ctx, tagXResolution), per/d.rational(ctx, tagYResolution)
	if err != nil || !(x > 0 && x <= credibleUM && y > 0 && y <= credibleUM) {
		return 0, 0
	}
	return x, y
}

// SegmentName returns the name of a tile or strip in messages.
func (p *Page) SegmentName(i int64) string { return fmt.Sprintf("%s %d", p.segmentName(), i) }

// SegmentRows returns the number of image rows in a tile or strip. At the bottom of an image it may be lower than in
// the others, although tiles are usually stored whole there.
func (p *Page) SegmentRows(i int64) int {
	if p.TileDepth > 1 { // rows lie in several planes
		return p.TileHeight
	}
	if p.Tiled {
		i /= int64(ceilDiv(p.Width, p.TileWidth))
	}
	row := int(i % int64(ceilDiv(p.Height, p.TileHeight)))
	return min(p.TileHeight, p.Height-row*p.TileHeight)
}

// SegmentColumns returns the number of image columns in a tile or strip: fewer than in the others at the right of an
// image.
func (p *Page) SegmentColumns(i int64) int {
	if !p.Tiled {
		return p.Width
	}
	column := int(i % int64(ceilDiv(p.Width, p.TileWidth)))
	return min(p.TileWidth, p.Width-column*p.TileWidth)
}

// Fill returns the value of what is not stored, as GDAL notes it (tag 42113); ok is false if the page has none that its
// samples can have.
func (p *Page) Fill(ctx context.Context) (v float64, ok bool) {
	text, err := p.text(ctx, tagGDALNoData, p.nodata)
	if err != nil || text == "" {
		return 0, false
	}
	if v, err = strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil {
		return 0, false
	}
	if p.Type.IsFloat() {
		return v, true
	}
	bits := 8 * p.Type.Size()
	low, high := 0.0, math.Ldexp(1, bits)-1
	if p.Type < dtype.Uint8 {
		low, high = -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)-1
	}
	return v, p.Type.IsInteger() && v == math.Trunc(v) && v >= low && v <= high && math.Abs(v) <= 1<<53
}
