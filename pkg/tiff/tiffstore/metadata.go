package tiffstore

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tilecodec"
)

// imageDocument is the zarr.json of an image's group: its metadata as OME-Zarr 0.5, and
// what only TIFF has under "tiff".
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
	axes, scale := imageAxes(im, samples)
	var datasets []any
	for k := range im.Levels {
		l := im.Levels[k].Layout()
		fy, fx := factor(first.Height, l.Height), factor(first.Width, l.Width)
		size, shift := make([]float64, len(scale)), make([]float64, len(scale))
		copy(size, scale)
		for d, f := range map[int]float64{len(scale) - 2: fy, len(scale) - 1: fx} {
			size[d] = scale[d] * f
			shift[d] = (size[d] - scale[d]) / 2 // pixels of all levels fill the same box
		}
		transforms := []any{map[string]any{"type": "scale", "scale": size}}
		if k > 0 {
			transforms = append(transforms, map[string]any{"type": "translation", "translation": shift})
		}
		datasets = append(datasets, map[string]any{"path": fmt.Sprint(k), "coordinateTransformations": transforms})
	}
	multiscale := map[string]any{"axes": axes, "datasets": datasets}
	if im.Name != "" {
		multiscale["name"] = im.Name
	}
	ome := map[string]any{"version": "0.5", "multiscales": []any{multiscale}}
	if c := channels(im, samples); c != nil {
		ome["omero"] = map[string]any{"channels": c}
	}
	more := map[string]any{"kind": im.Kind, "compression": tilecodec.Name(first.Compression), "photometric": tiff.PhotometricName(first.Photometric)}
	if im.Magnification > 0 {
		more["magnification"] = im.Magnification
	}
	if key == "" && len(s.names) > 0 {
		more["other_images"] = s.names
	}
	return json.Marshal(map[string]any{"zarr_format": 3, "node_type": "group", "attributes": map[string]any{"ome": ome, "tiff": more}})
}

// assumed says which sizes of a voxel a file does not state; 1 µm stands for them.
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

// imageAxes are an image's axes and what one step along each is: µm or seconds, or 1 where the file does not say.
func imageAxes(im *tiff.Image, samples int) (axes []any, scale []float64) {
	l := im.Levels[0].Layout()
	add := func(name, kind, unit string, step float64) {
		a := map[string]any{"name": name, "type": kind}
		if unit != "" {
			a["unit"] = unit
		}
		if step <= 0 {
			step = 1
		}
		axes, scale = append(axes, a), append(scale, step)
	}
	if im.Times > 1 {
		add("t", "time", "second", im.Interval)
	}
	if im.Channels*samples > 1 {
		add("c", "channel", "", 1)
	}
	z, y, x := im.VoxelUM[0], im.VoxelUM[1], im.VoxelUM[2]
	if y <= 0 {
		y = x
	}
	if x <= 0 {
		x = y
	}
	space := func(name string, step float64) { add(name, "space", "micrometer", step) }
	if im.Depths > 1 || l.Depth > 1 {
		space("z", z)
	}
	space("y", y)
	space("x", x)
	return axes, scale
}

// firstPage is a page of level 0 that is there.
func firstPage(im *tiff.Image) *tiff.Page {
	for _, p := range im.Levels[0].Pages {
		if p != nil {
			return p
		}
	}
	return nil
}

// factor is how many pixels of level 0 one of a level stands for: a whole number, where the
// sizes are those of one up to rounding.
func factor(first, size int) float64 {
	f := float64(first) / float64(size)
	if whole := math.Round(f); math.Abs(float64(first)/whole-float64(size)) <= 1 {
		return whole
	}
	return f
}

// colors are those of channels that have none: as microscopists expect them of one to three.
var colors = [...]string{"FFFFFF", "FF0000", "00FF00", "0000FF", "FF00FF", "00FFFF", "FFFF00"}

// channels says how channels are shown; nil for types whose range says nothing.
func channels(im *tiff.Image, samples int) []any {
	l := im.Levels[0].Layout()
	n := im.Channels * samples
	if n > 64 || !l.Type.IsInteger() || l.Type.Size() > 2 {
		return nil
	}
	low, high := 0.0, math.Pow(2, float64(l.Bits))-1
	if l.Photometric == tiff.Palette && samples == 3 {
		high = 255
	}
	if l.Type == dtype.Int8 || l.Type == dtype.Int16 {
		low = -math.Pow(2, float64(l.Bits-1))
		high = -low - 1
	}
	rgb := im.Channels == 1 && (l.Photometric == tiff.RGB || l.Photometric == tiff.YCbCr || l.Photometric == tiff.Palette) && n >= 3
	var out []any
	for i := range n {
		c := tiff.Channel{Color: colors[0]}
		switch {
		case rgb:
			c = tiff.Channel{Name: [...]string{"red", "green", "blue", "alpha"}[min(i, 3)], Color: colors[(i+1)%4]}
		case n > 1:
			c.Color = colors[1+i%(len(colors)-1)]
		}
		if im.ChannelInfo != nil {
			info := im.ChannelInfo[i]
			if info.Name != "" && !rgb {
				c.Name = info.Name
			}
			if info.Color != "" && !rgb {
				c.Color = info.Color
			}
		}
		entry := map[string]any{"color": c.Color, "active": !rgb || i < 3,
			"window": map[string]any{"min": low, "max": high, "start": low, "end": high}}
		if c.Name != "" {
			entry["label"] = c.Name
		}
		out = append(out, entry)
	}
	return out
}
