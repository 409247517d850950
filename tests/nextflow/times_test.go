package nextflow

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scripts/times.sh on a trace whose sums are known: the longest way is z01's mosaic
// and the estimate, z00's slice, the stack, the volume's picture, the report.
func TestTimes(t *testing.T) {
	if out, err := exec.Command("awk", `BEGIN { print mktime("2026 1 1 0 0 0") }`).CombinedOutput(); err != nil {
		t.Skipf("awk has no mktime: %s", out)
	}
	var trace strings.Builder
	trace.WriteString("task_id\tname\tstatus\trealtime\tsubmit\tcomplete\n")
	for _, task := range []string{
		"RESAMPLE (mosaic_z00)\tCOMPLETED\t2s", "RESAMPLE (mosaic_z01)\tCOMPLETED\t1s", "FOCAL (mosaic_z00)\tCOMPLETED\t1s",
		"FOCAL (mosaic_z01)\tFAILED\t9s", "FOCAL (mosaic_z01)\tCOMPLETED\t3s", "ESTIMATE (2 mosaics)\tCOMPLETED\t500ms",
		"STITCH (slice_z00)\tCOMPLETED\t1s", "STITCH (slice_z01)\tCOMPLETED\t1s", "CROP (slice_z00)\tCOMPLETED\t2s",
		"STACK (2 slices)\tCOMPLETED\t1m 500ms", "AIP (mosaic_z00)\tCOMPLETED\t9s", "AIP (volume)\tCOMPLETED\t2s",
		"PREVIEW (volume)\tCOMPLETED\t4s", "REPORT\tCOMPLETED\t1s", "VERSIONS\tCOMPLETED\t250ms",
	} {
		trace.WriteString("1\t" + task + "\t2026-01-31 23:59:30.000\t2026-02-01 00:01:00.500\n")
	}
	file := filepath.Join(t.TempDir(), "trace.tsv")
	if err := os.WriteFile(file, []byte(trace.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	times := func(args ...string) string {
		t.Helper()
		run := exec.Command("../../scripts/times.sh", args...)
		run.Env = append(os.Environ(), "CPUS=2")
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("times.sh: %v\n%s", err, out)
		}
		return string(out)
	}
	out := times(file, "100")
	for _, want := range []string{
		"focal               2     4.00     3.00\n", "stack               1    60.50    60.50\n", "(1 tasks failed)\n",
		"whole run      100.0 s\n", "tasks          88.2 s, 14 of them added up: 44.1 s on 2 CPUs at best, 73.2 s where one has to wait for the other\n",
		"engine         55.9 s, what the run took longer than its tasks on 2 CPUs: 3.99 s a task\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if out := times(file); !strings.Contains(out, "whole run      90.5 s\n") {
		t.Errorf("from the first task to the last are 90.5 s:\n%s", out)
	}
}
