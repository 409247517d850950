package tiff_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tilecodec"
	"strata/tests/tiffcorpus"
)

// plane writes a file of one page of 4 × 4 pixels for each value, with OME-XML.
func plane(t *testing.T, path, text string, big bool, values ...uint16) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tiff.NewWriter(f, big)
	for i, v := range values {
		s := tiff.PageSpec{Layout: tiff.Layout{Width: 4, Height: 4, Depth: 1, Samples: 1, Bits: 16, Type: dtype.Uint16, Tiled: true, TileWidth: 16, TileHeight: 16, TileDepth: 1,
			Compression: tilecodec.None, Predictor: 1, Photometric: tiff.MinIsBlack}, XUM: 0.25, YUM: 0.5}
		if i == 0 {
			s.Description = text
		}
		p := w.AddPage(s, -1)
		b := bytes.Repeat(binary.LittleEndian.AppendUint16(nil, v), 256)
		if err := w.Put(p, 0, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// first reads the first sample of a page.
func first(t *testing.T, p *tiff.Page) uint16 {
	t.Helper()
	off, n, err := p.Segment(t.Context(), 0)
	if err != nil || n != 512 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	var b [2]byte
	if _, err := p.File().Source().ReadAt(t.Context(), b[:], off); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint16(b[:])
}

// TestWriter reads what the writer wrote.
func TestWriter(t *testing.T) {
	for _, big := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "x.tif")
		plane(t, path, "text", big, 7, 8, 9)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := tiff.Open(t.Context(), tiffcorpus.Memory(b), "x.tif")
		if err != nil {
			t.Fatal(err)
		}
		if f.Big != big || len(f.Pages) != 3 || len(f.Images) != 1 || f.Images[0].Depths != 3 || len(f.Warnings) > 0 {
			t.Fatalf("big %v: %d pages, %d images, %q", f.Big, len(f.Pages), len(f.Images), f.Warnings)
		}
		p := f.Pages[0]
		if p.Description(t.Context()) != "text" || p.XUM != 0.25 || p.YUM != 0.5 {
			t.Errorf("%q, %v × %v µm", p.Description(t.Context()), p.XUM, p.YUM)
		}
		for i, p := range f.Pages {
			if p.Err != nil || first(t, p) != uint16(7+i) {
				t.Errorf("page %d: %v", i, p.Err)
			}
		}
	}
}

// TestWriterFull refuses what a classic file has no offsets for.
func TestWriterFull(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "x.tif"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tiff.NewWriter(sparse{f}, false)
	p := w.AddPage(tiff.PageSpec{Layout: tiff.Layout{Width: 64, Height: 4096, Depth: 1, Samples: 1, Bits: 8, Type: dtype.Uint8, Tiled: true, TileWidth: 64, TileHeight: 16, TileDepth: 1}}, -1)
	b := make([]byte, 64<<20)
	for i := range int64(64) {
		if err = w.Put(p, i, b); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "BigTIFF") {
		t.Errorf("%v", err)
	}
}

// sparse writes the ends of what it is given.
type sparse struct{ f *os.File }

func (s sparse) WriteAt(p []byte, off int64) (int, error) {
	_, err := s.f.WriteAt(p[len(p)-1:], off+int64(len(p))-1)
	return len(p), err
}

// ome is OME-XML of two channels of two planes in two files.
const ome = `<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0" Name="two">
<Pixels ID="Pixels:0" DimensionOrder="XYCZT" Type="uint16" SizeX="4" SizeY="4" SizeZ="2" SizeC="2" SizeT="1" PhysicalSizeX="250" PhysicalSizeXUnit="nm" PhysicalSizeY="0.5">
<Channel ID="Channel:0:0" Name="DAPI" Color="65535"/><Channel ID="Channel:0:1" Name="a &amp; b" Color="-16776961"/>
<TiffData FirstC="0" FirstZ="0" IFD="0" PlaneCount="1"><UUID FileName="one.ome.tif">urn:uuid:1</UUID></TiffData>
<TiffData FirstC="0" FirstZ="1" IFD="1" PlaneCount="1"><UUID FileName="one.ome.tif">urn:uuid:1</UUID></TiffData>
<TiffData FirstC="1" FirstZ="0" IFD="0" PlaneCount="1"><UUID FileName="%s">urn:uuid:2</UUID></TiffData>
<TiffData FirstC="1" FirstZ="1" IFD="1" PlaneCount="1"><UUID FileName="%[1]s">urn:uuid:2</UUID></TiffData>
</Pixels></Image></OME>`

type file struct{ *os.File }

func (f file) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return f.File.ReadAt(p, off)
}
func (f file) Size() int64 {
	info, err := f.File.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// TestSeveralFiles reads an image whose planes lie in two files, with the second there, absent, and outside the folder.
func TestSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	plane(t, filepath.Join(dir, "two.ome.tif"), "", false, 3, 4)
	for _, other := range []string{"two.ome.tif", "absent.ome.tif", "../two.ome.tif"} {
		path := filepath.Join(dir, "one.ome.tif")
		plane(t, path, fmt.Sprintf(ome, other), false, 1, 2)
		src, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		f, err := tiff.Open(t.Context(), file{src}, path, tiff.Siblings(func(_ context.Context, name string) (tiff.Source, error) {
			o, err := os.Open(filepath.Join(dir, name))
			return file{o}, err
		}))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Images) != 1 {
			t.Fatalf("%s: %d images, %q", other, len(f.Images), f.Warnings)
		}
		im := f.Images[0]
		if im.VoxelUM != [3]float64{0, 0.5, 0.25} || im.ChannelInfo[0] != (tiff.Channel{Name: "DAPI", Color: "0000FF"}) || im.ChannelInfo[1] != (tiff.Channel{Name: "a & b", Color: "FF0000"}) {
			t.Errorf("%v, %v", im.VoxelUM, im.ChannelInfo)
		}
		for i, want := range []uint16{1, 2, 3, 4} {
			p := im.Page(0, 0, i/2, i%2)
			switch {
			case i >= 2 && other != "two.ome.tif":
				if p != nil || len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], other) {
					t.Errorf("%s: plane %d is there, warnings %q", other, i, f.Warnings)
				}
			case p == nil:
				t.Errorf("%s: no plane %d: %q", other, i, f.Warnings)
			case first(t, p) != want:
				t.Errorf("%s: plane %d is %d, want %d", other, i, first(t, p), want)
			}
		}
	}
}

