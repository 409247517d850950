package tiffstore

import (
	"cmp"
	"context"
	"math"

	"strata/pkg/tiff"
	"strata/pkg/tiff/tilecodec"
	"strata/pkg/zarr/virtual"
)

// imageDocument returns the zarr.json of an image's group: its metadata as OME-Zarr 0.5, and what only TIFF
// has under "tiff".
func (s *Store) imageDocument(ctx context.Context, key string, im *tiff.Image) ([]byte, error) {
	first := im.Levels[0].Layout()
	samples := first.Samples
	colors, err := palette(ctx, im, firstPage(im))
	if err != nil {
		return nil, err
	}
	if colors != nil {
		samples = 3
	}
	d := virtual.Image{Name: im.Name, Axes: imageAxes(im, samples), Channels: channels(im, samples)}
	for k := range im.Levels {
		l := im.Levels[k].Layout()
		down := [2]float64{factor(first.Height, l.Height), factor(first.Width, l.Width)}
		if k := im.Levels[k].Down; k > 0 {
			down = [2]float64{k, k}
		}
		d.Factors = append(d.Factors, down)
	}
	more := map[string]any{"kind": im.Kind, "compression": tilecodec.Name(first.Compression), "photometric": tiff.PhotometricName(first.Photometric)}
	if im.Magnification > 0 {
		more["magnification"] = im.Magnification
	}
	if key == "" && len(s.names) > 0 {
		more["other_images"] = s.names
	}
	d.More = map[string]any{"tiff": more}
	return d.Document()
}

// assumed names the voxel sizes that a file does not state, for which 1 µm is assumed.
func assumed(im *tiff.Image) string {
	deep := im.Depths > 1 || im.Levels[0].Layout().Depth > 1
	switch flat := im.VoxelUM[1] <= 0 && im.VoxelUM[2] <= 0; {
	case flat && deep && im.VoxelUM[0] <= 0:
		return "states no size of voxels: 1 µm is taken for it"
	case flat:
		return "states no size of pixels: 1 µm is taken for it"
	case deep && im.VoxelUM[0] <= 0:
		return "states no distance of planes: 1 µm is taken for it"
	}
	return ""
}

// imageAxes returns an image's axes: those that have more than one entry, and y and x.
func imageAxes(im *tiff.Image, samples int) (axes []virtual.ImageAxis) {
	if im.Times > 1 {
		axes = append(axes, virtual.TimeAxis(im.Interval))
	}
	if im.Channels*samples > 1 {
		axes = append(axes, virtual.ChannelAxis())
	}
	z, y, x := im.VoxelUM[0], im.VoxelUM[1], im.VoxelUM[2]
	if y <= 0 {
		y = x
	}
	if x <= 0 {
		x = y
	}
	if im.Depths > 1 || im.Levels[0].Layout().Depth > 1 {
		axes = append(axes, virtual.SpaceAxis("z", z))
	}
	return append(axes, virtual.SpaceAxis("y", y), virtual.SpaceAxis("x", x))
}

// firstPage returns the first page of level 0 that is stored.
func firstPage(im *tiff.Image) *tiff.Page {
	for _, p := range im.Levels[0].Pages {
		if p != nil {
			return p
		}
	}
	return nil
}

// factor returns the downsampling factor of a level along an axis. It is a whole number if the sizes agree with one up
// to rounding.
func factor(first, size int) float64 {
	f := float64(first) / float64(size)
	if whole := math.Round(f); math.Abs(float64(first)/whole-float64(size)) <= 1 {
		return whole
	}
	return f
}

// channels describes how channels are shown; it returns nil for types whose range is no guide.
func channels(im *tiff.Image, samples int) (out []virtual.Channel) {
	l := im.Levels[0].Layout()
	n := im.Channels * samples
	low, high, ok := virtual.Range(l.Type, l.Bits)
	if n > 64 || !ok {
		return nil
	}
	if l.Photometric == tiff.Palette && samples == 3 {
		high = 255
	}
	rgb := im.Channels == 1 && (l.Photometric == tiff.RGB || l.Photometric == tiff.YCbCr || l.Photometric == tiff.Palette) && n >= 3
	for i := range n {
		c := virtual.Channel{Color: virtual.Color(i, n)}
		switch {
		case rgb:
			c = virtual.Sample(i)
		case im.ChannelInfo != nil:
			info := im.ChannelInfo[i]
			c.Name, c.Color = info.Name, cmp.Or(info.Color, c.Color)
		}
		c.Low, c.High = low, high
		out = append(out, c)
	}
	return out
}
