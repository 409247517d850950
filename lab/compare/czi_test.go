package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A limit in milliseconds and one beside the others stand at one case; programs that cannot read a file have a row.
func TestCZIPage(t *testing.T) {
	dir, _ := pagesOf(t, map[string]string{"czi.jsonl": `{"facts":{"CPU":"Abacus","About":"Scans."}}
{"case":{"name":"jpegxr.czi/2","group":"tiles","label":"JPEG XR, 2 threads","unit":"GiB/s","targets":[{"against":"peers","ratio":2},{"against":"ms","ratio":1311}]}}
{"run":{"case":"jpegxr.czi/2","who":"strata","s":1.0,"bytes":1073741824}}
{"run":{"case":"jpegxr.czi/2","who":"pylibCZIrw","s":1.5,"bytes":1073741824}}
{"run":{"case":"jpegxr.czi/2","who":"czifile","failed":"no"}}
`})
	check(t, filepath.Join(dir, "benchmarks-slides.md"), []string{
		"1 of 2 targets are reached", "| JPEG XR | 1.00 | 1.50× ✗ | fails |", "czi/open: begin -->\n<!--",
	}, nil)
}

// Each case is of one run or command, and has a group of the page.
func TestCZICases(t *testing.T) {
	p := &plan{bin: "bin", data: "data", out: "out", python: "venv/bin/python"}
	runs, units := p.cziCases()
	groups := map[string]bool{}
	for _, g := range cziPart().groups {
		groups[g.name] = true
	}
	seen := map[string]bool{}
	one := func(h header) {
		if seen[h.Name] || !groups[h.Group] || h.Label == "" || h.Unit == "" {
			t.Errorf("case %+v", h)
		}
		seen[h.Name] = true
	}
	for _, r := range runs {
		if r.program != "bench-czi" || r.command[0] != "run" || !strings.HasPrefix(r.command[1], "data/") {
			t.Errorf("%v", r.command)
		}
		for _, c := range r.cases {
			one(c.header)
		}
	}
	for _, u := range units {
		one(u.header)
	}
	if len(seen) != 14 {
		t.Errorf("%d cases", len(seen))
	}
}
