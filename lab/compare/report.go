package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// printer writes formatted text.
type printer func(format string, args ...any)

func printTo(w io.Writer) printer {
	return func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
}

// machine prints where and when a part was measured; the sheet of machines has the rest.
func machine(p printer, f *facts) {
	changed := ""
	if f.Changed != "" {
		changed = " and " + f.Changed + " changed source files"
	}
	day, _, _ := strings.Cut(f.Date, " ")
	p("%s, %d cores; commit %s%s, %s", f.CPU, f.Cores, f.Commit, changed, day)
}

// targets counts the targets of a part, and the missed ones in rows that the page lacks; the sheet names them.
func (g *part) targets(p printer, all []*outcome) {
	stated, missed, elsewhere := 0, 0, 0
	for _, o := range all {
		for _, v := range o.verdicts() {
			if stated++; v.reached {
				continue
			}
			if missed++; g.hidden != nil && g.hidden(o) {
				elsewhere++
			}
		}
	}
	p("%d of %d targets are reached; ✗ marks the others", stated-missed, stated)
	if elsewhere > 0 {
		p(", %d of them only in [the sheet](%s)", elsewhere, sheet)
	}
	p(".")
}

// yardsticks are contestants that are no program a user could take instead, or strata's own other ways.
var yardsticks = []string{strata, ioAlone, preadvPlaced, preadvAlone, tilesAlone, "level 0 alone", "array alone"}

// summary returns how many times as fast as each other program strata is: range and median over the cases, of programs
// that have several.
func (g *part) summary(all []*outcome) string {
	const fewest = 5
	times := map[string][]float64{}
	var others []string
	for _, o := range all {
		for _, w := range o.who {
			own, _, _ := strings.Cut(w, ", ")
			if r := o.times(w); r > 0 && !slices.Contains(yardsticks, own) && (w != inC || o.Group != "start") {
				if times[w] == nil {
					others = append(others, w)
				}
				times[w] = append(times[w], r)
			}
		}
	}
	var texts []string
	for _, w := range others {
		if t := slices.Sorted(slices.Values(times[w])); len(t) >= fewest {
			format := "%s to %s times as fast as %s (median %s)"
			if texts != nil {
				format = "%s to %s times %s (%s)"
			}
			texts = append(texts, fmt.Sprintf(format, digits(t[0]), digits(t[len(t)-1]), w, digits(median(t))))
		}
	}
	return strings.Join(texts, ", ")
}

func (g *part) groupTitle(name string) string {
	i := slices.IndexFunc(g.groups, func(t group) bool { return t.name == name })
	if i < 0 {
		return name
	}
	return strings.ReplaceAll(g.groups[i].title, "`", "")
}

// rowsOf prints a group: for each case strata's time or speed, how it compares with each other program, and of commands
// the memory. Multiples that the spread of the rounds could have made bear a mark.
func (g *part) rowsOf(p printer, t group, all []*outcome) {
	var rows []*outcome
	var others []string
	inverse := map[string]bool{}
	for _, o := range all {
		if o.Group != t.name || g.hidden != nil && g.hidden(o) {
			continue
		}
		rows = append(rows, o)
		for _, w := range o.who {
			if w != strata && !slices.Contains(others, w) {
				others = append(others, w)
			}
		}
		for _, v := range o.verdicts() {
			inverse[v.who] = inverse[v.who] || v.inverse
		}
	}
	if len(rows) == 0 {
		return
	}
	unit := rows[0].Unit // in the head, where all rows have the same
	if slices.ContainsFunc(rows, func(o *outcome) bool { return o.Unit != unit }) {
		unit = ""
	}
	head := []string{"", strings.TrimSuffix(strata+", "+unit, ", ")}
	for _, w := range others {
		if inverse[w] {
			w = "÷ " + w
		}
		head = append(head, w)
	}
	written := t.name == "write"
	memory := rows[0].Unit == "s" || !g.brief // seconds are those of commands
	if memory {
		head = append(head, "MiB (others)")
	}
	if written {
		head = append(head, "MiB written (others)")
	}
	p("|%s |\n|---|%s\n", strings.Join(head, " | "), strings.Repeat("---:|", len(head)-1))
	for _, o := range rows {
		p("| %s |\n", strings.Join(o.cells(columns{unit, others, inverse, memory, written}), " | "))
	}
}

// columns are those of a group's table.
type columns struct {
	unit            string // of the head, if all rows have the same
	others          []string
	inverse         map[string]bool // programs of which the table has the ratio of times
	memory, written bool
}

// cells returns the row of a case.
func (o *outcome) cells(c columns) []string {
	s := o.median[strata]
	memory := c.memory && s.hwm>>10 > o.Memory && o.Memory > 0
	label := o.Label
	for _, usual := range []string{", structured", ", 2 threads", ", tiles of 105 MB, zstd:3"} { // what the page says above the table
		label = strings.TrimSuffix(label, usual)
	}
	cells := []string{label, strings.TrimSuffix(number(o.speedOf(strata), o.Unit), " "+c.unit) + o.missed(strata, memory)}
	for _, w := range c.others {
		r := o.times(w)
		switch {
		case o.median[w].failed != "":
			cells = append(cells, "fails")
		case r == 0:
			cells = append(cells, "")
		case c.inverse[w]:
			cells = append(cells, digits(1/r)+o.missed(w, false))
		default:
			cells = append(cells, o.alike(w)+digits(r)+"×"+o.missed(w, false))
		}
	}
	mebi := func(n int64) string { return mib(n >> 10) }
	if c.memory {
		cells = append(cells, o.beside(c.others, func(s summary) int64 { return s.hwm << 10 }, mebi))
	}
	if memory {
		cells[len(cells)-1] += " ✗"
	}
	if c.written {
		cells = append(cells, o.beside(c.others, func(s summary) int64 { return s.stored }, mebi))
	}
	return cells
}

// alike returns a mark if strata and another program differ by less than the rounds of one of them do.
func (o *outcome) alike(who string) string {
	if r := o.times(who); max(r, 1/r)-1 < max(o.median[strata].spread, o.median[who].spread) {
		return "≈"
	}
	return ""
}

// missed returns the mark of a program's cell in which a target is missed; memory has a cell of its own.
func (o *outcome) missed(who string, memory bool) string {
	n := 0
	for _, v := range o.verdicts() {
		if v.who == who && !v.reached {
			n++
		}
	}
	if memory {
		n--
	}
	if n > 0 {
		return " ✗"
	}
	return ""
}

// beside formats a property of strata and, in brackets, the range of the others'.
func (o *outcome) beside(others []string, of func(summary) int64, format func(int64) string) string {
	lo, hi := int64(math.MaxInt64), int64(0)
	for _, w := range others {
		if n := of(o.median[w]); n > 0 {
			lo, hi = min(lo, n), max(hi, n)
		}
	}
	text := format(of(o.median[strata]))
	switch {
	case hi == 0:
		return text
	case format(lo) == format(hi):
		return text + " (" + format(lo) + ")"
	}
	return text + " (" + format(lo) + "–" + format(hi) + ")"
}

// digits formats a number with three digits.
func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1 || v == 0:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

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
