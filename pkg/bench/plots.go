package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"strata/pkg/webpage"
)

const (
	mostLines = 6  // in a plot
	mostRows  = 24 // of bars in a plot
)

// plots returns the plots of a group: bars, or lines along an axis that has three numbers or more. A plot
// that would be too full is split into several, one for each value of an axis.
func (g *group) plots() []*webpage.Plot {
	var out []*webpage.Plot
	for _, part := range g.scales() {
		out = append(out, part.draw()...)
	}
	return out
}

func (g *group) draw() []*webpage.Plot {
	if x := g.along(); x != "" {
		if lines := g.lines(x); len(lines) <= mostLines {
			return drop(g.chart(x, lines).Plot(g.caption("")))
		}
	} else if b := g.bars(); len(b.Rows) <= mostRows {
		return drop(b.Plot(g.caption("")))
	}
	for _, name := range g.axes {
		if name == g.along() {
			continue
		}
		var out []*webpage.Plot
		for _, part := range g.split(name) {
			out = append(out, part.draw()...)
		}
		return out
	}
	return drop(g.bars().Plot(g.caption("")))
}

func drop(p *webpage.Plot) []*webpage.Plot {
	if p == nil {
		return nil
	}
	return []*webpage.Plot{p}
}

// farApart is the minimum ratio of the rates of two parts of a group that do not fit into one plot.
const farApart = 3

// scales splits a group along an axis of words, such as whether a cache was warm, if the best results of the parts
// differ so much that slow parts would not be readable in one plot. Otherwise it returns the group itself. If several
// axes qualify, it takes the one with the least variation within its parts.
func (g *group) scales() []*group {
	parts, least := []*group{g}, spreadOf(g.results)/farApart
	for _, name := range g.axes {
		if slices.ContainsFunc(g.results, func(r Result) bool { _, ok := number(r.Axes.Get(name)); return ok }) {
			continue
		}
		split := g.split(name)
		low, high, within := math.Inf(1), 0.0, 0.0
		for _, p := range split {
			best := bestOf(p.results)
			if best == nil || len(p.results) < 2 {
				low = 0
				break
			}
			low, high, within = min(low, best.Rate()), max(high, best.Rate()), max(within, spreadOf(p.results))
		}
		if low > 0 && high/low > farApart && within < least {
			parts, least = split, within
		}
	}
	return parts
}

// spreadOf returns the ratio of the highest to the lowest rate of some results.
func spreadOf(list []Result) float64 {
	low, high := math.Inf(1), 0.0
	for _, r := range list {
		if rate := r.Rate(); rate > 0 {
			low, high = min(low, rate), max(high, rate)
		}
	}
	if high == 0 {
		return 1
	}
	return high / low
}

// split returns a group for each value of an axis.
func (g *group) split(name string) []*group {
	var out []*group
	by := map[string]*group{}
	for _, r := range g.results {
		v := r.Axes.Get(name)
		if by[v] == nil {
			by[v] = &group{name: g.name}
			out = append(out, by[v])
		}
		by[v].results = append(by[v].results, r)
	}
	for _, p := range out {
		p.describe()
	}
	return out
}

func (g *group) caption(more string) string {
	text := g.name
	if len(g.same) > 0 {
		text += " (" + g.same.String() + ")"
	}
	text += more + ". Medians"
	if slices.ContainsFunc(g.results, func(r Result) bool { return len(r.Seconds) > 1 }) {
		text += "; lines reach from the slowest to the fastest repeat"
	}
	return text + "."
}

// along returns the axis that lines are drawn along, or "" for bars.
func (g *group) along() string {
	best, most := "", 2
	for _, name := range g.axes {
		values := map[string]bool{}
		for _, r := range g.results {
			v := r.Axes.Get(name)
			if _, ok := number(v); !ok {
				values = nil
				break
			}
			values[v] = true
		}
		if len(values) > most {
			best, most = name, len(values)
		}
	}
	return best
}

