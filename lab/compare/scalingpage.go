package main

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

func scalingPart() *part {
	groups := []group{}
	for _, s := range scalingStages {
		groups = append(groups, group{s.name, strings.Join(append([]string{s.name}, s.args...), " ")})
	}
	groups = append(groups, group{"read", "The whole array, by other programs, too"})
	return &part{
		name: "scaling", page: "benchmarks-scaling.md", picture: "benchmarks-scaling.svg",
		plot: "Busy cores against threads, tiles of 105 MB as zstd:3", groups: groups, hidden: betweenSizes, tables: scalingTables, drawn: drawScaling,
		more: func(all []*outcome, _ string) (map[string]string, error) {
			return map[string]string{"scaling/busy": busyRange(all)}, nil
		},
	}
}

// betweenSizes reports whether a case repeats what other sizes and zstd show: the page has the smallest chunks, the
// standard ones and the largest.
func betweenSizes(o *outcome) bool {
	_, mosaic, _ := strings.Cut(o.Name, "/")
	return mosaic == "16-zstd" || mosaic == "105-raw" || mosaic == "105-blosc"
}

// scalingTables returns the table of the stages, and that of other programs that read the same arrays.
func scalingTables(f *facts, all []*outcome) map[string]string {
	return map[string]string{
		"scaling/stages": scalingTable(f, all, byDefault, func(o *outcome) bool { return o.Group != "read" }),
		"scaling/read":   scalingTable(f, all, strata, func(o *outcome) bool { return o.Group == "read" }),
	}
}

