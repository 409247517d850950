package qcreport

import (
	"bytes"
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The real MultiQC puts two runs into its general statistics and into one table of joins and one of slices.
func TestMultiQC(t *testing.T) {
	program, err := filepath.Abs(filepath.Join("..", "..", "..", "build", "venv-multiqc", "bin", "multiqc"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("build/venv-multiqc is missing: make test-report makes it")
	}
	dir := t.TempDir()
	for _, name := range []string{"brain1", "brain2"} {
		results := filepath.Join(dir, name, "results")
		for file, content := range map[string]string{
			"volume/z_matches.csv": "fixed_id,moving_id,overlap_voxels,blend_overlap_voxels,moving_z_start,correlation,correlation_fallback_used\n" +
				"0,1,9,7,8,0.81,False\n1,2,11,7,8,0.02,True\n",
			"slices/slice_z00_crop.json": `{"interface": 3, "interface_found": true, "interface_um": 30, "a_lines": 9, "a_lines_used": 9, "planes_kept": 5, "input_planes": 12}`,
			"reports/volume.stack.json": `{"tool": "stack", "started": "2026-01-31T12:00:00Z", "wall_seconds": 90, "outputs":
				[{"path": "v", "shape": [10, 20, 30], "dtype": "float32", "voxel_size_um": [5, 10, 10]}]}`,
		} {
			path := filepath.Join(results, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		c := exec.Command("qc-report", filepath.Join(results, "qc-report.html"), "--run", results, "--multiqc", filepath.Join(results, "multiqc"), "-q")
		if b, err := c.CombinedOutput(); err != nil {
			t.Fatalf("qc-report: %v\n%s", err, b)
		}
	}
	c := exec.Command(program, ".", "--outdir", "out", "--no-ansi", "--no-version-check", "--strict")
	c.Dir = dir
	if b, err := c.CombinedOutput(); err != nil {
		t.Fatalf("multiqc: %v\n%s", err, b)
	}
	for file, want := range map[string][]string{
		"multiqc_general_stats.txt":       {"brain1\tCheck\t3\t2\t1\t0\t1\t1.5", "brain2\tCheck\t3\t2\t1\t0\t1\t1.5"},
		"multiqc_strata_joins_table.txt":  {"brain1 z00-z01\t0.81\t45\tgood", "brain1 z01-z02\t0.02\t55\tcorrelation too low: expected overlap used", "brain2 z00-z01\t0.81\t45\tgood"},
		"multiqc_strata_slices_table.txt": {"brain1 z00\t30", "brain2 z00\t30"},
	} {
		b, err := os.ReadFile(filepath.Join(dir, "out", "multiqc_data", file))
		if err != nil {
			t.Error(err)
			continue
		}
		r := csv.NewReader(bytes.NewReader(b))
		r.Comma = '\t'
		rows, err := r.ReadAll()
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, line := range want {
			found := false
			for _, row := range rows {
				found = found || strings.Join(row, "\t") == line
			}
			if !found {
				t.Errorf("%s: no row %q in\n%s", file, line, b)
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "out", "multiqc_report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Strata: joins", "Joins whose overlap or shift is uncertain"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in MultiQC's page", want)
		}
	}
}
