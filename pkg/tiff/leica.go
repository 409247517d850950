package tiff

import (
	"context"
	"slices"
	"strings"

	"strata/pkg/mem"
	"strata/pkg/xmltext"
)

// scnXML holds what the first page of a slide by a Leica scanner describes: images in nm, each with its levels, planes
// and channels.
type scnXML struct {
	Collection struct {
		SizeX  int64 `xml:"sizeX,attr"`
		SizeY  int64 `xml:"sizeY,attr"`
		Images []struct {
			Name   string `xml:"name,attr"`
			Planes []struct {
				R   int `xml:"r,attr"`
				Z   int `xml:"z,attr"`
				C   int `xml:"c,attr"`
				IFD int `xml:"ifd,attr"`
			} `xml:"pixels>dimension"`
			View struct {
				SizeX   float64 `xml:"sizeX,attr"`
				SizeY   float64 `xml:"sizeY,attr"`
				OffsetX int64   `xml:"offsetX,attr"`
				OffsetY int64   `xml:"offsetY,attr"`
				Spacing float64 `xml:"spacingZ,attr"`
			} `xml:"view"`
			Objective float64 `xml:"scanSettings>objectiveSettings>objective"`
		} `xml:"image"`
	} `xml:"collection"`
}

// mostSparse is the maximum ratio of an image's planes to the planes that are stored.
const mostSparse = 64

// leica finds the images of a slide from a Leica scanner (.scn). The image that is as large as the collection is the
// macro picture. openslide.org/formats/leica describes the format.
func (f *File) leica(ctx context.Context) bool {
	text := f.Pages[0].Description(ctx)
	if !strings.Contains(text[:min(len(text), 1<<12)], "http://www.leica-microsystems.com/scn/2010/") {
		return false
	}
	var doc scnXML
	if err := xmltext.Decode([]byte(text), &doc); err != nil {
		f.warn("Leica's description is left out: %v", err)
		return false
	}
	var macros []*Image
	c := &doc.Collection
	for i := range c.Images {
		x := &c.Images[i]
		im := &Image{Name: x.Name, Kind: "leica", Times: 1, Channels: 1, Depths: 1, Magnification: positive(x.Objective)}
		levels := 0
		fine := len(x.Planes) > 0
		for _, p := range x.Planes {
			fine = fine && p.R >= 0 && p.Z >= 0 && p.C >= 0 && p.IFD >= 0 && max(p.R, p.Z, p.C) < len(f.Pages) && p.IFD < len(f.Pages)
			im.Channels, im.Depths, levels = max(im.Channels, p.C+1), max(im.Depths, p.Z+1), max(levels, p.R+1)
		}
		if !fine || mem.Product(im.Channels, im.Depths, levels) > mostSparse*len(x.Planes) {
			f.warn("Leica's description: image %d is left out: it names pages that the file does not have, or few of its planes", i)
			continue
		}
		im.Levels = make([]Level, levels)
		for k := range im.Levels {
			im.Levels[k].Pages = make([]*Page, im.Channels*im.Depths)
		}
		for _, p := range x.Planes {
			if page := f.Pages[p.IFD]; page.Err == nil {
				if l := im.Levels[p.R].Layout(); l == nil || *l == *page.Layout {
					im.Levels[p.R].Pages[p.C*im.Depths+p.Z] = page
				}
			}
		}
		if k := slices.IndexFunc(im.Levels, func(l Level) bool { return l.Layout() == nil }); k >= 0 {
			im.Levels = im.Levels[:k]
		}
		if len(im.Levels) == 0 {
			continue
		}
		l := im.Levels[0].Layout()
		im.VoxelUM = [3]float64{positive(x.View.Spacing / 1e3), positive(x.View.SizeY / 1e3 / float64(l.Height)), positive(x.View.SizeX / 1e3 / float64(l.Width))}
		if x.View.OffsetX == 0 && x.View.OffsetY == 0 && int64(x.View.SizeX) == c.SizeX && int64(x.View.SizeY) == c.SizeY {
			im.Name = "macro"
			macros = append(macros, im)
			continue
		}
		f.Images = append(f.Images, im)
	}
	f.Images = append(f.Images, macros...)
	return len(f.Images) > 0
}
