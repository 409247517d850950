package preview

import (
	"context"
	"image"
	"image/color"
	"image/draw"
	"iter"
	"math"
	"strings"
	"sync/atomic"

	"strata/pkg/annotate"
	"strata/pkg/colormap"
	"strata/pkg/work"
)

// Colours besides those of data: a dark background, on which both dim and bright tissue stand out, and one
// hue per axis.
var (
	ground  = color.RGBA{0x15, 0x17, 0x1c, 255}
	noData  = color.RGBA{0x2b, 0x2f, 0x38, 255}
	words   = color.RGBA{0xf1, 0xf3, 0xf5, 255}
	quiet   = color.RGBA{0xa9, 0xb1, 0xbd, 255}
	axisHue = [3]color.RGBA{{0xff, 0xb4, 0x54, 255}, {0x7f, 0xd9, 0x62, 255}, {0x59, 0xc2, 0xff, 255}}
)

// canvas is a picture in the making.
type canvas struct {
	*layout
	v       *volume
	o       *Options
	colours *colormap.Map
	window  [2]float64
	img     *image.RGBA
	empty   bool                     // some pixels have no number
	dark    map[image.Rectangle]bool // panels to which colours are added
	bar     annotate.ScaleBar
}

func newCanvas(lay *layout, v *volume, o *Options, colours *colormap.Map) *canvas {
	img := image.NewRGBA(image.Rectangle{Max: lay.size})
	draw.Draw(img, img.Rect, image.NewUniform(ground), image.Point{}, draw.Src)
	return &canvas{layout: lay, v: v, o: o, colours: colours, img: img, dark: map[image.Rectangle]bool{}}
}

// draw draws the planes into the panels or, for one of several channels, adds them in the channel's colour.
func (c *canvas) draw(ctx context.Context, planes []*plane, of *channel, workers int) error {
	for i, p := range planes {
		missing, err := c.panel(ctx, p, c.panels[i], of, workers)
		if err != nil {
			return err
		}
		c.empty = c.empty || missing
	}
	return nil
}

// words draws the captions, the key and the scale bar around the panels.
func (c *canvas) words(planes []*plane, list []channel) error {
	if !c.labels && !c.scaleBar {
		return nil
	}
	small, err := annotate.NewPen(annotate.Regular, c.font)
	if err != nil {
		return err
	}
	if c.scaleBar {
		c.drawScaleBar(small)
	}
	if !c.labels {
		return nil
	}
	strong, err := annotate.NewPen(annotate.Bold, c.font)
	if err != nil {
		return err
	}
	large, err := annotate.NewPen(annotate.Bold, math.Round(c.font*1.35))
	if err != nil {
		return err
	}
	c.drawTitle(large, small)
	if len(planes) > 1 {
		for i, p := range planes {
			c.drawCaption(strong, small, p, c.panels[i])
			c.drawCuts(p, planes, c.panels[i])
		}
	}
	switch {
	case list == nil:
		c.drawColours(small, c.empty)
	case !isRGB(list): // a picture in its own colours explains itself
		c.drawChannels(small, list)
	}
	return nil
}

// panel resamples a plane to its pixels and colours them; missing reports whether some are NaN. It
// interpolates between larger voxels and averages smaller ones.
func (c *canvas) panel(ctx context.Context, p *plane, at image.Rectangle, of *channel, workers int) (missing bool, err error) {
	down := newTaps(c.v.Shape[p.rows], p.step[0], at.Dy())
	right := newTaps(c.v.Shape[p.cols], p.step[1], at.Dx())
	if of != nil && !c.dark[at] { // colours are added to black
		draw.Draw(c.img, at, image.NewUniform(color.Black), image.Point{}, draw.Src)
		c.dark[at] = true
	}
	var holes atomic.Bool
	err = work.Share(ctx, workers, at.Dy(), func(_ context.Context, _ int, rows iter.Seq[int]) error {
		sum, weight := make([]float64, p.n[1]), make([]float64, p.n[1])
		for row := range rows {
			clear(sum)
			clear(weight)
			for k, w := range down[row].weights {
				src := p.values[(down[row].first+k)*p.n[1]:][:p.n[1]]
				for j, f := range src {
					if f == f {
						sum[j] += w * c.bounded(f)
						weight[j] += w
					}
				}
			}
			out := c.img.Pix[c.img.PixOffset(at.Min.X, at.Min.Y+row):]
			for x, t := range right {
				s, w := 0.0, 0.0
				for k, u := range t.weights {
					s += u * sum[t.first+k]
					w += u * weight[t.first+k]
				}
				colour := noData
				if of != nil {
					if w >= 0.5 {
						of.paint(out[4*x:], c.shade(s/w))
					}
					continue
				}
				if w >= 0.5 {
					colour = c.colours.At(c.shade(s / w))
				} else {
					holes.Store(true)
				}
				out[4*x], out[4*x+1], out[4*x+2], out[4*x+3] = colour.R, colour.G, colour.B, colour.A
			}
		}
		return nil
	})
	return holes.Load(), err
}

