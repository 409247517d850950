package czi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"strata/pkg/czi"
	"strata/pkg/dtype"
	"strata/pkg/jpeg"
	"strata/pkg/mem"
	"strata/pkg/tiff/tilecodec"
	"strata/pkg/work"
	"strata/tests/czicorpus"
	"strata/tests/race"
	"strata/tests/tiffcorpus"
)

// plane reads the first plane of a file, as text.
func plane(t *testing.T, f *czi.File) string {
	t.Helper()
	p, _ := f.PixelType(0)
	r := czi.Region{Plane: f.Plane(0, 0, 0), Scene: czi.AllScenes, Rect: f.Bounds(czi.AllScenes)}
	b := make([]byte, r.Rect.Dx()*r.Rect.Dy()*p.Bytes())
	if err := f.ReadRegion(t.Context(), r, b); err != nil {
		t.Error(err)
	}
	return string(b)
}

func gray(v string) []byte { return bytes.Repeat([]byte(v), 12) }

// TestOrder draws tiles without mosaic index below those with one, equal ones in the order of the directory.
func TestOrder(t *testing.T) {
	f := openBytes(t, build("", block{dims: at(0, 0, 1), payload: gray("a")}, block{dims: at(2, 0, -1), payload: gray("b")},
		block{dims: at(4, 0, 0), payload: gray("c")}, block{dims: at(4, 0, 0), payload: gray("d")}, block{dims: at(6, 0, -1), payload: gray("e")}))
	if got := plane(t, f)[:10]; got != "aaaaddddee" {
		t.Errorf("drawn %q", got)
	}
	if i, ok := f.Tile(0, f.Plane(0, 0, 0), 0); !ok || i != 4 { // without an index it is 0
		t.Errorf("tile 0 is %d, %v", i, ok)
	}
	if _, ok := f.Tile(0, f.Plane(0, 0, 0), 2); ok {
		t.Error("there is a tile 2")
	}
}

// TestHidden does not read what higher tiles hide.
func TestHidden(t *testing.T) {
	f := openBytes(t, build("", block{dims: at(2, 0, 1), deleted: true}, block{dims: at(0, 0, 2), payload: gray("a")}, block{dims: at(4, 0, 3), payload: gray("b")}))
	if got := plane(t, f); got != strings.Repeat("aaaabbbb", 3) {
		t.Errorf("drawn %q", got)
	}
}

// TestParts says which tiles lie elsewhere, and which file is a part.
func TestParts(t *testing.T) {
	b := build("", block{dims: at(0, 0, 0), payload: gray("a")}, block{dims: at(4, 0, 1), part: 2}, block{dims: at(8, 0, 2), payload: gray("c"), deleted: true})
	f := openBytes(t, b)
	for i, want := range []string{"", "w.czi: sub-block 1 at byte 864: lies in another part of the file: part 2", "w.czi: sub-block 2 at byte 1152: has been deleted"} {
		err := f.ReadSubBlock(t.Context(), i, make([]byte, 12))
		if err == nil && want != "" || err != nil && (want == "" || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("sub-block %d: %v, want %q", i, err, want)
		}
	}
	if err := f.ReadSubBlock(t.Context(), 1, make([]byte, 12)); !errors.Is(err, czi.ErrPart) {
		t.Error(err)
	}
	binary.LittleEndian.PutUint32(b[80:], 1)
	if _, err := czi.Open(t.Context(), tiffcorpus.Memory(b), "w.czi"); err == nil || !strings.Contains(err.Error(), "part 1 of a file in several parts: open its first part") {
		t.Error(err)
	}
	binary.LittleEndian.PutUint32(b[80:], 0)
	binary.LittleEndian.PutUint32(b[100:], 1)
	if f := openBytes(t, b); len(f.Warnings) != 1 || !strings.HasPrefix(f.Warnings[0], "w.czi: ") {
		t.Errorf("warnings %q", f.Warnings)
	}
}

// mask is an attachment with a mask of 4 × 3 pixels.
func mask(rows ...byte) []byte {
	id := []byte{0x67, 0xea, 0xe3, 0xcb, 0xfc, 0x5b, 0x2b, 0x49, 0xa1, 0x6a, 0xec, 0xe3, 0x78, 0x03, 0x14, 0x48}
	b := append(make([]byte, 16), 3, 0, 0, 0, 'x', 'y', 'z') // a chunk of another kind
	b = append(b, id...)
	for _, v := range []uint32{16 + uint32(len(rows)), 4, 3, 0, 1} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return append(b, rows...)
}

