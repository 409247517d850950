package jpegxr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// bitWriter writes bits, from the most significant one, and the same ones to another.
type bitWriter struct {
	b    []byte
	n    uint // free bits in the last byte
	also *bitWriter
}

func (w *bitWriter) put(v uint64, n uint) {
	if w.also != nil {
		w.also.put(v, n)
	}
	w.only(v, n)
}

// only writes bits to w alone.
func (w *bitWriter) only(v uint64, n uint) {
	for ; n > 0; n-- {
		if w.n == 0 {
			w.b, w.n = append(w.b, 0), 8
		}
		w.n--
		w.b[len(w.b)-1] |= byte(v>>(n-1)&1) << w.n
	}
}

func (w *bitWriter) flag(v bool) bool {
	if v {
		w.put(1, 1)
	} else {
		w.put(0, 1)
	}
	return v
}

func (w *bitWriter) align() {
	if w.n = 0; w.also != nil {
		w.also.align()
	}
}

// wild makes an image of valid headers, with whatever they can say, and of packets of random bits; and the same image
// without a window, whose left and top edges are given. Most do not hold an image, but many do.
func wild(seed uint64) (o options, src, whole []byte, left, top int) {
	r := rand.New(rand.NewPCG(seed, 9))
	pick := func(n int) int { return r.IntN(n) }
	yes := func(one int) bool { return r.IntN(one) == 0 }
	o.guid = []byte{8, 0xb, 0x11, 0xc, 0x15}[pick(5)]
	o.Format = []PixelFormat{Gray8, Gray16, Gray32Float, BGR24, BGR48}[map[byte]int{8: 0, 0xb: 1, 0x11: 2, 0xc: 3, 0x15: 4}[o.guid]]
	columns, rows := 1+pick(4), 1+pick(3)
	full := bitWriter{b: []byte("WMPHOTO\x00")}
	w := bitWriter{b: []byte("WMPHOTO\x00"), also: &full}
	w.put(1, 4)
	o.hard = w.flag(columns == rows && yes(4)) // the library mixes up columns and rows
	w.put(1, 3)
	tiled := w.flag(yes(3))
	o.frequency = w.flag(yes(2))
	w.put(0, 3)
	indexed := w.flag(tiled || o.frequency || yes(4))
	if o.Format.Channels() == 3 {
		o.color = pick(4)
	}
	if o.overlap = pick(3); o.overlap == 2 && (o.color == color420 || o.color == color422) && (columns < 2 || o.hard) {
		o.overlap = 1
	}
	w.put(uint64(o.overlap), 2)
	short := w.flag(yes(2))
	w.flag(yes(2))
	windowed := yes(2)
	w.only(map[bool]uint64{true: 1}[windowed], 1)
	full.only(0, 1)
	trimmed := w.flag(yes(2))
	stretched := w.flag(yes(5))
	w.put(0, 3)
	depth := map[int]uint64{1: 1, 2: 2, 4: 7}[o.Format.Size()/o.Format.Channels()]
	w.put(map[int]uint64{1: 0, 3: 7}[o.Format.Channels()], 4)
	w.put(depth, 4)

	o.Width, o.Height = 16*columns-pick(16), 16*rows-pick(16)
	var cut [4]int
	if windowed {
		cut = window16(&o, r, columns, rows)
	}
	long := uint(32)
	if short {
		long = 16
	}
	w.only(uint64(o.Width-1), long)
	w.only(uint64(o.Height-1), long)
	full.only(uint64(16*columns-1), long)
	full.only(uint64(16*rows-1), long)
	nx, ny := 1, 1
	if tiled {
		nx, ny = 1+pick(columns), 1+pick(rows)
		if o.hard {
			ny = nx
		}
		w.put(uint64(nx-1), 12)
		w.put(uint64(ny-1), 12)
	}
	for range nx - 1 + ny - 1 {
		w.put(1, long/2)
	}
	if stretched {
		for range nx * ny {
			w.put(uint64(pick(256)), 8)
		}
	}
	if windowed {
		for _, v := range cut {
			w.only(uint64(v), 6)
		}
	}
	w.align()
	planes := writePlane(&w, &o, r, depth)
	q := writeQuantizers(&w, &o, r, planes)
	w.align()

	var packets [][]byte
	for range nx * ny {
		packets = append(packets, writeTile(&o, r, q, planes, trimmed)...)
	}
	seal := func(header []byte) []byte {
		return container(&o, header, packets, indexed, rand.New(rand.NewPCG(seed, 10)))
	}
	return o, seal(w.b), seal(full.b), cut[1], cut[0]
}

// window16 chooses a window of macroblocks. It returns what is cut off at the top, left, bottom and right.
func window16(o *options, r *rand.Rand, columns, rows int) [4]int {
	top, left := r.IntN(min(16*rows-1, 63)), r.IntN(min(16*columns-1, 63))
	o.Width, o.Height = 1+r.IntN(16*columns-left), 1+r.IntN(16*rows-top)
	return [4]int{top, left, 16*rows - top - o.Height, 16*columns - left - o.Width}
}

func writePlane(w *bitWriter, o *options, r *rand.Rand, depth uint64) (planes int) {
	w.put(uint64(o.color), 3)
	o.unscaled = !w.flag(r.IntN(2) == 0)
	o.lacks = r.IntN(4)
	w.put(uint64(o.lacks), 4)
	planes = 1
	if o.color != grey {
		planes = 3
		w.put(0, 8)
	}
	switch depth {
	case 2:
		w.put(uint64(r.IntN(4)), 8)
	case 7:
		w.put(uint64(3+r.IntN(20)), 8)
		w.put(uint64(r.IntN(256)), 8)
	}
	return planes
}