// bounded returns a value with the window's ends in place of infinities.
func (c *canvas) bounded(f float32) float64 {
	v := float64(f)
	switch {
	case math.IsInf(v, 1):
		return max(c.window[0], c.window[1])
	case math.IsInf(v, -1):
		return min(c.window[0], c.window[1])
	}
	return v
}

// shade returns the position of a value in the window: 0 at its lower limit, 1 at its upper limit. In a window of zero
// width it is 0 or 1.
func (c *canvas) shade(v float64) float64 {
	lo, hi := c.window[0], c.window[1]
	if hi > lo {
		return (v - lo) / (hi - lo)
	}
	if v > lo {
		return 1
	}
	return 0
}

// taps holds the blocks that a pixel is made of along one axis, and their weights, which sum to 1.
type taps struct {
	first   int
	weights []float64
}

// newTaps resamples n voxels, in blocks of step (the last may be shorter), to
// that many pixels: by the overlap of voxel and pixel where pixels are larger, linearly
// between centres where they are smaller.
func newTaps(n, step, pixels int) []taps {
	blocks := 1 + (n-1)/step
	out := make([]taps, pixels)
	scale := float64(n) / float64(pixels) / float64(step) // blocks per pixel
	for i := range out {
		if scale >= 1 {
			lo, hi := float64(i)*scale, min(float64(i+1)*scale, float64(blocks))
			first := min(int(lo), blocks-1)
			t := taps{first: first}
			total := 0.0
			for k := first; k < blocks && (float64(k) < hi-1e-9 || k == first); k++ {
				w := min(hi, float64(k+1)) - max(lo, float64(k))
				if w = max(w, 0); k == first && w == 0 {
					w = 1e-12
				}
				t.weights = append(t.weights, w)
				total += w
			}
			for k := range t.weights {
				t.weights[k] /= total
			}
			out[i] = t
			continue
		}
		pos := (float64(i)+0.5)*scale - 0.5
		pos = min(max(pos, 0), float64(blocks-1))
		first := int(pos)
		if f := pos - float64(first); f > 1e-9 && first+1 < blocks {
			out[i] = taps{first, []float64{1 - f, f}}
		} else {
			out[i] = taps{first, []float64{1}}
		}
	}
	return out
}

// drawTitle writes the name and, below it, the content of the picture.
func (c *canvas) drawTitle(large, small annotate.Pen) {
	width := c.size.X - 2*c.margin
	y := c.margin + int(c.font*0.7)
	large.Write(c.img, image.Pt(c.margin, y), large.Fit(c.o.Title, width), words)
	shape, size, what := c.v.Shape[:], c.v.Size[:], " voxels"
	if c.v.Flat() {
		shape, size, what = shape[1:], size[1:], " pixels"
	}
	// as much as there is room for
	facts := []string{sizes(shape, plain) + what, sizes(size, side) + " µm"}
	if c.v.level > 0 || c.o.Level != Auto {
		facts = append(facts, "level "+plain(c.v.level))
	}
	for len(facts) > 1 && small.Width(strings.Join(facts, "   ")) > width {
		facts = facts[:len(facts)-1]
	}
	y += int(c.font * 1.65)
	small.Write(c.img, image.Pt(c.margin, y), small.Fit(strings.Join(facts, "   "), width), quiet)
}

