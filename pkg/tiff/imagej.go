package tiff

import (
	"context"
	"strconv"
	"strings"
)

// alike returns the number of leading pages with the same layout as the first one.
func (f *File) alike(pages []*Page) int {
	for i, p := range pages {
		if p.Err != nil || p.Layout != pages[0].Layout {
			return i
		}
	}
	return len(pages)
}

// imageJ finds the stack or hyperstack that ImageJ saved. The first page's description gives the number of
// planes along channel, depth and time, in that order. A stack of more than 4 GiB has one directory, and the
// other planes follow the first.
func (f *File) imageJ(ctx context.Context) bool {
	first := f.Pages[0]
	text := first.Description(ctx)
	if !strings.HasPrefix(text, "ImageJ=") || first.Err != nil {
		return false
	}
	value := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		value[k] = v
	}
	count := func(key string) int {
		n, err := strconv.Atoi(value[key])
		if err != nil || n < 1 || n > mostPlanes {
			return 1
		}
		return n
	}
	im := &Image{Kind: "imagej", Channels: count("channels"), Depths: count("slices"), Times: count("frames")}
	planes := im.Channels * im.Depths
	if planes > mostPlanes || planes*im.Times > mostPlanes {
		return false
	}
	planes *= im.Times
	if images := count("images"); planes == 1 && images > 1 { // of programs that write no more
		im.Depths, planes = images, images
	}
	pages := f.Pages
	if len(pages) == 1 && planes > 1 {
		pages = f.behind(ctx, first, planes)
	}
	if len(pages) < planes {
		f.warn("ImageJ's description tells of %d planes, the file has %d pages", planes, len(pages))
		return false
	}
	if n := f.alike(pages); n > planes && planes > 0 {
		f.warn("ImageJ's description tells of %d planes, the file has %d: all are read", planes, n)
		if im.Depths = n / (im.Channels * im.Times); im.Depths*im.Channels*im.Times != n {
			im.Channels, im.Times, im.Depths = 1, 1, n
		}
		planes = n
	}
	for _, p := range pages[:planes] {
		if p.Err != nil || p.Layout != first.Layout {
			return false
		}
	}
	level := make([]*Page, planes)
	for i := range level { // the file has channels fastest
		c, z, t := i%im.Channels, i/im.Channels%im.Depths, i/im.Channels/im.Depths
		level[(t*im.Channels+c)*im.Depths+z] = pages[i]
	}
	im.Levels = []Level{{Pages: level}}
	im.VoxelUM = f.imageJVoxel(ctx, first, value)
	im.Interval, _ = strconv.ParseFloat(value["finterval"], 64)
	im.Interval = positive(im.Interval)
	f.Images = append(f.Images, im)
	return true
}

// behind makes pages for planes that have no directory and whose samples follow those of the first page.
func (f *File) behind(ctx context.Context, first *Page, planes int) []*Page {
	pages := []*Page{first}
	start, _, err := first.Segment(ctx, 0)
	each := first.Packed(first.Height)
	if err != nil || first.Tiled || first.Compression != compressionNone || first.Separate || first.segments > 1 ||
		each > (f.blocks.src.Size()-start)/int64(planes) {
		return pages
	}
	for i := 1; i < planes; i++ {
		p := *first
		p.shift = int64(i) * each
		pages = append(pages, &p)
	}
	return pages
}

// imageJVoxel returns the size of a voxel: pixels per unit in the resolution tags, the unit and the distance
// of slices in the description.
func (f *File) imageJVoxel(ctx context.Context, p *Page, value map[string]string) (um [3]float64) {
	unit := value["unit"]
	if unit == "" {
		return [3]float64{0, p.YUM, p.XUM}
	}
	per := micrometres(strings.ReplaceAll(unit, `\u00B5`, "µ"))
	d, err := f.readDirectory(ctx, p.offset, p.Name())
	if err != nil {
		return um
	}
	spacing, _ := strconv.ParseFloat(value["spacing"], 64)
	um[0] = positive(per * spacing)
	um[1], um[2] = positive(per/d.rational(ctx, tagYResolution)), positive(per/d.rational(ctx, tagXResolution))
	return um
}
