package tiff

import (
	"bytes"
	"context"
	"encoding/xml"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/xmltext"
)

// ventana finds the images of a slide by a Ventana scanner (.bif, .tif): pages that their descriptions number are
// levels, the others the thumbnail and the macro picture. The format is described at openslide.org/formats/ventana.
func (f *File) ventana(ctx context.Context) bool {
	scan := f.iScan(ctx)
	if scan == nil {
		return false
	}
	type level struct {
		page *Page
		n    int
		mag  float64
	}
	var levels []level
	var others []*Image
	for _, p := range f.Pages {
		if p.Err != nil {
			continue
		}
		l := level{page: p, n: -1}
		text := strings.TrimSpace(p.Description(ctx))
		for _, word := range strings.Fields(text[:min(len(text), 1<<10)]) {
			key, value, _ := strings.Cut(word, "=")
			switch n, err := strconv.ParseFloat(value, 64); {
			case err != nil:
			case key == "level" && n >= 0 && n < 64:
				l.n = int(n)
			case key == "mag":
				l.mag = positive(n)
			}
		}
		if l.n >= 0 {
			levels = append(levels, l)
			continue
		}
		other := stack("ventana", []*Page{p})
		other.Name = map[string]string{"Label Image": "macro", "Label_Image": "macro", "Thumbnail": "thumbnail", "Probability_Image": "probability"}[text]
		others = append(others, other)
	}
	slices.SortStableFunc(levels, func(a, b level) int { return a.n - b.n })
	if len(levels) == 0 {
		return false
	}
	first := levels[0]
	im := stack("ventana", []*Page{first.page})
	im.Magnification = positive(scan["Magnification"])
	im.VoxelUM[1], im.VoxelUM[2] = positive(scan["ScanRes"]), positive(scan["ScanRes"])
	for _, l := range levels[1:] {
		if above := im.Levels[len(im.Levels)-1].Layout(); l.page.Type == above.Type && l.page.Samples == above.Samples && l.page.Width <= above.Width && l.page.Height <= above.Height {
			im.Levels = append(im.Levels, Level{Pages: []*Page{l.page}, Down: positive(first.mag / l.mag)})
		}
	}
	if n := scan["overlap"]; n > 0 {
		f.warn("the scanner's tiles overlap by up to %.0f pixels, and are laid side by side: there are seams between them", n)
	}
	f.Images = append([]*Image{im}, others...)
	return true
}

// iScan returns the numbers of the iScan element in the XMP of a page, and the largest overlap of tiles; nil if there
// is none.
func (f *File) iScan(ctx context.Context) map[string]float64 {
	var out map[string]float64
	for _, p := range f.Pages[:min(len(f.Pages), 16)] {
		b, err := p.raw(ctx, tagXMP, p.xmp, mostText)
		if err != nil || !bytes.Contains(b, []byte("iScan")) && !bytes.Contains(b, []byte("TileJointInfo")) {
			continue
		}
		for d := xmltext.NewDecoder(bytes.TrimRight(b, "\x00")); ; {
			token, err := d.Token()
			if err != nil { // the end, or what is no XML
				break
			}
			e, ok := token.(xml.StartElement)
			if !ok || e.Name.Local != "iScan" && e.Name.Local != "TileJointInfo" {
				continue
			}
			if out == nil {
				out = map[string]float64{}
			}
			for _, name := range []string{"Magnification", "ScanRes", "OverlapX", "OverlapY"} {
				v, err := strconv.ParseFloat(attribute(e, name), 64)
				switch {
				case err != nil:
				case strings.HasPrefix(name, "Overlap"):
					out["overlap"] = max(out["overlap"], v)
				default:
					out[name] = v
				}
			}
		}
	}
	return out
}