// TestMask draws valid pixels only, and what cannot be a mask as if there were none.
func TestMask(t *testing.T) {
	for _, workers := range []int{1, 3} {
		f := openBytes(t, build("", block{dims: at(0, 0, 0), payload: gray("a")}, block{dims: at(2, 0, 1), payload: gray("b"), attachment: mask(0x70, 0xf0, 0)}))
		r := czi.Region{Plane: f.Plane(0, 0, 0), Rect: f.Bounds(0), Workers: workers, Background: []byte(".")}
		for range 2 { // then it is known that there are masks
			b := make([]byte, 18)
			if err := f.ReadRegion(t.Context(), r, b); err != nil || string(b) != "aaabbb"+"aabbbb"+"aaaa.." {
				t.Errorf("drawn %q, %v", b, err)
			}
		}
		m, err := f.Mask(t.Context(), 1)
		if err != nil || m.Valid(0, 0) || !m.Valid(1, 0) || m.Valid(3, 2) || !m.Valid(4, 0) || !m.Valid(0, 3) {
			t.Errorf("mask %+v, %v", m, err)
		}
		if m, err := f.Mask(t.Context(), 0); m != nil || err != nil {
			t.Errorf("mask %+v, %v", m, err)
		}
	}
	for i, attachment := range [][]byte{mask(0x70, 0xf0), mask(), mask(0x70, 0xf0, 0)[:30], make([]byte, 20), make([]byte, 19)} {
		f := openBytes(t, build("", block{dims: at(0, 0, 0), payload: gray("a"), attachment: attachment}))
		m, err := f.Mask(t.Context(), 0)
		if wrong := i < 2; m != nil || (err != nil) != wrong {
			t.Errorf("attachment %d: mask %+v, %v", i, m, err)
		}
		if got := plane(t, f); got != string(gray("a")) {
			t.Errorf("attachment %d: drawn %q", i, got)
		}
	}
}

// TestCompressions reads what the corpus does not have.
func TestCompressions(t *testing.T) {
	size := []dim{{'X', 0, 16, 16}, {'Y', 0, 16, 16}}
	rgb, bgr, grey := make([]byte, 768), make([]byte, 768), make([]byte, 256)
	for i := range 256 {
		rgb[3*i], rgb[3*i+1], rgb[3*i+2], grey[i] = 200, 100, 30, byte(i)
		bgr[3*i], bgr[3*i+1], bgr[3*i+2] = 30, 100, 200
	}
	var e jpeg.Encoder
	color, err := e.Encode(nil, rgb, 16, 16, 3, jpeg.Options{Quality: 100, Color: jpeg.ToRGB})
	if err != nil {
		t.Fatal(err)
	}
	dull, err := e.Encode(nil, grey, 16, 16, 1, jpeg.Options{Quality: 100})
	if err != nil {
		t.Fatal(err)
	}
	format := tilecodec.Format{Compression: tilecodec.LZW, Type: dtype.Uint8, Width: 768, Height: 1}
	lzw, err := format.Encode(new(tilecodec.Scratch), nil, rgb)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		block
		want []byte
		err  string
	}{
		{block{pixel: czi.Bgr24, compression: czi.JPEG, payload: color}, bgr, ""},
		{block{pixel: czi.Gray8, compression: czi.JPEG, payload: dull}, grey, ""},
		{block{pixel: czi.Gray16, compression: czi.JPEG, payload: dull}, nil, "jpeg: Gray16 pixels"},
		{block{pixel: czi.Bgr24, compression: czi.JPEG, payload: dull}, nil, "jpeg: jpeg: the frame has 1 components"},
		{block{pixel: czi.Bgr24, compression: czi.LZW, payload: lzw}, rgb, ""},
		{block{pixel: czi.Bgr24, compression: czi.LZW, payload: lzw[:40]}, nil, ""},
		{block{pixel: czi.Gray8, compression: czi.Zstd1, payload: []byte{3, 1, 1, 0x28, 0xb5, 0x2f, 0xfd}}, nil, "zstd1: hi-lo packing of Gray8"},
		{block{pixel: czi.Gray8, compression: czi.Zstd1, payload: []byte{3}}, nil, "zstd1: its header begins with 03"},
		{block{pixel: czi.Gray8, compression: czi.Zstd1}, nil, "zstd1: its header begins with"},
		{block{pixel: czi.Gray8, compression: czi.Zstd0, payload: make([]byte, 2<<20)}, nil, "claims 2097152 bytes of zstd0"},
		{block{pixel: czi.Gray8, compression: 150, payload: grey}, nil, "raw data of a camera (compression 150)"},
		{block{pixel: 10, payload: grey}, nil, "Gray64ComplexFloat is not supported"},
		{block{pixel: czi.Bgra32, payload: grey}, append(slices.Clone(grey), make([]byte, 768)...), ""},
	} {
		c.dims = size
		f := openBytes(t, build("", c.block))
		got := bytes.Repeat([]byte{0xa5}, f.SubBlock(0).Bytes())
		err := f.ReadSubBlock(t.Context(), 0, got)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), "w.czi: sub-block 0 at byte 544: ") {
				t.Errorf("%s: %v, want %q", c.compression, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.compression, err)
		}
		for i, v := range c.want {
			if d := int(got[i]) - int(v); d < -3 || d > 3 || d != 0 && c.compression != czi.JPEG {
				t.Fatalf("%s, %s: byte %d is %d, want %d", c.compression, c.pixel, i, got[i], v)
			}
		}
	}
}

