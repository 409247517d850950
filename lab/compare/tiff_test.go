package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	results "strata/pkg/bench"
)

// What the system takes to do the same is a yardstick of its own, and no program that others are compared with.
func TestTIFFPage(t *testing.T) {
	dir, _ := pagesOf(t, map[string]string{"tiff.jsonl": `{"facts":{"CPU":"Abacus","About":"Slides."}}
{"case":{"name":"level/2","group":"level","label":"whole level","unit":"GiB/s","targets":[{"against":"other programs","ratio":2},{"against":"preadv to the rows","ratio":0.85}]}}
{"run":{"case":"level/2","who":"strata","s":0.1,"bytes":1073741824,"hwm_kb":20480}}
{"run":{"case":"level/2","who":"preadv to the rows","s":0.09,"bytes":1073741824}}
{"run":{"case":"level/2","who":"preadv of tiles alone","s":0.02,"bytes":1073741824}}
{"run":{"case":"level/2","who":"tifffile","s":0.15,"bytes":1073741824}}
{"run":{"case":"level/2","who":"cuCIM","failed":"no"}}
`})
	check(t, filepath.Join(dir, "benchmarks-slides.md"), []string{
		"1 of 2 targets are reached", "| | strata, GiB/s | preadv to the rows | preadv of tiles alone | tifffile | cuCIM |",
		"| whole level | 10.0 | 0.90× | 0.20× | 1.50× ✗ | fails |\n", "tiff/views: begin -->\n<!--",
	}, nil)
}

// Results of bench-tiff become the runs of cases: by their axes, and without the folders of this machine.
func TestTIFFRun(t *testing.T) {
	dir := t.TempDir()
	p := &plan{bin: dir, data: dir, out: t.TempDir(), python: "python"}
	if err := os.WriteFile(filepath.Join(dir, "bench-tiff"), []byte("#!/bin/sh\nexit 0\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	axes := func(threads, backend string) results.Axes {
		return results.Axes{{Name: "threads", Value: threads}, {Name: "backend", Value: backend}}
	}
	d := results.New("bench-tiff", "1", []string{"bench-tiff"})
	d.Results = []results.Result{
		{Name: "full", Axes: axes("1", "host"), Who: results.Strata, Seconds: []float64{1, 2}, CPU: 1, Bytes: 7, RSS: 2048},
		{Name: "full", Axes: axes("2", "host"), Who: results.Strata, Seconds: []float64{3}},
		{Name: "full", Axes: axes("1", "preadv"), Who: results.Strata, Seconds: []float64{4}},
		{Name: "rand", Axes: axes("1", "host"), Who: results.Strata, Seconds: []float64{5}},
		{Name: "full", Axes: axes("1", "host"), Who: "cuCIM", Reason: dir + "/raw.tif: is not supported"},
		{Name: "full", Axes: axes("1", "host"), Who: "KvikIO", Reason: "No module named 'kvikio': install it"},
	}
	f, err := os.Create(filepath.Join(dir, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.WriteJSON(f); err != nil {
		t.Fatal(err)
	}
	f.Close()
	var out bytes.Buffer
	r := runner{most: 2, w: &out, log: &bytes.Buffer{}}
	c := toolCase{header{Name: "level/2"}, "full", map[string]string{"threads": "1"}}
	if err := r.toolRun(t.Context(), p, toolRun{program: "bench-tiff", command: []string{"read"}, cases: []toolCase{c}}); err != nil {
		t.Fatal(err)
	}
	want := `{"case":{"name":"level/2","group":"","label":"","unit":""}}
{"run":{"case":"level/2","round":0,"who":"strata","s":1,"cpu_s":1,"bytes":7,"hwm_kb":2}}
{"run":{"case":"level/2","round":1,"who":"strata","s":2,"cpu_s":1,"bytes":7,"hwm_kb":2}}
{"run":{"case":"level/2","round":0,"who":"preadv to the rows","s":4,"cpu_s":0,"bytes":0,"hwm_kb":0}}
{"run":{"case":"level/2","round":0,"who":"cuCIM","s":0,"cpu_s":0,"bytes":0,"hwm_kb":0,"failed":"raw.tif: is not supported"}}
`
	if out.String() != want {
		t.Errorf("printed\n%s", out.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "run.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the run's results are still there")
	}
}