// drawCaption names a panel and the position of its cut.
func (c *canvas) drawCaption(strong, small annotate.Pen, p *plane, at image.Rectangle) {
	y := at.Min.Y - c.line/2 - int(c.font*0.05)
	x := strong.Write(c.img, image.Pt(at.Min.X, y), strings.ToUpper(p.name), words)
	x += int(c.font * 0.6)
	axis := "zyx"[p.across : p.across+1]
	if p.index < 0 {
		what := map[string]string{AIP: "average", MIP: "maximum"}[c.o.Projection]
		small.Write(c.img, image.Pt(x, y), what+" over "+axis, quiet)
		return
	}
	pos := c.v.Origin[p.across] + float64(p.index)*c.v.Size[p.across]
	small.Write(c.img, image.Pt(x, y), axis+" = "+annotate.Micrometres(pos), axisHue[p.across])
}

// drawCuts marks in a panel the planes of the other panels. Each mark is a thin line in the hue of the axis across
// which the other plane lies, with a tick at either end.
func (c *canvas) drawCuts(p *plane, planes []*plane, at image.Rectangle) {
	tick := max(3, c.gap/3)
	for _, q := range planes {
		if q == p || q.index < 0 {
			continue
		}
		hue := axisHue[q.across]
		pos := (float64(q.index) + 0.5) / float64(c.v.Shape[q.across])
		if q.across == p.cols {
			x := at.Min.X + int(pos*float64(at.Dx()))
			c.mark(x, at.Min.Y, 0, 1, at.Dy(), tick, hue)
		} else {
			y := at.Min.Y + int(pos*float64(at.Dy()))
			c.mark(at.Min.X, y, 1, 0, at.Dx(), tick, hue)
		}
	}
}

// mark draws a line one pixel wide, translucent where it crosses the panel.
func (c *canvas) mark(x, y, dx, dy, n, tick int, hue color.RGBA) {
	for i := -tick; i < n+tick; i++ {
		alpha := 1.0
		if i >= 0 && i < n {
			if alpha = 0.55; i/4%2 == 1 {
				continue
			}
		}
		c.blend(x+i*dx, y+i*dy, hue, alpha)
	}
}

func (c *canvas) blend(x, y int, hue color.RGBA, alpha float64) {
	if !(image.Point{x, y}).In(c.img.Rect) {
		return
	}
	p := c.img.Pix[c.img.PixOffset(x, y):]
	for k, v := range []uint8{hue.R, hue.G, hue.B} {
		p[k] = uint8(math.Round(alpha*float64(v) + (1-alpha)*float64(p[k])))
	}
}

// drawScaleBar puts the bar below the first panel, its length beside it.
func (c *canvas) drawScaleBar(small annotate.Pen) {
	most := min(c.panels[0].Dx(), (c.size.X-2*c.margin)/2)
	height := max(3, c.layout.bar()/2)
	var ok bool
	if c.bar, ok = annotate.NewScaleBar(image.Pt(c.margin, c.footer+(c.layout.bar()-height)/2), most*2/5, height, c.pixel); !ok {
		return
	}
	draw.Draw(c.img, c.bar.Box, image.NewUniform(words), image.Point{}, draw.Src)
	small.Write(c.img, image.Pt(c.margin, c.footer+c.layout.bar()+c.line/2), c.bar.Label(), words)
}

// drawColours draws the colour bar at the right with the ends of the window below it and, if some pixels have
// no number, their colour.
func (c *canvas) drawColours(small annotate.Pen, empty bool) {
	right := c.size.X - c.margin
	left := right - min(int(c.font*14), (c.size.X-2*c.margin)*2/5)
	height := c.layout.bar()
	for x := left; x < right; x++ {
		colour := c.colours.At(float64(x-left) / float64(right-left-1))
		draw.Draw(c.img, image.Rect(x, c.footer, x+1, c.footer+height), image.NewUniform(colour), image.Point{}, draw.Src)
	}
	y := c.footer + height + c.line/2
	lo, hi := number(c.window[0]), number(c.window[1])
	small.Write(c.img, image.Pt(left, y), lo, quiet)
	small.Write(c.img, image.Pt(right-small.Width(hi), y), hi, quiet)
	if !empty {
		return
	}
	word := "no data"
	x := left - int(c.font*1.2) - small.Width(word)
	if x-height*2 < c.bar.Box.Max.X+int(c.font) {
		return
	}
	small.Write(c.img, image.Pt(x, c.footer+height/2), word, quiet)
	box := image.Rect(x-height-height/2, c.footer, x-height/2, c.footer+height)
	draw.Draw(c.img, box, image.NewUniform(quiet), image.Point{}, draw.Src)
	draw.Draw(c.img, box.Inset(1), image.NewUniform(noData), image.Point{}, draw.Src)
}
