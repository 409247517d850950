package virtual

import (
	"encoding/json"
	"fmt"
	"math"

	"strata/pkg/dtype"
)

// Image describes an image for the document of its group.
type Image struct {
	Name     string
	Axes     []ImageAxis
	Factors  [][2]float64   // pixels of level 0, along y and x, that one of each level stands for
	Channels []Channel      // nil: how they are shown is not said
	More     map[string]any // further attributes
}

// ImageAxis describes an axis of an image.
type ImageAxis struct {
	Name, Kind, Unit string  // as OME-Zarr has them; Unit may be ""
	Step             float64 // of level 0 in the unit; 0: unknown, taken for 1
}

// Channel describes how a channel is displayed.
type Channel struct {
	Name, Color string // "RRGGBB"
	Hidden      bool
	Low, High   float64
}

// TimeAxis returns a time axis in seconds.
func TimeAxis(interval float64) ImageAxis { return ImageAxis{"t", "time", "second", interval} }

// ChannelAxis returns the axis of channels and samples.
func ChannelAxis() ImageAxis { return ImageAxis{"c", "channel", "", 1} }

// SpaceAxis returns a space axis in µm.
func SpaceAxis(name string, um float64) ImageAxis { return ImageAxis{name, "space", "micrometer", um} }

// Document returns the zarr.json of the image's group. The last two axes are y and x.
func (im *Image) Document() ([]byte, error) {
	var axes, datasets []any
	var scale []float64
	for _, x := range im.Axes {
		a := map[string]any{"name": x.Name, "type": x.Kind}
		if x.Unit != "" {
			a["unit"] = x.Unit
		}
		step := x.Step
		if step <= 0 {
			step = 1
		}
		axes, scale = append(axes, a), append(scale, step)
	}
	for k, factor := range im.Factors {
		size, shift := make([]float64, len(scale)), make([]float64, len(scale))
		copy(size, scale)
		for i, f := range factor {
			d := len(scale) - 2 + i
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
	if im.Channels != nil {
		var channels []any
		for _, c := range im.Channels {
			entry := map[string]any{"color": c.Color, "active": !c.Hidden, "window": map[string]any{"min": c.Low, "max": c.High, "start": c.Low, "end": c.High}}
			if c.Name != "" {
				entry["label"] = c.Name
			}
			channels = append(channels, entry)
		}
		ome["omero"] = map[string]any{"channels": channels}
	}
	attributes := map[string]any{"ome": ome}
	for name, v := range im.More {
		attributes[name] = v
	}
	return json.Marshal(map[string]any{"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

// colors lists default colours of channels, as microscopists expect them for one to three.
var colors = [...]string{"FFFFFF", "FF0000", "00FF00", "0000FF", "FF00FF", "00FFFF", "FFFF00"}

// Color returns a default colour for channel i of n.
func Color(i, n int) string {
	if n == 1 {
		return colors[0]
	}
	return colors[1+i%(len(colors)-1)]
}

// Sample describes sample i of a pixel in colours: red, green, blue, opacity.
func Sample(i int) Channel {
	i = min(i, 3)
	return Channel{Name: [...]string{"red", "green", "blue", "alpha"}[i], Color: colors[(i+1)%4], Hidden: i == 3}
}

// Range returns the smallest and the largest value of a type of which bits bits are used; ok is false for
// types whose range is no guide for a display.
func Range(t dtype.Type, bits int) (low, high float64, ok bool) {
	if !t.IsInteger() || t.Size() > 2 {
		return 0, 0, false
	}
	high = math.Pow(2, float64(bits)) - 1
	if t == dtype.Int8 || t == dtype.Int16 {
		low = -math.Pow(2, float64(bits-1))
		high = -low - 1
	}
	return low, high, true
}
