package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// filledIn returns the model's table (pkg/gpu/cost/figures.tsv) with the figures of a record, and their source, in
// the column of its GPU. Columns of GPUs that nobody has measured keep their ratio to it, and the source says so.
func filledIn(table string, r *record) (string, error) {
	lines := strings.SplitAfter(table, "\n")
	var heading []string
	column, filled := -1, 0
	for i, line := range lines {
		text := strings.TrimSuffix(line, "\n")
		if text == "" || text[0] == '#' {
			continue
		}
		cells := strings.Split(text, "\t")
		if heading == nil {
			heading = cells
			column = slices.IndexFunc(heading, func(c string) bool { return c != "" && strings.Contains(r.GPU.Name, c) })
			if column < 2 || len(heading) < 4 {
				return "", fmt.Errorf("it has no column for %s: it has %v", r.GPU.Name, heading)
			}
			continue
		}
		v, measured := r.Figures[cells[0]]
		if !measured || len(cells) != len(heading) {
			continue
		}
		if cells[1] == "GB/s" {
			v /= 1e9
		}
		source := &cells[len(cells)-1]
		note := fmt.Sprintf("; %s measured by make gpu-verify, commit %.7s", heading[column], r.Commit)
		kept, _, _ := strings.Cut(*source, "; "+heading[column]+" measured")
		kept = strings.TrimSuffix(kept, othersScaled)
		before, err := strconv.ParseFloat(cells[column], 64)
		if err != nil || before <= 0 {
			return "", fmt.Errorf("%s: %q is no figure of %s", cells[0], cells[column], heading[column])
		}
		cells[column] = rounded(v)
		after, _ := strconv.ParseFloat(cells[column], 64)
		for i := 2; i < len(cells)-1; i++ {
			if other, err := strconv.ParseFloat(cells[i], 64); err == nil && i != column && !strings.Contains(*source, "; "+heading[i]+" measured") {
				cells[i] = rounded(other * (after / before))
				note = strings.TrimSuffix(note, othersScaled) + othersScaled
			}
		}
		*source = kept + note
		lines[i] = strings.Join(cells, "\t") + "\n"
		filled++
	}
	if filled == 0 {
		return "", fmt.Errorf("it has none of the record's %d figures", len(r.Figures))
	}
	return strings.Join(lines, ""), nil
}

// othersScaled ends the source of a figure that was measured on one GPU.
const othersScaled = "; others scaled with it"

// rounded returns a figure with three digits.
func rounded(v float64) string {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
	return strconv.FormatFloat(v, 'g', -1, 64)
}
