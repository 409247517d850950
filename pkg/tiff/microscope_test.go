package tiff

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"strata/pkg/dtype"
)

// bytesSource is a file in memory.
type bytesSource []byte

func (s bytesSource) Size() int64 { return int64(len(s)) }
func (s bytesSource) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return bytes.NewReader(s).ReadAt(p, off)
}
func (s *bytesSource) WriteAt(p []byte, off int64) (int, error) {
	if n := int(off) + len(p) - len(*s); n > 0 {
		*s = append(*s, make([]byte, n)...)
	}
	return copy((*s)[off:], p), nil
}

// metaMorphStack returns a stack of two planes of 3 × 4 pixels: one directory, and private tags.
func metaMorphStack() []byte {
	le := binary.LittleEndian
	b := []byte("II*\x00\x00\x00\x00\x00")
	for k := range 2 * 3 * 4 {
		b = append(b, byte(k))
	}
	add := func(data []byte) uint32 {
		at := len(b)
		b = append(b, data...)
		return uint32(at)
	}
	numbers := func(v ...uint32) (out []byte) {
		for _, x := range v {
			out = le.AppendUint32(out, x)
		}
		return out
	}
	size := add(numbers(5, 10))
	unit := add(append(numbers(3), "\xb5m\x00"...))
	uic1 := add(numbers(3, 1, 4, size, 5, size, 6, unit))
	uic2 := add(numbers(4, 2, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0))
	minus := ^uint32(0) - 29 // −30
	uic4 := add(append(le.AppendUint16(nil, 40), append(numbers(1, 1, 1, 1), append(le.AppendUint16(nil, 28), numbers(25, 2, minus, 4, 0, 0, 0, 0)...)...)...))
	ifd := uint32(len(b))
	le.PutUint32(b[4:], ifd)
	entries := [][4]uint32{{256, 4, 1, 4}, {257, 4, 1, 3}, {258, 3, 1, 8}, {273, 4, 1, 8}, {278, 4, 1, 3}, {279, 4, 1, 12}, {33628, 4, 4, uic1}, {33629, 5, 2, uic2}, {33631, 4, 2, uic4}}
	b = le.AppendUint16(b, uint16(len(entries)))
	for _, e := range entries {
		b = le.AppendUint16(le.AppendUint16(b, uint16(e[0])), uint16(e[1]))
		b = le.AppendUint32(le.AppendUint32(b, e[2]), e[3])
	}
	return append(b, 0, 0, 0, 0)
}

func TestMetaMorphStack(t *testing.T) {
	f, err := Open(t.Context(), bytesSource(metaMorphStack()), "a.stk")
	if err != nil || len(f.Images) != 1 || len(f.Warnings) > 0 {
		t.Fatal(err, f)
	}
	im := f.Images[0]
	if im.Kind != "metamorph" || im.Depths != 2 || im.VoxelUM != [3]float64{2, 0.5, 0.5} || im.VoxelFrom != "MetaMorph" {
		t.Errorf("%s of %d planes, %v µm from %s", im.Kind, im.Depths, im.VoxelUM, im.VoxelFrom)
	}
	if im.Stage == nil || *im.Stage != (Stage{[2]float64{-7.5, 12.5}, "MetaMorph"}) {
		t.Errorf("stage %v", im.Stage)
	}
	if off, n, err := im.Page(0, 0, 0, 1).Segment(t.Context(), 0); err != nil || off != 20 || n != 12 {
		t.Errorf("the second plane is at %d, %d bytes, %v", off, n, err)
	}
}

// Whatever is wrong with private tags, the pages are read.
func TestBadMetaMorph(t *testing.T) {
	whole := metaMorphStack()
	for k := range whole {
		for _, v := range []byte{0, 0x7f, 0xff} {
			b := bytes.Clone(whole)
			b[k] = v
			if f, err := Open(t.Context(), bytesSource(b), "a.stk"); err == nil && len(f.Images) > 0 && f.Images[0].Stage != nil {
				if s := f.Images[0].Stage.YX; s[0]-s[0] != 0 || s[1]-s[1] != 0 {
					t.Errorf("byte %d of %d: a position of %v", k, v, s)
				}
			}
		}
	}
}

// Positions in descriptions: of planes, of the image, and in MetaMorph's words.
func TestStage(t *testing.T) {
	ome := func(attributes, inside string) string {
		return `<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0">` + inside +
			`<Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" SizeX="2" SizeY="2" SizeZ="1" SizeC="1" SizeT="1"><Channel ID="Channel:0:0" SamplesPerPixel="1"/><TiffData/>` +
			`<Plane TheZ="0" TheC="0" TheT="0"` + attributes + `/></Pixels></Image></OME>`
	}
	for _, c := range []struct{ text, want string }{
		{ome(` PositionX="12.5" PositionY="-3"`, ""), "[-3 12.5] OME-XML"},
		{ome(` PositionX="12.5" PositionY="-3" PositionXUnit="mm" PositionYUnit="nm"`, ""), "[-0.003 12500] OME-XML"},
		{ome(` PositionX="1" PositionY="2" PositionXUnit="reference frame" PositionYUnit="reference frame"`, ""), "[2 1] OME-XML"},
		{ome(` PositionX="1" PositionY="2" PositionXUnit="furlong"`, ""), "none"},
		{ome(` PositionX="1"`, ""), "none"},
		{ome(` PositionX="NaN" PositionY="2"`, ""), "none"},
		{ome("", `<StageLabel Name="a" X="4" Y="5"/>`), "[5 4] OME-XML"},
		{`<MetaData><PlaneInfo><prop id="stage-position-x" type="float" value="7.25"/><prop id="stage-position-y" type="float" value="-8"/></PlaneInfo></MetaData>`, "[-8 7.25] MetaMorph"},
		{`<MetaData><PlaneInfo><prop id="stage-position-x" type="float" value="seven"/><prop id="stage-position-y" type="float" value="-8"/></PlaneInfo></MetaData>`, "none"},
		{`<MetaData><PlaneInfo><prop id="stage-position-x"`, "none"},
		{"a picture", "none"},
	} {
		var b bytesSource
		w := NewWriter(&b, false)
		p := w.AddPage(PageSpec{Description: c.text, Layout: Layout{Width: 2, Height: 2, Depth: 1, Samples: 1, Bits: 8, Type: dtype.Uint8, TileWidth: 2, TileHeight: 2, TileDepth: 1,
			Compression: 1, Predictor: 1, Photometric: MinIsBlack, FillOrder: 1}}, -1)
		if err := w.Put(p, 0, []byte{1, 2, 3, 4}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := Open(t.Context(), b, "a.tif")
		if err != nil {
			t.Fatal(err)
		}
		got := "none"
		if s := f.Images[0].Stage; s != nil {
			got = fmt.Sprint(s.YX, " ", s.From)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s (%v)", c.text, got, c.want, f.Warnings)
		}
	}
}