// TestFactors tells levels from what is none: other proportions, larger pictures.
func TestFactors(t *testing.T) {
	part := func(w, h, sw, sh int32) block {
		return block{dims: []dim{{'X', 0, w, sw}, {'Y', 0, h, sh}}, payload: make([]byte, sw*sh)}
	}
	f := openBytes(t, build("", part(101, 67, 101, 67), part(101, 67, 50, 33), part(101, 67, 26, 17), part(101, 67, 33, 33), part(10, 10, 20, 20), part(1000, 3, 100, 1)))
	if got := fmt.Sprint(f.Factors(0)); got != "[2 4 10]" {
		t.Errorf("levels %s", got)
	}
	if f.Bounds(0) != image.Rect(0, 0, 101, 67) || f.Scenes()[0].All != image.Rect(0, 0, 1000, 67) {
		t.Errorf("boxes %+v", f.Scenes())
	}
}

// counting counts the reads from a source, and the bytes.
type counting struct {
	tiffcorpus.Source
	reads, bytes *atomic.Int64
}

func (c counting) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	c.reads.Add(1)
	c.bytes.Add(int64(len(p)))
	return c.Source.ReadAt(ctx, p, off)
}

// many makes a file of a directory of n tiles side by side, of which none is there.
func many(n int32) []byte {
	b := build("")
	le := binary.LittleEndian
	dir := make([]byte, 128, 128+int(n)*132)
	le.PutUint32(dir, uint32(n))
	side := int32(1)
	for side*side < n {
		side++
	}
	for i := range n {
		e := make([]byte, 132)
		copy(e, "DV")
		le.PutUint64(e[6:], 544)
		le.PutUint32(e[28:], 5)
		for k, d := range [5]dim{{'X', i % side * 90, 100, 100}, {'Y', i / side * 90, 100, 100}, {'C', 0, 1, 1}, {'S', 0, 1, 1}, {'M', i, 1, 1}} {
			p := e[32+20*k:]
			p[0] = d.name
			le.PutUint32(p[4:], uint32(d.start))
			le.PutUint32(p[8:], uint32(d.size))
			le.PutUint32(p[16:], uint32(d.stored))
		}
		dir = append(dir, e...)
	}
	at := len(b)
	b = append(b, segment("ZISRAWDIRECTORY", dir)...)
	le.PutUint64(b[84:], uint64(at))
	return b
}

// TestMany opens a directory of a million tiles by one read beside two of headers, in little memory, and finds few
// tiles in it.
func TestMany(t *testing.T) {
	race.Leave(t)
	const n = 1_000_000
	src := counting{tiffcorpus.Memory(many(n)), new(atomic.Int64), new(atomic.Int64)}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f, err := czi.Open(t.Context(), src, "many.czi")
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if f.Len() != n || f.Bounds(0) != image.Rect(0, 0, 90*999+100, 90*999+100) {
		t.Errorf("%d tiles in %v", f.Len(), f.Bounds(0))
	}
	if k := src.reads.Load(); k != 3 {
		t.Errorf("%d reads", k)
	}
	if each := float64(after.HeapAlloc-before.HeapAlloc) / n; each > 64 {
		t.Errorf("%.0f bytes of memory for a tile", each)
	}
	for _, c := range []struct {
		r    image.Rectangle
		want []int
	}{
		{image.Rect(0, 0, 90, 90), []int{0}}, {image.Rect(95, 0, 175, 5), []int{0, 1}}, {image.Rect(90*500+10, 90*300+10, 90*500+91, 90*300+90), []int{300500, 300501}},
		{image.Rect(95, 95, 96, 96), []int{0, 1, 1000, 1001}}, {image.Rect(1<<20, 0, 1<<21, 9), nil}, {image.Rect(5, 5, 5, 9), nil},
	} {
		if got := f.Tiles(0, f.Plane(0, 0, 0), 1, c.r); !slices.Equal(got, c.want) {
			t.Errorf("%v: tiles %v, want %v", c.r, got, c.want)
		}
	}
	if i, ok := f.Tile(0, f.Plane(0, 0, 0), 777777); !ok || i != 777777 {
		t.Errorf("tile 777777 is %d, %v", i, ok)
	}
	runtime.KeepAlive(f)
}

