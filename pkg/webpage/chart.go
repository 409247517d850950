package webpage

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Chart plots a few series against numbers as an SVG that takes its colours from the page.
type Chart struct {
	Title          string // describes the content; also read aloud
	XLabel, YLabel string
	Series         []Series
	Whole          bool // x and its ticks are whole numbers
	Zero           bool // y begins at 0
	Limits         []Limit
	Names          []string // names of the cases x = 0, 1, 2 …
}

// Series is a line of points with marks. Series differ in colour and in the form of the marks.
type Series struct {
	Name   string
	Points []Point
	Joined bool
}

// Point is a mark of a series.
type Point struct {
	X, Y float64
	Tip  string // tooltip
	Bad  bool   // draws a ring around the mark
	Spot *Spot  // where the mark leads in view; nil: nowhere

	Low, High float64 // range of the value; no line is drawn if they are equal
}

// Limit is a horizontal line with a name.
type Limit struct {
	Y    float64
	Name string
}

// Plot is a chart with its key and its caption.
type Plot struct {
	Caption string
	Legend  template.HTML
	SVG     template.HTML
}

// Plot returns the chart with a caption and, for several series, a key; nil if there is nothing to draw.
func (c *Chart) Plot(caption string) *Plot { return plot(c, caption, len(c.Series)) }

// drawn is a chart of any kind.
type drawn interface {
	SVG() template.HTML
	Legend() template.HTML
}

func plot(c drawn, caption string, series int) *Plot {
	svg := c.SVG()
	if svg == "" {
		return nil
	}
	p := &Plot{Caption: caption, SVG: svg}
	if series > 1 {
		p.Legend = c.Legend()
	}
	return p
}

const (
	chartWidth   = 640.0
	chartHeight  = 250.0
	chartLeft    = 58.0
	chartRight   = 14.0
	chartTop     = 12.0
	chartBottom  = 42.0
	chartSymbols = 4
	chartColors  = 6
)

// frame is the part of the plane that a chart shows.
type frame struct{ x0, x1, y0, y1 float64 }

const (
	plotWidth  = chartWidth - chartLeft - chartRight
	plotHeight = chartHeight - chartTop - chartBottom
)

func (f *frame) px(x float64) float64 { return chartLeft + (x-f.x0)/(f.x1-f.x0)*plotWidth }
func (f *frame) py(y float64) float64 { return chartTop + plotHeight - (y-f.y0)/(f.y1-f.y0)*plotHeight }

// frame returns the part of the plane that holds all points; ok is false if there are none.
func (c *Chart) frame() (f frame, ok bool) {
	f = frame{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}
	for _, s := range c.Series {
		for _, p := range s.Points {
			if Finite(p.X) && Finite(p.Y) {
				ok = true
				f.x0, f.x1, f.y0, f.y1 = min(f.x0, p.X), max(f.x1, p.X), min(f.y0, p.Y), max(f.y1, p.Y)
				if p.spreads() {
					f.y0, f.y1 = min(f.y0, p.Low), max(f.y1, p.High)
				}
			}
		}
	}
	for _, l := range c.Limits {
		f.y0, f.y1 = min(f.y0, l.Y), max(f.y1, l.Y)
	}
	if c.Zero {
		f.y0, f.y1 = min(f.y0, 0), max(f.y1, 0)
	}
	if len(c.Names) > 0 {
		f.x0, f.x1 = -0.4, float64(len(c.Names))-0.6
	} else {
		f.x0, f.x1 = padded(f.x0, f.x1, 0.04, false)
	}
	f.y0, f.y1 = padded(f.y0, f.y1, 0.08, c.Zero)
	return f, ok
}