// TestRenamed finds the planes of a file that had another name when it was written.
func TestRenamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "renamed.tif")
	plane(t, path, fmt.Sprintf(ome, "one.ome.tif"), false, 1, 2)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := tiff.Open(t.Context(), tiffcorpus.Memory(b), path)
	if err != nil || len(f.Images) != 1 || f.Images[0].Page(0, 0, 1, 1) != f.Pages[1] || len(f.Warnings) > 0 {
		t.Errorf("%d images, warnings %q, %v", len(f.Images), f.Warnings, err)
	}
}

// TestHostileOME opens files whose metadata claim what is not there.
func TestHostileOME(t *testing.T) {
	bomb := `<?xml version="1.0"?><!DOCTYPE OME [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><OME><Image Name="&b;"/></OME>`
	for name, text := range map[string]string{
		"bomb":        bomb,
		"deep":        "<OME>" + strings.Repeat("<a>", 1<<17),
		"planes":      `<OME><Image><Pixels DimensionOrder="XYZCT" SizeX="4" SizeY="4" SizeZ="1000000000" SizeC="1000000000" SizeT="1000000000"/></Image></OME>`,
		"negative":    `<OME><Image><Pixels DimensionOrder="XYZCT" SizeX="4" SizeY="4" SizeZ="-1" SizeC="1" SizeT="1"/></Image></OME>`,
		"IFD":         `<OME><Image><Pixels DimensionOrder="XYZCT" SizeX="4" SizeY="4" SizeZ="1" SizeC="1" SizeT="1"><TiffData IFD="99999"/></Pixels></Image></OME>`,
		"first":       `<OME><Image><Pixels DimensionOrder="XYZCT" SizeX="4" SizeY="4" SizeZ="1" SizeC="1" SizeT="1"><TiffData IFD="0" FirstZ="-3"/></Pixels></Image></OME>`,
		"samples":     `<OME><Image><Pixels DimensionOrder="XYZCT" SizeX="4" SizeY="4" SizeZ="1" SizeC="3" SizeT="1"><Channel SamplesPerPixel="2"/></Pixels></Image></OME>`,
		"other size":  `<OME><Image><Pixels DimensionOrder="XYZCT" SizeX="5" SizeY="4" SizeZ="1" SizeC="1" SizeT="1"><TiffData/></Pixels></Image></OME>`,
		"no closing":  `<OME><Image><Pixels`,
		"binary only": `<OME><BinaryOnly MetadataFile="../../etc/passwd"/></OME>`,
	} {
		path := filepath.Join(t.TempDir(), "x.tif")
		plane(t, path, text, false, 5)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := tiff.Open(t.Context(), tiffcorpus.Memory(b), "x.tif")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(f.Warnings) == 0 || len(f.Images) != 1 || f.Images[0].Kind != "pages" {
			t.Errorf("%s: %d images, warnings %q: the page is to be read without metadata", name, len(f.Images), f.Warnings)
		}
		for _, w := range f.Warnings {
			if strings.Contains(w, "\n") || len(w) > 500 {
				t.Errorf("%s: %q", name, w)
			}
		}
	}
}

// A description that lies beyond the file's end costs the metadata, with a warning, and not the pages.
func TestDescriptionBeyondTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tif")
	plane(t, path, "a text of more than four bytes", false, 5)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entry := bytes.Index(b, []byte{14, 1, 2, 0, 31, 0, 0, 0}) // tag 270, ASCII, 31 of them
	if entry < 0 {
		t.Fatal("the entry is not there")
	}
	binary.LittleEndian.PutUint32(b[entry+8:], 1<<30)
	f, err := tiff.Open(t.Context(), tiffcorpus.Memory(b), "x.tif")
	if err != nil || len(f.Images) != 1 {
		t.Fatal(f, err)
	}
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "x.tif: IFD 0: ImageDescription: ") || !strings.HasSuffix(f.Warnings[0], "the pages are read without it") {
		t.Errorf("%q", f.Warnings)
	}
}

func FuzzOME(f *testing.F) {
	f.Add(fmt.Sprintf(ome, "two.ome.tif"))
	f.Add(`<OME><Image><Pixels DimensionOrder="XYZCT" SizeX="4" SizeY="4" SizeZ="3" SizeC="1" SizeT="1"><TiffData IFD="1" FirstZ="1" PlaneCount="2"/></Pixels></Image></OME>`)
	path := filepath.Join(f.TempDir(), "x.tif")
	f.Fuzz(func(t *testing.T, text string) {
		plane(t, path, text, false, 1, 2, 3)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tiff.Open(t.Context(), tiffcorpus.Memory(b), "x.tif")
		if err != nil {
			t.Fatal(err)
		}
		for _, im := range got.Images {
			if len(im.Levels[0].Pages) != im.Times*im.Channels*im.Depths {
				t.Fatalf("%d planes of %d × %d × %d", len(im.Levels[0].Pages), im.Times, im.Channels, im.Depths)
			}
		}
	})
}