// TestConcurrent reads regions of one file at the same time.
func TestConcurrent(t *testing.T) {
	f := open(t, "mosaic_overlap.czi")
	want := plane(t, f)
	err := work.Each(t.Context(), 8, 64, func(_, i int) error {
		r := czi.Region{Plane: f.Plane(0, 0, 0), Scene: czi.AllScenes, Rect: f.Bounds(0), Workers: i%3 + 1}
		b := make([]byte, len(want))
		if err := f.ReadRegion(t.Context(), r, b); err != nil || string(b) != want {
			return fmt.Errorf("read %d: other pixels, %v", i, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRegionArguments refuses regions that make no sense.
func TestRegionArguments(t *testing.T) {
	f := open(t, "mosaic_overlap.czi")
	ok := czi.Region{Plane: f.Plane(0, 0, 0), Rect: image.Rect(0, 0, 4, 4)}
	for what, change := range map[string]func(r *czi.Region){
		"channel": func(r *czi.Region) { r.Plane.C = 7 }, "zoom": func(r *czi.Region) { r.Zoom = 2 }, "memory": func(r *czi.Region) { r.Rect.Max.X = 9 },
		"background": func(r *czi.Region) { r.Background = []byte{1} }, "empty": func(r *czi.Region) { r.Rect.Max = r.Rect.Min },
	} {
		r := ok
		change(&r)
		if err := f.ReadRegion(t.Context(), r, make([]byte, 32)); err == nil || !strings.HasPrefix(err.Error(), f.Name+": ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := f.ReadSubBlock(t.Context(), 0, make([]byte, 3)); err == nil {
		t.Error("a tile was read into three bytes")
	}
	if err := f.Decode(t.Context(), 0, make([]byte, 3), nil); err == nil {
		t.Error("a tile was decoded into three bytes")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := f.ReadRegion(ctx, ok, make([]byte, 32)); !errors.Is(err, context.Canceled) && err != nil {
		t.Error(err)
	}
	if _, err := czi.Open(ctx, czicorpus.Open(t, "raw_g8.czi"), "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("opened after the end of its context: %v", err)
	}
}

// TestMetadata takes what it finds over, and says what is wrong with the rest.
func TestMetadata(t *testing.T) {
	bomb := "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;\">]><ImageDocument><Metadata><Information><Document><Name>&b;</Name></Document></Information></Metadata></ImageDocument>"
	deep := strings.Repeat("<a>", 20000)
	for text, want := range map[string]string{"": "", bomb: "entity", deep: "XML: ", "<OME/>": "expected element type <ImageDocument>", "<ImageDocument>": "unexpected EOF",
		"<?xml version=\"1.0\" encoding=\"utf-16\"?><ImageDocument/>": "utf-16", "\xef\xbb\xbf<ImageDocument/>\x00\x00": ""} {
		f := openBytes(t, build(text))
		m, err := f.Metadata(t.Context())
		if m == nil || (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "w.czi: metadata at byte 544: ")) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	for _, declared := range []string{"", `<?xml version="1.0" encoding="ISO-8859-1"?>`} {
		f := openBytes(t, build(declared+"<ImageDocument><Metadata><Information><Document><Name>10 \xb5m</Name></Document></Information></Metadata></ImageDocument>"))
		if m, err := f.Metadata(t.Context()); err != nil || m.Name != "10 µm" {
			t.Errorf("%q: %q, %v", declared, m.Name, err)
		}
	}
	f := openBytes(t, build(`<ImageDocument><Metadata><Information><Image><Dimensions><Channels><Channel Id="Channel:1" Name="b"/><Channel Id="Channel:0" Name="a"><Color>red</Color></Channel>
		</Channels><S><Scenes><Scene Index="x"/><Scene Index="3" Name="P1"><CenterPosition>1.5, -2e3</CenterPosition></Scene></Scenes></S></Dimensions></Image>
		<Instrument><Objectives><Objective Id="O"><NominalMagnification>-3</NominalMagnification><LensNA>NaN</LensNA><Manufacturer><Model>40x</Model></Manufacturer></Objective></Objectives></Instrument></Information>
		<Scaling><Items><Distance Id="X"><Value>1e400</Value></Distance><Distance Id="Y"><Value>2e-07</Value></Distance><Distance Id="ZY"><Value>1</Value></Distance></Items></Scaling>
		<DisplaySetting><Channels><Channel Id="Channel:0"><Color>#FF00ff00</Color></Channel></Channels></DisplaySetting></Metadata></ImageDocument>`))
	m, err := f.Metadata(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := czi.Metadata{Channels: []czi.Channel{{Name: "b"}, {Name: "a", Color: "00FF00"}}, VoxelUM: [3]float64{0, .2, 0}, Objective: czi.Objective{Name: "40x"},
		Scenes: []czi.SceneInfo{{Index: 3, Name: "P1", CenterUM: [2]float64{1.5, -2000}, Centered: true}}}
	if fmt.Sprintf("%+v", *m) != fmt.Sprintf("%+v", want) {
		t.Errorf("metadata %+v, want %+v", *m, want)
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`<ImageDocument><Metadata><Scaling><Items><Distance Id="X"><Value>1e-7</Value></Distance></Items></Scaling></Metadata></ImageDocument>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := czi.Open(t.Context(), tiffcorpus.Memory(build(string(text))), "f.czi")
		if err != nil {
			t.Fatal(err)
		}
		if m, err := file.Metadata(t.Context()); m == nil || err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, %q", m, err)
		}
	})
}

func FuzzSubBlock(f *testing.F) {
	for _, c := range czicorpus.Files(f) {
		file := open(f, c.Name)
		if sb := file.SubBlock(0); sb.Compression != czi.None {
			payload, err := file.ReadPayload(f.Context(), 0, nil)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(int32(sb.Pixels), int32(sb.Compression), uint16(sb.StoredWidth), uint16(sb.StoredHeight), payload)
		}
	}
	f.Fuzz(func(t *testing.T, pixel, compression int32, w, h uint16, payload []byte) {
		file := openBytes(t, build("", block{dims: []dim{{'X', 0, int32(w), int32(w)}, {'Y', 0, int32(h), int32(h)}}, pixel: czi.PixelType(pixel), compression: czi.Compression(compression), payload: payload}))
		n := file.SubBlock(0).Bytes()
		if n > 1<<22 {
			return
		}
		if err := file.ReadSubBlock(t.Context(), 0, make([]byte, n)); err != nil && (strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "w.czi: sub-block 0 at byte 544: ")) {
			t.Errorf("%q", err)
		}
	})
}

// TestRegionMemory puts a mosaic together in little more memory than it takes.
func TestRegionMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.czi")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := czi.NewWriter(out, czi.Spec{Compression: czi.Zstd1})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Add(t.Context(), 2, 64, func(i int, t *czi.Tile) error {
		t.M, t.X, t.Y, t.Width, t.Height, t.Pixels = i, i%8*480, i/8*480, 512, 512, czi.Gray16
		t.Grow(2 << 18)
		noise(uint64(i), t.Data)
		return nil
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := openBytes(t, b)
	r := czi.Region{Plane: f.Plane(0, 0, 0), Rect: f.Bounds(0), Workers: 2}
	dst := make([]byte, 2*r.Rect.Dx()*r.Rect.Dy())
	small := r
	small.Rect.Max = small.Rect.Min.Add(image.Pt(500, 500)) // makes index and decoders
	if err := f.ReadRegion(t.Context(), small, dst[:2*500*500]); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	pooled := mem.InUse()
	runtime.ReadMemStats(&before)
	if err := f.ReadRegion(t.Context(), r, dst); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if more := int64(after.TotalAlloc-before.TotalAlloc) + mem.InUse() - pooled; more > int64(len(dst)/10) {
		t.Errorf("%d bytes more for a mosaic of %d", more, len(dst))
	}
}

// TestPiled draws more tiles over each other than are worth working out which is seen where.
func TestPiled(t *testing.T) {
	var blocks []block
	for i := range int32(1500) {
		blocks = append(blocks, block{dims: at(i%3, 0, i), payload: gray(string(rune('a' + i%26)))})
	}
	f := openBytes(t, build("", blocks...))
	// the last three are 1497, 1498, 1499, at 0, 1 and 2
	want := string([]byte{'a' + 1497%26, 'a' + 1498%26}) + strings.Repeat(string(rune('a'+1499%26)), 4)
	if got := plane(t, f); got != strings.Repeat(want, 3) {
		t.Errorf("drawn %q, want %q thrice", got, want)
	}
	if f.Covers(0, f.Plane(0, 0, 0), 1, f.Bounds(0)) {
		t.Error("it was worked out what 1500 tiles cover")
	}
}