// lines groups the results that form one line of a plot: all their axes but x are equal.
func (g *group) lines(x string) [][]Result {
	var out [][]Result
	by := map[string]int{}
	for _, r := range g.results {
		if !r.Measured() {
			continue
		}
		key := r.Who + "\x00" + g.label(r, x)
		i, ok := by[key]
		if !ok {
			i = len(out)
			by[key] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

func (g *group) chart(x string, lines [][]Result) *webpage.Chart {
	c := &webpage.Chart{Title: g.name + " along " + x, XLabel: x, YLabel: "GiB/s", Zero: true}
	for _, r := range g.results {
		if v := r.Axes.Get(x); !slices.Contains(c.Names, v) {
			c.Names = append(c.Names, v)
		}
	}
	slices.SortStableFunc(c.Names, func(a, b string) int {
		x, _ := number(a)
		y, _ := number(b)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	for _, line := range lines {
		s := webpage.Series{Name: g.label(line[0], x), Joined: true}
		if len(g.who) > 1 || s.Name == "" {
			s.Name = strings.Join(dropEmpty(line[0].Who, s.Name), ": ")
		}
		for _, r := range line {
			low, high := r.rates()
			s.Points = append(s.Points, webpage.Point{X: float64(slices.Index(c.Names, r.Axes.Get(x))), Y: r.Rate() / (1 << 30), Tip: s.Name + ", " + tip(r), Low: low / (1 << 30), High: high / (1 << 30)})
		}
		slices.SortStableFunc(s.Points, func(a, b webpage.Point) int { return int(a.X - b.X) })
		c.Series = append(c.Series, s)
	}
	return c
}

func tip(r Result) string {
	text := fmt.Sprintf("%s: %s GiB/s", r.Axes, GiBs(r.Rate()))
	if r.Ops > 0 {
		text += fmt.Sprintf(", %s IOPS", count(r.OpsRate()))
	}
	if r.Latency != nil {
		text += fmt.Sprintf(", p50 %s, p99 %s", Time(r.Latency.P50), Time(r.Latency.P99))
	}
	return text
}

// bars returns a row for each case, with a bar for each program.
func (g *group) bars() *webpage.Bars {
	b := &webpage.Bars{Title: g.name, Label: "GiB/s", Series: g.who}
	by := map[string]int{}
	for _, r := range g.results {
		name := g.label(r)
		i, ok := by[name]
		if !ok {
			i = len(b.Rows)
			by[name] = i
			row := webpage.Row{Name: name, Bars: make([]webpage.Bar, len(g.who))}
			if row.Name == "" && len(g.who) == 1 {
				row.Name = r.Who
			}
			for k := range row.Bars {
				row.Bars[k].Value = webpage.None()
			}
			b.Rows = append(b.Rows, row)
		}
		bar := webpage.Bar{Value: webpage.None(), Text: r.Reason}
		if r.Measured() {
			low, high := r.rates()
			bar = webpage.Bar{Value: r.Rate() / (1 << 30), Low: low / (1 << 30), High: high / (1 << 30), Text: GiBs(r.Rate()), Tip: r.Who + ", " + tip(r)}
		}
		b.Rows[i].Bars[slices.Index(g.who, r.Who)] = bar
	}
	return b
}

// SVG writes one plot of the results that a filter selects, as an SVG file: bars for each case and program. A
// nil filter selects all. An empty plot is an error.
func (d *Document) SVG(w io.Writer, title string, take func(r Result) bool) error {
	var list []Result
	for _, r := range d.Results {
		if take == nil || take(r) {
			r.Axes = slices.Clone(r.Axes)
			list = append(list, r)
		}
	}
	if len(groups(list)) != 1 { // the name is an axis then
		for i := range list {
			list[i].Axes = append(Axes{{"", list[i].Name}}, list[i].Axes...)
			list[i].Name = title
		}
	}
	for _, g := range groups(list) {
		b := g.bars()
		b.Title = title
		return b.File(w)
	}
	return fmt.Errorf("%s: no result to draw", title)
}
