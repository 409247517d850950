package qc

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
)

// Plot is a chart with its key and its caption.
type Plot struct {
	Caption string
	Legend  template.HTML
	SVG     template.HTML
}

func (c *chart) plot(caption string) *Plot {
	svg := c.svg()
	if svg == "" {
		return nil
	}
	p := &Plot{Caption: caption, SVG: svg}
	if len(c.series) > 1 {
		p.Legend = c.legend()
	}
	return p
}

// shiftPlots are the shifts of each pair and where they add up to.
func (r *Report) shiftPlots() (plots []*Plot) {
	if r.Shifts == nil {
		return nil
	}
	x, y := series{name: "x"}, series{name: "y"}
	for _, p := range r.Shifts.Pairs() {
		tip := fmt.Sprintf("slices %d–%d: x %s µm, y %s µm", p.Fixed, p.Moving, short(p.X*1000), short(p.Y*1000))
		x.points = append(x.points, point{float64(p.Moving), p.X * 1000, tip, false})
		y.points = append(y.points, point{float64(p.Moving), p.Y * 1000, tip, false})
	}
	x.joined, y.joined = true, true
	add := func(p *Plot) {
		if p != nil {
			plots = append(plots, p)
		}
	}
	add((&chart{title: "Shift of each slice against the one before it", xLabel: "slice", yLabel: "shift, µm", whole: true, series: []series{x, y}}).
		plot("Motor shift of each slice against the one before it."))
	ids := r.positionIDs()
	at, _ := r.Shifts.Positions(ids)
	dx, dy := series{name: "x", joined: true}, series{name: "y", joined: true}
	for _, id := range ids {
		p := at[id]
		tip := fmt.Sprintf("slice %d: x %s µm, y %s µm", id, short(p[0]*1000), short(p[1]*1000))
		dx.points = append(dx.points, point{float64(id), p[0] * 1000, tip, false})
		dy.points = append(dy.points, point{float64(id), p[1] * 1000, tip, false})
	}
	add((&chart{title: "Accumulated drift of the slices", xLabel: "slice", yLabel: "drift, µm", whole: true, series: []series{dx, dy}}).
		plot("Accumulated drift: the shifts added up from the first slice on."))
	return plots
}

// positionIDs are the slices whose position is shown: all that the shifts name.
func (r *Report) positionIDs() []int {
	var ids []int
	for _, p := range r.Shifts.Pairs() {
		ids = append(ids, p.Fixed, p.Moving)
	}
	return sorted(ids)
}

// matchPlots are the overlap and the correlation of each pair.
func (r *Report) matchPlots() (plots []*Plot) {
	overlap, blend, corr := series{name: "overlap", joined: true}, series{name: "blended"}, series{name: "correlation"}
	measured := false
	for _, m := range r.Matches {
		tip := fmt.Sprintf("slices %d–%d: overlap %d voxels, blended %d, correlation %s", m.Fixed, m.Moving, m.Overlap, m.BlendOverlap, short(m.Correlation))
		if m.Fallback {
			tip += ", expected overlap taken"
		}
		overlap.points = append(overlap.points, point{float64(m.Moving), float64(m.Overlap), tip, false})
		blend.points = append(blend.points, point{float64(m.Moving), float64(m.BlendOverlap), tip, false})
		if m.Correlation != 0 || m.Fallback {
			measured = true
			corr.points = append(corr.points, point{float64(m.Moving), m.Correlation, tip, m.Fallback || m.Correlation < lowCorrelation})
		}
	}
	if p := (&chart{title: "Overlap of each slice with the one before it", xLabel: "slice", yLabel: "overlap, voxels", whole: true, zero: true, series: []series{overlap, blend}}).
		plot("Overlap of each slice with the one before it, and how much of it is blended."); p != nil {
		plots = append(plots, p)
	}
	if measured {
		c := &chart{title: "Correlation of each overlap", xLabel: "slice", yLabel: "correlation", whole: true, zero: true, series: []series{corr},
			limits: []limit{{lowCorrelation, "low under here"}}}
		plots = append(plots, c.plot("Correlation of the overlap, where it was measured. A ring marks low values and pairs for which the expected overlap was taken."))
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
	const width, left, right, rowHeight = 1072.0, 92.0, 6.0, 11.0 // as wide as the page
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
		fmt.Fprintf(&body, `<text class="name" x="%s" y="%s" text-anchor="end">%s</text>`, num(left-8), num(y+rowHeight*0.5*float64(len(ends))+3.5), html.EscapeString(clip(tool, 14)))
		for _, b := range by[tool] {
			class := "s1"
			if b.run.ExitCode != 0 {
				class = "bad"
			}
			fmt.Fprintf(&body, `<rect class="bar %s" x="%s" y="%s" width="%s" height="%s" rx="1.5"><title>%s</title></rect>`, class,
				num(px(b.from)), num(y+float64(b.lane)*rowHeight), num(max(1, px(b.to)-px(b.from)-0.6)), num(rowHeight-2.5),
				html.EscapeString(fmt.Sprintf("%s %s: %s from %s on", b.run.Tool, b.run.slice(), seconds(b.run.WallSeconds), seconds(b.from))))
		}
		y += rowHeight*float64(len(ends)) + 9
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %s %s" role="img" aria-label="When each program ran">`, num(width), num(y+40))
	for _, t := range ticks(0, length, 12, false) {
		fmt.Fprintf(&b, `<line class="grid" x1="%s" y1="4" x2="%s" y2="%s"/><text class="tick" x="%s" y="%s" text-anchor="middle">%s</text>`,
			num(px(t)), num(px(t)), num(y), num(px(t)), num(y+16), label(t))
	}
	b.WriteString(body.String())
	fmt.Fprintf(&b, `<text class="name" x="%s" y="%s" text-anchor="middle">seconds since the first start</text></svg>`, num(left+w/2), num(y+34))
	return template.HTML(b.String()) // names in it were escaped
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
