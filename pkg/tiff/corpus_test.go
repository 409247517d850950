package tiff_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"strata/pkg/tiff"
	"strata/tests/tiffcorpus"
)

// TestCorpusPages compares what directories say, and where tiles lie, with tifffile.
func TestCorpusPages(t *testing.T) {
	for _, c := range tiffcorpus.Files(t) {
		t.Run(c.Name, func(t *testing.T) {
			f, err := tiff.Open(t.Context(), tiffcorpus.Open(t, c.Name), c.Name)
			if err != nil {
				t.Fatal(err)
			}
			if f.Big != c.Big || f.BigEndian() != (c.ByteOrder == "BE") {
				t.Errorf("BigTIFF %v, big-endian %v, want %v and %s", f.Big, f.BigEndian(), c.Big, c.ByteOrder)
			}
			if len(f.Warnings) > 0 {
				t.Errorf("warnings %q", f.Warnings)
			}
			comparePages(t, f.Pages, c.Pages)
		})
	}
}

func comparePages(t *testing.T, got []*tiff.Page, want []tiffcorpus.Page) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d pages, want %d", len(got), len(want))
	}
	for i, p := range got {
		w := want[i]
		if p.Err != nil {
			t.Errorf("page %d: %v", i, p.Err)
			continue
		}
		planar := 1
		if p.Separate {
			planar = 2
		}
		have := []any{p.Width, p.Height, p.Samples, p.Compression, p.Predictor, p.Photometric, planar, p.SubfileType, p.Tiled}
		expect := []any{w.Width, w.Height, w.Samples, w.Compression, w.Predictor, w.Photometric, w.Planar, w.SubfileType, w.Tiled}
		if d := cmp.Diff(expect, have); d != "" {
			t.Errorf("%s (-want +got):\n%s", p.Name(), d)
		}
		if w.Description != "" && strings.TrimSpace(p.Description(t.Context())) != strings.TrimSpace(w.Description) {
			t.Errorf("%s: description %q, want %q", p.Name(), p.Description(t.Context()), w.Description)
		}
		if w.Tiled && (p.TileWidth != w.Tile[1] || p.TileHeight != w.Tile[0]) || !w.Tiled && p.TileHeight != min(w.RowsPerStrip, w.Height) {
			t.Errorf("%s: tiles of %d × %d, want %v or %d rows", p.Name(), p.TileHeight, p.TileWidth, w.Tile, w.RowsPerStrip)
		}
		for k, off := range w.Offsets {
			o, n, err := p.Segment(t.Context(), int64(k))
			if err != nil || n != 0 && (o != off || n != w.Counts[k]) || n == 0 && w.Counts[k] != 0 {
				t.Errorf("%s: segment %d is %d bytes at %d, %v; want %d at %d", p.Name(), k, n, o, err, w.Counts[k], off)
			}
		}
		if _, _, err := p.Segment(t.Context(), int64(len(w.Offsets))); err == nil {
			t.Errorf("%s: a segment more than %d", p.Name(), len(w.Offsets))
		}
		comparePages(t, p.Sub, w.Sub)
	}
}

