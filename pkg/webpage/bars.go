package webpage

import (
	"fmt"
	"html"
	"html/template"
	"io"
	"math"
	"strings"
)

// Bars is a chart of horizontal bars from zero: rows, each with a bar for every series.
type Bars struct {
	Title  string // describes the content; also read aloud
	Label  string // of the axis
	Series []string
	Rows   []Row
}

// Row holds the bars of one case.
type Row struct {
	Name string
	Bars []Bar // one for each series
}

// Bar is a value with its name and its range.
type Bar struct {
	Value     float64 // NaN: no value, and Text gives the reason; without Text the bar takes no space
	Low, High float64 // no line is drawn where they are the same
	Text      string  // beside the bar
	Tip       string  // tooltip
}

const (
	barHeight = 13.0
	barRow    = 9.0 // between rows
	barTop    = 8.0
	barBottom = 42.0
	barRight  = 92.0 // for a value beside the longest bar
	barChar   = 6.9  // about the width of a letter
)

// SVG draws the chart; it returns "" if there is nothing to draw.
func (c *Bars) SVG() template.HTML {
	most, bars, letters := 0.0, 0, 0
	height := barTop
	for _, r := range c.Rows {
		n := 0
		for _, b := range r.Bars {
			if Finite(b.Value) {
				most = max(most, b.Value)
				if Finite(b.High) {
					most = max(most, b.High)
				}
				bars++
			}
			if b.shown() {
				n++
			}
		}
		letters = max(letters, len([]rune(r.Name)))
		height += float64(max(n, 1))*barHeight + barRow
	}
	if bars == 0 {
		return ""
	}
	if most <= 0 {
		most = 1
	}
	left := min(max(float64(letters)*barChar+14, 60), 290)
	w := chartWidth - left - barRight
	_, end := padded(0, most, 0.02, true)
	px := func(v float64) float64 { return left + v/end*w }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %s %s" role="img" aria-label="%s">`, Num(chartWidth), Num(height+barBottom), html.EscapeString(c.Title))
	for _, t := range Ticks(0, end, 6, false) {
		fmt.Fprintf(&b, `<line class="grid" x1="%s" y1="4" x2="%s" y2="%s"/><text class="tick" x="%s" y="%s" text-anchor="middle">%s</text>`,
			Num(px(t)), Num(px(t)), Num(height), Num(px(t)), Num(height+16), Label(t))
	}
	y := barTop
	for _, r := range c.Rows {
		n := 0
		for _, v := range r.Bars {
			if v.shown() {
				n++
			}
		}
		tall := float64(max(n, 1)) * barHeight
		fmt.Fprintf(&b, `<text class="row" x="%s" y="%s" text-anchor="end">%s<title>%s</title></text>`, Num(left-8), Num(y+tall/2+3.5), html.EscapeString(Clip(r.Name, int((left-13)/barChar))), html.EscapeString(r.Name))
		at := y
		for i, v := range r.Bars {
			if !v.shown() {
				continue
			}
			class := fmt.Sprintf("s%d", i%chartColors+1)
			if !Finite(v.Value) {
				fmt.Fprintf(&b, `<text class="tick" x="%s" y="%s">%s</text>`, Num(left+5), Num(at+barHeight/2+2.5), html.EscapeString(Clip(v.Text, int((chartWidth-left)/barChar))))
				at += barHeight
				continue
			}
			fmt.Fprintf(&b, `<g class="%s"><rect x="%s" y="%s" width="%s" height="%s" rx="1.5"/>`, class, Num(left), Num(at+1), Num(max(px(v.Value)-left, 1)), Num(barHeight-2))
			tail := px(v.Value)
			if v.Low < v.High && Finite(v.High-v.Low) {
				fmt.Fprintf(&b, `<line class="spread" x1="%s" y1="%s" x2="%s" y2="%s"/>`, Num(px(max(v.Low, 0))), Num(at+barHeight/2), Num(px(v.High)), Num(at+barHeight/2))
				tail = max(tail, px(v.High))
			}
			if v.Tip != "" {
				fmt.Fprintf(&b, `<title>%s</title>`, html.EscapeString(v.Tip))
			}
			fmt.Fprintf(&b, `</g><text class="value" x="%s" y="%s">%s</text>`, Num(tail+5), Num(at+barHeight/2+3.5), html.EscapeString(Clip(v.Text, int((chartWidth-tail-5)/barChar))))
			at += barHeight
		}
		y += tall + barRow
	}
	fmt.Fprintf(&b, `<line class="axis" x1="%s" y1="4" x2="%s" y2="%s"/>`, Num(left), Num(left), Num(height))
	fmt.Fprintf(&b, `<text class="name" x="%s" y="%s" text-anchor="middle">%s</text></svg>`, Num(left+w/2), Num(height+barBottom-8), html.EscapeString(c.Label))
	return template.HTML(b.String()) // all text in it was escaped
}

