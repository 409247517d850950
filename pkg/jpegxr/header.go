package jpegxr

import "fmt"

// Colours inside a codestream.
const (
	grey     = 0
	color420 = 1
	color422 = 2
	color444 = 3
)

// Bands that a codestream lacks.
const (
	lacksNone = iota
	lacksFlexbits
	lacksHighpass
	lacksLowpass
)

// file holds the content of a file's headers.
type file struct {
	Header
	input
	head reader

	hard, frequency, trimmed, indexed bool
	overlap                           int
	left, top                         int   // pixels cut off
	columns, rows                     int   // of macroblocks
	tileX, tileY                      []int // where tiles begin, in macroblocks, and where the last ends
	color, planes, lacks              int   // colours inside
	scaled                            bool  // three more bits in all arithmetic
	shift                             uint  // of 16-bit samples, or the length of a float's mantissa
	bias                              int32 // of the exponents of floats
	quantizers                              // of the image
	packets                           []int // offsets in src; -1: there is none, of flexbits
}

// indices are the indices of quantizers of the planes.
type indices [3]uint8

// quantizers holds the quantizers of the image or of a tile. The LP and HP bands may have several, of which each
// macroblock chooses one.
type quantizers struct {
	tileDC, tileLP, tileHP bool // each tile has its own
	dc                     indices
	lp, hp                 [16]indices
	nLP, nHP               int
}

// failed makes an error of a place in the headers.
func (f *file) failed(format string, a ...any) error {
	return fmt.Errorf("byte %d: %w", f.head.offset(), fmt.Errorf(format, a...))
}

// enough checks that the following bytes exist, and reports whether those before did.
func (f *file) enough() error {
	if !f.ready(&f.head) {
		return fmt.Errorf("byte %d: the headers end early", len(f.src))
	}
	return nil
}

// readHeaders reads the headers of the codestream that begins at an offset.
func (f *file) readHeaders(offset int) error {
	f.head = f.reader(offset + len("WMPHOTO\x00"))
	if err := f.enough(); err != nil {
		return err
	}
	r := &f.head
	if v := r.bits(4); v != 1 {
		return f.failed("version %d of the codestream is not supported: want 1", v)
	}
	f.hard = r.flag()
	if v := r.bits(3); v != 1 {
		return f.failed("sub-version %d of the codestream (HD Photo of before the standard) is not supported: want 1", v)
	}
	tiled := r.flag()
	f.frequency = r.flag()
	r.bits(3) // orientation, for display
	f.indexed = r.flag()
	if f.overlap = int(r.bits(2)); f.overlap == 3 {
		return f.failed("overlap 3: want 0, 1 or 2")
	}
	short := r.flag()
	r.flag() // long words
	window := r.flag()
	f.trimmed = r.flag()
	stretched := r.flag()
	r.bits(2)
	if r.flag() {
		return f.failed("an alpha plane is not supported: %s", wanted)
	}
	if err := f.checkOutput(r.bits(4), r.bits(4)); err != nil {
		return err
	}
	if err := f.readSizes(tiled, short, stretched, window); err != nil {
		return err
	}
	return f.readPlane()
}

// checkOutput compares the codestream's colours and depth with the container's.
func (f *file) checkOutput(color, depth uint32) error {
	want := map[int]uint32{1: 1, 2: 2, 4: 7}[f.Format.Size()/f.Format.Channels()]
	colors := map[int]uint32{1: 0, 3: 7}[f.Format.Channels()]
	if color != colors || depth != want {
		return f.failed("colours %d and depth %d for an image of %s: want %d and %d", color, depth, f.Format, colors, want)
	}
	return nil
}

