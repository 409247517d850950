package main

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// colors of the programs in the plot; others are grey.
var colors = map[string]string{
	strata + ", mapped": "#5aa9cc", strata + ", through the cache": "#9fcbe0", inC + ", mapped": "#777777", inC + ", direct": "#aaaaaa",
	kvikio: "#76a300", kvikio + ", mapped": "#a5c453", kvikio + ", direct": "#c7dc92", kvikio + ", through the cache": "#dbe9b9",
	strata: "#0b6e99", "C": "#444444", "zarr-python": "#e0a030", "zarr-python + zarrs": "#c7633b", "tensorstore": "#7a9a4c",
	"zarrs": "#8d5a97", byDefault: "#0b6e99", smallMem: "#9fcbe0", largeMem: "#444444", ioAlone: "#444444", peers: "#e0a030", linumpy: "#c7633b",
}

const (
	plotWidth  = 1000
	panelWidth = 480
	labelWidth = 170
	barWidth   = 215
	barHeight  = 11
	barGap     = 1
	rowGap     = 9
	panelHead  = 34
)

// draw draws the plot of a page: for each case, a bar for each program, with its speed relative to the fastest of
// them and the number beside it. Longer is faster.
func (g *part) draw(w io.Writer, all []*outcome) {
	var columns [2]int // height so far
	var body []string
	add := func(format string, args ...any) { body = append(body, fmt.Sprintf(format, args...)) }
	add(`<text x="%d" y="24" text-anchor="end">longer is faster</text>`, plotWidth-12)
	names := legend(all, g.plotted)
	inRow, apart := 6, 160
	if len(names) > inRow { // long ones
		inRow, apart = 4, 200
	}
	for i, who := range names {
		x, y := 12+i%inRow*apart, 14+i/inRow*18
		add(`<rect x="%d" y="%d" width="11" height="11" fill="%s"/><text x="%d" y="%d">%s</text>`, x, y, color(who), x+16, y+10, html.EscapeString(who))
	}
	head := 56 + max(len(names)-1, 0)/inRow*18
	for _, name := range g.plotted {
		var rows []*outcome
		for _, o := range all {
			if o.Group == name && o.median[strata].seconds > 0 {
				rows = append(rows, o)
			}
		}
		if len(rows) == 0 {
			continue
		}
		c := 0
		if columns[1] < columns[0] {
			c = 1
		}
		x := 12 + c*(panelWidth+20)
		y := head + columns[c]
		top := y
		add(`<text x="%d" y="%d" class="h">%s</text>`, x, y, html.EscapeString(g.groupTitle(name)))
		y += panelHead - 20
		for _, o := range rows {
			best := 0.0
			for _, who := range o.who {
				if s := o.median[who]; s.failed == "" {
					best = max(best, rate(s))
				}
			}
			height := len(o.who) * (barHeight + barGap)
			for i, l := range wrap(o.Label, 25) {
				add(`<text x="%d" y="%d">%s</text>`, x, y+10+13*i, html.EscapeString(l))
			}
			for i, who := range o.who {
				s, by := o.median[who], y+i*(barHeight+barGap)
				length, text := 0.0, "fails"
				if s.failed == "" {
					length, text = barWidth*rate(s)/best, number(o.speedOf(who), o.Unit)
				}
				add(`<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d" class="n">%s</text>`,
					x+labelWidth, by, max(length, 1), barHeight, color(who), float64(x+labelWidth+4)+length, by+9, text)
			}
			y += max(height, 13*len(wrap(o.Label, 25))) + rowGap
		}
		columns[c] += y - top + 20
	}
	svg(w, g.plot, head+max(columns[0], columns[1]), body)
}

// svg writes an SVG file of the plots' width.
func svg(w io.Writer, title string, height int, body []string) {
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, height, plotWidth, height)
	fmt.Fprintf(w, "<title>%s</title>\n<style>.h{font-size:14px;font-weight:bold}.n{font-size:10px;fill:#333}</style>\n", html.EscapeString(title))
	fmt.Fprintf(w, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", plotWidth, height)
	for _, s := range body {
		fmt.Fprintln(w, s)
	}
	fmt.Fprintln(w, "</svg>")
}

// rate returns a program's speed in bytes or runs per second.
func rate(s summary) float64 {
	if s.seconds == 0 {
		return 0
	}
	return float64(max(s.bytes, 1)) / s.seconds
}

// legend lists the programs of the plotted cases.
func legend(all []*outcome, plotted []string) []string {
	var who []string
	for _, o := range all {
		if !slices.Contains(plotted, o.Group) {
			continue
		}
		for _, w := range o.who {
			if _, own := colors[w]; own && !slices.Contains(who, w) {
				who = append(who, w)
			}
		}
	}
	return who
}

func color(who string) string {
	if c, ok := colors[who]; ok {
		return c
	}
	return "#999999"
}

// wrap breaks a text at spaces into lines of at most n characters, where words
// allow.
func wrap(text string, n int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line+word) >= n {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
