package tiff

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"strata/pkg/dtype"
)

// Writer writes a TIFF file: tiles as they come, then the directories. It is little-endian.
//
//	w := tiff.NewWriter(f, tiff.NeedsBig(bytes))
//	page := w.AddPage(tiff.PageSpec{Layout: layout, Description: omeXML}, -1)
//	err := w.Put(page, 0, tile) // for each tile, encoded
//	err = w.Close()             // until then, readers see no TIFF file
//
// Put may be called from many goroutines; tiles lie in the file in the order in which they come.
type Writer struct {
	w   io.WriterAt
	big bool

	mu    sync.Mutex
	end   int64 // of what is written
	pages []*pageOut
	main  []int
}

// PageSpec describes a page to be written.
type PageSpec struct {
	Layout
	Description, Software string
	Tables                []byte   // of JPEG tiles
	Colors                []uint16 // as [Page.ColorMap] has them
	XUM, YUM              float64  // size of a pixel in µm; 0: unknown
	SubfileType           int      // tag 254: 1 for a page below another
}

type pageOut struct {
	PageSpec
	offsets, counts []uint64
	subs            []int
	at              int64 // of its directory
}

// NeedsBig reports whether a file of about the given size must be a BigTIFF because 32-bit offsets do not
// reach its end.
func NeedsBig(bytes int64) bool { return bytes > 4<<30-64<<20 }

// NewWriter begins a TIFF file, or a BigTIFF if big is set.
func NewWriter(w io.WriterAt, big bool) *Writer {
	n := &Writer{w: w, big: big, end: 8}
	if big {
		n.end = 16
	}
	return n
}

// AddPage adds a page to the file, or a sub-IFD to page parent if parent is not negative, and returns its
// number.
func (w *Writer) AddPage(s PageSpec, parent int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := int64(1)
	for _, k := range s.Grid() {
		n *= int64(k)
	}
	p := &pageOut{PageSpec: s, offsets: make([]uint64, n), counts: make([]uint64, n)}
	w.pages = append(w.pages, p)
	number := len(w.pages) - 1
	if parent < 0 {
		w.main = append(w.main, number)
	} else {
		w.pages[parent].subs = append(w.pages[parent].subs, number)
	}
	return number
}

// Put stores the encoded bytes of a tile or strip. One without bytes is left out and reads as 0.
func (w *Writer) Put(page int, segment int64, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	w.mu.Lock()
	at := w.end
	w.end += int64(len(data)+1) &^ 1
	p := w.pages[page]
	p.offsets[segment], p.counts[segment] = uint64(at), uint64(len(data))
	w.mu.Unlock()
	if !w.big && at+int64(len(data)) > math.MaxUint32 {
		return fmt.Errorf("byte %d is beyond what a classic TIFF file can have: write a BigTIFF", at)
	}
	_, err := w.w.WriteAt(data, at)
	return err
}

// Close writes the directories and the header.
func (w *Writer) Close() error {
	var queue []int // sub-IFDs before the page that lists them
	for _, m := range w.main {
		queue = append(append(queue, w.pages[m].subs...), m)
	}
	for _, n := range queue {
		if err := w.directory(w.pages[n]); err != nil {
			return err
		}
	}
	for i, m := range w.main[:max(len(w.main)-1, 0)] { // link the chain
		p := w.pages[m]
		b := w.number(nil, uint64(w.pages[w.main[i+1]].at))
		if _, err := w.w.WriteAt(b, p.at+w.directoryBytes(len(w.entries(p)))-int64(len(b))); err != nil {
			return err
		}
	}
	head := []byte("II\x2a\x00")
	if w.big {
		head = []byte("II\x2b\x00\x08\x00\x00\x00")
	}
	if len(w.main) == 0 {
		return fmt.Errorf("a TIFF file has at least one page")
	}
	_, err := w.w.WriteAt(w.number(head, uint64(w.pages[w.main[0]].at)), 0)
	return err
}

// entry is one entry of a directory.
type entry struct {
	tag, kind uint16
	count     int
	data      []byte
}

// number appends an offset.
func (w *Writer) number(b []byte, x uint64) []byte {
	if w.big {
		return binary.LittleEndian.AppendUint64(b, x)
	}
	return binary.LittleEndian.AppendUint32(b, uint32(x))
}

func (w *Writer) directoryBytes(entries int) int64 {
	if w.big {
		return 8 + 20*int64(entries) + 8
	}
	return 2 + 12*int64(entries) + 4
}

// directory writes a page's directory, after the values that do not fit into its entries.
func (w *Writer) directory(p *pageOut) error {
	list := w.entries(p)
	word := 4
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(list)))
	if w.big {
		b, word = binary.LittleEndian.AppendUint64(nil, uint64(len(list))), 8
	}
	for _, e := range list {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.kind)
		b = w.number(b, uint64(e.count))
		if len(e.data) <= word {
			b = append(b, e.data...)
			b = append(b, make([]byte, word-len(e.data))...)
			continue
		}
		at := w.end
		w.end += int64(len(e.data)+1) &^ 1
		if _, err := w.w.WriteAt(e.data, at); err != nil {
			return err
		}
		b = w.number(b, uint64(at))
	}
	b = w.number(b, 0)
	p.at = w.end
	w.end += int64(len(b)+1) &^ 1
	if !w.big && w.end > math.MaxUint32 {
		return fmt.Errorf("%d bytes are more than a classic TIFF file can have: write a BigTIFF", w.end)
	}
	_, err := w.w.WriteAt(b, p.at)
	return err
}

