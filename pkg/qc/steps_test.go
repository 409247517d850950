package qc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/metrics"
	"strata/pkg/oct"
)

// Metrics of steps by either tool are grouped in the order of the workflow, with what is beyond a limit among the
// warnings.
func TestSteps(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, text []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for z := range 4 {
		s := metrics.New("normalize_intensities")
		limit := metrics.Limits["agarose_coverage"]
		s.Judge("agarose_coverage", 0.02*float64(z+1), "", "Share of <agarose>", &limit)
		s.Note("input_volume", "slice.ome.zarr", "Input")
		text, err := s.JSON()
		if err != nil {
			t.Fatal(err)
		}
		put(fmt.Sprintf("normalize/slice_z%02d_normalize.ome_metrics.json", z), text)
	}
	// As linumpy writes them: one name for all, in a folder per slice; NaN, which is not JSON.
	put("register/slice_z01_normalize/pairwise_registration_metrics.json", []byte(`{"step_name": "pairwise_registration", "overall_status": "error",
		"metrics": {"registration_error": {"value": NaN, "unit": null, "description": "error", "status": "error"}, "rotation": {"value": 3.5, "unit": "deg", "description": "r", "status": "error"}},
		"warnings": [], "errors": ["rotation: 3.5 > 2.0 (error threshold)"]}`))
	put("broken_metrics.json", []byte(`{"step_name": `))
	put("own_step_metrics.json", []byte(`{"step_name": "<script>", "metrics": {}}`))
	res := oct.Resources{Workers: 1, Mem: 64 << 20}
	r, err := Load(t.Context(), Sources{Run: dir}, res)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range r.Steps {
		names = append(names, s.Step.Name+" "+s.Name)
	}
	want := "normalize_intensities slice_z00_normalize,normalize_intensities slice_z01_normalize,normalize_intensities slice_z02_normalize,normalize_intensities slice_z03_normalize,pairwise_registration slice_z01_normalize,<script> own_step"
	if got := strings.Join(names, ","); got != want {
		t.Errorf("steps %s, want %s", got, want)
	}
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "broken_metrics.json:1") {
		t.Errorf("problems %q", r.Problems)
	}
	groups := r.stepGroups()
	if len(groups) != 3 || groups[0].Counts != "2 warning, 2 ok" || len(groups[0].Plots) != 1 || groups[1].Status != metrics.Error || groups[2].Table == nil {
		t.Fatalf("%d groups: %+v", len(groups), groups[0])
	}
	if rows := groups[0].Table.Rows; len(rows) != 7 || rows[4][0].Text != "median" || rows[4][2].Value != "0.05" {
		t.Errorf("table of %d rows: %+v", len(rows), rows[4])
	}
	grades := map[string]int{}
	for _, n := range r.notices() {
		grades[n.Grade+" "+n.Where]++
	}
	if grades["error Pairwise registration"] != 1 || grades["warning Normalize intensities"] != 2 {
		t.Errorf("notices %v", grades)
	}
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`<section id="steps">`, "Share of &lt;agarose&gt;", "2 warning, 2 ok", "R: 3.5, above the limit of 2.0", "Share of &lt;agarose&gt;: 0.02, below the limit of 0.05"} {
		if !strings.Contains(page.String(), part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	if strings.Contains(page.String(), "<script>") {
		t.Error("a step's name became markup")
	}
}