// TestCorpusImages compares what images are found with tifffile and OpenSlide.
func TestCorpusImages(t *testing.T) {
	for _, c := range tiffcorpus.Files(t) {
		f, err := tiff.Open(t.Context(), tiffcorpus.Open(t, c.Name), c.Name)
		if err != nil {
			t.Fatal(err)
		}
		series := c.Series
		if c.OMESeries != nil {
			series = c.OMESeries
		}
		if c.ImageJ != nil {
			series = []tiffcorpus.Series{*c.ImageJ}
		}
		for i, s := range series {
			if i >= len(f.Images) {
				t.Fatalf("%s: %d images, want %d", c.Name, len(f.Images), len(series))
			}
			im := f.Images[i]
			if s.Name != "" && s.Name != "Baseline" && !strings.EqualFold(im.Name, s.Name) {
				t.Errorf("%s: image %d is %q, want %q", c.Name, i, im.Name, s.Name)
			}
			if s.Levels != nil && len(im.Levels) != len(s.Levels) {
				t.Errorf("%s: image %d has %d levels, want %d", c.Name, i, len(im.Levels), len(s.Levels))
				continue
			}
			for k, shape := range s.Levels {
				l := im.Levels[k].Layout()
				planes := 1
				for _, n := range shape {
					planes *= n
				}
				if got := im.Times * im.Channels * im.Depths * l.Height * l.Width * l.Samples; got != planes {
					t.Errorf("%s: image %d, level %d: %d samples, want those of %v", c.Name, i, k, got, shape)
				}
			}
		}
		if s := c.OpenSlide; s != nil {
			if im := f.Images[0]; im.Magnification != 20 || im.VoxelUM != [3]float64{0, .499, .499} {
				t.Errorf("%s: magnification %v, voxel %v", c.Name, im.Magnification, im.VoxelUM)
			}
		}
		switch c.Name {
		case "pyr_successive.tif", "pyr_subifd.tif":
			if len(f.Images) != 1 || len(f.Images[0].Levels) != 3 {
				t.Errorf("%s: %d images", c.Name, len(f.Images))
			}
		case "stack5_u2.tif":
			if len(f.Images) != 1 || f.Images[0].Depths != 5 {
				t.Errorf("%s: %d images", c.Name, len(f.Images))
			}
		}
	}
}

// TestCorpusOrder checks that the planes of hyperstacks are found by time, channel and depth.
func TestCorpusOrder(t *testing.T) {
	open := func(name string) *tiff.File {
		f, err := tiff.Open(t.Context(), tiffcorpus.Open(t, name), name)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := open("imagej_stack.tif") // z, c
	im := f.Images[0]
	for z := range 3 {
		for c := range 2 {
			if im.Page(0, 0, c, z) != f.Pages[2*z+c] {
				t.Errorf("ImageJ: plane %d of channel %d is %s", z, c, im.Page(0, 0, c, z).Name())
			}
		}
	}
	if im.VoxelUM[0] != 1.5 {
		t.Errorf("ImageJ: spacing %v µm, want 1.5", im.VoxelUM)
	}
	f = open("ome_tczyx.ome.tif")
	im = f.Images[0]
	for i, p := range f.Pages {
		if im.Page(0, i/6, i/3%2, i%3) != p {
			t.Errorf("OME: page %d is not plane %d, %d, %d", i, i/6, i/3%2, i%3)
		}
	}
}

// TestNegatives reads all that broken files offer, and checks which error comes when it must.
func TestNegatives(t *testing.T) {
	for _, c := range tiffcorpus.Negatives(t) {
		f, err := tiff.Open(t.Context(), tiffcorpus.Open(t, c.Name), c.Name)
		if err != nil {
			if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, c.Name+": ") {
				t.Errorf("%s: %q does not begin with the file's name", c.Name, text)
			}
			continue
		}
		if strings.HasPrefix(c.Must, "open fails") {
			t.Errorf("%s (%s): opened", c.Name, c.Why)
		}
		readSegments(t.Context(), f.Pages)
	}
}

// readSegments looks all segments up, up to a bound.
func readSegments(ctx context.Context, pages []*tiff.Page) (errs int) {
	for _, p := range pages {
		for i := range int64(64) {
			if _, _, err := p.Segment(ctx, i); err != nil {
				errs++
			}
		}
		errs += readSegments(ctx, p.Sub)
	}
	return errs
}

func FuzzOpen(f *testing.F) {
	for _, c := range tiffcorpus.Negatives(f) {
		if b := tiffcorpus.Bytes(f, c.Name); len(b) < 16<<10 {
			f.Add(b)
		}
	}
	for _, name := range []string{"ome_tczyx.ome.tif", "imagej_stack.tif", "size_1x1.tif", "volumetric_tiles.tif", "tags_unsorted.tif"} {
		b := tiffcorpus.Bytes(f, name)
		f.Add(b[:min(len(b), 8<<10)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := tiff.Open(t.Context(), tiffcorpus.Memory(b), "f.tif")
		if err != nil {
			return
		}
		readSegments(t.Context(), got.Pages)
		for _, p := range got.Pages {
			p.Description(t.Context())
			_, _ = p.Tables(t.Context())
			_, _ = p.ColorMap(t.Context())
		}
	})
}