// scalingTable returns a row for each of the chosen cases, with a column for each number of threads that was measured
// and one for each series beside ours.
func scalingTable(f *facts, all []*outcome, ours string, chosen func(*outcome) bool) string {
	var rows []*outcome
	for _, o := range all {
		if chosen(o) && !betweenSizes(o) {
			rows = append(rows, o)
		}
	}
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	p := printTo(&b)
	counts := slices.DeleteFunc(slices.Clone(threadCounts), func(n int) bool { return n > f.Cores })
	top := counts[len(counts)-1]
	var others []string
	for _, o := range rows {
		for _, s := range o.series() {
			if s != ours && !slices.Contains(others, s) {
				others = append(others, s)
			}
		}
	}
	head := []string{""}
	for _, n := range counts {
		head = append(head, strings.TrimPrefix(threaded("", n), ", "))
	}
	head = append(head, "busy cores", "efficiency, %", "MiB")
	for _, s := range others {
		head = append(head, asCode(s))
	}
	p("|%s |\n|---|%s\n", strings.Join(head, " | "), strings.Repeat("---:|", len(head)-1))
	for _, o := range rows {
		size, _, _ := strings.Cut(o.Label, " (") // the sheet has the shape, and all rows of the page are zstd:3
		cells := []string{size}
		if ours == byDefault {
			cells[0] = "`" + o.Group + "`, " + cells[0]
		}
		for _, n := range counts {
			cells = append(cells, o.scalingTime(threaded(ours, n)))
		}
		who := threaded(ours, top)
		s := o.median[who]
		busyCell, efficiencyCell := "", ""
		if s.seconds > 0 {
			busyCell = digits(s.busyCores()) + o.missedIn(threaded(ours, 2), busy)
			if e := o.efficiency(who); e > 0 {
				efficiencyCell = fmt.Sprintf("%.0f", 100*e) + o.missedIn(threaded(ours, 16), efficiency)
			}
		}
		cells = append(cells, busyCell, efficiencyCell, mib(s.hwm))
		for _, other := range others {
			cells = append(cells, o.besideOurs(who, threaded(other, top), ours == strata))
		}
		p("| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// scalingTime returns the cell of a program's time, marked if a goal of seconds is missed.
func (o *outcome) scalingTime(who string) string {
	s := o.median[who]
	switch {
	case s.failed != "":
		return "fails"
	case s.seconds == 0:
		return ""
	}
	return number(s.seconds, "s") + o.missedIn(who, absolute)
}

// besideOurs returns the cell of another program: our speed in multiples of its own. Of a series with other memory it
// returns the time in multiples of ours, and the peak.
func (o *outcome) besideOurs(ours, other string, program bool) string {
	s, r := o.median[other], o.ratio(ours, other)
	switch {
	case s.failed != "":
		return "fails" + o.missedIn(other, resident)
	case r == 0:
		return ""
	case program:
		return digits(r) + "×"
	}
	return fmt.Sprintf("%s, %s%s", digits(r), mib(s.hwm), o.missedIn(other, resident)+o.missedIn(ours, other))
}

// mib formats KiB as MiB.
func mib(kib int64) string { return fmt.Sprintf("%.0f", float64(kib)/1024) }

// busyRange returns how many cores the stages keep busy with the most threads: range and median over stages and
// mosaics.
func busyRange(all []*outcome) string {
	var cores []float64
	top := 0
	for _, o := range all {
		for _, w := range o.who {
			if series, n := seriesOf(w); series == byDefault {
				top = max(top, n)
			}
		}
	}
	for _, o := range all {
		if s := o.median[threaded(byDefault, top)]; s.seconds > 0 {
			cores = append(cores, s.busyCores())
		}
	}
	if cores == nil {
		return ""
	}
	slices.Sort(cores)
	return fmt.Sprintf("%s to %s cores busy with %d threads (median %s)", digits(cores[0]), digits(cores[len(cores)-1]), top, digits(median(cores)))
}

// missedIn returns a mark if a program misses a target of that kind.
func (o *outcome) missedIn(who, against string) string {
	for _, t := range o.Targets {
		if t.Who == who && t.Against == against {
			if v, measured := o.verdictOn(t); measured && !v.reached {
				return " ✗"
			}
		}
	}
	return ""
}

// asCode marks a series that is a flag as code.
func asCode(series string) string {
	if strings.HasPrefix(series, "-") {
		return "`" + series + "`"
	}
	return series
}

// series lists what ran with one or more numbers of threads.
func (o *outcome) series() []string {
	var all []string
	for _, w := range o.who {
		if s, _ := seriesOf(w); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// drawScaling draws a panel for each group: busy cores against threads of every series, both in powers of two, beside
// the diagonal of threads that are all busy.
func drawScaling(w io.Writer, all []*outcome) {
	const width, height, step = 320, 250, 40 // of a panel; pixels per power of two
	var body []string
	add := func(format string, args ...any) { body = append(body, fmt.Sprintf(format, args...)) }
	g := scalingPart()
	var legends []string
	rows := 0
	for i, t := range g.groups {
		x0, y0 := 40+i%3*width, 70+i/3*height+4*step
		rows = i/3 + 1
		add(`<text x="%d" y="%d" class="h">%s</text>`, x0, y0-4*step-12, html.EscapeString(g.groupTitle(t.name)))
		for k, n := range threadCounts {
			add(`<text x="%d" y="%d" text-anchor="middle" class="n">%d</text><text x="%d" y="%d" text-anchor="end" class="n">%[3]d</text>`, x0+k*step, y0+16, n, x0-6, y0-k*step+4)
			add(`<path d="M%d %dh%d" stroke="#eeeeee"/>`, x0, y0-k*step, 4*step)
		}
		add(`<path d="M%d %dv%dM%[1]d %[2]dh%[4]dM%[1]d %[2]dl%[4]d %[3]d" stroke="#bbbbbb" fill="none"/>`, x0, y0, -4*step, 4*step)
		at := slices.IndexFunc(all, func(o *outcome) bool { return o.Name == t.name+"/"+standardSize+"-zstd" })
		if at < 0 {
			continue
		}
		for _, series := range all[at].series() {
			if !slices.Contains(legends, series) {
				legends = append(legends, series)
			}
			line := ""
			for k, n := range threadCounts {
				s := all[at].median[threaded(series, n)]
				if s.failed != "" || s.seconds == 0 {
					continue
				}
				x, y := float64(x0+k*step), float64(y0)-step*math.Log2(max(s.busyCores(), 0.5))
				line += fmt.Sprintf("%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[line == ""], x, y)
				add(`<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`, x, y, color(series))
			}
			add(`<path d="%s" stroke="%s" stroke-width="2" fill="none"/>`, line, color(series))
		}
	}
	for i, series := range legends {
		add(`<rect x="%d" y="14" width="11" height="11" fill="%s"/><text x="%d" y="24">%s</text>`, 12+i*130, color(series), 28+i*130, html.EscapeString(series))
	}
	add(`<text x="%d" y="%d" text-anchor="end" class="n">busy cores (y) against threads (x); on the diagonal all threads compute</text>`, plotWidth-12, 40+rows*height)
	svg(w, g.plot, 60+rows*height, body)
}
