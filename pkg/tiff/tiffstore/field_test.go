package tiffstore_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"strata/pkg/tiff/tiffstore"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// entry is a tag of a directory: of type 2 a text, else numbers.
type entry struct {
	tag, kind uint16
	numbers   []uint32
	text      string
}

// directory is a page to write: its tags, and its strips or tiles, whose offsets and byte counts get the given tags.
type directory struct {
	entries     []entry
	blobs       [][]byte
	at, lengths uint16
	counts      []uint32 // nil: true ones
}

// written returns a little-endian TIFF file of pages (TIFF 6.0, section 2), as test cases of the field need it: writers
// that are libraries refuse to write most of them.
func written(pages ...directory) []byte {
	b := []byte("II\x2a\x00\x00\x00\x00\x00")
	link := 4 // where the offset of the next directory stands
	for _, p := range pages {
		var offsets, counts []uint32
		for _, blob := range p.blobs {
			offsets, counts = append(offsets, uint32(len(b))), append(counts, uint32(len(blob)))
			if blob == nil {
				offsets[len(offsets)-1] = 0
			}
			b = append(b, blob...)
		}
		if p.counts != nil {
			counts = p.counts
		}
		all := append(slices.Clone(p.entries), entry{p.at, 4, offsets, ""}, entry{p.lengths, 4, counts, ""})
		slices.SortFunc(all, func(a, b entry) int { return int(a.tag) - int(b.tag) })
		dir := binary.LittleEndian.AppendUint16(nil, uint16(len(all)))
		for _, e := range all {
			var value []byte
			n := len(e.numbers)
			if e.kind == 2 {
				value = append([]byte(e.text), 0)
				n = len(value)
			}
			for _, x := range e.numbers {
				if e.kind == 3 {
					value = binary.LittleEndian.AppendUint16(value, uint16(x))
				} else {
					value = binary.LittleEndian.AppendUint32(value, x)
				}
			}
			if len(value) > 4 {
				at := len(b)
				b = append(b, value...)
				value = binary.LittleEndian.AppendUint32(nil, uint32(at))
			}
			dir = binary.LittleEndian.AppendUint16(dir, e.tag)
			dir = binary.LittleEndian.AppendUint16(dir, e.kind)
			dir = binary.LittleEndian.AppendUint32(dir, uint32(n))
			dir = append(dir, append(value, 0, 0, 0, 0)[:4]...)
		}
		binary.LittleEndian.PutUint32(b[link:], uint32(len(b)))
		b = append(b, dir...)
		link = len(b)
		b = append(b, 0, 0, 0, 0)
	}
	return b
}

func short(tag uint16, n ...uint32) entry { return entry{tag, 3, n, ""} }
func gray(w, h, compression uint32) []entry {
	return []entry{short(256, w), short(257, h), short(258, 8), short(259, compression), short(262, 1), short(277, 1)}
}

// picture returns w × h pixels, and those of a part with the given number of columns, beyond the picture 0.
func picture(w, h int) []byte {
	b := make([]byte, w*h)
	for i := range b {
		b[i] = byte(3*(i/w) + 7*(i%w) + 1)
	}
	return b
}

func part(b []byte, w, y, x, rows, columns int) []byte {
	out := make([]byte, rows*columns)
	for i := range rows {
		for j := range columns {
			if (y+i)*w+x+j < len(b) && x+j < w {
				out[i*columns+j] = b[(y+i)*w+x+j]
			}
		}
	}
	return out
}

func readPixels(t *testing.T, file []byte, key string) ([]byte, *tiffstore.Store, error) {
	t.Helper()
	mem := store.Memory()
	if err := mem.Put(t.Context(), "x.tif", file); err != nil {
		t.Fatal(err)
	}
	o, err := mem.Open(t.Context(), "x.tif")
	if err != nil {
		t.Fatal(err)
	}
	st, err := tiffstore.Open(t.Context(), o, "x.tif")
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { _ = st.Close() })
	a, err := zarr.OpenArray(t.Context(), st, key)
	if err != nil {
		return nil, st, err
	}
	n := a.DType().Size()
	for _, d := range a.Shape() {
		n *= d
	}
	out := make([]byte, n)
	return out, st, a.Read(t.Context(), a.Bounds(), out)
}