// list collects the entries of a directory.
type list []entry

func (l *list) short(tag uint16, v ...int) {
	e := entry{tag: tag, kind: 3, count: len(v)}
	for _, x := range v {
		e.data = binary.LittleEndian.AppendUint16(e.data, uint16(x))
	}
	*l = append(*l, e)
}

func (l *list) long(tag uint16, v int) {
	*l = append(*l, entry{tag, 4, 1, binary.LittleEndian.AppendUint32(nil, uint32(v))})
}

func (l *list) text(tag uint16, s string) {
	if s != "" {
		*l = append(*l, entry{tag, 2, len(s) + 1, append([]byte(s), 0)})
	}
}

// offsets adds places in the file, or lengths.
func (w *Writer) offsets(l *list, tag uint16, v []uint64) {
	e := entry{tag: tag, kind: 4, count: len(v)}
	if w.big {
		e.kind = 16
	}
	for _, x := range v {
		e.data = w.number(e.data, x)
	}
	*l = append(*l, e)
}

// entries returns the entries of a page's directory, in the order of their tags.
func (w *Writer) entries(p *pageOut) []entry {
	var l list
	l.long(tagNewSubfileType, p.SubfileType)
	l.long(tagImageWidth, p.Width)
	l.long(tagImageLength, p.Height)
	l.short(tagCompression, p.Compression)
	l.text(tagImageDescription, strings.TrimRight(p.Description, "\x00"))
	if p.XUM > 0 && p.YUM > 0 {
		for tag, um := range map[uint16]float64{tagXResolution: p.XUM, tagYResolution: p.YUM} {
			a, b := rational(10000 / um)
			data := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, a), b)
			l = append(l, entry{tag, 5, 1, data})
		}
		l.short(tagResolutionUnit, 3)
	}
	l.text(tagSoftware, p.Software)
	if p.Predictor > 1 {
		l.short(tagPredictor, p.Predictor)
	}
	if p.Tiled {
		l.long(tagTileWidth, p.TileWidth)
		l.long(tagTileLength, p.TileHeight)
		w.offsets(&l, tagTileOffsets, p.offsets)
		w.offsets(&l, tagTileByteCounts, p.counts)
	} else {
		l.long(tagRowsPerStrip, p.TileHeight)
		w.offsets(&l, tagStripOffsets, p.offsets)
		w.offsets(&l, tagStripByteCounts, p.counts)
	}
	if len(p.subs) > 0 {
		at := make([]uint64, len(p.subs))
		for i, s := range p.subs {
			at[i] = uint64(w.pages[s].at)
		}
		w.offsets(&l, tagSubIFDs, at)
	}
	l.samples(p)
	slices.SortFunc(l, func(a, b entry) int { return int(a.tag) - int(b.tag) })
	return l
}

// samples adds the tags that describe the samples of a page's pixels.
func (l *list) samples(p *pageOut) {
	l.short(tagBitsPerSample, slices.Repeat([]int{p.Bits}, p.Samples)...)
	l.short(tagPhotometricInterpretation, p.Photometric)
	l.short(tagSamplesPerPixel, p.Samples)
	planar := 1
	if p.Separate {
		planar = 2
	}
	l.short(tagPlanarConfiguration, planar)
	if p.Colors != nil {
		v := make([]int, len(p.Colors))
		for i, c := range p.Colors {
			v[i] = int(c)
		}
		l.short(tagColorMap, v...)
	}
	colors := 1
	if p.Photometric == RGB || p.Photometric == YCbCr {
		colors = 3
	}
	if more := p.Samples - colors; more > 0 {
		l.short(tagExtraSamples, slices.Repeat([]int{0}, more)...)
	}
	l.short(tagSampleFormat, slices.Repeat([]int{sampleFormat(p.Type)}, p.Samples)...)
	if p.Tables != nil {
		*l = append(*l, entry{tagJPEGTables, 7, len(p.Tables), p.Tables})
	}
	if p.Photometric == YCbCr {
		l.short(tagYCbCrSubSampling, p.Subsampling[0], p.Subsampling[1])
	}
}

// sampleFormat returns the value of SampleFormat for a type.
func sampleFormat(t dtype.Type) int {
	switch {
	case t.IsFloat():
		return 3
	case t == dtype.Int8 || t == dtype.Int16 || t == dtype.Int32 || t == dtype.Int64:
		return 2
	}
	return 1
}

// rational returns x as the closest fraction of 32-bit numbers.
func rational(x float64) (a, b uint32) {
	b = 1
	for x < math.MaxUint32/10 && b < 1e9 && x != math.Trunc(x) {
		x, b = x*10, b*10
	}
	return uint32(min(math.Round(x), math.MaxUint32)), b
}
