package comparison

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"strata/pkg/annotate"
	"strata/pkg/colormap"
	"strata/pkg/filter"
	"strata/pkg/oct"
)

const (
	detailSide = 160 // px of the region that the detail shows
	cell       = 480 // least width of a panel, px of the picture
	pad        = 16
	lineHeight = 26
	textSize   = 15
)

var (
	ground = color.RGBA{0x15, 0x17, 0x1c, 255}
	words  = color.RGBA{0xf1, 0xf3, 0xf5, 255}
	quiet  = color.RGBA{0xa9, 0xb1, 0xbd, 255}
	mark   = color.RGBA{0xff, 0xb4, 0x54, 255}
)

// picture is the plane of both images and their difference, whole and in detail.
type picture struct {
	whole, detail view
	window        [2]float64 // of both images
	most          float64    // difference shown as the brightest
	labels        [2]string
	lines         []string // below the panels
}

// view is what three panels of a row show.
type view struct {
	v      [3][]float32
	ny, nx int
	pixel  float64         // µm
	box    image.Rectangle // pixels of it that are framed
}

// draw keeps what the picture shows.
func (p *pair) draw(ctx context.Context, s *sums, r *Report, res oct.Resources) (*picture, error) {
	s.small.finish()
	w := view{v: s.small.v, ny: s.small.ny, nx: s.small.nx, pixel: p.voxel[1] * float64(s.small.by)}
	at := p.worst(s.small)
	d := view{ny: at.Height(), nx: at.Width(), pixel: p.voxel[1]}
	w.box = image.Rect(at.X0/s.small.by, at.Y0/s.small.by, (at.X1-1)/s.small.by+1, (at.Y1-1)/s.small.by+1)
	for k := range 2 {
		var err error
		if d.v[k], err = p.load(ctx, k, at, nil, res); err != nil {
			return nil, err
		}
	}
	d.v[2] = make([]float32, len(d.v[0]))
	for i, v := range d.v[0] {
		if u := d.v[1][i]; shows(float64(v)) && shows(float64(u)) {
			d.v[2][i] = float32(math.Abs(float64(u) - float64(v)))
		}
	}
	out := &picture{whole: w, detail: d, labels: [2]string{r.First.Label, r.Second.Label}, lines: r.summary()}
	q := filter.Percentiles(positive(w.v[0], w.v[1]), 1, 99.7)
	out.window = [2]float64{q[0], q[1]}
	out.most = filter.Percentiles(positive(w.v[2], d.v[2]), 99.5)[0]
	return out, nil
}

// positive returns the values of planes that are not 0.
func positive(planes ...[]float32) (out []float32) {
	for _, p := range planes {
		for _, v := range p {
			if shows(float64(v)) {
				out = append(out, v)
			}
		}
	}
	if out == nil {
		out = []float32{0}
	}
	return out
}

// worst returns the square around the seam at which the images differ most.
func (p *pair) worst(s *small) (best oct.Rectangle) {
	region := oct.Rect(0, p.size[0], 0, p.size[1])
	around := func(y, x int) oct.Rectangle {
		h, w := min(detailSide, p.size[0]), min(detailSide, p.size[1])
		y, x = max(0, min(y-h/2, p.size[0]-h)), max(0, min(x-w/2, p.size[1]-w))
		return oct.Rect(y, y+h, x, x+w).And(region)
	}
	best = around(p.size[0]/2, p.size[1]/2)
	most := -1.0
	for _, c := range p.candidates() {
		at := around(c[0], c[1])
		sum, n := 0.0, 0
		for y := at.Y0 / s.by; y <= (at.Y1-1)/s.by; y++ {
			for x := at.X0 / s.by; x <= (at.X1-1)/s.by; x++ {
				sum, n = sum+float64(s.v[2][y*s.nx+x]), n+1
			}
		}
		if mean := sum / float64(n); mean > most {
			most, best = mean, at
		}
	}
	return best
}

// candidates returns the middles of overlaps, or where lines of a fixed step cross.
func (p *pair) candidates() (out [][2]int) {
	middle := func(s seam) [2]int { return [2]int{(s.Y0 + s.Y1) / 2, (s.X0 + s.X1) / 2} }
	seams := p.seams[0]
	if p.known() {
		for _, s := range seams {
			out = append(out, middle(s))
		}
		return out
	}
	for _, v := range seams {
		for _, h := range seams {
			if v.vertical && !h.vertical {
				out = append(out, [2]int{middle(h)[0], middle(v)[1]})
			}
		}
	}
	return out
}