// readSizes reads the sizes of the image, of tiles and of the window.
func (f *file) readSizes(tiled, short, stretched, window bool) error {
	r := &f.head
	long := uint(32)
	if short {
		long = 16
	}
	width, height := int64(r.bits(long))+1, int64(r.bits(long))+1
	nx, ny := uint32(1), uint32(1)
	if tiled {
		nx, ny = r.bits(12)+1, r.bits(12)+1
	}
	if !f.indexed && (f.frequency || nx*ny > 1) {
		return f.failed("%d×%d tiles and no index table", nx, ny)
	}
	if err := f.readTiles(&f.tileX, nx, long/2); err != nil {
		return err
	}
	if err := f.readTiles(&f.tileY, ny, long/2); err != nil {
		return err
	}
	if stretched {
		r.pos += 8 * int(nx*ny)
	}
	var top, left, bottom, right int64
	if !window {
		right, bottom = -width&15, -height&15
	} else if err := f.enough(); err != nil {
		return err
	} else {
		top, left, bottom, right = int64(r.bits(6)), int64(r.bits(6)), int64(r.bits(6)), int64(r.bits(6))
	}
	if (left+width+right)&15 != 0 || (top+height+bottom)&15 != 0 {
		return f.failed("a window of %d×%d pixels at (%d, %d) with %d and %d behind it: want sums that are multiples of 16",
			width, height, left, top, right, bottom)
	}
	f.Width, f.Height, f.left, f.top = int(width), int(height), int(left), int(top)
	f.columns, f.rows = int((left+width+right)/16), int((top+height+bottom)/16)
	if err := f.endTiles(&f.tileX, f.columns, "columns"); err != nil {
		return err
	}
	if err := f.endTiles(&f.tileY, f.rows, "rows"); err != nil {
		return err
	}
	return f.enough()
}

// readTiles reads where n tiles in a direction begin.
func (f *file) readTiles(t *[]int, n uint32, bits uint) error {
	*t = append((*t)[:0], 0)
	for i := range int(n) - 1 {
		if err := f.enough(); err != nil {
			return err
		}
		*t = append(*t, (*t)[i]+int(f.head.bits(bits)))
	}
	return nil
}

// endTiles adds the end of the last tile, if all have a size.
func (f *file) endTiles(t *[]int, end int, what string) error {
	*t = append(*t, end)
	for i, v := range (*t)[1:] {
		if v <= (*t)[i] {
			return f.failed("tile %d of %d in %s goes from macroblock %d to %d", i, len(*t)-1, what, (*t)[i], v)
		}
	}
	return nil
}

// readPlane reads the header of the image plane.
func (f *file) readPlane() error {
	r := &f.head
	r.pos = (r.pos + 7) &^ 7
	f.color = int(r.bits(3))
	f.scaled = r.flag()
	f.lacks = int(r.bits(4))
	f.planes = 1
	switch {
	case f.color > color444:
		return f.failed("colours %d inside are not supported: want grey, 4:2:0, 4:2:2 or 4:4:4", f.color)
	case f.lacks > lacksLowpass:
		return f.failed("bands %d: want 0 to 3", f.lacks)
	case f.color != grey:
		if f.Format.Channels() == 1 {
			return f.failed("a colour image inside an image of %s", f.Format)
		}
		f.planes = 3
		r.bits(8) // places of chroma samples
	}
	switch f.Format.Size() / f.Format.Channels() {
	case 2:
		if f.shift = uint(r.bits(8)); f.shift > 15 {
			return f.failed("samples of 16 bits are shifted by %d", f.shift)
		}
	case 4:
		f.shift, f.bias = uint(r.bits(8)), int32(int8(r.bits(8)))
		if f.shift > 23 {
			return f.failed("floats have a mantissa of %d bits: want 23 or less", f.shift)
		}
	}
	if f.overlap == 2 && (f.color == color420 || f.color == color422) {
		x := []int{0, f.columns}
		if f.hard {
			x = f.tileX
		}
		for i, end := range x[1:] {
			if end-x[i] < 2 {
				return f.failed("subsampled chroma with overlap 2 is not defined for an image or a hard tile of one macroblock across")
			}
		}
	}
	f.readQuantizers()
	r.pos = (r.pos + 7) &^ 7
	return f.enough()
}