// SVG draws the chart; it returns "" if there is nothing to draw.
func (c *Chart) SVG() template.HTML {
	f, ok := c.frame()
	if !ok {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %s %s" role="img" aria-label="%s">`, Num(chartWidth), Num(chartHeight), html.EscapeString(c.Title))
	c.axes(&b, &f)
	for i, s := range c.Series {
		s.draw(&b, &f, i)
	}
	b.WriteString(`</svg>`)
	// All text in it was escaped, all numbers are ours.
	return template.HTML(b.String())
}

// axes draws the grid with its numbers, limits, and the names of the axes.
func (c *Chart) axes(b *strings.Builder, f *frame) {
	for _, t := range Ticks(f.y0, f.y1, 5, false) {
		fmt.Fprintf(b, `<line class="grid" x1="%s" y1="%s" x2="%s" y2="%s"/><text class="tick" x="%s" y="%s" text-anchor="end">%s</text>`,
			Num(chartLeft), Num(f.py(t)), Num(chartWidth-chartRight), Num(f.py(t)), Num(chartLeft-7), Num(f.py(t)+4), Label(t))
	}
	for _, t := range c.marks(f.x0, f.x1) {
		fmt.Fprintf(b, `<line class="grid" x1="%s" y1="%s" x2="%s" y2="%s"/><text class="tick" x="%s" y="%s" text-anchor="middle">%s</text>`,
			Num(f.px(t)), Num(chartTop), Num(f.px(t)), Num(chartTop+plotHeight), Num(f.px(t)), Num(chartTop+plotHeight+16), html.EscapeString(c.name(t)))
	}
	if f.y0 < 0 && f.y1 > 0 {
		fmt.Fprintf(b, `<line class="axis" x1="%s" y1="%s" x2="%s" y2="%s"/>`, Num(chartLeft), Num(f.py(0)), Num(chartWidth-chartRight), Num(f.py(0)))
	}
	for _, l := range c.Limits {
		fmt.Fprintf(b, `<line class="limit" x1="%s" y1="%s" x2="%s" y2="%s"/><text class="tick" x="%s" y="%s" text-anchor="end">%s</text>`,
			Num(chartLeft), Num(f.py(l.Y)), Num(chartWidth-chartRight), Num(f.py(l.Y)), Num(chartWidth-chartRight-4), Num(f.py(l.Y)-5), html.EscapeString(l.Name))
	}
	fmt.Fprintf(b, `<text class="name" x="%s" y="%s" text-anchor="middle">%s</text>`, Num(chartLeft+plotWidth/2), Num(chartHeight-6), html.EscapeString(c.XLabel))
	fmt.Fprintf(b, `<text class="name" transform="translate(13 %s) rotate(-90)" text-anchor="middle">%s</text>`, Num(chartTop+plotHeight/2), html.EscapeString(c.YLabel))
}

// draw draws the i-th series.
func (s *Series) draw(b *strings.Builder, f *frame, i int) {
	class := "s" + strconv.Itoa(i%chartColors+1)
	if s.Joined {
		var path strings.Builder
		for _, p := range s.Points {
			if Finite(p.X) && Finite(p.Y) {
				fmt.Fprintf(&path, "%s,%s ", Num(f.px(p.X)), Num(f.py(p.Y)))
			}
		}
		fmt.Fprintf(b, `<polyline class="line %s" points="%s"/>`, class, strings.TrimSpace(path.String()))
	}
	for _, p := range s.Points {
		if !Finite(p.X) || !Finite(p.Y) {
			continue
		}
		mark := class
		if p.Bad {
			mark = "bad"
		}
		fmt.Fprintf(b, `<g class="%s">`, mark)
		if p.spreads() {
			fmt.Fprintf(b, `<line class="spread" x1="%s" y1="%s" x2="%s" y2="%s"/>`, Num(f.px(p.X)), Num(f.py(p.Low)), Num(f.px(p.X)), Num(f.py(p.High)))
		}
		var drawn strings.Builder
		symbol(&drawn, i, f.px(p.X), f.py(p.Y), p.Bad)
		if p.Tip != "" {
			fmt.Fprintf(&drawn, `<title>%s</title>`, html.EscapeString(p.Tip))
		}
		b.WriteString(p.Spot.around(drawn.String()) + `</g>`)
	}
}

// spreads reports whether a point has a range.
func (p Point) spreads() bool { return p.Low < p.High && Finite(p.High-p.Low) }

// marks returns the ticks of the x axis.
func (c *Chart) marks(x0, x1 float64) []float64 {
	if len(c.Names) == 0 {
		return Ticks(x0, x1, 10, c.Whole)
	}
	var out []float64
	for i := range c.Names {
		out = append(out, float64(i))
	}
	return out
}

// name returns the label of a tick of the x axis.
func (c *Chart) name(x float64) string {
	if i := int(x); len(c.Names) > 0 && i >= 0 && i < len(c.Names) {
		return c.Names[i]
	}
	return Label(x)
}

// symbol draws the mark of the i-th series; a bad point has a ring.
func symbol(b *strings.Builder, i int, x, y float64, bad bool) {
	switch i % chartSymbols {
	case 0:
		fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="3.6"/>`, Num(x), Num(y))
	case 1:
		fmt.Fprintf(b, `<rect x="%s" y="%s" width="6.4" height="6.4"/>`, Num(x-3.2), Num(y-3.2))
	case 2:
		fmt.Fprintf(b, `<path d="M%s %sl4 7h-8z"/>`, Num(x), Num(y-4.4))
	default:
		fmt.Fprintf(b, `<path d="M%s %sl4.4 4.4l-4.4 4.4l-4.4-4.4z"/>`, Num(x), Num(y-4.4))
	}
	if bad {
		fmt.Fprintf(b, `<circle class="ring" cx="%s" cy="%s" r="7.5"/>`, Num(x), Num(y))
	}
}

// Legend returns the key of a chart's series.
func (c *Chart) Legend() template.HTML {
	var b strings.Builder
	for i, s := range c.Series {
		fmt.Fprintf(&b, `<span class="key"><svg viewBox="0 0 12 12" aria-hidden="true"><g class="s%d">`, i%chartColors+1)
		symbol(&b, i, 6, 6, false)
		fmt.Fprintf(&b, `</g></svg>%s</span> `, html.EscapeString(s.Name))
	}
	return template.HTML(b.String()) // escaped above
}

// Finite reports whether a number is neither NaN nor infinite.
func Finite(v float64) bool { return v-v == 0 }

// Num formats a coordinate.
func Num(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }

// Label formats the label of a tick.
func Label(v float64) string {
	if a := math.Abs(v); a >= 1e6 || (a > 0 && a < 1e-4) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strings.Replace(strconv.FormatFloat(v, 'f', -1, 64), "-", "−", 1)
}

// padded widens a range by the fraction by. If zero is set, it does not widen a range beyond zero.
func padded(a, b, by float64, zero bool) (float64, float64) {
	if a == b {
		d := max(0.5, math.Abs(a)*0.1)
		switch {
		case !zero:
			return a - d, a + d
		case a == 0:
			return 0, 1
		}
		return min(0, a-d), max(0, a+d)
	}
	d := (b - a) * by
	lo, hi := a-d, b+d
	if zero && a >= 0 {
		lo = 0
	}
	if zero && b <= 0 {
		hi = 0
	}
	return lo, hi
}

// Ticks returns about the given number of round numbers in a range, 1, 2 or 5 × 10ⁿ apart.
func Ticks(a, b float64, about int, whole bool) []float64 {
	if !(b > a) || !Finite(b-a) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10((b-a)/float64(about))))
	for _, m := range []float64{1, 2, 5, 10} {
		if (b-a)/(step*m) <= float64(about) {
			step *= m
			break
		}
	}
	if whole {
		step = max(1, math.Round(step))
	}
	var out []float64
	for i := math.Ceil(a/step - 1e-9); i*step <= b+step*1e-9 && len(out) < 100; i++ {
		// as the nearest short number: 0.3, not 0.30000000000000004
		v, _ := strconv.ParseFloat(strconv.FormatFloat(i*step, 'g', 12, 64), 64)
		out = append(out, v+0)
	}
	return out
}
