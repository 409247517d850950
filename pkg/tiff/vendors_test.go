package tiff_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/tiff"
	"strata/tests/tiffcorpus"
)

// page is one of a slide: size, text, and whether it is in tiles.
type page struct {
	width, height int
	text          string
	strips        bool
}

// slideOf makes a file of pages without pixels.
func slideOf(t *testing.T, software string, pages ...page) *tiff.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "slide.tif")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := tiff.NewWriter(out, false)
	for i, p := range pages {
		s := tiff.PageSpec{Layout: tiff.Layout{Width: p.width, Height: p.height, Depth: 1, Samples: 3, Bits: 8, Type: dtype.Uint8, Tiled: !p.strips, TileWidth: 16, TileHeight: 16, TileDepth: 1,
			Compression: 1, Photometric: tiff.RGB}, Description: p.text}
		if p.strips {
			s.TileWidth, s.TileHeight = p.width, p.height
		}
		if i == 0 {
			s.Software = software
		}
		w.AddPage(s, -1)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(software, "<") { // XMP in place of the program's name
		b = bytes.Replace(b, []byte{0x31, 0x01, 2, 0}, []byte{0xbc, 0x02, 1, 0}, 1)
	}
	f, err := tiff.Open(t.Context(), tiffcorpus.Memory(b), "slide.tif")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// told sums up what a file's images are.
func told(f *tiff.File) string {
	var out []string
	for _, im := range f.Images {
		s := fmt.Sprintf("%s %q ×%g %.4g", im.Kind, im.Name, im.Magnification, im.VoxelUM[1:])
		for _, l := range im.Levels {
			s += fmt.Sprintf(" %d×%d/%g", l.Layout().Width, l.Layout().Height, l.Down)
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

// TestVendors: lab/interop has whole files, which OpenSlide reads as well; here is what is unusual or broken.
func TestVendors(t *testing.T) {
	const scn = `<scn xmlns="http://www.leica-microsystems.com/scn/2010/03/10"><collection sizeX="1000" sizeY="2000">%s</collection></scn>`
	region := func(view, planes string) string {
		return `<image name="r"><pixels>` + planes + `</pixels><view ` + view + `/><scanSettings><objectiveSettings><objective>10</objective></objectiveSettings></scanSettings></image>`
	}
	const part, all = `sizeX="64000" sizeY="32000" offsetX="5" offsetY="0"`, `sizeX="1000" sizeY="2000" offsetX="0" offsetY="0"`
	spaced := func(number int, y, x float64) string {
		return fmt.Sprintf(`<DataObject ObjectType="PixelDataRepresentation"><Attribute Name="DICOM_PIXEL_SPACING">"%g" "%g"</Attribute><Attribute Name="PIIM_PIXEL_DATA_REPRESENTATION_NUMBER">%d</Attribute></DataObject>`, y, x, number)
	}
	const philips = `<DataObject ObjectType="DPUfsImport">`
	scanned := func(kind, data string) string {
		return fmt.Sprintf(`<DataObject ObjectType="DPScannedImage"><Attribute Name="PIM_DP_IMAGE_TYPE">%s</Attribute><Attribute Name="PIM_DP_IMAGE_DATA">%s</Attribute></DataObject>`, kind, data)
	}
	photo := func(w, h int) string {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, image.NewRGBA(image.Rect(0, 0, w, h)), nil); err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(b.Bytes())
	}
	for _, c := range []struct {
		name, software, want, warning string
		pages                         []page
	}{
		{"focal planes and channels", "", `leica "r" ×10 [1 1] 64×32/0`, "", []page{{64, 32, fmt.Sprintf(scn, region(part, `<dimension r="0" z="0" c="0" ifd="0"/><dimension r="0" z="1" c="1" ifd="1"/>`)), false}, {64, 32, "", false}}},
		{"only the whole", "", `leica "macro" ×10 [0.0625 0.01562] 64×32/0`, "", []page{{64, 32, fmt.Sprintf(scn, region(all, `<dimension r="0" ifd="0"/>`)), false}}},
		{"a page that is not there", "", `pages "" ×0 [0 0] 64×32/0`, "image 0 is left out", []page{{64, 32, fmt.Sprintf(scn, region(part, `<dimension r="0" ifd="7"/>`)), false}}},
		{"too many channels", "", `pages "" ×0 [0 0] 64×32/0`, "image 0 is left out", []page{{64, 32, fmt.Sprintf(scn, region(part, `<dimension r="0" c="2000000000" ifd="0"/>`)), false}}},
		{"no XML", "", `pages "" ×0 [0 0] 64×32/0`, "Leica's description is left out: ", []page{{64, 32, `<scn xmlns="http://www.leica-microsystems.com/scn/2010/03/10">`, false}}},
		{"levels by number, of whole tiles", "Philips DP v1.0", `philips "" ×0 [0.5 0.25] 64×64/0 48×32/2 16×16/4; philips "label" ×0 [0 0] 20×20/0`, "",
			[]page{{64, 64, philips + spaced(2, .002, .001) + spaced(0, .0005, .00025) + spaced(1, .001, .0005) + "</DataObject>", false}, {48, 32, "", false}, {16, 16, "", false}, {20, 20, "Label", true}}},
		{"a picture in the description", "Philips DP v1.0", `philips "" ×0 [0 0] 64×64/0; philips "label" ×0 [0 0] 24×16/0`, "the macro picture in Philips' description is left out: ",
			[]page{{64, 64, philips + scanned("LABELIMAGE", photo(24, 16)) + scanned("MACROIMAGE", "AAAA") + scanned("WSI", "") + "</DataObject>", false}}},
		{"a picture in a page and in the description", "Philips DP v1.0", `philips "" ×0 [0 0] 64×64/0; philips "label" ×0 [0 0] 20×20/0`, "",
			[]page{{64, 64, philips + scanned("LABELIMAGE", photo(24, 16)) + "</DataObject>", false}, {20, 20, "Label", true}}},
		{"no spacings", "Philips DP v1.0", `philips "" ×0 [0 0] 64×64/0 32×32/0`, "", []page{{64, 64, philips + "</DataObject>", false}, {32, 32, "", false}}},
		{"cut off", "Philips DP v1.0", `pages "" ×0 [0 0] 64×64/0`, "Philips' description is left out: ", []page{{64, 64, philips, false}}},
		{"Ventana", `<EncodeInfo><iScan Magnification="40" ScanRes="0.25"/></EncodeInfo>`, `ventana "" ×40 [0.25 0.25] 64×64/0 32×32/2 16×16/4; ventana "macro" ×0 [0 0] 20×20/0; ventana "probability" ×0 [0 0] 16×16/0`, "",
			[]page{{20, 20, "Label Image", true}, {64, 64, "level=0 mag=40 quality=90", false}, {16, 16, "level=2 mag=10", false}, {32, 32, "level=1 mag=20", false}, {16, 16, "Probability_Image", true}}},
		{"Ventana, tiles that overlap", `<EncodeInfo><iScan ScanRes="0.25"/><TileJointInfo OverlapX="7" OverlapY="-3"/></EncodeInfo>`, `ventana "" ×0 [0.25 0.25] 64×64/0`, "overlap by up to 7 pixels",
			[]page{{64, 64, "level=0 mag=40", false}}},
		{"Ventana without levels", `<iScan ScanRes="0.25"/>`, `pages "" ×0 [0 0] 64×64/0`, "", []page{{64, 64, "level=x", false}}},
		{"Ventana, no XML", `<iScan ScanRes="0.25`, `pages "" ×0 [0 0] 64×64/0`, "", []page{{64, 64, "level=0", false}}},
		{"of another program", "other", `pages "" ×0 [0 0] 64×64/0`, "", []page{{64, 64, philips + "</DataObject>", false}}},
	} {
		f := slideOf(t, c.software, c.pages...)
		if got := told(f); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if warned := strings.Join(f.Warnings, "; "); !strings.Contains(warned, c.warning) || c.warning == "" && warned != "" {
			t.Errorf("%s: warnings %q, want %q", c.name, warned, c.warning)
		}
	}
}
