package bench

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"strata/pkg/units"
)

// Head is the head of a table's column.
type Head struct {
	Name  string
	Right bool // the column has numbers, which end at the same place
}

// column is a column of a table of results. A column that is empty for all results is left out.
type column struct {
	Head
	cell func(r Result) string
}

// columns returns the columns for a group of results, all of which are from document d.
func columns(g *group, by map[string][]Result) []column {
	var out []column
	for _, name := range g.axes {
		numeric := true
		for _, r := range g.results {
			if _, ok := number(r.Axes.Get(name)); !ok {
				numeric = false
			}
		}
		out = append(out, column{Head{name, numeric}, func(r Result) string { return r.Axes.Get(name) }})
	}
	if len(g.who) > 1 || g.who[0] != Strata {
		out = append(out, column{Head{"who", false}, func(r Result) string { return r.Who }})
	}
	return append(out,
		column{Head{"took", false}, func(r Result) string {
			for _, a := range r.Axes {
				if a.Value == r.Backend {
					return "" // as asked for
				}
			}
			return r.Backend
		}},
		column{Head{"GiB/s", true}, func(r Result) string {
			if !r.Measured() {
				return "–"
			}
			return GiBs(r.Rate())
		}},
		column{Head{"from to", true}, measured(func(r Result) string {
			if len(r.Seconds) < 2 {
				return ""
			}
			a, b := r.rates()
			return GiBs(a) + "–" + GiBs(b)
		})},
		column{Head{"ratio", false}, func(r Result) string { return ratios(r, by) }},
		column{Head{"IOPS", true}, measured(func(r Result) string {
			if r.Ops == 0 {
				return ""
			}
			return count(r.OpsRate())
		})},
		column{Head{"p50", true}, late(func(l *Latency) float64 { return l.P50 })},
		column{Head{"p99", true}, late(func(l *Latency) float64 { return l.P99 })},
		column{Head{"p99.9", true}, late(func(l *Latency) float64 { return l.P999 })},
		column{Head{"most", true}, late(func(l *Latency) float64 { return l.Most })},
		column{Head{"s", true}, measured(func(r Result) string { return Ratio(r.Median()) })},
		column{Head{"CPU s", true}, measured(func(r Result) string {
			if r.CPU == 0 {
				return ""
			}
			return Ratio(r.CPU)
		})},
		column{Head{"memory", true}, size(func(r Result) int64 { return r.RSS })},
		column{Head{"device", true}, size(func(r Result) int64 { return r.Device })},
		column{Head{"", false}, func(r Result) string {
			return strings.Join(dropEmpty(r.Reason, r.Note), "; ")
		}},
	)
}

// measured returns a function that returns f(r) for a measured result and "" for any other.
func measured(f func(r Result) string) func(r Result) string {
	return func(r Result) string {
		if !r.Measured() {
			return ""
		}
		return f(r)
	}
}

// size returns a number of bytes of results that were measured, "" of 0.
func size(f func(r Result) int64) func(r Result) string {
	return measured(func(r Result) string {
		if f(r) == 0 {
			return ""
		}
		return units.FormatSize(f(r))
	})
}

// late returns a time of results that have latencies.
func late(f func(l *Latency) float64) func(r Result) string {
	return measured(func(r Result) string {
		if r.Latency == nil {
			return ""
		}
		return Time(f(r.Latency))
	})
}

func dropEmpty(list ...string) []string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// cells returns the heads and rows of the table of a group, without empty columns.
func cells(g *group, by map[string][]Result) (heads []Head, rows [][]string) {
	rows = make([][]string, len(g.results))
	for _, c := range columns(g, by) {
		texts, some := make([]string, len(g.results)), false
		for i, r := range g.results {
			texts[i] = Plain(c.cell(r))
			some = some || texts[i] != ""
		}
		if !some {
			continue
		}
		heads = append(heads, c.Head)
		for i := range rows {
			rows[i] = append(rows[i], texts[i])
		}
	}
	return heads, rows
}

// Table writes the results for people, and the advice.
func (d *Document) Table(w io.Writer) error {
	var b strings.Builder
	by := peers(d.Results)
	for i, g := range groups(d.Results) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(Plain(g.name))
		if len(g.same) > 0 {
			fmt.Fprintf(&b, " (%s)", Plain(g.same.String()))
		}
		b.WriteByte('\n')
		heads, rows := cells(g, by)
		WriteTable(&b, heads, rows)
	}
	if len(d.Advice) > 0 {
		b.WriteByte('\n')
	}
	for _, a := range d.Advice {
		fmt.Fprintf(&b, "%s\n", Plain(a))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteTable writes rows of texts below their heads, indented by two spaces.
func WriteTable(b *strings.Builder, heads []Head, rows [][]string) {
	widths := make([]int, len(heads))
	for i, h := range heads {
		widths[i] = utf8.RuneCountInString(h.Name)
		for _, r := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
	}
	line := func(texts func(i int) string) {
		var l strings.Builder
		for i, h := range heads {
			t := texts(i)
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(t))
			l.WriteString("  ")
			if h.Right {
				l.WriteString(space + t)
			} else {
				l.WriteString(t + space)
			}
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	line(func(i int) string { return heads[i].Name })
	for _, r := range rows {
		line(func(i int) string { return r[i] })
	}
}

// Plain returns text in one line, without characters that a terminal would interpret.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}
