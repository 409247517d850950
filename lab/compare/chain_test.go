package main

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	var page strings.Builder
	chainTable(func(format string, args ...any) { fmt.Fprintf(&page, format, args...) }, "The chain", &c)
	for _, want := range []string{
		"processed 2 slices (Nextflow 1)", "**70.0 s** from", "two. ", "the median of 3 rounds",
		"The tasks took 65.0 s, which 2 cores could do in 32.5 s: **the engine costs 37.5 s**, 9.38 s per task",
		"For 6.5 s of that no task", "take **30.0 s**", "| resample | 2 | 3.50 s | 1.50 s | 2.00 s |", "| all | 4 | 65.0 s |",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, page.String())
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
