package preview

import (
	"image"
	"image/color"
	"image/draw"
	"strconv"

	"strata/pkg/annotate"
	"strata/pkg/dtype"
	"strata/pkg/ngff"
)

// channel is one of several channels shown together, each in its colour.
type channel struct {
	index  int
	name   string
	tint   color.RGBA
	window *[2]float64 // nil: by percentiles
}

// mostTogether is the maximum number of channels that can be told apart in one picture.
const mostTogether = 7

// together returns the channels that are shown in one picture, because the image says in which colours; nil:
// one is shown in the colours of the colour map. The samples of RGB pixels are shown as they are.
func together(im *ngff.Image, o *Options) ([]channel, error) {
	d := im.Axis("c")
	if d < 0 {
		if o.Channel > 0 {
			return nil, badOptions("--channel %d: %s has no channels", o.Channel, im.Group.Location())
		}
		return nil, nil
	}
	n := im.Levels[0].Array.Shape()[d]
	if o.Channel >= n {
		return nil, badOptions("--channel %d: %s has the channels 0 to %d", o.Channel, im.Group.Location(), n-1)
	}
	if o.Channel != Auto || n < 2 || im.Omero == nil || len(im.Omero.Channels) != n {
		return nil, nil
	}
	var list []channel
	for i, c := range im.Omero.Channels {
		rgb, err := strconv.ParseUint(c.Color, 16, 24)
		if err != nil || len(c.Color) != 6 {
			return nil, nil // the metadata are at fault, and have been warned of
		}
		if c.Active {
			list = append(list, channel{index: i, name: c.Label, tint: color.RGBA{uint8(rgb >> 16), uint8(rgb >> 8), uint8(rgb), 255}, window: o.Window})
		}
	}
	if len(list) < 2 || len(list) > mostTogether {
		return nil, nil
	}
	if o.Window == nil && im.DType() == dtype.Uint8 && isRGB(list) {
		for i := range list {
			list[i].window = &[2]float64{0, 255}
		}
	}
	return list, nil
}

// isRGB reports whether channels are red, green and blue.
func isRGB(list []channel) bool {
	return len(list) == 3 && list[0].tint == color.RGBA{255, 0, 0, 255} && list[1].tint == color.RGBA{0, 255, 0, 255} && list[2].tint == color.RGBA{0, 0, 255, 255}
}

// drawChannels writes the channels' names in their colours, from the right.
func (c *canvas) drawChannels(small annotate.Pen, list []channel) {
	right := c.size.X - c.margin
	height := c.layout.bar()
	for i := len(list) - 1; i >= 0; i-- {
		name := list[i].name
		if name == "" {
			name = "channel " + plain(list[i].index)
		}
		width := small.Width(name)
		left := right - width - height*3/2
		if left < c.bar.Box.Max.X+int(c.font) {
			return
		}
		small.Write(c.img, image.Pt(right-width, c.footer+height/2), name, words)
		draw.Draw(c.img, image.Rect(left, c.footer, left+height, c.footer+height), image.NewUniform(list[i].tint), image.Point{}, draw.Src)
		right = left - int(c.font)
	}
}

// paint adds a value between 0 and 1 in the channel's colour to a pixel.
func (h *channel) paint(out []byte, shade float64) {
	shade = min(max(shade, 0), 1)
	for k, v := range [3]uint8{h.tint.R, h.tint.G, h.tint.B} {
		out[k] = uint8(min(255, float64(out[k])+shade*float64(v)+0.5))
	}
}
