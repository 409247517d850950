package qc

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"

	"strata/pkg/webpage"
)

// matchPlots returns the overlap and the correlation of each pair.
func (r *Report) matchPlots() (plots []*webpage.Plot) {
	thick := r.depth("stack")
	overlap, blend, corr := webpage.Series{Name: "overlap", Joined: true}, webpage.Series{Name: "blended"}, webpage.Series{Name: "correlation"}
	measured := false
	for i, j := range r.joins()[:len(r.Matches)] {
		m := r.Matches[i]
		tip := fmt.Sprintf("slices %d–%d: overlap %s, blended %s", m.Fixed, m.Moving, thick.of(float64(m.Overlap)), thick.of(float64(m.BlendOverlap)))
		if j.Measured {
			tip += ", correlation " + webpage.Short(m.Correlation)
		}
		if m.Fallback {
			tip += ", expected overlap used"
		}
		spot := r.spots[[2]int{m.Fixed, m.Moving}]
		overlap.Points = append(overlap.Points, webpage.Point{Spot: spot, X: float64(m.Moving), Y: float64(m.Overlap) * thick.um, Tip: tip})
		blend.Points = append(blend.Points, webpage.Point{Spot: spot, X: float64(m.Moving), Y: float64(m.BlendOverlap) * thick.um, Tip: tip})
		if j.Measured {
			measured = true
			corr.Points = append(corr.Points, webpage.Point{Spot: spot, X: float64(m.Moving), Y: m.Correlation, Tip: tip, Bad: m.Fallback || j.low()})
		}
	}
	if p := (&webpage.Chart{Title: "Overlap of each slice with the one before it", XLabel: "slice", YLabel: "overlap, " + thick.unit, Whole: true, Zero: true, Series: []webpage.Series{overlap, blend}}).
		Plot("Overlap of each slice with the one before it, and how much of it is blended."); p != nil {
		plots = append(plots, p)
	}
	if measured {
		c := &webpage.Chart{Title: "Correlation of each overlap", XLabel: "slice", YLabel: "correlation", Whole: true, Zero: true, Series: []webpage.Series{corr},
			Limits: []webpage.Limit{{Y: lowCorrelation, Name: "low below this line"}}}
		plots = append(plots, c.Plot("Correlation of the overlap, where it was measured. A ring marks low values and pairs for which the expected overlap was used."))
	}
	return plots
}

// timeline draws every run as a bar from its start to its end, in one row of
// lanes per program.
func (r *Report) timeline() template.HTML {
	first, length := extent(r.Runs)
	if first.IsZero() || !(length > 0) || len(r.Runs) > 2000 {
		return ""
	}
	type bar struct {
		from, to float64
		lane     int
		run      *Run
	}
	const width, left, right, rowHeight = 1072.0, 108.0, 6.0, 11.0 // as wide as the page
	by := map[string][]*bar{}
	var tools []string
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Started.IsZero() {
			continue
		}
		if by[run.Tool] == nil {
			tools = append(tools, run.Tool)
		}
		from := run.Started.Sub(first).Seconds()
		by[run.Tool] = append(by[run.Tool], &bar{from: from, to: from + max(0, run.WallSeconds), run: run})
	}
	slices.SortStableFunc(tools, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	w := width - left - right
	px := func(s float64) float64 { return left + s/length*w }
	var body strings.Builder
	y := 8.0
	for _, tool := range tools {
		var ends []float64 // of each lane
		for _, b := range by[tool] {
			b.lane = slices.IndexFunc(ends, func(e float64) bool { return e <= b.from+1e-9 })
			if b.lane < 0 {
				b.lane, ends = len(ends), append(ends, 0)
			}
			ends[b.lane] = b.to
		}
		fmt.Fprintf(&body, `<text class="name" x="%s" y="%s" text-anchor="end">%s</text>`, webpage.Num(left-8), webpage.Num(y+rowHeight*0.5*float64(len(ends))+3.5), html.EscapeString(webpage.Clip(tool, 14)))
		for _, b := range by[tool] {
			class := "s1"
			if b.run.ExitCode != 0 {
				class = "bad"
			}
			fmt.Fprintf(&body, `<rect class="bar %s" x="%s" y="%s" width="%s" height="%s" rx="1.5"><title>%s</title></rect>`, class,
				webpage.Num(px(b.from)), webpage.Num(y+float64(b.lane)*rowHeight), webpage.Num(max(1, px(b.to)-px(b.from)-0.6)), webpage.Num(rowHeight-2.5),
				html.EscapeString(fmt.Sprintf("%s %s: %s from %s on", b.run.Tool, b.run.slice(), webpage.Seconds(b.run.WallSeconds), webpage.Seconds(b.from))))
		}
		y += rowHeight*float64(len(ends)) + 9
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %s %s" role="img" aria-label="When each program ran">`, webpage.Num(width), webpage.Num(y+40))
	for _, t := range webpage.Ticks(0, length, 12, false) {
		fmt.Fprintf(&b, `<line class="grid" x1="%s" y1="4" x2="%s" y2="%s"/><text class="tick" x="%s" y="%s" text-anchor="middle">%s</text>`,
			webpage.Num(px(t)), webpage.Num(px(t)), webpage.Num(y), webpage.Num(px(t)), webpage.Num(y+16), webpage.Label(t))
	}
	b.WriteString(body.String())
	fmt.Fprintf(&b, `<text class="name" x="%s" y="%s" text-anchor="middle">seconds since the first start</text></svg>`, webpage.Num(left+w/2), webpage.Num(y+34))
	return template.HTML(b.String()) // names in it were escaped
}
