package tiff

import (
	"context"
	"fmt"
	"math"
)

// Image is an image as users see it: planes along time, channel and depth, at one or several resolutions.
type Image struct {
	Name string // "" where the file has none
	Kind string // origin of the grouping: "ome", "aperio", "leica", "philips", "ventana", "imagej", "metamorph" or "pages"

	Times, Channels, Depths int // planes along each; samples of a pixel are not counted as channels
	Levels                  []Level

	// VoxelUM is the size of a voxel in µm along z, y and x, and Interval the time between planes in seconds;
	// 0: unknown.
	VoxelUM  [3]float64
	Interval float64
	// VoxelFrom names the metadata with the voxel size along y and x ("Micro-Manager", "MetaMorph") if they are not
	// those that Kind names; otherwise "".
	VoxelFrom string
	Stage     *Stage // nil: not recorded

	ChannelInfo   []Channel // of channels and samples, or nil
	Magnification float64   // of the objective; 0: unknown
}

// Channel holds the metadata of a channel.
type Channel struct {
	Name  string
	Color string // "RRGGBB"; "": unknown
}

// Level is one resolution of an image: Times × Channels × Depths pages of the same layout, depth fastest. A
// nil page is missing in the file and reads as 0.
type Level struct {
	Pages []*Page
	Down  float64 // pixels of level 0 that one stands for along each side, where sizes do not tell, as those of whole tiles; 0: they do
}

// Layout returns the layout of the level's pages.
func (l Level) Layout() *Layout {
	for _, p := range l.Pages {
		if p != nil {
			return p.Layout
		}
	}
	return nil
}

// Page returns the page of a plane.
func (im *Image) Page(level, time, channel, depth int) *Page {
	return im.Levels[level].Pages[(time*im.Channels+channel)*im.Depths+depth]
}

// mostPlanes bounds the planes that metadata may claim.
const mostPlanes = 1 << 24

// findImages groups the pages into images.
func (f *File) findImages(ctx context.Context, o *opener) error {
	if _, err := f.Pages[0].text(ctx, tagImageDescription, f.Pages[0].description); err != nil {
		f.Warnings = append(f.Warnings, err.Error()+"; the pages are read without it")
	}
	found, err := f.omeImages(ctx, o)
	if err != nil {
		return err
	}
	if !found && !f.aperio(ctx) && !f.leica(ctx) && !f.philips(ctx) && !f.ventana(ctx) && !f.imageJ(ctx) && !f.metaMorphStack(ctx) {
		if !f.slide() {
			f.plainImages()
		}
		f.mainFirst()
	}
	f.microscope(ctx)
	return nil
}

// warn records a warning about the file's metadata.
func (f *File) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, f.Name+": "+fmt.Sprintf(format, args...))
}

// stack makes an image of pages that lie along depth.
func stack(kind string, pages []*Page) *Image {
	im := &Image{Kind: kind, Times: 1, Channels: 1, Depths: len(pages), Levels: []Level{{Pages: pages}}}
	im.VoxelUM[1], im.VoxelUM[2] = pages[0].YUM, pages[0].XUM
	im.subLevels()
	return im
}

// subLevels adds the levels that the sub-IFDs of all pages have.
func (im *Image) subLevels() {
	first := im.Levels[0].Pages
	for k := 0; ; k++ {
		level := make([]*Page, len(first))
		var last *Layout
		for i, p := range first {
			if p == nil {
				continue
			}
			if k >= len(p.Sub) {
				return
			}
			s := p.Sub[k]
			if !coarser(s, im.Levels[len(im.Levels)-1].Layout()) || last != nil && *s.Layout != *last {
				return
			}
			level[i], last = s, s.Layout
		}
		if last == nil {
			return
		}
		im.Levels = append(im.Levels, Level{Pages: level})
	}
}

// coarser reports whether a page can be the next pyramid level below a layout: it must have the same kind of pixels,
// fewer pixels, and the same proportions up to rounding.
func coarser(p *Page, above *Layout) bool {
	if p.Err != nil || p.Type != above.Type || p.Samples != above.Samples || p.Width > above.Width || p.Height > above.Height ||
		p.Width == above.Width && p.Height == above.Height {
		return false
	}
	fx, fy := float64(above.Width)/float64(p.Width), float64(above.Height)/float64(p.Height)
	// one pixel more or less on both sides
	slack := 1.01 * (1 + 1/float64(p.Width) + 1/float64(p.Height))
	return max(fx, fy) <= min(fx, fy)*slack
}

// plainImages groups pages without metadata into images: similar neighbours form a stack, and smaller ones
// behind a single one its pyramid.
func (f *File) plainImages() {
	var im *Image
	for i := 0; i < len(f.Pages); {
		p := f.Pages[i]
		if p.Err != nil {
			i++
			im = nil
			continue
		}
		if im != nil && im.Depths == 1 && len(p.Sub) == 0 && coarser(p, im.Levels[len(im.Levels)-1].Layout()) {
			im.Levels = append(im.Levels, Level{Pages: []*Page{p}})
			i++
			continue
		}
		n := i + 1
		for n < len(f.Pages) && f.Pages[n].Err == nil && f.Pages[n].Layout == p.Layout {
			n++
		}
		im = stack("pages", f.Pages[i:n:n])
		f.Images = append(f.Images, im)
		i = n
	}
}

// positive returns x if it is a positive finite size, and otherwise 0.
func positive(x float64) float64 {
	if x > 0 && !math.IsInf(x, 0) {
		return x
	}
	return 0
}
