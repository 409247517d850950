package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// printer writes formatted text.
type printer func(format string, args ...any)

func printTo(w io.Writer) printer {
	return func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
}

// machine prints the conditions that the numbers depend on.
func machine(p printer, f *facts) {
	p("## Machine and versions\n\n| | |\n|---|---|\n| processor | %s, %d cores |\n| memory | %.1f GiB |\n| system | %s, %s |\n| compiler | %s |\n| other programs | %s |\n",
		f.CPU, f.Cores, float64(f.MemoryMiB)/1024, f.OS, f.Kernel, f.Go, f.Versions)
	changed := ""
	if f.Changed != "" {
		changed = " and " + f.Changed + " changed source files"
	}
	p("| written to | %s |\n| commit | %s%s |\n| date | %s |\n| load before the run | %s |\n\n", f.Out, f.Commit, changed, f.Date, f.Load)
}

// shortfalls counts the targets of a page and names the missed ones, with the notes of their cases.
func (g *page) shortfalls(p printer, all []*outcome, n notes) {
	stated, missed := 0, 0
	var text strings.Builder
	for _, o := range all {
		var words []string
		for _, v := range o.verdicts() {
			if stated++; !v.reached {
				missed++
				words = append(words, v.got+", wanted "+v.want)
			}
		}
		if words != nil {
			fmt.Fprintf(&text, "- **%s: %s** (%s). %s\n", g.groupTitle(o.Group), strings.ReplaceAll(o.Label, "`", ""), strings.Join(words, "; "), n.take(o.Name))
		}
	}
	p("## Targets\n\n%d of %d are reached.", stated-missed, stated)
	if missed > 0 {
		p(" These are not:\n\n%s", text.String())
	}
	p("\n%s", n.rest())
}

func (g *page) groupTitle(name string) string {
	i := slices.IndexFunc(g.groups, func(t group) bool { return t.name == name })
	if i < 0 {
		return name
	}
	return strings.ReplaceAll(g.groups[i].title, "`", "")
}

// table prints a group: for each program of each case its wall and processor time, memory and disk space, and how
// strata compares with it.
func table(p printer, t group, all []*outcome) {
	var rows []*outcome
	first, written := false, false
	for _, o := range all {
		if o.Group != t.name {
			continue
		}
		rows = append(rows, o)
		for _, s := range o.median {
			first, written = first || s.first > 0, written || s.stored > 0
		}
	}
	if len(rows) == 0 {
		return
	}
	p("## %s\n\n", t.title)
	if t.text != "" {
		p("%s\n\n", t.text)
	}
	columns := func(label, who, speed, first1, cpu, memory, stored, times, target string) {
		cells := []string{label, who, speed}
		if first {
			cells = append(cells, first1)
		}
		cells = append(cells, cpu, memory)
		if written {
			cells = append(cells, stored)
		}
		p("| %s |\n", strings.Join(append(cells, times, target), " | "))
	}
	wall := "time"
	if strings.HasSuffix(rows[0].Unit, "/s") {
		wall = "speed"
	}
	columns("", "", wall, "first", "processor", "resident", "written", "strata is", "target")
	columns("---", "---", "---:", "---:", "---:", "---:", "---:", "---:", "---")
	for _, o := range rows {
		label := o.Label
		if o.Input > 0 {
			label += ", " + sizeText(o.Input) + " stored"
		}
		verdicts := o.verdicts()
		for _, w := range o.who {
			s := o.median[w]
			if s.failed != "" {
				columns(label, w, "fails", "", "", "", "", "", "")
				label = ""
				continue
			}
			var targets []string
			times := o.compared(w)
			for _, v := range verdicts {
				if v.who == w {
					targets = append(targets, v.want+" "+mark(v.reached))
				}
				if v.who == w && v.inverse {
					times = v.got
				}
			}
			columns(label, w, number(o.speed(s.seconds, s), o.Unit), o.firstCell(s), milli(s.cpu), sizeText(s.hwm<<10), sizeText(s.stored), times, strings.Join(targets, ", "))
			label = ""
		}
	}
	rounds(p, rows)
}

// rounds describes how often the programs ran, and how much their runs vary.
func rounds(p printer, rows []*outcome) {
	lo, hi, spread := 1<<30, 0, []float64{}
	for _, o := range rows {
		for _, s := range o.median {
			if s.failed == "" {
				lo, hi, spread = min(lo, s.rounds), max(hi, s.rounds), append(spread, s.spread)
			}
		}
	}
	if len(spread) > 0 {
		count := fmt.Sprint(lo)
		if hi > lo {
			count += fmt.Sprintf(" to %d", hi)
		}
		p("\n%s rounds; a program's slowest and fastest rounds differ by %.0f %% (median).\n\n", count, 100*median(spread))
	}
}

func (o *outcome) firstCell(s summary) string {
	if s.first == 0 {
		return ""
	}
	return number(o.speed(s.first, s), o.Unit)
}

// compared returns strata's speed in multiples of another's, as a cell.
func (o *outcome) compared(who string) string {
	r := o.times(who)
	if who == strata || r == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f × as fast", r)
}

func mark(ok bool) string { return map[bool]string{true: "✓", false: "✗"}[ok] }

// sizeText formats bytes as MiB, or "" for none.
func sizeText(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < 1<<20:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
}

// milli formats seconds, short ones as milliseconds.
func milli(s float64) string {
	if s < 0.1 {
		return number(s*1e3, "ms")
	}
	return number(s, "s")
}

// number formats a number with about three digits, and the unit.
func number(v float64, unit string) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	case v >= 0.1:
		return fmt.Sprintf("%.2f %s", v, unit)
	}
	return fmt.Sprintf("%.3f %s", v, unit)
}
