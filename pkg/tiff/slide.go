package tiff

import "slices"

// slide finds the images of a slide whose descriptions were emptied, as for anonymity: of a large picture in tiles, the
// pages in tiles that are smaller in the same proportions are its levels, wherever they stand; those in strips are the
// thumbnail, the label and the macro picture, which are told by NewSubfileType as Aperio sets it. It reports false for
// other files.
func (f *File) slide() bool {
	first := slices.IndexFunc(f.Pages, func(p *Page) bool { return p.Err == nil && !p.Reduced })
	if first < 0 || !f.Pages[first].Tiled || len(f.Pages[first].Sub) > 0 {
		return false
	}
	im := stack("pages", f.Pages[first:first+1:first+1])
	var others []*Image
	strips := false
	for i, p := range f.Pages {
		if i == first || p.Err != nil {
			continue
		}
		if p.Tiled && coarser(p, im.Levels[len(im.Levels)-1].Layout()) {
			im.Levels = append(im.Levels, Level{Pages: []*Page{p}})
			continue
		}
		strips = strips || !p.Tiled
		other := stack("pages", []*Page{p})
		other.Name = map[int]string{0: "thumbnail", 1: "label", 9: "macro"}[p.SubfileType]
		others = append(others, other)
	}
	if !strips || len(im.Levels) == 1 {
		return false
	}
	f.Images = append(append(f.Images, im), others...)
	return true
}

// mainFirst moves images that NewSubfileType marks as reduced versions to the end of the list.
func (f *File) mainFirst() {
	reduced := func(im *Image) int {
		if p := firstOf(im); p != nil && p.Reduced {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(f.Images, func(a, b *Image) int { return reduced(a) - reduced(b) })
}

// firstOf returns the first page of level 0 that is there.
func firstOf(im *Image) *Page {
	for _, p := range im.Levels[0].Pages {
		if p != nil {
			return p
		}
	}
	return nil
}
