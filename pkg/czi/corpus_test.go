package czi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"math"
	"strconv"
	"strings"
	"testing"

	"strata/pkg/czi"
	"strata/pkg/dtype"
	"strata/tests/czicorpus"
	"strata/tests/tiffcorpus"
)

func open(t testing.TB, name string) *czi.File {
	t.Helper()
	f, err := czi.Open(t.Context(), czicorpus.Open(t, name), name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func rectangle(r [4]int) image.Rectangle { return image.Rect(r[0], r[1], r[0]+r[2], r[1]+r[3]) }

// TestCorpusDirectory compares entries, ranges of dimensions and boxes with the manifest.
func TestCorpusDirectory(t *testing.T) {
	names := map[string]string{"raw": "none"}
	for _, c := range czicorpus.Files(t) {
		f := open(t, c.Name)
		if len(f.Warnings) > 0 {
			t.Errorf("%s: warnings %q", c.Name, f.Warnings)
		}
		for _, d := range "XYCZTSMRIHVB" {
			start, end, ok := f.Dimension(byte(d))
			if want, there := c.Dims[string(d)]; ok != there || ok && [2]int{start, end} != want {
				t.Errorf("%s: dimension %c is %d to %d, %v, want %v, %v", c.Name, d, start, end, ok, want, there)
			}
		}
		if c.Level0 != nil && f.Bounds(czi.AllScenes) != rectangle(*c.Level0) {
			t.Errorf("%s: bounds %v, want %v", c.Name, f.Bounds(czi.AllScenes), *c.Level0)
		}
		if c.Dims["S"][1] > 0 && c.Scenes != nil && len(f.Scenes()) != len(c.Scenes) {
			t.Errorf("%s: %d scenes, want %d", c.Name, len(f.Scenes()), len(c.Scenes))
		}
		for s, r := range c.Scenes {
			n, _ := strconv.Atoi(s)
			if got := f.Bounds(n); got != rectangle(r) {
				t.Errorf("%s: bounds of scene %s are %v, want %v", c.Name, s, got, r)
			}
		}
		for ch, name := range c.ChannelTypes {
			n, _ := strconv.Atoi(ch)
			if p, ok := f.PixelType(n); !ok || p.String() != name && name != "???" {
				t.Errorf("%s: channel %s is %s, want %s", c.Name, ch, p, name)
			}
		}
		if f.Len() != len(c.SubBlocks) {
			t.Fatalf("%s: %d sub-blocks, want %d", c.Name, f.Len(), len(c.SubBlocks))
		}
		for i, w := range c.SubBlocks {
			sb := f.SubBlock(i)
			compression := w.Compression
			if names[compression] != "" {
				compression = names[compression]
			}
			got := map[string][3]int{}
			for d, start := range map[string]int{"C": sb.C, "Z": sb.Z, "T": sb.T, "S": sb.S, "M": sb.M, "R": sb.R, "I": sb.I, "H": sb.H, "V": sb.V, "B": sb.B} {
				if sb.Has(d[0]) {
					got[d] = [3]int{start, 1, 1}
				}
			}
			got["X"] = [3]int{sb.Rect.Min.X, sb.Rect.Dx(), sb.StoredWidth}
			got["Y"] = [3]int{sb.Rect.Min.Y, sb.Rect.Dy(), sb.StoredHeight}
			if sb.Pixels.String() != w.PixelType || sb.Compression.String() != compression || sb.Offset != w.Position || sb.Pyramid != w.Pyramid || fmt.Sprint(got) != fmt.Sprint(w.Dims) {
				t.Errorf("%s: sub-block %d is %+v, want %+v", c.Name, i, sb, w)
			}
			s, err := f.Segment(t.Context(), i)
			want := czi.SubBlockSegment{Metadata: w.MetadataOffset, MetadataBytes: w.MetadataSize, Payload: w.DataOffset, PayloadBytes: w.DataSize,
				Attachment: w.AttachmentOffset, AttachmentBytes: w.AttachmentSize}
			if err != nil || s != want {
				t.Errorf("%s: sub-block %d lies at %+v, %v, want %+v", c.Name, i, s, err, want)
			}
			if sb.Level0() {
				n, ok := f.Tile(sb.S, sb.Plane(), sb.M)
				if !ok || n != i {
					t.Errorf("%s: tile of sub-block %d is %d, %v", c.Name, i, n, ok)
				}
			}
		}
	}
}

// TestCorpusPixels reads all sub-blocks, in both ways.
func TestCorpusPixels(t *testing.T) {
	n := 0
	for _, c := range czicorpus.Files(t) {
		f := open(t, c.Name)
		for i, w := range c.SubBlocks {
			sb := f.SubBlock(i)
			got := bytes.Repeat([]byte{0xa5}, sb.Bytes())
			if err := f.ReadSubBlock(t.Context(), i, got); err != nil {
				t.Error(err)
				continue
			}
			n++
			w.Expect.Compare(t, fmt.Sprintf("%s: sub-block %d", c.Name, i), got)
			payload, err := f.ReadPayload(t.Context(), i, nil)
			if err != nil {
				t.Fatal(err)
			}
			again := bytes.Repeat([]byte{0x5a}, len(got))
			if err := f.Decode(t.Context(), i, again, payload); err != nil || !bytes.Equal(got, again) {
				t.Errorf("%s: sub-block %d: other pixels of its payload, %v", c.Name, i, err)
			}
		}
	}
	if n < 90 {
		t.Errorf("only %d sub-blocks were compared", n)
	}
}

// level reports whether a file has a level that is whole at a zoom, and all of whose tiles begin at a pixel of it.
func level(f *czi.File, r czi.Region) bool {
	if r.Zoom == 0 || r.Zoom == 1 {
		return true
	}
	for _, k := range f.Factors(r.Scene) {
		if math.Abs(float64(k)*r.Zoom-1) > 1e-9 {
			continue
		}
		for _, i := range f.Tiles(r.Scene, r.Plane, k, r.Rect) {
			if at := f.SubBlock(i).Rect.Min.Sub(r.Rect.Min); at.X%k != 0 || at.Y%k != 0 {
				return false
			}
		}
		return f.Covers(r.Scene, r.Plane, k, r.Rect)
	}
	return false
}

// TestCorpusComposites reads planes, scenes, regions, and zooms of levels.
func TestCorpusComposites(t *testing.T) {
	compared, shapes := 0, 0
	for _, c := range czicorpus.Files(t) {
		f := open(t, c.Name)
		for _, w := range c.Composites {
			a := w.Args
			r := czi.Region{Plane: f.Plane(a.Plane["C"], a.Plane["Z"], a.Plane["T"]), Scene: czi.AllScenes, Rect: rectangle(a.ROI), Zoom: a.Zoom}
			if a.Scene != nil {
				r.Scene = *a.Scene
			}
			p, ok := f.PixelType(r.Plane.C)
			if !ok {
				t.Fatalf("%s: no channel %d", c.Name, r.Plane.C)
			}
			if a.Background != nil {
				r.Background = background(p, a.Background)
			}
			width, height := r.Size()
			if height != w.Expect.Shape[0] || width != w.Expect.Shape[1] {
				t.Errorf("%s: %s has %d × %d pixels, want %v", c.Name, w.Name, height, width, w.Expect.Shape)
				continue
			}
			for _, r.Workers = range []int{1, 3} {
				got := bytes.Repeat([]byte{0xa5}, width*height*p.Bytes())
				if err := f.ReadRegion(t.Context(), r, got); err != nil {
					t.Errorf("%s: %v", w.Name, err)
					continue
				}
				if !level(f, r) {
					shapes++
					continue
				}
				compared++
				w.Expect.Compare(t, c.Name+": "+w.Name, got)
			}
		}
	}
	if compared < 180 || shapes > 10 {
		t.Errorf("%d composites compared, of %d only the shape", compared, shapes)
	}
}

// background is the pixel of a colour.
func background(p czi.PixelType, color []float64) (b []byte) {
	for i := range p.Samples() {
		switch v := color[len(color)-1-i]; p.Elem() {
		case dtype.Uint8:
			b = append(b, byte(math.Round(v*255)))
		case dtype.Uint16:
			b = binary.LittleEndian.AppendUint16(b, uint16(math.Round(v*65535)))
		case dtype.Float32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		}
	}
	return b
}

// TestCorpusRest reads metadata and attachments.
func TestCorpusRest(t *testing.T) {
	for _, c := range czicorpus.Files(t) {
		f := open(t, c.Name)
		text, err := f.XML(t.Context())
		if err != nil || czicorpus.SHA256(text) != c.XMLSHA256 {
			t.Errorf("%s: other XML, %v", c.Name, err)
		}
		if _, err := f.Metadata(t.Context()); err != nil {
			t.Error(err)
		}
		all, err := f.Attachments(t.Context())
		if err != nil || len(all) != len(c.Attachments) {
			t.Errorf("%s: %d attachments, %v, want %d", c.Name, len(all), err, len(c.Attachments))
			continue
		}
		for i, a := range all {
			b, err := f.ReadAttachment(t.Context(), a)
			if w := c.Attachments[i]; err != nil || a.Name != w.Name || a.Type != w.Type || a.Offset != w.Position || czicorpus.SHA256(b) != w.SHA256 {
				t.Errorf("%s: attachment %+v, %v, want %+v", c.Name, a, err, w)
			}
		}
	}
	f := open(t, "attachments_metadata_deleted.czi")
	if s, ok, err := f.Stage(t.Context(), 0); ok || err != nil {
		t.Errorf("a stage position without y: %v, %v, %v", s, ok, err)
	}
	if s, err := f.Segment(t.Context(), 0); err != nil || s.AttachmentBytes != 123 {
		t.Errorf("%d bytes attached, %v", s.AttachmentBytes, err)
	}
	if m, err := f.Mask(t.Context(), 0); err != nil || m != nil {
		t.Errorf("random bytes are the mask %v, %v", m, err)
	}
	m, err := open(t, "c2z3t2.czi").Metadata(t.Context())
	if err != nil || len(m.Channels) != 2 || m.Channels[0].Name != "DAPI" || m.Channels[1].Name != "GFP λ" || m.VoxelUM != [3]float64{1, .25, .22} {
		t.Errorf("metadata %+v, %v", m, err)
	}
}

// readAll reads what a file offers, up to a bound.
func readAll(ctx context.Context, f *czi.File) (errs []error) {
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	_, err := f.Metadata(ctx)
	note(err)
	all, err := f.Attachments(ctx)
	note(err)
	for _, a := range all[:min(len(all), 8)] {
		_, err := f.ReadAttachment(ctx, a)
		note(err)
	}
	for i := range min(f.Len(), 64) {
		if n := f.SubBlock(i).Bytes(); n <= 1<<20 {
			note(f.ReadSubBlock(ctx, i, make([]byte, n)))
		}
		_, err := f.SubBlockMetadata(ctx, i)
		note(err)
		_, err = f.Mask(ctx, i)
		note(err)
		_, _, err = f.Stage(ctx, i)
		note(err)
	}
	for _, s := range append(f.Scenes(), czi.Scene{Index: czi.AllScenes, Bounds: f.Bounds(czi.AllScenes)}) {
		for _, c := range f.Channels() {
			p, _ := f.PixelType(c)
			r := s.Bounds
			r.Max.X, r.Max.Y = min(r.Max.X, r.Min.X+300), min(r.Max.Y, r.Min.Y+300)
			region := czi.Region{Plane: f.Plane(c, 0, 0), Scene: s.Index, Rect: r}
			note(f.ReadRegion(ctx, region, make([]byte, r.Dx()*r.Dy()*p.Bytes())))
			region.Zoom = 0.5
			w, h := region.Size()
			note(f.ReadRegion(ctx, region, make([]byte, w*h*p.Bytes())))
		}
	}
	return errs
}

// readWholes reads the first channel of all scenes, as far as that is bounded.
func readWholes(ctx context.Context, f *czi.File) error {
	r := czi.Region{Plane: f.Plane(0, 0, 0), Scene: czi.AllScenes, Rect: f.Bounds(czi.AllScenes).Intersect(image.Rect(-1000, -1000, 2000, 2000))}
	p, _ := f.PixelType(0)
	return f.ReadRegion(ctx, r, make([]byte, r.Rect.Dx()*r.Rect.Dy()*p.Bytes()))
}

// TestNegatives reads all that broken files offer, and checks that errors come when they must.
func TestNegatives(t *testing.T) {
	for _, c := range czicorpus.Negatives(t) {
		line := func(err error) {
			if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, c.Name+": ") {
				t.Errorf("%s: %q does not begin with the file's name", c.Name, text)
			}
		}
		f, err := czi.Open(t.Context(), czicorpus.Open(t, c.Name), c.Name)
		if err != nil {
			line(err)
			if !strings.HasPrefix(c.Must, "open fails") {
				t.Errorf("%s (%s) was not opened: %v", c.Name, c.Why, err)
			}
			continue
		}
		if strings.HasPrefix(c.Must, "open fails") {
			t.Errorf("%s (%s): opened", c.Name, c.Why)
		}
		errs := readAll(t.Context(), f)
		if err := f.CheckBounds(czi.AllScenes); err != nil {
			errs = append(errs, err)
		}
		for name, want := range map[string]string{"neg/start_overflow.czi": "are spread over 2147482672 × 86", "neg/size_huge.czi": "stores 40 pixels along X, in the directory 2147483632 × 32"} {
			if c.Name == name && !strings.Contains(errors.Join(errs...).Error(), want) {
				t.Errorf("%s: %v, want %q", c.Name, errs, want)
			}
		}
		for _, err := range errs {
			line(err)
		}
		optional := strings.Contains(c.Must, " or ") || strings.Contains(c.Must, "preferred")
		if wholes := readWholes(t.Context(), f); wholes == nil && strings.Contains(c.Must, "tile fails") && !optional || c.Must == "error" && wholes == nil {
			t.Errorf("%s (%s): a plane with the broken tile was read", c.Name, c.Why)
		}
		if len(errs) == 0 && !optional {
			t.Errorf("%s (%s): nothing failed, must: %s", c.Name, c.Why, c.Must)
		}
		if strings.Contains(c.Must, "pixels") && strings.Contains(c.Must, "readable") && (len(errs) != 1 || f.ReadSubBlock(t.Context(), 0, make([]byte, f.SubBlock(0).Bytes())) != nil) {
			t.Errorf("%s (%s): %d errors", c.Name, c.Why, len(errs))
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, c := range czicorpus.Negatives(f) {
		if b := czicorpus.Bytes(f, c.Name); len(b) < 8<<10 {
			f.Add(b)
		}
	}
	for _, name := range []string{"attachments_metadata_deleted.czi", "zstd1_hilo_g16.czi", "pyramid_single_3x_scenes2.czi", "all_dims_wide_entry.czi", "sizes_1px.czi", "zstd0_bgr24.czi"} {
		f.Add(czicorpus.Bytes(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := czi.Open(t.Context(), tiffcorpus.Memory(b), "f.czi")
		if err != nil {
			return
		}
		for _, err := range readAll(t.Context(), got) {
			if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, "f.czi: ") {
				t.Errorf("%q does not begin with the file's name", text)
			}
		}
	})
}
