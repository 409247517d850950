package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const trace = "task_id\tname\tstatus\tstart\trealtime\n" +
	"1\tRESAMPLE (z00)\tCOMPLETED\t2026-01-31 12:00:01.500\t2s\n" +
	"2\tRESAMPLE (z01)\tCOMPLETED\t2026-01-31 12:00:02.000\t1.5s\n" +
	"3\tSTACK (volume)\tFAILED\t2026-01-31 12:00:05.000\t1s\n" +
	"4\tSTACK (volume)\tCOMPLETED\t2026-01-31 12:00:06.000\t1m 500ms\n" +
	"5\tREPORT\tCOMPLETED\t2026-01-31 12:01:06.500\t1s\n"

func TestChainRecord(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("trace.tsv", trace)
	write("r/a.json", `{"tool":"resample","wall_seconds":1}`)
	write("r/b.json", `{"tool":"resample","wall_seconds":0.5}`)
	write("r/report.json", `{"tool":"qc-report","wall_seconds":0.25}`)
	write("r/estimate.json", `{"tool":"stitch","wall_seconds":3}`)
	var b bytes.Buffer
	rec := chainRun{Input: "two", Engine: "Nextflow 1", Slices: 2, Cores: 2, Rounds: 3, Wall: 70, Shell: 30}
	if err := chainRecord(t.Context(), file, filepath.Join(dir, "r"), rec, &b); err != nil {
		t.Fatal(err)
	}
	var c chainRun
	if err := json.Unmarshal(b.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	want := []chainStep{{"resample", 2, 3.5, 1.5}, {"stack", 1, 60.5, 0}, {"report", 1, 1, 0.25}}
	if !slices.Equal(c.Stages, want) {
		t.Errorf("stages %+v, want %+v", c.Stages, want)
	}
	if want := 70 - (3.5+60.5+1)/2; math.Abs(c.Overhead-want) > 1e-3 {
		t.Errorf("overhead %g s, want %g: what two cores could do it in", c.Overhead, want)
	}
	if want := 70 - 2 - 61.5; math.Abs(c.Idle-want) > 1e-3 {
		t.Errorf("%g s without a task, want %g: tasks overlap from 2.0 to 3.5", c.Idle, want)
	}
	if c.Slices != 2 || c.Shell != 30 || c.Rounds != 3 || c.CPU == "" || c.Date == "" {
		t.Errorf("record %+v lacks what was given, or the machine", c)
	}
	page := chainTable([]*chainRun{&c})
	for _, want := range []string{
		"| 2 | 4 | 70.0 | 30.0 | 65.0 | 1.75 | 37.5 (9.38) | 6.50 | resample 1.50, report 0.25, stack 0.00 |\n",
		"- 2 slices: two; Nextflow 1, 2 cores of ", ", median of 3 rounds.\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

func TestTraceErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "no task",
		"name\tstatus\n":                     `no column "start"`,
		strings.Replace(trace, "2s", "2", 1): `"2" is no duration`,
		strings.Replace(trace, "2026-01-31", "", 1): "line 2",
		strings.Replace(trace, "\t2s", "", 1):       "line 2 has 4 cells",
	} {
		if _, err := readTrace(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestVoxelBytes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/0", "a/1", "b/0"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "zarr.json"), []byte(`{"shape":[2,3,5]}`), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := voxelBytes(dir); err != nil || got != 240 {
		t.Errorf("%v bytes, %v; want 240: two images of 30 voxels", got, err)
	}
	if _, err := voxelBytes(t.TempDir()); err == nil {
		t.Error("an empty folder has an image")
	}
}
