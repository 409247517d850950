package tilefiles

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"strata/pkg/dtype"
	"strata/pkg/tiff"
)

// HeaderOfTIFF returns the header of the first image of a TIFF file. An image of which one plane is in the file, as of
// OME-TIFF in one file per plane, has one plane.
func HeaderOfTIFF(ctx context.Context, f *tiff.File, axes string) (*Header, error) {
	if len(f.Images) == 0 {
		for _, p := range f.Pages {
			if p.Err != nil {
				return nil, p.Err
			}
		}
		return nil, fmt.Errorf("%s: has no image", f.Name)
	}
	im := f.Images[0]
	l := im.Levels[0].Layout()
	h := &Header{Path: f.Name, Format: TIFF, Type: l.Type, Times: im.Times, Channels: im.Channels, Planes: im.Depths, Height: l.Height, Width: l.Width, Samples: l.Samples}
	there := 0
	for _, p := range im.Levels[0].Pages {
		if p == nil {
			continue
		}
		there++
		if err := whole(ctx, p); err != nil {
			return nil, err
		}
	}
	switch all := len(im.Levels[0].Pages); {
	case there == all:
	case there == 1:
		h.Times, h.Channels, h.Planes = 1, 1, 1
	default:
		return nil, fmt.Errorf("%s: has %d of the %d planes that its metadata tell of", f.Name, there, all)
	}
	if l.Depth > 1 {
		h.Planes *= l.Depth
	}
	if l.Photometric == tiff.Palette && l.Samples == 1 && im.Channels == 1 && l.Depth == 1 && l.Bits <= 16 && l.Type.IsInteger() {
		h.Samples, h.Type = 3, dtype.Uint8
	}
	h.Channels *= h.Samples
	for _, c := range im.ChannelInfo {
		if len(im.ChannelInfo) == h.Channels {
			h.Names = append(h.Names, c.Name)
		}
	}
	if err := h.axes(axes); err != nil {
		return nil, err
	}
	h.measure(im)
	return h, h.check()
}

// axes interprets the pages of a stack as the option says: planes, channels, or one page alone.
func (h *Header) axes(axes string) error {
	name := filepath.Base(h.Path)
	switch {
	case axes == "yx" && h.Times*h.Planes*h.Channels != h.Samples:
		return badOption("axes", "yx: %s has %d pages: want one", name, h.Times*h.Planes*h.Channels/h.Samples)
	case axes == "cyx" && h.Planes > 1 && h.Channels > 1, axes == "zyx" && h.Planes > 1 && h.Channels > h.Samples:
		return badOption("axes", "%s: %s has %d planes of %d channels", axes, name, h.Planes, h.Channels)
	case axes == "cyx" && h.Planes > 1:
		h.Channels, h.Planes = h.Planes, 1
	case axes == "zyx" && h.Channels > h.Samples && h.Samples == 1:
		h.Channels, h.Planes = 1, h.Channels
	}
	return nil
}

// mostSegments bounds the tiles and strips of a page whose places are looked at.
const mostSegments = 1 << 14

// whole returns an error if a page does not lie in its file.
func whole(ctx context.Context, p *tiff.Page) error {
	if p.Err != nil {
		return p.Err
	}
	g := p.Grid()
	n := int64(g[0]) * int64(g[1]) * int64(g[2]) * int64(g[3])
	for i := range min(n, mostSegments) {
		if _, _, err := p.Segment(ctx, i); err != nil {
			return err
		}
	}
	_, _, err := p.Segment(ctx, n-1)
	return err
}

// measure takes the size of voxels and the position of the stage from an image's metadata.
func (h *Header) measure(im *tiff.Image) {
	h.Voxel = im.VoxelUM
	if h.Voxel != [3]float64{} {
		h.VoxelFrom = cmp.Or(im.VoxelFrom, map[string]string{"ome": "OME-XML", "imagej": "ImageJ"}[im.Kind], "TIFF resolution")
	}
	if im.Stage != nil {
		h.Stage, h.StageFrom = &im.Stage.YX, im.Stage.From
	}
}
