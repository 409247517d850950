package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"strings"
)

// sheetHead names the columns of the sheet.
var sheetHead = []string{"part", "group", "case", "label", "program", "value", "unit", "first_s", "wall_s", "cpu_s", "resident_mib", "workers", "input_bytes", "written_bytes",
	"rounds", "spread", "strata_times_as_fast", "targets", "missed", "difference_largest", "difference_mean", "largest_value", "difference_far", "failed"}

// rows returns the rows of the sheet: one for each program of each case.
func (g *part) rows(all []*outcome) (rows [][]string) {
	for _, o := range all {
		for _, w := range o.who {
			s := o.median[w]
			some := func(v float64) string {
				if v == 0 || s.failed != "" {
					return ""
				}
				return fmt.Sprintf("%.4g", v)
			}
			count := func(n int64) string {
				if n == 0 {
					return ""
				}
				return fmt.Sprint(n)
			}
			var wanted, missed []string
			for _, v := range o.verdicts() {
				if v.who != w {
					continue
				}
				if wanted = append(wanted, v.want); !v.reached {
					missed = append(missed, v.got)
				}
			}
			times := 0.0
			if w != strata {
				times = o.times(w)
			}
			row := []string{g.name, o.Group, o.Name, strings.ReplaceAll(o.Label, "`", ""), w, some(o.speedOf(w)), o.Unit, some(s.first), some(s.seconds), some(s.cpu),
				some(float64(s.hwm) / 1024), count(int64(s.workers)), count(o.Input), count(s.stored), count(int64(s.rounds)), some(s.spread), some(times),
				strings.Join(wanted, "; "), strings.Join(missed, "; ")}
			rows = append(rows, append(append(row, o.difference(w)...), s.failed))
		}
	}
	return rows
}

// difference returns the cells of how far another program's result is from strata's.
func (o *outcome) difference(who string) []string {
	for _, d := range o.diffs {
		switch {
		case d.Who != who:
		case d.Shapes != nil:
			return []string{fmt.Sprintf("shapes %v", d.Shapes), "", "", ""}
		default:
			return []string{fmt.Sprintf("%.2g", d.Max), fmt.Sprintf("%.2g", d.Mean), fmt.Sprintf("%.4g", d.Range), fmt.Sprintf("%.2g", d.Far)}
		}
	}
	return make([]string, 4)
}

// machinesHead names the columns of the sheet of machines.
var machinesHead = []string{"part", "processor", "cores", "memory_mib", "system", "kernel", "go", "written_to", "commit", "changed_files", "date", "load_before", "versions"}

// row returns the conditions of a part.
func (f *facts) row(part string) []string {
	return []string{part, f.CPU, fmt.Sprint(f.Cores), fmt.Sprint(f.MemoryMiB), f.OS, f.Kernel, f.Go, f.Out, f.Commit, f.Changed, f.Date, f.Load, f.Versions}
}

// writeSheet writes all rows as CSV.
func writeSheet(file string, head []string, rows [][]string) error {
	var b strings.Builder
	w := csv.NewWriter(&b)
	if err := w.WriteAll(append([][]string{head}, rows...)); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o666)
}