// readQuantizers reads the quantizers of the image.
func (f *file) readQuantizers() {
	r, q := &f.head, &f.quantizers
	*q = quantizers{nLP: 1, nHP: 1}
	if q.tileDC = !r.flag(); !q.tileDC {
		q.dc = f.readIndices(r)
	}
	if f.lacks == lacksLowpass {
		return
	}
	if r.flag() {
		q.tileLP, q.lp[0] = q.tileDC, q.dc
	} else if q.tileLP = !r.flag(); !q.tileLP {
		q.lp[0] = f.readIndices(r)
	}
	if f.lacks == lacksHighpass {
		return
	}
	if r.flag() {
		q.tileHP, q.hp[0] = q.tileLP, q.lp[0]
	} else if q.tileHP = !r.flag(); !q.tileHP {
		q.hp[0] = f.readIndices(r)
	}
}

// readIndices reads a quantizer.
func (f *file) readIndices(r *reader) (i indices) {
	mode := uint32(0)
	if f.planes > 1 {
		mode = r.bits(2)
	}
	y := uint8(r.bits(8))
	i = indices{y, y, y}
	if mode > 0 && f.planes > 1 {
		u := uint8(r.bits(8))
		i[1], i[2] = u, u
		if mode > 1 {
			i[2] = uint8(r.bits(8))
		}
	}
	return i
}

// step returns the step that a quantizer's index stands for, times 2^s if arithmetic is scaled. Where HP uses LP's
// quantizers and arithmetic is scaled, libjxr takes LP's steps for HP of chroma, half of those that the standard gives
// and this package takes. No encoder is known to write such images.
func (f *file) step(index uint8, s int) int32 {
	m, e := 16+int32(index&15), int(index>>4)
	switch {
	case index == 0:
		return 1
	case f.scaled && index < 16:
		return int32(index) << s
	case f.scaled:
		return m << (e - 1 + s)
	case index < 32:
		return (int32(index) + 3) >> 2
	case index < 48:
		return (m + 1) >> 1 << (e - 2)
	}
	return m << (e - 3)
}

// readPackets reads the index table and where the first packet begins.
func (f *file) readPackets() error {
	r := &f.head
	f.packets = append(f.packets[:0], 0)
	if f.indexed {
		n := (len(f.tileX) - 1) * (len(f.tileY) - 1) * f.bands()
		if v := r.bits(16); v != 1 {
			return f.failed("an index table that begins with %d: want 1", v)
		}
		f.packets = f.packets[:0]
		for range n {
			v, err := f.readOffset()
			if err != nil {
				return err
			}
			f.packets = append(f.packets, v)
		}
	}
	skip, err := f.readOffset()
	if err != nil {
		return err
	}
	skip = max(skip, 0) + r.offset()
	for i, v := range f.packets {
		if v < 0 && f.frequency && i%f.bands() == 3 {
			continue // no flexbits
		}
		if v += skip; v < skip || v >= len(f.src) {
			return f.failed("packet %d of %d is said to begin at byte %d of %d", i, len(f.packets), v, len(f.src))
		}
		f.packets[i] += skip
	}
	return nil
}

// bands returns the number of packets of a tile.
func (f *file) bands() int {
	if f.frequency {
		return 4 - f.lacks
	}
	return 1
}

// readOffset reads a number of variable length. Where that stands for nothing, it returns -1.
func (f *file) readOffset() (int, error) {
	if err := f.enough(); err != nil {
		return 0, err
	}
	r := &f.head
	switch b := r.bits(8); {
	case b < 0xfb:
		return int(b<<8 | r.bits(8)), nil
	case b > 0xfc:
		return -1, nil
	case b == 0xfc && r.bits(32) != 0:
		return 0, f.failed("an offset of more than 32 bits")
	}
	return int(r.bits(32)), nil
}
