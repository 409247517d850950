package main

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

func scalingPage() *page {
	groups := []group{}
	for _, s := range scalingStages {
		groups = append(groups, group{s.name, "`" + strings.Join(append([]string{s.name}, s.args...), " ") + "`", ""})
	}
	groups = append(groups, group{"read", "The whole array, by other programs, too", "The array of a mosaic into fresh memory. Each program is given the same number of threads and repeats the read once in the same process; the second time counts. " +
		"A chunk of one zstd frame is decoded by one thread in every program."})
	return &page{
		part: "scaling", file: "benchmarks-scaling.md", title: "Benchmarks of scaling",
		plot: "Busy cores against threads, tiles of 105 MB as zstd:3", groups: groups, table: scalingTable, drawn: drawScaling,
		intro: func(f *facts) string {
			return "This page measures how the stages use the threads they are given (`--threads`), on mosaics whose tiles are one chunk each, and how other programs do that read the same arrays. Inputs are in the page cache. " +
				"Each measurement is a new process. " + rounded +
				"\n\n" + f.About + " Each cell has the time and, in brackets, the difference between the slowest and the fastest round; **busy cores** (processor time over wall time) and **efficiency** (speed in multiples of one thread's, over the number of threads); " +
				"the peak resident memory and, where the run record states it, the number of workers that computed at a time. Numbers of threads above the machine's processors are not measured; a stage *fails* where it refuses to begin because a tile needs more memory than `--mem` grants (lab/results has its message). " +
				"The default memory is measured with all numbers of threads, " + asCode(smallMem) + " with two and more and chunks of 105 and 400 MB, " + asCode(largeMem) + " with the most threads. The codecs are compared at 105 MB, the sizes with zstd:3. " + asCode(smallMem) +
				" may have 256 MiB more resident: the program itself, and memory that files are mapped to."
		},
		commands: "PARTS=scaling make bench              # this page\nBENCH_ONLY=focal/105 PARTS=scaling make bench   # some cases, no report\n" +
			"BENCH_ROUNDS=1 PARTS=scaling make bench   # one round of every case: where 16 processors take long with one thread\n",
		programs: "the stages themselves, lab/arrays (strata's reading), lab/peers.py (Python) and lab/zarrs (Rust)",
	}
}

// scalingTable prints a group: a row for each series of each case, a column for each number of threads.
func scalingTable(p printer, t group, f *facts, all []*outcome) {
	var rows []*outcome
	for _, o := range all {
		if o.Group == t.name {
			rows = append(rows, o)
		}
	}
	if len(rows) == 0 {
		return
	}
	p("## %s\n\n", t.title)
	if t.text != "" {
		p("%s\n\n", t.text)
	}
	p("| | |")
	for _, n := range threadCounts {
		p(" %s |", strings.TrimPrefix(threaded("", n), ", "))
	}
	p(" targets |\n|---|---|%s---|\n", strings.Repeat("---:|", len(threadCounts)))
	for _, o := range rows {
		label := fmt.Sprintf("%s, %s stored", o.Label, sizeText(o.Input))
		verdicts := o.verdicts()
		for _, series := range o.series() {
			p("| %s | %s |", label, asCode(series))
			label = ""
			for _, n := range threadCounts {
				p(" %s |", o.scalingCell(threaded(series, n), n > f.Cores))
			}
			var targets []string
			for _, v := range verdicts {
				if of, _ := seriesOf(v.who); of == series {
					targets = append(targets, v.want+" "+mark(v.reached))
				}
			}
			p(" %s |\n", strings.Join(targets, "<br>"))
		}
	}
	rounds(p, rows)
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

func (o *outcome) scalingCell(who string, tooMany bool) string {
	s := o.median[who]
	switch {
	case s.failed != "":
		return "fails"
	case s.seconds == 0 && tooMany:
		return "not measured"
	case s.seconds == 0:
		return ""
	}
	cell := fmt.Sprintf("%s (%.0f %%)<br>%.2f cores", number(s.seconds, "s"), 100*s.spread, s.busyCores())
	if _, n := seriesOf(who); n > 1 && o.efficiency(who) > 0 {
		cell += fmt.Sprintf(", %.0f %%", 100*o.efficiency(who))
	}
	cell += "<br>" + sizeText(s.hwm<<10)
	switch {
	case s.workers == 1:
		cell += ", 1 worker"
	case s.workers > 1:
		cell += fmt.Sprintf(", %d workers", s.workers)
	}
	return cell
}

// drawScaling draws a panel for each group: busy cores against threads of every series, both in powers of two, beside
// the diagonal of threads that are all busy.
func drawScaling(w io.Writer, all []*outcome) {
	const width, height, step = 320, 250, 40 // of a panel; pixels per power of two
	var body []string
	add := func(format string, args ...any) { body = append(body, fmt.Sprintf(format, args...)) }
	g := scalingPage()
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
