package tiff

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"strata/pkg/xmltext"
)

// philips finds the images of a slide that Philips' software exported as TIFF: pages in tiles are levels, whose sizes
// are those of whole tiles, so that only the description says what a pixel is; pages in strips are the label and the
// macro picture, which may be in the description instead. The format is described at openslide.org/formats/philips.
func (f *File) philips(ctx context.Context) bool {
	first := f.Pages[0]
	if first.Err != nil || !first.Tiled || !strings.HasPrefix(first.Software(ctx), "Philips") {
		return false
	}
	text := first.Description(ctx)
	if !strings.Contains(text[:min(len(text), 1<<12)], "DPUfsImport") {
		return false
	}
	spacings, held, err := readPhilips(text)
	if err != nil {
		f.warn("Philips' description is left out: %v", err)
		return false
	}
	im := stack("philips", f.Pages[:1:1])
	im.VoxelUM[1], im.VoxelUM[2] = 1e3*spacings[0][0], 1e3*spacings[0][1]
	var others []*Image
	for _, p := range f.Pages[1:] {
		if p.Err != nil {
			continue
		}
		if above := im.Levels[len(im.Levels)-1].Layout(); p.Tiled && p.Type == above.Type && p.Samples == above.Samples && p.Width <= above.Width && p.Height <= above.Height {
			im.Levels = append(im.Levels, Level{Pages: []*Page{p}, Down: down(spacings, len(im.Levels))})
			continue
		}
		other := stack("philips", []*Page{p})
		switch text := p.Description(ctx); {
		case strings.HasPrefix(text, "Label"):
			other.Name = "label"
		case strings.HasPrefix(text, "Macro"):
			other.Name = "macro"
		}
		others = append(others, other)
	}
	f.Images = append(append([]*Image{im}, others...), f.philipsPictures(ctx, held, others)...)
	return true
}

// philipsPictures returns the label and the macro picture that a description holds, unless a page has them.
func (f *File) philipsPictures(ctx context.Context, held map[string]string, others []*Image) (out []*Image) {
	for _, kind := range slices.Sorted(maps.Keys(held)) {
		name := map[string]string{"LABELIMAGE": "label", "MACROIMAGE": "macro"}[kind]
		if name == "" || slices.ContainsFunc(others, func(im *Image) bool { return im.Name == name }) {
			continue
		}
		im, err := f.embedded(ctx, "philips", name, held[kind])
		if err != nil {
			f.warn("the %s picture in Philips' description is left out: %v", name, err)
			continue
		}
		out = append(out, im)
	}
	return out
}

// down returns the number of pixels of level 0, along an axis, that one pixel of a level covers; 0 if unknown.
func down(spacings map[int][2]float64, level int) float64 {
	k := positive((spacings[level][0] + spacings[level][1]) / (spacings[0][0] + spacings[0][1]))
	if whole := math.Round(k); whole > 0 && math.Abs(k-whole) < 0.01*whole {
		return whole
	}
	return k
}

// readPhilips reads a description: the distances of pixels along y and x by level, in mm, and the pictures that it
// holds, as text, by kind.
func readPhilips(text string) (spacings map[int][2]float64, held map[string]string, err error) {
	d := xmltext.NewDecoder([]byte(text))
	out, held := map[int][2]float64{}, map[string]string{}
	level, inLevel := 0, 0 // elements that are open in a PixelDataRepresentation
	var name, kind, data string
	var spacing, whole [2]float64
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			name = attribute(t, "Name")
			if attribute(t, "ObjectType") == "DPScannedImage" {
				kind, data = "", ""
			}
			if inLevel > 0 || attribute(t, "ObjectType") == "PixelDataRepresentation" {
				inLevel++
			}
		case xml.CharData:
			if name == "PIM_DP_IMAGE_DATA" {
				data = strings.TrimSpace(string(t))
				continue
			}
			s := strings.TrimSpace(string(t[:min(len(t), 1<<10)]))
			switch {
			case name == "PIM_DP_IMAGE_TYPE" && s != "":
				kind = s
			case name == "DICOM_PIXEL_SPACING" && s != "":
				_, _ = fmt.Sscanf(strings.NewReplacer(`"`, "", `\`, " ").Replace(s), "%g %g", &spacing[0], &spacing[1]) // what is no number stays 0
				if inLevel == 0 && whole == [2]float64{} {
					whole = spacing
				}
			case name == "PIIM_PIXEL_DATA_REPRESENTATION_NUMBER" && s != "":
				_, _ = fmt.Sscanf(strings.Trim(s, `"`), "%d", &level)
			}
		case xml.EndElement:
			if name = ""; kind != "" && data != "" {
				held[kind] = data
				kind, data = "", ""
			}
			if inLevel > 0 {
				if inLevel--; inLevel == 0 {
					out[level] = [2]float64{positive(spacing[0]), positive(spacing[1])}
					level, spacing = level+1, [2]float64{}
				}
			}
		}
	}
	if out[0] == [2]float64{} {
		out[0] = [2]float64{positive(whole[0]), positive(whole[1])}
	}
	return out, held, nil
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