// Tiles whose places stand in the tags of strips, strips without a byte count, and tiles that were cut at the image's
// edges are read as meant.
func TestFieldLayouts(t *testing.T) {
	const w, h, side = 70, 50, 32
	pixels := picture(w, h)
	packed := func(b []byte) []byte {
		var out bytes.Buffer
		z := zlib.NewWriter(&out)
		_, _ = z.Write(b) // never fails
		_ = z.Close()
		return out.Bytes()
	}
	tiles := func(rows, columns func(n int) int, encode func([]byte) []byte) (blobs [][]byte) {
		for y := 0; y < h; y += side {
			for x := 0; x < w; x += side {
				blobs = append(blobs, encode(part(pixels, w, y, x, rows(h-y), columns(w-x))))
			}
		}
		return blobs
	}
	whole, cut := func(int) int { return side }, func(n int) int { return min(n, side) }
	plain := func(b []byte) []byte { return b }
	inTiles := func(compression uint32) []entry {
		return append(gray(w, h, compression), short(322, side), short(323, side))
	}
	inStrips := func(compression, rows uint32) []entry { return append(gray(w, h, compression), short(278, rows)) }
	for name, d := range map[string]directory{
		"tiles in strips' tags":   {inTiles(1), tiles(whole, whole, plain), 273, 279, nil},
		"one strip without count": {inStrips(1, h), [][]byte{pixels}, 273, 279, []uint32{0}},
		"strips without counts":   {inStrips(1, 20), [][]byte{pixels[:20*w], pixels[20*w : 40*w], pixels[40*w:]}, 273, 279, []uint32{0, 0, 0}},
		"deflate without count":   {inStrips(8, h), [][]byte{packed(pixels)}, 273, 279, []uint32{0}},
		"count beyond the end":    {inStrips(1, h), [][]byte{pixels}, 273, 279, []uint32{1 << 20}},
		"cut at the bottom":       {inTiles(1), tiles(cut, whole, plain), 324, 325, nil},
		"deflate, at the bottom":  {inTiles(8), tiles(cut, whole, packed), 324, 325, nil},
		"deflate, at the right":   {inTiles(8), tiles(whole, cut, packed), 324, 325, nil},
		"deflate, at both":        {inTiles(8), tiles(cut, cut, packed), 324, 325, nil},
		"deflate, padded stream":  {inTiles(8), tiles(whole, whole, func(b []byte) []byte { return append(packed(b), 0, 0, 0) }), 324, 325, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := readPixels(t, written(d), "0")
			if err != nil || !bytes.Equal(got, pixels) {
				t.Errorf("%v, or other pixels", err)
			}
		})
	}
	// a tile without a byte count is not stored: GDAL says what it is then
	d := directory{append(inTiles(1), entry{42113, 2, nil, "200"}), tiles(whole, whole, plain), 324, 325, nil}
	d.blobs[1] = nil
	d.counts = []uint32{side * side, 0, side * side, side * side, side * side, side * side}
	got, _, err := readPixels(t, written(d), "0")
	if err != nil || got[0] != pixels[0] || got[side] != 200 || got[2*side] != pixels[2*side] {
		t.Errorf("a tile that is not stored: %v, %v", got[:w], err)
	}
	// what is cut short in another way is an error
	d = directory{inTiles(8), tiles(whole, whole, packed), 324, 325, nil}
	d.blobs[5] = packed(make([]byte, side*5))
	if _, _, err := readPixels(t, written(d), "0"); err == nil || !strings.Contains(err.Error(), "tile 5") {
		t.Errorf("a tile of five rows: %v", err)
	}
}