// summary says in lines what was found.
func (r *Report) summary() []string {
	text := func(v *float64, format string) string {
		if v == nil {
			return "–"
		}
		return fmt.Sprintf(format, *v)
	}
	lines := []string{fmt.Sprintf("plane %d: correlation %s, at seams %s, elsewhere %s; root mean square difference %.3g, %.1f %% of the standard deviation",
		r.Plane, text(r.Correlation.All, "%.4f"), text(r.Correlation.Seams, "%.4f"), text(r.Correlation.Rest, "%.4f"), r.Difference.RMS, 100*r.Difference.Relative)}
	if r.First.Relative != nil && r.Second.Relative != nil {
		lines = append(lines, fmt.Sprintf("sharpness of overlaps, relative to the rest: %s %.3f, %s %.3f", r.First.Label, *r.First.Relative, r.Second.Label, *r.Second.Relative))
	}
	if d := r.Displacement; d != nil {
		um := ""
		if d.MeanUM != nil {
			um = fmt.Sprintf(" (%s and %s)", annotate.Micrometres(*d.MeanUM), annotate.Micrometres(*d.MaxUM))
		}
		lines = append(lines, fmt.Sprintf("%d tiles are moved by %.2f px on average and by at most %.2f px%s, tile (%d, %d)", d.Tiles, d.Mean, d.Max, um, d.Far[0], d.Far[1]))
	}
	return lines
}

// Summary says in one line what was found.
func (r *Report) Summary() string {
	line := "the images do not correlate"
	if c := r.Correlation.All; c != nil {
		line = fmt.Sprintf("correlation %.4f", *c)
	}
	if d := r.Displacement; d != nil {
		line += fmt.Sprintf(", %d tiles moved by %.2f px on average and by at most %.2f px", d.Tiles, d.Mean, d.Max)
	}
	return line
}

// WritePicture writes the comparison as PNG: both images and their difference, whole and around the seam where they
// differ most.
func (r *Report) WritePicture(w io.Writer) error {
	img, err := r.picture.render()
	if err != nil {
		return err
	}
	return png.Encode(w, img)
}

// render draws the picture.
func (p *picture) render() (*image.RGBA, error) {
	pen, err := annotate.NewPen(annotate.Regular, textSize)
	if err != nil {
		return nil, err
	}
	bold, err := annotate.NewPen(annotate.Bold, textSize)
	if err != nil {
		return nil, err
	}
	heat, err := colormap.ByName("magma")
	if err != nil {
		return nil, err
	}
	grey, err := colormap.ByName("gray")
	if err != nil {
		return nil, err
	}
	rows := []*view{&p.whole, &p.detail}
	width := cell
	for _, v := range rows {
		width = max(width, v.nx*v.zoom())
	}
	height := pad
	for _, v := range rows {
		height += 2*lineHeight + v.ny*v.zoom() + pad
	}
	height += len(p.lines)*lineHeight + pad
	img := image.NewRGBA(image.Rect(0, 0, 3*width+4*pad, height))
	draw.Draw(img, img.Rect, image.NewUniform(ground), image.Point{}, draw.Src)
	y := pad
	for i, v := range rows {
		for k := range 3 {
			x := pad + k*(width+pad)
			title, colours, window := fmt.Sprintf("difference, 0 to %.4g", p.most), heat, [2]float64{0, p.most}
			if k < 2 {
				title, colours, window = p.labels[k], grey, p.window
			}
			if i == 1 {
				title += ", detail"
			}
			bold.Write(img, image.Pt(x, y+lineHeight/2), bold.Fit(title, width), words)
			v.paint(img, image.Pt(x, y+lineHeight), k, colours, window)
		}
		bottom := y + lineHeight + v.ny*v.zoom()
		if bar, ok := annotate.NewScaleBar(image.Pt(pad, bottom+lineHeight/2-2), width/3, 4, v.pixel/float64(v.zoom())); ok {
			draw.Draw(img, bar.Box, image.NewUniform(words), image.Point{}, draw.Src)
			pen.Write(img, image.Pt(bar.Box.Max.X+pad/2, bottom+lineHeight/2), bar.Label(), words)
		}
		y = bottom + lineHeight + pad
	}
	for i, line := range p.lines {
		pen.Write(img, image.Pt(pad, y+i*lineHeight+lineHeight/2-pad/2), pen.Fit(line, 3*width+2*pad), quiet)
	}
	return img, nil
}

// zoom returns how many pixels of the picture a pixel of the view takes along a side.
func (v *view) zoom() int { return max(1, cell/max(v.nx, v.ny)) }

// paint draws a panel.
func (v *view) paint(img *image.RGBA, at image.Point, k int, colours *colormap.Map, window [2]float64) {
	zoom := v.zoom()
	for y := range v.ny {
		for x := range v.nx {
			t := (float64(v.v[k][y*v.nx+x]) - window[0]) / (window[1] - window[0])
			r := image.Rect(at.X+x*zoom, at.Y+y*zoom, at.X+(x+1)*zoom, at.Y+(y+1)*zoom)
			draw.Draw(img, r, image.NewUniform(colours.At(t)), image.Point{}, draw.Src)
		}
	}
	if v.box.Empty() {
		return
	}
	b := image.Rect(at.X+v.box.Min.X*zoom, at.Y+v.box.Min.Y*zoom, at.X+min(v.box.Max.X, v.nx)*zoom, at.Y+min(v.box.Max.Y, v.ny)*zoom)
	for _, side := range []image.Rectangle{{b.Min, image.Pt(b.Max.X, b.Min.Y+2)}, {image.Pt(b.Min.X, b.Max.Y-2), b.Max}, {b.Min, image.Pt(b.Min.X+2, b.Max.Y)}, {image.Pt(b.Max.X-2, b.Min.Y), b.Max}} {
		draw.Draw(img, side, image.NewUniform(mark), image.Point{}, draw.Src)
	}
}