func writeIndices(w *bitWriter, r *rand.Rand, planes int) {
	mode := r.IntN(3)
	if planes > 1 {
		w.put(uint64(mode), 2)
	} else {
		mode = 0
	}
	for range mode + 1 {
		w.put(uint64(r.IntN(60)*r.IntN(2)), 8)
	}
}

// writeQuantizers writes those of the image. It returns of which bands tiles have their own.
func writeQuantizers(w *bitWriter, o *options, r *rand.Rand, planes int) (tiles [3]bool) {
	yes := func() bool { return r.IntN(2) == 0 }
	same := false
	for band := range 3 - max(o.lacks-1, 0) {
		// The library refuses images whose LP is as DC and HP as LP, and takes HP's steps of chroma for LP's where they
		// are the same.
		if band > 0 && w.flag(yes() && !(band == 2 && (same || planes > 1))) {
			tiles[band], same = tiles[band-1], true
		} else if tiles[band] = !w.flag(yes()); !tiles[band] {
			writeIndices(w, r, planes)
		}
	}
	return tiles
}

// writeTile writes a tile's packets.
func writeTile(o *options, r *rand.Rand, tiles [3]bool, planes int, trimmed bool) (packets [][]byte) {
	bands := 1
	if o.frequency {
		bands = 4 - o.lacks
	}
	at := make([]bitWriter, bands)
	for i := range at {
		at[i].b = []byte{0, 0, 1, byte(r.IntN(256))}
		if trimmed && (!o.frequency || i == 3) {
			at[i].put(uint64(r.IntN(6)), 4)
		}
	}
	for band := range 3 - max(o.lacks-1, 0) {
		w := &at[min(band, bands-1)]
		if !tiles[band] {
			continue
		}
		if band > 0 && w.flag(r.IntN(3) == 0 && !(band == 2 && planes > 1)) {
			continue
		}
		n := 1
		if band > 0 {
			n += r.IntN(16)
			w.put(uint64(n-1), 4)
		}
		for range n {
			writeIndices(w, r, planes)
		}
	}
	ones := r.Float64()
	for i := range at {
		w := &at[i]
		for range 600 {
			b := uint64(r.IntN(256))
			if r.Float64() < ones {
				b |= uint64(r.IntN(256))
			}
			w.put(b, 8)
		}
		packets = append(packets, w.b)
	}
	return packets
}

// container puts a file together.
func container(o *options, header []byte, packets [][]byte, indexed bool, r *rand.Rand) []byte {
	le, be := binary.LittleEndian, binary.BigEndian
	if indexed {
		header = be.AppendUint16(header, 1)
		at := 0
		for _, p := range packets {
			switch {
			case at < 0xfb00 && r.IntN(2) == 0:
				header = be.AppendUint16(header, uint16(at))
			case r.IntN(2) == 0:
				header = be.AppendUint32(append(header, 0xfb), uint32(at))
			default:
				header = be.AppendUint64(append(header, 0xfc), uint64(at))
			}
			at += len(p)
		}
	}
	skip := r.IntN(9)
	header = append(be.AppendUint16(header, uint16(skip)), make([]byte, skip)...)
	src := []byte("II\xbc\x01\x08\x00\x00\x00\x05\x00")
	entry := func(tag, kind uint16, n, v uint32) {
		src = le.AppendUint32(le.AppendUint32(le.AppendUint16(le.AppendUint16(src, tag), kind), n), v)
	}
	entry(tagPixelFormat, 1, 16, 74)
	entry(0xbc80, 4, 1, uint32(o.Width))
	entry(0xbc81, 4, 1, uint32(o.Height))
	entry(tagOffset, 4, 1, 90)
	entry(tagOffset+1, 4, 1, 0)
	src = append(src, 0, 0, 0, 0)
	src = append(src, "\x24\xc3\xdd\x6f\x03\x4e\xfe\x4b\xb1\x85\x3d\x77\x76\x8d\xc9"...)
	src = append(append(src, o.guid), header...)
	for _, p := range packets {
		src = append(src, p...)
	}
	return src
}

// TestLibraryWild: images that no encoder makes are decoded as the library decodes them, and windows of them are cut
// out of the whole. (The library decodes only macroblocks in a window, and not all that reach into it.)
func TestLibraryWild(t *testing.T) {
	l := needLibrary(t)
	var d Decoder
	n, images := uint64(4000), 0
	if testing.Short() {
		n = 400
	}
	for seed := range n {
		o, src, whole, left, top := wild(seed)
		h, err := ReadHeader(whole)
		if err != nil {
			t.Fatalf("%d: %+v: %v", seed, o, err)
		}
		size := h.Format.Size()
		pixels := make([]byte, h.Width*h.Height*size)
		if d.Decode(t.Context(), pixels, h.Width*size, whole) != nil {
			continue
		}
		images++
		name := fmt.Sprintf("%d: %+v", seed, o)
		window := make([]byte, o.Width*o.Height*size)
		if err := d.Decode(t.Context(), window, o.Width*size, src); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for y := range o.Height {
			if row := pixels[((top+y)*h.Width+left)*size:]; !bytes.Equal(window[y*o.Width*size:][:o.Width*size], row[:o.Width*size]) {
				t.Errorf("%s: row %d of the window differs from the whole", name, y)
				break
			}
		}
		o.Header = h
		compare(t, l, &d, whole, o, name)
		if t.Failed() {
			break
		}
	}
	t.Logf("%d of %d are images", images, n)
	if images < int(n/20) {
		t.Error("too few")
	}
}
