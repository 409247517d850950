package qc

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"strata/pkg/webpage"
)

// WriteText writes the report as text: the verdict, messages, bad slices, metrics of steps and times, without tables
// and pictures.
func (r *Report) WriteText(w io.Writer) error {
	v := r.view()
	out := bufio.NewWriter(w)
	line := func(format string, args ...any) {
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
	heading := func(text string) { line("\n%s\n%s", text, strings.Repeat("-", len([]rune(text)))) }
	line("%s\n%s", r.Title, strings.Repeat("=", len([]rune(r.Title))))
	if v.Subtitle != "" {
		line("%s", v.Subtitle)
	}
	line("\n%s %s", v.Verdict.Word, v.Verdict.Text)
	for _, k := range v.Key {
		line("  %-16s %s  %s", k.Name, k.Value, k.Note)
	}
	heading("Warnings")
	if !v.Warns() {
		line("none")
	}
	for _, n := range v.Notices {
		line("%s: %s: %s", n.Grade, n.Where, n.Text)
		for _, s := range n.Similar {
			line("  also: %s", s)
		}
	}
	if v.BadSlices != nil {
		heading("Bad slices")
		for _, row := range v.BadSlices.Rows {
			line("  slice %s: %s: %s; %s", row[0].Text, row[1].Text, row[2].Text, row[3].Text)
		}
	}
	if r.hasDiagnostics() {
		heading("Diagnostics")
		for _, a := range r.Analyses {
			line("%s: %s", a.Title, a.Verdict)
			for _, f := range a.Findings {
				line("  %s", f)
			}
		}
		for _, c := range r.Compared {
			line("%s: %s", c.Name, c.line())
		}
	}
	for _, g := range v.Steps {
		heading(g.Title + ": " + g.Counts)
		if g.Table == nil {
			continue
		}
		for i, c := range g.Table.Columns[2:] {
			if len(g.Table.Rows) == 1 {
				line("  %-32s %s", c.Name, g.Table.Rows[0][i+2].Text)
				continue
			}
			values := make([]string, 0, len(g.Table.Rows))
			for _, row := range g.Table.Rows {
				values = append(values, row[0].Text+" "+row[i+2].Text)
			}
			line("  %-32s %s", c.Name, strings.Join(values, ", "))
		}
	}
	if all := stages(r.Runs); len(all) > 0 {
		heading("Stages")
		for _, s := range all {
			line("  %-16s %s, %s", s.Tool, webpage.Plural(s.Runs, "run"), webpage.Seconds(s.Wall))
		}
	}
	return out.Flush()
}
