package czistore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strata/pkg/czi"
	"strata/pkg/czi/czistore"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/czicorpus"
	"strata/tests/tiffcorpus"
)

// open shows a file of the corpus.
func open(t testing.TB, name string) *czistore.Store {
	t.Helper()
	path := czicorpus.Write(t, name)
	o, err := store.Folder(filepath.Dir(path)).Open(t.Context(), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	st, err := czistore.Open(t.Context(), o, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// read reads all of an array.
func read(t testing.TB, st store.Store, key string) (*zarr.Array, []byte) {
	t.Helper()
	a, err := zarr.OpenArray(t.Context(), st, key)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	b := make([]byte, mem.Product(append(a.Shape(), a.DType().Size())...))
	if err := a.Read(t.Context(), a.Bounds(), b); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return a, b
}

// TestCorpus reads sub-blocks, tiles and planes under their keys.
func TestCorpus(t *testing.T) {
	n := 0
	for _, c := range czicorpus.Files(t) {
		st := open(t, c.Name)
		for i, s := range c.SubBlocks {
			a, b := read(t, st, fmt.Sprintf("subblocks/%d", i))
			if fmt.Sprint(a.Shape()) != fmt.Sprint(s.Expect.Shape) || a.DType().Typestr() != s.Expect.DType {
				t.Errorf("%s: sub-block %d is %v of %s, want %v of %s", c.Name, i, a.Shape(), a.DType(), s.Expect.Shape, s.Expect.DType)
			}
			s.Expect.Compare(t, fmt.Sprintf("%s: sub-block %d", c.Name, i), b)
			n++
			if d := s.Dims; d["X"][1] == d["X"][2] && d["V"][0] == 0 {
				_, tile := read(t, st, fmt.Sprintf("tiles/%d.%d.%d.%d.%d", d["S"][0], d["C"][0], d["Z"][0], d["T"][0], d["M"][0]))
				if !bytes.Equal(tile, b) {
					t.Errorf("%s: tile of sub-block %d has other pixels", c.Name, i)
				}
			}
		}
		for _, w := range c.Composites {
			p := w.Args.Plane
			if w.Args.Zoom != 0 || strings.HasPrefix(w.Name, "roi") {
				continue
			}
			key := "planes/all"
			if w.Args.Scene != nil {
				key = fmt.Sprintf("planes/%d", *w.Args.Scene)
			}
			_, b := read(t, st, fmt.Sprintf("%s/%d.%d.%d", key, p["C"], p["Z"], p["T"]))
			w.Expect.Compare(t, c.Name+": "+w.Name, b)
			n++
		}
	}
	if n < 170 {
		t.Errorf("only %d arrays were compared", n)
	}
}

// image reads a level of the image at a key.
func image(t testing.TB, st store.Store, key string, level int) (*ngff.Image, []byte) {
	t.Helper()
	im, err := ngff.Open(t.Context(), st, key)
	if err != nil {
		t.Fatal(err)
	}
	_, b := read(t, st, store.Join(key, im.Levels[level].Path))
	return im, b
}

// TestImage shows dimensions, channels and sizes as OME-Zarr has them.
func TestImage(t *testing.T) {
	st := open(t, "c2z3t2.czi")
	im, b := image(t, st, "", 0)
	a := im.Levels[0].Array
	if s := fmt.Sprint(a.Shape(), a.DimensionNames()); s != "[2 2 3 24 32] [t c z y x]" {
		t.Errorf("shape and axes %s", s)
	}
	if s := fmt.Sprint(im.Levels[0].Scale); s != "[1 1 1 0.25 0.22]" {
		t.Errorf("scale %s", s)
	}
	if im.Omero == nil || len(im.Omero.Channels) != 2 || im.Omero.Channels[1].Label != "GFP λ" {
		t.Errorf("channels %+v", im.Omero)
	}
	for i := range 12 {
		tt, c, z := i/6, i/3%2, i%3
		_, plane := read(t, st, fmt.Sprintf("planes/0/%d.%d.%d", c, z, tt))
		if n := len(plane); !bytes.Equal(b[i*n:(i+1)*n], plane) {
			t.Errorf("time %d, channel %d, depth %d: other pixels", tt, c, z)
		}
	}
	if len(st.Warnings()) > 0 {
		t.Errorf("warnings %q", st.Warnings())
	}
}

// TestColors shows red, green and blue as channels.
func TestColors(t *testing.T) {
	for _, name := range []string{"mosaic_bgr.czi", "raw_bgr48.czi", "raw_bgr96f.czi"} {
		st := open(t, name)
		im, b := image(t, st, "", 0)
		a, bgr := read(t, st, "planes/all/0.0.0")
		size := a.DType().Size()
		n := len(b) / 3
		for i := range n / size {
			for c := range 3 {
				if !bytes.Equal(b[c*n+i*size:][:size], bgr[(3*i+2-c)*size:][:size]) {
					t.Fatalf("%s: sample %d of pixel %d", name, c, i)
				}
			}
		}
		if shape := im.Levels[0].Array.Shape(); shape[0] != 3 || fmt.Sprint(shape[1:]) != fmt.Sprint(a.Shape()[:2]) {
			t.Errorf("%s: shape %v", name, shape)
		}
		if name != "raw_bgr96f.czi" && (im.Omero == nil || im.Omero.Channels[0].Label != "red" || im.Omero.Channels[2].Color != "0000FF") {
			t.Errorf("%s: channels %+v", name, im.Omero)
		}
	}
}

// TestMixed shows channels of different types in one that holds both.
func TestMixed(t *testing.T) {
	st := open(t, "c2_mixed_types.czi")
	_, b := image(t, st, "", 0)
	_, first := read(t, st, "planes/all/0.0.0")
	_, second := read(t, st, "planes/all/1.0.0")
	for i, v := range first {
		if b[2*i] != v || b[2*i+1] != 0 {
			t.Fatalf("pixel %d of a byte is %d, %d, want %d", i, b[2*i], b[2*i+1], v)
		}
	}
	if !bytes.Equal(b[2*len(first):], second) {
		t.Error("other pixels of 16 bits")
	}
}

// TestScenes shows scenes as a group of images, and as one.
func TestScenes(t *testing.T) {
	st := open(t, "scenes3.czi")
	if got := fmt.Sprint(st.Names()); got != "[0 1 2]" {
		t.Fatalf("images %s", got)
	}
	for s, key := range st.Names() {
		_, b := image(t, st, key, 0)
		_, want := read(t, st, fmt.Sprintf("planes/%d/0.0.0", s))
		if !bytes.Equal(b, want) {
			t.Errorf("scene %d: other pixels", s)
		}
	}
	im, b := image(t, st, czistore.SlideKey, 0)
	_, all := read(t, st, "planes/all/0.0.0")
	if fmt.Sprint(im.Levels[0].Array.Shape()) != "[240 205]" || !bytes.Equal(b, all) {
		t.Errorf("the slide: other pixels, shape %v", im.Levels[0].Array.Shape())
	}
	if _, err := ngff.Open(t.Context(), st, ""); !errors.Is(err, ngff.ErrNoImage) || !strings.Contains(err.Error(), "open one of them, such as 0") {
		t.Errorf("the group: %v", err)
	}
	for _, p := range ngff.Validate(t.Context(), st, "") {
		if p.Severity == ngff.Error {
			t.Errorf("%+v", p)
		}
	}
	for _, key := range []string{"3/zarr.json", "0/1/zarr.json", "subblocks/6/zarr.json", "subblocks/x/zarr.json", "tiles/0.0.0.0.9/zarr.json", "tiles/0.0/zarr.json",
		"planes/7/0.0.0/zarr.json", "planes/x/0.0.0/zarr.json", "OME/x", "slide/0/c/1/0"} {
		if _, err := st.Get(t.Context(), key, nil, -1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, plane := range []string{"0.0.1", "1.0.0"} {
		if _, err := st.Get(t.Context(), "planes/all/"+plane+"/zarr.json", nil, -1); err == nil || !strings.HasSuffix(err.Error(), "(channel, depth, time): it has channel 0, depth 0, time 0") {
			t.Errorf("plane %s: %v", plane, err)
		}
	}
}

// TestLevels takes pyramids of the file over that are whole.
func TestLevels(t *testing.T) {
	st := open(t, "pyramid.czi")
	im, err := ngff.Open(t.Context(), st, "")
	if err != nil || len(im.Levels) != 3 {
		t.Fatalf("%d levels, %v", len(im.Levels), err)
	}
	var want czicorpus.File
	for _, c := range czicorpus.Files(t) {
		if c.Name == "pyramid.czi" {
			want = c
		}
	}
	for k, name := range map[int]string{1: "zoom0.50", 2: "zoom0.25"} {
		_, b := read(t, st, fmt.Sprint(k))
		for _, w := range want.Composites {
			if w.Name == name {
				w.Expect.Compare(t, name, b)
			}
		}
	}
	if s := fmt.Sprint(im.Levels[2].Scale, im.Levels[2].Translation); s != "[1 0.88] [0.375 0.33]" {
		t.Errorf("scale and translation of level 2: %s", s)
	}
}

// counting counts bytes that are read.
type counting struct {
	tiffcorpus.Source
	n *atomic.Int64
}

func (c counting) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	c.n.Add(int64(len(p)))
	return c.Source.ReadAt(ctx, p, off)
}

// TestCache decodes each tile once for all the chunks that it lies in, however many workers there are.
func TestCache(t *testing.T) {
	src := counting{czicorpus.Open(t, "mosaic_gaps_c2.czi"), new(atomic.Int64)}
	st, err := czistore.Open(t.Context(), src, "x.czi")
	if err != nil {
		t.Fatal(err)
	}
	f := st.File()
	payloads, before := int64(0), src.n.Load()
	for i := range f.Len() {
		s, err := f.Segment(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		payloads += s.PayloadBytes
	}
	headers := src.n.Load() - before
	src.n.Store(0)
	plane := f.Plane(0, 0, 0)
	for y := 0; y < 80; y += 10 {
		r := czi.Region{Plane: plane, Scene: 0, Rect: f.Bounds(0), Workers: 3}
		r.Rect.Min.Y += y
		r.Rect.Max.Y = r.Rect.Min.Y + 10
		if err := f.ReadRegion(t.Context(), r, make([]byte, 2*85*10)); err != nil {
			t.Fatal(err)
		}
	}
	if n := src.n.Load(); n > payloads/2+8*headers {
		t.Errorf("%d bytes were read for one of two channels, all payloads have %d, headers %d", n, payloads, headers)
	}
}

// TestNegatives reads all that broken files show; errors name the file once.
func TestNegatives(t *testing.T) {
	for _, c := range czicorpus.Negatives(t) {
		line := func(err error) {
			if err != nil && (strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), c.Name) != 1) {
				t.Errorf("%s: %q", c.Name, err)
			}
			var format *zarr.FormatError
			if err != nil && !errors.As(err, &format) {
				t.Errorf("%s: %v is not the file's fault", c.Name, err)
			}
		}
		st, err := czistore.Open(t.Context(), czicorpus.Open(t, c.Name), c.Name)
		if err != nil {
			line(err)
			continue
		}
		failed := false
		for _, key := range append([]string{"0", "planes/all/0.0.0"}, subBlocks(st)...) {
			a, err := zarr.OpenArray(t.Context(), st, key)
			if err == nil {
				r := a.Bounds()
				for d, n := range r.Shape {
					r.Shape[d] = min(n, 300)
				}
				err = a.Read(t.Context(), r, make([]byte, mem.Product(append(r.Shape, a.DType().Size())...)))
			}
			line(err)
			failed = failed || err != nil
		}
		if !failed && (strings.Contains(c.Must, "tile fails") && !strings.Contains(c.Must, " or ") || c.Must == "error") {
			t.Errorf("%s (%s): read", c.Name, c.Why)
		}
		if strings.Contains(c.Must, "metadata") != (len(st.Warnings()) > 0 && strings.Contains(st.Warnings()[0], "metadata")) {
			t.Errorf("%s: warnings %q", c.Name, st.Warnings())
		}
	}
}

func subBlocks(st *czistore.Store) (keys []string) {
	for i := range st.File().Len() {
		keys = append(keys, fmt.Sprintf("subblocks/%d", i))
	}
	return keys
}

// meeting is a source that answers reads of tiles only when there are four at a time.
type meeting struct {
	tiffcorpus.Source
	inside *atomic.Int32
	all    chan struct{}
}

func (m meeting) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if len(p) >= 1<<20 {
		if m.inside.Add(1) == 4 {
			close(m.all)
		}
		select {
		case <-m.all:
		case <-time.After(time.Minute):
			return 0, errors.New("nobody else reads")
		}
	}
	return m.Source.ReadAt(ctx, p, off)
}

// TestFar has as many tiles of a far file on their way as the file's server likes, with one worker.
func TestFar(t *testing.T) {
	path := filepath.Join(t.TempDir(), "far.czi")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := czi.NewWriter(out, czi.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Add(t.Context(), 1, 4, func(i int, t *czi.Tile) error {
		t.M, t.X, t.Width, t.Height, t.Pixels = i, 1024*i, 1024, 1024, czi.Gray8
		t.Grow(1 << 20)
		for k := range t.Data {
			t.Data[k] = byte(i + 1)
		}
		return nil
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	st, err := czistore.Open(t.Context(), meeting{tiffcorpus.Memory(data), new(atomic.Int32), make(chan struct{})}, "far.czi", czistore.Requests(8))
	if err != nil {
		t.Fatal(err)
	}
	a, err := zarr.OpenArray(t.Context(), st, "0", zarr.Workers(1))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4<<20)
	if err := a.Read(t.Context(), a.Bounds(), b); err != nil {
		t.Fatal(err)
	}
	for i, v := range b {
		if v != byte(i%4096/1024+1) {
			t.Fatalf("pixel %d is %d", i, v)
		}
	}
}

// written shows a file of tiles of 4 × 2 pixels, whose samples are their numbers.
func written(t *testing.T, n int, set func(i int, t *czi.Tile)) *czistore.Store {
	t.Helper()
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "w.czi"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := czi.NewWriter(out, czi.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Add(t.Context(), 1, n, func(i int, t *czi.Tile) error {
		t.M, t.Width, t.Height = -1, 4, 2
		set(i, t)
		t.Grow(8 * t.Pixels.Bytes())
		for k := range t.Data {
			t.Data[k] = byte(10*i + k%t.Pixels.Samples())
		}
		return nil
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	o, err := store.Folder(dir).Open(t.Context(), "w.czi")
	if err != nil {
		t.Fatal(err)
	}
	st, err := czistore.Open(t.Context(), o, "w.czi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// TestGreyAndColors shows a grey channel beside one in colours.
func TestGreyAndColors(t *testing.T) {
	st := written(t, 2, func(i int, t *czi.Tile) { t.C, t.Pixels = i, []czi.PixelType{czi.Gray8, czi.Bgr24}[i] })
	im, b := image(t, st, "", 0)
	var first []byte
	for i := 0; i < len(b); i += 8 {
		first = append(first, b[i])
	}
	if fmt.Sprint(im.Levels[0].Array.Shape(), first) != "[4 2 4] [0 12 11 10]" { // grey, red, green, blue
		t.Errorf("shape %v, samples %v", im.Levels[0].Array.Shape(), first)
	}
	if im.Omero == nil || im.Omero.Channels[1].Label != "C1 red" || im.Omero.Channels[3].Label != "C1 blue" {
		t.Errorf("channels %+v", im.Omero)
	}
}

// TestPartsOfLevels leaves a level out of which the file has only a part.
func TestPartsOfLevels(t *testing.T) {
	for _, whole := range []bool{false, true} {
		st := written(t, 4, func(i int, t *czi.Tile) {
			t.Pixels, t.X = czi.Gray8, 8*i
			if i < 2 {
				t.X, t.M = 4*i, i
				return
			}
			t.Factor, t.X = 2, 0
			if !whole {
				t.X = 4
			}
		})
		im, err := ngff.Open(t.Context(), st, "")
		if err != nil || (len(im.Levels) == 2) != whole {
			t.Errorf("whole %v: %d levels, %v", whole, len(im.Levels), err)
		}
	}
}
