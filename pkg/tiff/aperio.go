package tiff

import (
	"context"
	"strconv"
	"strings"
)

// aperio finds the images of a slide by an Aperio scanner: the first page and the later ones in tiles are its levels,
// the one in strips behind it the thumbnail, and pages that their descriptions call so the label and the macro picture.
func (f *File) aperio(ctx context.Context) bool {
	text := f.Pages[0].Description(ctx)
	if !strings.HasPrefix(text, "Aperio") || f.Pages[0].Err != nil {
		return false
	}
	im := stack("aperio", f.Pages[:1:1])
	for _, part := range strings.Split(text, "|")[1:] {
		key, value, _ := strings.Cut(part, "=")
		x, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			continue
		}
		switch strings.TrimSpace(key) {
		case "AppMag":
			im.Magnification = positive(x)
		case "MPP":
			im.VoxelUM[1], im.VoxelUM[2] = positive(x), positive(x)
		}
	}
	f.Images = append(f.Images, im)
	for i, p := range f.Pages[1:] {
		if p.Err != nil {
			continue
		}
		if p.Tiled && coarser(p, im.Levels[len(im.Levels)-1].Layout()) {
			im.Levels = append(im.Levels, Level{Pages: []*Page{p}})
			continue
		}
		other := stack("aperio", []*Page{p})
		other.Name = "thumbnail"
		if lines := strings.ToLower(p.Description(ctx)); i > 0 || p.Reduced {
			switch {
			case strings.Contains(lines, "label") || p.SubfileType == 1:
				other.Name = "label"
			case strings.Contains(lines, "macro") || p.SubfileType == 9:
				other.Name = "macro"
			}
		}
		f.Images = append(f.Images, other)
	}
	return true
}