func (b Bar) shown() bool { return Finite(b.Value) || b.Text != "" }

// None returns the value for a bar without one.
func None() float64 { return math.NaN() }

// Legend returns the key of the series.
func (c *Bars) Legend() template.HTML {
	var b strings.Builder
	for i, name := range c.Series {
		fmt.Fprintf(&b, `<span class="key"><svg viewBox="0 0 12 12" aria-hidden="true"><g class="s%d"><rect width="12" height="12" rx="2"/></g></svg>%s</span> `, i%chartColors+1, html.EscapeString(name))
	}
	return template.HTML(b.String()) // escaped above
}

// Plot returns the chart with a caption and, for several series, a key; nil if there is nothing to draw.
func (c *Bars) Plot(caption string) *Plot { return plot(c, caption, len(c.Series)) }

// Clip shortens a text to n letters.
func Clip(s string, n int) string {
	if r := []rune(s); len(r) > n && n > 0 {
		return string(r[:n-1]) + "…"
	}
	return s
}

// File writes the chart as a separate file with title and key, on white, for use in documents.
func (c *Bars) File(w io.Writer) error {
	svg := string(c.SVG())
	if svg == "" {
		return fmt.Errorf("%s: nothing to draw", c.Title)
	}
	return writeFile(w, c.Title, svg, c.Series, func(b *strings.Builder, i int) {
		b.WriteString(`<rect width="11" height="11" rx="2"/>`)
	})
}

// File writes the chart as a separate file with title and key, on white, for use in documents.
func (c *Chart) File(w io.Writer) error {
	svg := string(c.SVG())
	if svg == "" {
		return fmt.Errorf("%s: nothing to draw", c.Title)
	}
	var names []string
	for _, s := range c.Series {
		names = append(names, s.Name)
	}
	return writeFile(w, c.Title, svg, names, func(b *strings.Builder, i int) { symbol(b, i, 5.5, 5.5, false) })
}

// writeFile puts a heading and a key above a drawing.
func writeFile(w io.Writer, title, svg string, names []string, mark func(b *strings.Builder, i int)) error {
	var size [2]float64
	if _, err := fmt.Sscanf(svg, `<svg class="chart" viewBox="0 0 %f %f"`, &size[0], &size[1]); err != nil {
		return err
	}
	const head, row, margin = 34.0, 18.0, 10.0
	var key strings.Builder
	x, y := margin, head
	if len(names) > 1 {
		for i, name := range names {
			long := 18 + float64(len([]rune(name)))*barChar + 16
			if x+long > size[0] && x > margin {
				x, y = margin, y+row
			}
			fmt.Fprintf(&key, `<g class="s%d" transform="translate(%s %s)">`, i%chartColors+1, Num(x), Num(y))
			mark(&key, i)
			fmt.Fprintf(&key, `</g><text class="row" x="%s" y="%s">%s</text>`, Num(x+17), Num(y+9.5), html.EscapeString(name))
			x += long
		}
		y += row + 4
	}
	var b strings.Builder
	width, height := size[0]+2*margin, y+size[1]+margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" font-family="system-ui,sans-serif">`, Num(width), Num(height), Num(width), Num(height))
	fmt.Fprintf(&b, "\n<title>%s</title>\n<style>%s</style>\n", html.EscapeString(title), fileStyle)
	fmt.Fprintf(&b, `<rect width="%s" height="%s" fill="#fff"/><g class="chart"><text class="title" x="%s" y="22">%s</text>%s</g>`+"\n", Num(width), Num(height), Num(margin), html.EscapeString(title), key.String())
	fmt.Fprintf(&b, `<svg x="%s" y="%s" width="%s" height="%s" %s`+"\n</svg>\n", Num(margin), Num(y), Num(size[0]), Num(size[1]), strings.TrimPrefix(svg, "<svg "))
	_, err := io.WriteString(w, b.String())
	return err
}

// fileStyle is the style of a chart in a file: the page's light style without variables, which not every
// viewer supports.
var fileStyle = func() string {
	var out strings.Builder
	colors := strings.NewReplacer()
	var pairs []string
	for line := range strings.Lines(style) {
		if rest, ok := strings.CutPrefix(line, ":root{"); ok {
			for v := range strings.SplitSeq(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "}")), ";") {
				if name, value, ok := strings.Cut(v, ":"); ok {
					pairs = append(pairs, "var("+name+")", value)
				}
			}
			colors = strings.NewReplacer(pairs...)
		}
		for _, start := range []string{".chart text", ".chart .value", ".grid", ".limit", ".line", ".s1", ".spread", "svg .bad"} {
			if strings.HasPrefix(line, start) {
				out.WriteString(colors.Replace(strings.TrimSpace(line)))
			}
		}
	}
	return out.String() + ".chart .title{font-size:15px;font-weight:600;fill:#1c2128}"
}()
