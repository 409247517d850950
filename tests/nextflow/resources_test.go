package nextflow

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"strata/pkg/runrecord"
)

// scripts/resources.sh on records as programs write them: the largest of each stage
// counts, a run that failed does not.
func TestResources(t *testing.T) {
	results := filepath.Join(t.TempDir(), "results of 'mine'")
	if err := os.MkdirAll(filepath.Join(results, "reports"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]runrecord.Record{
		"z00.focal":  {Tool: "focal", Threads: 4, PeakResidentBytes: 100 << 20, WallSeconds: 900, Phases: runrecord.Phases{Compute: 900, Write: 90}},
		"z01.focal":  {Tool: "focal", Threads: 4, PeakResidentBytes: 900 << 20, WallSeconds: 100, Phases: runrecord.Phases{Read: 50, Decode: 50, Compute: 150}},
		"z02.focal":  {Tool: "focal", Threads: 4, PeakResidentBytes: 9 << 30, WallSeconds: 1e6, ExitCode: 1},
		"v.stack":    {Tool: "stack", Threads: 2, PeakResidentBytes: 10 << 20, WallSeconds: 1, Phases: runrecord.Phases{Compute: 5}, Mem: 3},
		"v.preview":  {Tool: "preview", Threads: 1, PeakResidentBytes: 300 << 20, WallSeconds: 1},
		"run.qc":     {Tool: "qc-report", Threads: 1, PeakResidentBytes: 400 << 20, WallSeconds: 1, Warnings: []string{"a", "b"}},
		"z00.crop":   {Tool: "crop", Threads: 8, PeakResidentBytes: 500 << 20, WallSeconds: 10, Phases: runrecord.Phases{Compute: 20}, Workers: 2, MemForAll: 3 << 30},
		"z01.crop":   {Tool: "crop", Threads: 8, PeakResidentBytes: 500 << 20, WallSeconds: 10, Phases: runrecord.Phases{Compute: 20}, Workers: 8},
		"x.zarrtool": {Tool: "zarr-tool", PeakResidentBytes: 400 << 20},
	} {
		if err := r.Write(filepath.Join(results, "reports", name+".json"), false); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, error) {
		out, err := exec.Command("../../scripts/resources.sh", args...).CombinedOutput()
		return string(out), err
	}
	out, err := run(results)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+): (.*)$`).FindAllStringSubmatch(out, -1) {
		got[m[1]] = m[2]
	}
	want := map[string]string{
		"focal_cpus": "3", "focal_memory": "1200 MB", "focal_time": "60 m",
		"stack_cpus": "2", "stack_memory": "200 MB", "stack_time": "10 m",
		"crop_cpus": "8", "crop_memory": "4100 MB", "crop_time": "10 m",
		"preview_cpus": "1", "preview_memory": "500 MB", "preview_time": "10 m",
	}
	known := schema(t)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %q, want %q", name, got[name], value)
		}
		if p := known[name].Pattern; known[name].Type == "" || p != "" && !regexp.MustCompile(p).MatchString(got[name]) {
			t.Errorf("%s: %s is no parameter or not of the form %s", name, got[name], p)
		}
	}
	if len(got) != len(want) {
		t.Errorf("parameters %v", got)
	}
	if out, err := run(results, "2"); err != nil || !strings.Contains(out, "focal_memory: 1800 MB") {
		t.Errorf("another factor: %v: %s", err, out)
	}
	if want := "# crop: memory held fewer workers than cores in 1 of 2 tasks: 3072 MiB of buffers are enough for all 8\n"; strings.Count(out, want) != 1 || strings.Count(out, "fewer workers") != 1 {
		t.Errorf("memory limited crop, and only crop: %s", out)
	}
	if out, err := run(t.TempDir()); err == nil || !strings.Contains(out, "want the outdir of a run") {
		t.Errorf("no results: %v: %s", err, out)
	}
}