// Planes that OME-XML and ImageJ tell of, or do not: all that is there is read.
func TestFieldPlanes(t *testing.T) {
	const w, h = 8, 4
	pages := func(n int, text string) (all []directory) {
		for i := range n {
			d := directory{append(gray(w, h, 1), short(278, h)), [][]byte{bytes.Repeat([]byte{byte(i + 1)}, w*h)}, 273, 279, nil}
			if i == 0 {
				d.entries = append(d.entries, entry{270, 2, nil, text})
			}
			all = append(all, d)
		}
		return all
	}
	ome := func(data string) string {
		return `<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYCZT" Type="uint8" ` +
			fmt.Sprintf(`SizeX="%d" SizeY="%d" SizeZ="3" SizeC="2" SizeT="1"><Channel ID="Channel:0:0" SamplesPerPixel="1"/><Channel ID="Channel:0:1" SamplesPerPixel="1"/>%s</Pixels></Image></OME>`, w, h, data)
	}
	for name, c := range map[string]struct {
		file   []byte
		want   []byte // first pixel of each plane: channel, depth
		warned string
	}{
		"fewer pages":    {written(pages(4, ome("<TiffData/>"))...), []byte{1, 3, 0, 2, 4, 0}, ""},
		"old schema":     {written(pages(6, ome(`<TiffData IFD="0" NumPlanes="6"/>`))...), []byte{1, 3, 5, 2, 4, 6}, ""},
		"more of ImageJ": {written(pages(6, "ImageJ=1.53\nimages=4\nchannels=2\nslices=2\n")...), []byte{1, 3, 5, 2, 4, 6}, "tells of 4 planes, the file has 6: all are read"},
		"odd of ImageJ":  {written(pages(5, "ImageJ=1.53\nimages=4\nchannels=2\nslices=2\n")...), []byte{1, 2, 3, 4, 5}, "tells of 4 planes, the file has 5: all are read"},
	} {
		t.Run(name, func(t *testing.T) {
			got, st, err := readPixels(t, c.file, "0")
			if err != nil || len(got) != len(c.want)*w*h {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			for i, want := range c.want {
				if got[i*w*h] != want {
					t.Errorf("plane %d is %d, want %d", i, got[i*w*h], want)
				}
			}
			if c.warned != "" && !strings.Contains(strings.Join(st.Warnings(), "\n"), c.warned) {
				t.Errorf("warnings %q, want %q", st.Warnings(), c.warned)
			}
		})
	}
}

// A slide without descriptions: levels by their shapes, and never the thumbnail, the label or the macro picture.
func TestFieldSlide(t *testing.T) {
	tiled := func(w, h, kind uint32) directory {
		n := ((w + 15) / 16) * ((h + 15) / 16)
		return directory{append(gray(w, h, 1), short(322, 16), short(323, 16), entry{254, 4, []uint32{kind}, ""}), make([][]byte, n), 324, 325, make([]uint32, n)}
	}
	strip := func(w, h, kind uint32) directory {
		return directory{append(gray(w, h, 1), short(278, h), entry{254, 4, []uint32{kind}, ""}), [][]byte{nil}, 273, 279, []uint32{0}}
	}
	_, st, err := readPixels(t, written(tiled(640, 480, 0), strip(80, 60, 0), tiled(160, 120, 0), tiled(40, 30, 0), strip(30, 38, 1), strip(90, 30, 9)), "0")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(st.Image("").Levels); n != 3 || !slices.Equal(st.Names(), []string{"thumbnail", "label", "macro"}) {
		t.Errorf("%d levels, other images %v", n, st.Names())
	}
	// a reduced version is never the main image
	_, st, err = readPixels(t, written(strip(80, 60, 1), strip(640, 480, 0)), "0")
	if err != nil {
		t.Fatal(err)
	}
	if l := st.Image("").Levels[0].Layout(); l.Width != 640 {
		t.Errorf("the main image is %d pixels wide", l.Width)
	}
}
