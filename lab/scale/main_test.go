package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strata/pkg/runrecord"
)

// Programs stand in the order of their first run, with sums per GB; a step that ran again counts once; what follows for
// 1 TB is their sum on 16 cores, or the storage.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	at := time.Now()
	for name, r := range map[string]runrecord.Record{
		"slice_z00.mosaic.json": {Tool: "mosaic", Started: at, WallSeconds: 2, PeakResidentBytes: 7 << 20, BytesRead: 2e9, BytesWritten: 1e9},
		"slice_z01.mosaic.json": {Tool: "mosaic", Started: at.Add(2 * time.Second), WallSeconds: 3, PeakResidentBytes: 9 << 20, BytesRead: 2e9, BytesWritten: 1e9},
		"estimate.stitch.json":  {Tool: "stitch", Started: at.Add(time.Second), WallSeconds: 1},
		"all.shifts.json":       {Tool: "shifts", Command: "estimate", Started: at.Add(time.Hour)},
	} {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cpu, page := filepath.Join(dir, "cpu.tsv"), filepath.Join(dir, "page.md")
	lines := "slice_z00.mosaic.json\t99\nslice_z00.mosaic.json\t3\nslice_z01.mosaic.json\t4\nestimate.stitch.json\t0.6\n"
	if err := os.WriteFile(cpu, []byte(lines), 0o666); err != nil {
		t.Fatal(err)
	}
	in := input{"two slices", 2, 4e9}
	t.Chdir("../..")
	if err := run(t.Context(), dir, cpu, page, in); err == nil || !strings.Contains(err.Error(), "all.shifts.json") {
		t.Errorf("error %v, want one that names the record", err)
	}
	if err := os.WriteFile(cpu, []byte(lines+"all.shifts.json\t0.4\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), dir, cpu, page, in); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text, last := string(b), 0
	for _, want := range []string{
		"4.0 GB of raw frames", "| mosaic | 2 | 7.0 | 1.750 | 9 | 4.00 | 2.00 |", "| stitch --estimate_only | 1 |", "| shifts estimate | 1 |",
		"| **all** | 4 | 8.0 | 2.000 |", "2.00 s per GB on 16 cores of the same speed: **2 min**", "1.5 TB read and written", "1 TB is <!-- slices: begin -->500 slices<",
	} {
		i := strings.Index(text[last:], want)
		if i < 0 {
			t.Fatalf("no %q after what stands before it in\n%s", want, text)
		}
		last += i
	}
	if strings.Contains(text, "| focal |") {
		t.Error("a row of the run before is left")
	}
}
