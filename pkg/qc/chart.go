package qc

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// chart is a plot of a few series against numbers, as an SVG that takes its
// colours from the page.
type chart struct {
	title          string // says what it shows; also read aloud
	xLabel, yLabel string
	series         []series
	whole          bool // x are whole numbers: ticks too
	zero           bool // y begins at 0
	limits         []limit
}

// series is a line of points with marks, told apart by colour and by the form of
// the marks.
type series struct {
	name   string
	points []point
	joined bool
}

type point struct {
	x, y float64
	tip  string // read when the mark is pointed at
	bad  bool
}

// limit is a horizontal line with a name.
type limit struct {
	y    float64
	name string
}

const (
	chartWidth   = 640.0
	chartHeight  = 250.0
	chartLeft    = 58.0
	chartRight   = 14.0
	chartTop     = 12.0
	chartBottom  = 42.0
	chartSymbols = 4
)

// svg draws the chart; "" where there is nothing to draw.
func (c *chart) svg() template.HTML {
	x0, x1, y0, y1 := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	n := 0
	for _, s := range c.series {
		for _, p := range s.points {
			if finite(p.x) && finite(p.y) {
				x0, x1, y0, y1 = min(x0, p.x), max(x1, p.x), min(y0, p.y), max(y1, p.y)
				n++
			}
		}
	}
	if n == 0 {
		return ""
	}
	for _, l := range c.limits {
		y0, y1 = min(y0, l.y), max(y1, l.y)
	}
	if c.zero {
		y0, y1 = min(y0, 0), max(y1, 0)
	}
	const height = chartHeight
	w, h := chartWidth-chartLeft-chartRight, height-chartTop-chartBottom
	x0, x1 = padded(x0, x1, 0.04, false)
	y0, y1 = padded(y0, y1, 0.08, c.zero)
	px := func(x float64) float64 { return chartLeft + (x-x0)/(x1-x0)*w }
	py := func(y float64) float64 { return chartTop + h - (y-y0)/(y1-y0)*h }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %s %s" role="img" aria-label="%s">`, num(chartWidth), num(height), html.EscapeString(c.title))
	for _, t := range ticks(y0, y1, 5, false) {
		fmt.Fprintf(&b, `<line class="grid" x1="%s" y1="%s" x2="%s" y2="%s"/><text class="tick" x="%s" y="%s" text-anchor="end">%s</text>`,
			num(chartLeft), num(py(t)), num(chartWidth-chartRight), num(py(t)), num(chartLeft-7), num(py(t)+4), label(t))
	}
	for _, t := range ticks(x0, x1, 10, c.whole) {
		fmt.Fprintf(&b, `<line class="grid" x1="%s" y1="%s" x2="%s" y2="%s"/><text class="tick" x="%s" y="%s" text-anchor="middle">%s</text>`,
			num(px(t)), num(chartTop), num(px(t)), num(chartTop+h), num(px(t)), num(chartTop+h+16), label(t))
	}
	if y0 < 0 && y1 > 0 {
		fmt.Fprintf(&b, `<line class="axis" x1="%s" y1="%s" x2="%s" y2="%s"/>`, num(chartLeft), num(py(0)), num(chartWidth-chartRight), num(py(0)))
	}
	for _, l := range c.limits {
		fmt.Fprintf(&b, `<line class="limit" x1="%s" y1="%s" x2="%s" y2="%s"/><text class="tick" x="%s" y="%s" text-anchor="end">%s</text>`,
			num(chartLeft), num(py(l.y)), num(chartWidth-chartRight), num(py(l.y)), num(chartWidth-chartRight-4), num(py(l.y)-5), html.EscapeString(l.name))
	}
	fmt.Fprintf(&b, `<text class="name" x="%s" y="%s" text-anchor="middle">%s</text>`, num(chartLeft+w/2), num(height-6), html.EscapeString(c.xLabel))
	fmt.Fprintf(&b, `<text class="name" transform="translate(13 %s) rotate(-90)" text-anchor="middle">%s</text>`, num(chartTop+h/2), html.EscapeString(c.yLabel))
	for i, s := range c.series {
		class := "s" + strconv.Itoa(i%chartSymbols+1)
		if s.joined {
			var path strings.Builder
			for _, p := range s.points {
				if finite(p.x) && finite(p.y) {
					fmt.Fprintf(&path, "%s,%s ", num(px(p.x)), num(py(p.y)))
				}
			}
			fmt.Fprintf(&b, `<polyline class="line %s" points="%s"/>`, class, strings.TrimSpace(path.String()))
		}
		for _, p := range s.points {
			if !finite(p.x) || !finite(p.y) {
				continue
			}
			mark := class
			if p.bad {
				mark = "bad"
			}
			fmt.Fprintf(&b, `<g class="%s">`, mark)
			symbol(&b, i, px(p.x), py(p.y), p.bad)
			if p.tip != "" {
				fmt.Fprintf(&b, `<title>%s</title>`, html.EscapeString(p.tip))
			}
			b.WriteString(`</g>`)
		}
	}
	b.WriteString(`</svg>`)
	// All text in it was escaped, all numbers are ours.
	return template.HTML(b.String())
}

// symbol is the mark of the i-th series; a bad point has a ring.
func symbol(b *strings.Builder, i int, x, y float64, bad bool) {
	switch i % chartSymbols {
	case 0:
		fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="3.6"/>`, num(x), num(y))
	case 1:
		fmt.Fprintf(b, `<rect x="%s" y="%s" width="6.4" height="6.4"/>`, num(x-3.2), num(y-3.2))
	case 2:
		fmt.Fprintf(b, `<path d="M%s %sl4 7h-8z"/>`, num(x), num(y-4.4))
	default:
		fmt.Fprintf(b, `<path d="M%s %sl4.4 4.4l-4.4 4.4l-4.4-4.4z"/>`, num(x), num(y-4.4))
	}
	if bad {
		fmt.Fprintf(b, `<circle class="ring" cx="%s" cy="%s" r="7.5"/>`, num(x), num(y))
	}
}

// legend is the key of a chart's series.
func (c *chart) legend() template.HTML {
	var b strings.Builder
	for i, s := range c.series {
		fmt.Fprintf(&b, `<span class="key"><svg viewBox="0 0 12 12" aria-hidden="true"><g class="s%d">`, i%chartSymbols+1)
		symbol(&b, i, 6, 6, false)
		fmt.Fprintf(&b, `</g></svg>%s</span> `, html.EscapeString(s.name))
	}
	return template.HTML(b.String()) // escaped above
}

func finite(v float64) bool { return v-v == 0 }

// num writes a coordinate.
func num(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }

// label writes a tick.
func label(v float64) string {
	if a := math.Abs(v); a >= 1e6 || (a > 0 && a < 1e-4) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strings.Replace(strconv.FormatFloat(v, 'f', -1, 64), "-", "−", 1)
}

// padded widens a range; one that ends at zero and should stays there.
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

// ticks are round numbers in a range: 1, 2 or 5 × 10ⁿ apart, about so many.
func ticks(a, b float64, about int, whole bool) []float64 {
	if !(b > a) || !finite(b-a) {
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
