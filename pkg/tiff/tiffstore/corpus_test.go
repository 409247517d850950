package tiffstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/ngff"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tiffstore"
	"strata/pkg/tiff/tilecodec"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
	"strata/tests/tiffcorpus"
)

func open(t testing.TB, name string) *tiffstore.Store {
	t.Helper()
	st, err := tiffstore.Open(t.Context(), tiffcorpus.Open(t, name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// read reads a whole array.
func read(ctx context.Context, a *zarr.Array) ([]byte, error) {
	b := make([]byte, mem.Product(append(a.Shape(), a.DType().Size())...))
	return b, a.Read(ctx, a.Bounds(), b)
}

// unsupported are the corpus's files of codecs that this package leaves to others.
var unsupported = []string{"opt_jpegxl.tif", "opt_jpegxr.tif", "opt_lerc.tif", "opt_png.tif", "opt_webp.tif"}

// TestCorpus reads every page of the corpus and compares the samples with those that other programs read.
func TestCorpus(t *testing.T) {
	for _, c := range tiffcorpus.Files(t) {
		t.Run(c.Name, func(t *testing.T) {
			st := open(t, c.Name)
			for i, p := range c.Pages {
				name := fmt.Sprintf("pages/%d", i)
				if slices.Contains(unsupported, c.Name) {
					if _, err := zarr.OpenArray(t.Context(), st, name); err == nil || !strings.Contains(err.Error(), "not supported") {
						t.Errorf("%s: %v", c.Name, err)
					}
					continue
				}
				comparePage(t, st, c, p, name)
				for k, sub := range p.Sub {
					comparePage(t, st, c, sub, fmt.Sprintf("%s.%d", name, k))
				}
			}
		})
	}
}

func comparePage(t *testing.T, st *tiffstore.Store, c tiffcorpus.File, p tiffcorpus.Page, key string) {
	t.Helper()
	for _, workers := range []int{1, 3} {
		a, err := zarr.OpenArray(t.Context(), st, key, zarr.Workers(workers))
		if err != nil {
			t.Fatal(err)
		}
		want, _, err := dtype.ParseTypestr(p.Expect.DType)
		if err != nil || a.DType() != want || !slices.Equal(a.Shape(), p.Expect.Shape) {
			t.Fatalf("%s: %v of %s, want %v of %s (%v)", key, a.Shape(), a.DType(), p.Expect.Shape, p.Expect.DType, err)
		}
		got, err := read(t.Context(), a)
		if err != nil && strings.Contains(err.Error(), "libopenjp2") && strings.Contains(c.Name, "jpeg2000") {
			t.Skip("libopenjp2 is not installed")
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Expect.Compare(t, c, got)
		compareRegion(t, a, got)
	}
}

// compareRegion reads a box that is no whole number of tiles.
func compareRegion(t *testing.T, a *zarr.Array, all []byte) {
	t.Helper()
	shape := a.Shape()
	r := zarr.Region{Start: make([]int, len(shape)), Shape: make([]int, len(shape))}
	for d, n := range shape {
		r.Start[d] = n / 3
		r.Shape[d] = max(1, n/2)
	}
	size := a.DType().Size()
	got := make([]byte, mem.Product(append(slices.Clone(r.Shape), size)...))
	if err := a.Read(t.Context(), r, got); err != nil {
		t.Fatal(err)
	}
	at := slices.Clone(r.Start)
	for off := 0; off < len(got); off += size {
		from := 0
		for d := range at {
			from = from*shape[d] + at[d]
		}
		if string(got[off:off+size]) != string(all[from*size:from*size+size]) {
			t.Fatalf("%s: element %v of a region is not that of the whole", a.Path(), at)
		}
		for d := len(at) - 1; d >= 0; d-- {
			if at[d]++; at[d] < r.Start[d]+r.Shape[d] {
				break
			}
			at[d] = r.Start[d]
		}
	}
}

// TestImages opens the first image of each file as OME-Zarr and compares its planes with the pages.
func TestImages(t *testing.T) {
	for _, c := range tiffcorpus.Files(t) {
		if slices.Contains(unsupported, c.Name) || strings.Contains(c.Name, "jpeg2000") || strings.Contains(c.Name, "palette") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			st := open(t, c.Name)
			im, err := ngff.Open(t.Context(), st, "")
			if err != nil {
				t.Fatal(err)
			}
			tim := st.Image("")
			got, err := read(t.Context(), im.Levels[0].Array)
			if err != nil {
				t.Fatal(err)
			}
			l := tim.Levels[0].Layout()
			samples := l.Samples
			plane := l.Depth * l.Height * l.Width * l.Type.Size()
			for k := range tim.Times * tim.Channels * tim.Depths {
				time, channel, depth := k/tim.Depths/tim.Channels, k/tim.Depths%tim.Channels, k%tim.Depths
				p := tim.Page(0, time, channel, depth)
				key := fmt.Sprintf("pages/%d", slices.Index(st.File().Pages, p))
				a, err := zarr.OpenArray(t.Context(), st, key)
				if err != nil {
					t.Fatal(err)
				}
				want, err := read(t.Context(), a)
				if err != nil {
					t.Fatal(err)
				}
				for s := range samples {
					at := (((time*tim.Channels+channel)*samples+s)*tim.Depths + depth) * plane
					if !equalSample(got[at:at+plane], want, l.Type.Size(), s, samples, l.Separate) {
						t.Fatalf("plane %d, %d, %d, sample %d is not that of %s", time, channel, depth, s, key)
					}
				}
			}
		})
	}
}

// equalSample compares a plane with one sample of a page.
func equalSample(plane, page []byte, size, sample, samples int, separate bool) bool {
	if separate {
		return string(plane) == string(page[sample*len(plane):(sample+1)*len(plane)])
	}
	for i := 0; i < len(plane); i += size {
		if string(plane[i:i+size]) != string(page[i*samples+sample*size:][:size]) {
			return false
		}
	}
	return true
}

// TestNegatives reads all pages of broken files: those that must fail do, with one line that names
// the file; none takes more memory than its page has samples.
func TestNegatives(t *testing.T) {
	for _, c := range tiffcorpus.Negatives(t) {
		t.Run(c.Name, func(t *testing.T) {
			st, err := tiffstore.Open(t.Context(), tiffcorpus.Open(t, c.Name), c.Name)
			failed := err != nil
			check := func(err error) {
				if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, c.Name) {
					t.Errorf("%q: want one line that names the file", text)
				}
				failed = true
			}
			if err != nil {
				check(err)
			} else {
				for i := range st.File().Pages {
					if err := readLimited(t, st, fmt.Sprintf("pages/%d", i)); err != nil {
						check(err)
					}
				}
				failed = failed || len(st.File().Warnings) > 0
			}
			if must := c.Must; !failed && !strings.Contains(must, " or ") && !strings.Contains(must, "ignored") && !strings.Contains(must, "bounded by the tile size") {
				t.Errorf("%s: nothing failed; must: %s", c.Why, must)
			}
		})
	}
}

// readLimited reads an array tile by tile, at most a few, under a budget.
func readLimited(t *testing.T, st *tiffstore.Store, key string) error {
	a, err := zarr.OpenArray(t.Context(), st, key, zarr.Workers(1), zarr.Budget(64<<20))
	if err != nil {
		return err
	}
	var first error
	r := zarr.Region{Start: make([]int, len(a.Shape())), Shape: make([]int, len(a.Shape()))}
	for y := 0; y < min(a.Shape()[0], 96); y += 16 {
		for d, n := range a.Shape() {
			r.Shape[d] = min(n, 128)
		}
		r.Start[0], r.Shape[0] = y, min(16, a.Shape()[0]-y)
		b := make([]byte, mem.Product(append(slices.Clone(r.Shape), a.DType().Size())...))
		if err := a.Read(t.Context(), r, b); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// TestPalette shows an image of indices in its colours.
func TestPalette(t *testing.T) {
	st := open(t, "palette_u1.tif")
	im, err := ngff.Open(t.Context(), st, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(t.Context(), im.Levels[0].Array)
	if err != nil {
		t.Fatal(err)
	}
	page, err := zarr.OpenArray(t.Context(), st, "pages/0")
	if err != nil {
		t.Fatal(err)
	}
	indices, err := read(t.Context(), page)
	if err != nil {
		t.Fatal(err)
	}
	colors, err := st.File().Pages[0].ColorMap(t.Context())
	if err != nil || len(colors) != 3*256 || len(got) != 3*len(indices) {
		t.Fatalf("%d colours, %d elements, %v", len(colors), len(got), err)
	}
	for i, k := range indices {
		for c := range 3 {
			if got[c*len(indices)+i] != byte(colors[c*256+int(k)]>>8) {
				t.Fatalf("pixel %d, index %d: colour %d is %d", i, k, c, got[c*len(indices)+i])
			}
		}
	}
	if im.Omero == nil || len(im.Omero.Channels) != 3 || im.Omero.Channels[2].Color != "0000FF" {
		t.Errorf("%+v", im.Omero)
	}
}

// file is a file in memory that grows.
type file []byte

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	if need := int(off) + len(p); need > len(*f) {
		*f = append(*f, make([]byte, need-len(*f))...)
	}
	return copy((*f)[off:], p), nil
}

// TestShortStrip refuses the only strip of a page that says it has fewer bytes than its samples take: what lies
// behind it in the file is something else.
func TestShortStrip(t *testing.T) {
	for _, bytes := range []int{64 * 64, 100} {
		var f file
		w := tiff.NewWriter(&f, false)
		page := w.AddPage(tiff.PageSpec{Layout: tiff.Layout{Width: 64, Height: 64, Depth: 1, Samples: 1, Bits: 8, Type: dtype.Uint8, TileWidth: 64, TileHeight: 64, TileDepth: 1,
			Compression: tilecodec.None, Photometric: tiff.MinIsBlack}, Description: strings.Repeat("no pixels ", 1000)}, -1)
		if err := w.Put(page, 0, make([]byte, bytes)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		st, err := tiffstore.Open(t.Context(), tiffcorpus.Memory(f), "x.tif")
		if err != nil {
			t.Fatal(err)
		}
		a, err := zarr.OpenArray(t.Context(), st, "pages/0")
		if err != nil {
			t.Fatal(err)
		}
		_, err = read(t.Context(), a)
		if bytes == 100 && (err == nil || !strings.Contains(err.Error(), "x.tif: IFD 0: strip 0: has 100 bytes, its samples take 4096")) || bytes > 100 && err != nil {
			t.Errorf("%d bytes: %v", bytes, err)
		}
	}
}

// TestRows reads tiles whose rows are long enough to be read to where they belong, from a file and from memory; those
// of the last row of tiles are not all in the image.
func TestRows(t *testing.T) {
	const width, height, side = 1024, 700, 512
	var f file
	w := tiff.NewWriter(&f, false)
	page := w.AddPage(tiff.PageSpec{Layout: tiff.Layout{Width: width, Height: height, Depth: 1, Samples: 1, Bits: 8, Type: dtype.Uint8, TileWidth: side, TileHeight: side, TileDepth: 1,
		Tiled: true, Compression: tilecodec.None, Photometric: tiff.MinIsBlack}}, -1)
	at := func(y, x int) byte { return byte(y*7 + x*x) }
	for n := range 4 {
		b := make([]byte, side*side)
		for i := range b {
			b[i] = at(n/2*side+i/side, n%2*side+i%side)
		}
		if err := w.Put(page, int64(n), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.tif"), f, 0o666); err != nil {
		t.Fatal(err)
	}
	local, err := store.Folder(dir).Open(t.Context(), "x.tif")
	if err != nil {
		t.Fatal(err)
	}
	for name, src := range map[string]store.Object{"file": local, "memory": tiffcorpus.Memory(f)} {
		st, err := tiffstore.Open(t.Context(), src, "x.tif")
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		tile, err := st.Open(t.Context(), "pages/0/c/0/0")
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := tile.(store.RowReader); ok != (name == "file") {
			t.Errorf("%s: reads rows: %v", name, ok)
		}
		a, err := zarr.OpenArray(t.Context(), st, "pages/0")
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v != at(i/width, i%width) {
				t.Fatalf("%s: pixel %d, %d is %d", name, i/width, i%width, v)
			}
		}
	}
}
