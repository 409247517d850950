package qc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	motors "strata/pkg/oct/shifts"
	"strata/pkg/registration"
)

// glitched are the shifts of a series with a glitch of 2 mm at slice 4, as shifts clean finds, and a real jump that it
// leaves.
const glitched = shifts + "0,1,0,0,0.02,-0.01\n1,2,0,0,0.01,0.02\n2,3,0,0,0.03,0\n3,4,0,0,2.0,0.01\n4,5,0,0,-1.98,0\n5,6,0,0,0.02,0.01\n6,7,0,0,0.9,0.01\n"

// repairedRun is a run's folder with what shifts clean and analyze write, in the places where the workflow publishes
// it.
func repairedRun(t *testing.T) string {
	t.Helper()
	table, err := registration.ReadShiftTable(strings.NewReader(glitched), "shifts_xy.csv")
	if err != nil {
		t.Fatal(err)
	}
	a, err := motors.Analyze(table, motors.DefaultAnalyzeOptions())
	if err != nil {
		t.Fatal(err)
	}
	c := motors.Clean(table, motors.DefaultCleanOptions())
	var clean, repair, drift bytes.Buffer
	for _, err := range []error{table.Write(&clean, false), c.WritePlot(&repair, table), a.WritePlot(&drift)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return tree(t, map[string]string{
		"shifts/shifts_xy.csv":                 glitched,
		"shifts/shifts_xy_clean.csv":           clean.String(),
		"shifts/shifts_filtered.csv":           clean.String(),
		"shifts/diagnostics/rehoming_plot.svg": repair.String(),
		"shifts/drift_analysis.svg":            drift.String(),
		"volume/shifts_xy.csv":                 clean.String(), // which stack was given
	})
}

// The page shows shifts before and after their repair, and the plots of the programs that repair.
func TestRepairedShifts(t *testing.T) {
	dir := repairedRun(t)
	r := load(t, Sources{Run: dir})
	if len(r.Problems) > 0 || len(r.Drift) != 2 || r.Cleaned == nil {
		t.Fatalf("problems %q, %d plots", r.Problems, len(r.Drift))
	}
	plots := r.shiftPlots()
	if len(plots) != 3 {
		t.Fatalf("%d plots", len(plots))
	}
	for i, want := range []string{"Rings: 2 of 7 changed, 1 kept although not reliable.", "The repaired shifts alone", "as recorded and as repaired"} {
		if !strings.Contains(plots[i].Caption, want) {
			t.Errorf("plot %d: %q, want %q", i, plots[i].Caption, want)
		}
	}
	if n := strings.Count(string(plots[0].SVG), `class="ring"`); n != 6 { // x and y of three
		t.Errorf("%d rings", n)
	}
	table := r.shiftTable()
	var jump, glitch string
	for _, row := range table.Rows {
		line := ""
		for _, c := range row {
			line += c.Text + " "
		}
		switch row[0].Text {
		case "3–4":
			glitch = line
		case "6–7":
			jump = line
		}
	}
	if want := "3–4 2000.0 10.0 2060.0 20.0 20.0 "; !strings.HasPrefix(glitch, want) || !strings.HasSuffix(glitch, " changed ") {
		t.Errorf("glitch: %q, want %q…", glitch, want)
	}
	if !strings.HasPrefix(jump, "6–7 900.0 10.0 ") || !strings.HasSuffix(jump, " not reliable ") {
		t.Errorf("jump: %q", jump)
	}
	page := write(t, r)
	if n := strings.Count(page, `src="data:image/svg+xml;base64,`); n != 2 {
		t.Errorf("%d drawings in the page", n)
	}
	if !strings.Contains(page, "2 plots of the repair and the drift") {
		t.Error("the page has no list of plots")
	}
	// Recorded ones are not always among the results.
	if err := os.Remove(filepath.Join(dir, "shifts/shifts_xy.csv")); err != nil {
		t.Fatal(err)
	}
	r = load(t, Sources{Run: dir})
	if plots := r.shiftPlots(); len(r.Problems) > 0 || len(plots) != 2 || !strings.Contains(plots[0].Caption, "as repaired; the table of the recorded shifts is not among the results") {
		t.Errorf("problems %q, %d plots", r.Problems, len(plots))
	}
	// A repair that changes nothing needs no lines of its own.
	r = load(t, Sources{Shifts: filepath.Join(dir, "shifts/shifts_filtered.csv"), Cleaned: filepath.Join(dir, "shifts/shifts_filtered.csv")})
	r.Cleaned.Rows[6].Reliable = true
	if plots := r.shiftPlots(); len(plots) != 2 || !strings.Contains(plots[0].Caption, "The repair of shifts changed none.") {
		t.Errorf("%d plots, the first: %s", len(plots), plots[0].Caption)
	}
}

// A drawing that is none, or has no room, is named and left out.
func TestBadDrawings(t *testing.T) {
	for text, want := range map[string]string{
		"": "rehoming_plot.svg:1: no SVG: EOF",
		"<svg width=\"8\" height=\"6\"><g></svg>": "rehoming_plot.svg:1: no SVG: ",
		"<html></html>":                       "no SVG with a width and a height in pixels",
		`<svg width="1e99" height="6"></svg>`: "no SVG with a width and a height in pixels",
	} {
		r := load(t, Sources{Run: tree(t, map[string]string{"shifts/rehoming_plot.svg": text})})
		if len(r.Drift) != 0 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], want) {
			t.Errorf("%q: problems %q, want %q", text, r.Problems, want)
		}
	}
	large := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="8" height="6"><!--%s--></svg>`, strings.Repeat("x", 100_000))
	r := load(t, Sources{Run: tree(t, map[string]string{"shifts/rehoming_plot.svg": large, "previews/a.png": noise(t, 8, 6)})})
	if err := r.Fit(ctx, 100_000, res); err != nil {
		t.Fatal(err)
	}
	if len(r.Drift) != 0 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "has no room among 2 pictures") {
		t.Errorf("problems %q", r.Problems)
	}
	if page := write(t, r); strings.Contains(page, "svg+xml") || !strings.Contains(page, `src="data:image/png`) {
		t.Error("the page shows what has no room, or not the picture beside it")
	}
}
