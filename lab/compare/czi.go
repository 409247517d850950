package main

import (
	"path/filepath"
	"strings"
)

// Sizes of the files in the cases of CZI, in tiles of 1024² pixels.
const (
	cziMiB    = 800   // of the pixels of 400 tiles of 16 bits
	jpegxrMPx = 104.9 // of 100 tiles
)

// cziCases returns the runs of bench-czi, and whole commands.
func (p *plan) cziCases() ([]toolRun, []unit) {
	file := func(name string) string { return filepath.Join(p.data, name) }
	run := func(name string, more ...string) []string {
		return append([]string{"run", file(name), "--mem", "4GiB", "--python", p.python}, more...)
	}
	var runs []toolRun
	for _, c := range []struct {
		file, label string
		targets     map[string][]target // by threads
	}{
		{"raw.czi", "raw", map[string][]target{"1": against(anyPeer, 1.2), "2": against(anyPeer, 1.2)}},
		{"zstd1.czi", "zstd1, hi-lo", map[string][]target{"2": against(anyPeer, 1.3)}},
		{"jpegxr.czi", "JPEG XR", map[string][]target{"2": {{Against: anyPeer, Ratio: 2}, {Against: absolute, Ratio: 1000 * jpegxrMPx / 80}}}},
	} {
		x := toolRun{program: "bench-czi", command: run(c.file, "--ways", "threads")}
		if c.file != "jpegxr.czi" {
			x.command = append(x.command, "--mosaic")
		}
		for _, t := range []string{"1", "2"} {
			threads := t + " thread" + map[string]string{"1": "", "2": "s"}[t]
			x.cases = append(x.cases, toolCase{header{Name: c.file + "/" + t, Group: "tiles", Label: c.label + ", " + threads, Unit: "GiB/s", Targets: c.targets[t]}, "tiles", map[string]string{"way": "threads " + t}})
			if c.file != "jpegxr.czi" {
				x.cases = append(x.cases, toolCase{header{Name: "mosaic/" + c.file + "/" + t, Group: "mosaic", Label: c.label + ", " + threads, Unit: "GiB/s", Memory: cziMiB + cziMiB/10}, "mosaic", map[string]string{"way": "threads " + t}})
			}
		}
		if c.file == "raw.czi" {
			x.cases = append(x.cases, toolCase{header{Name: "open", Group: "open", Label: "400 tiles", Unit: "ms", Targets: against(absolute, 0.5)}, "open", nil})
		}
		runs = append(runs, x)
	}
	// peers take minutes to open it
	runs = append(runs, toolRun{program: "bench-czi", command: run("million.czi", "--ways", "sequential", "--max_tiles", "10"), fewest: true, cases: []toolCase{
		{header{Name: "open/million", Group: "open", Label: "a million tiles", Unit: "ms", Targets: against(absolute, 500)}, "open", nil}}})

	out := filepath.Join(p.out, "imported")
	tool := filepath.Join(p.bin, "zarr-tool")
	units := []unit{
		{header: header{Name: "info", Group: "open", Label: "`zarr-tool info`, the whole command, 400 tiles", Unit: "ms", Targets: against(absolute, 20)}, reads: file("raw.czi"), who: []contestant{
			{who: strata, wall: true, argv: []string{tool, "info", file("raw.czi"), "-q"}}}},
		{header: header{Name: "import", Group: "import", Label: "zstd1, hi-lo", Unit: "s", Targets: against(anyPeer, 5)}, reads: file("zstd1.czi"), who: []contestant{
			{who: strata, wall: true, clear: out, argv: []string{tool, "import", file("zstd1.czi"), filepath.Join(out, "o.ome.zarr"), "-q", "--threads", "2", "--codec", "blosc-zstd:1"}},
			{who: "bioio-conversion", wall: true, clear: out, argv: []string{filepath.Join(filepath.Dir(p.python), "bioio-convert"), file("zstd1.czi"), "--destination", out}}}},
	}
	for _, library := range []string{"pylibCZIrw", "aicspylibczi"} {
		units[1].who = append(units[1].who, contestant{who: "bioio with " + library, wall: true, clear: out,
			argv: []string{p.python, "lab/czi-omezarr.py", library, file("zstd1.czi"), filepath.Join(out, "o.ome.zarr")}})
	}
	return runs, units
}

func cziPart() *part {
	return &part{
		name: "czi", page: "benchmarks-slides.md", picture: "benchmarks-czi.svg", brief: true,
		plot: "Speed of strata and of other programs on the same CZI files", plotted: []string{"tiles", "mosaic"},
		groups: []group{{"tiles", "Tiles"}, {"mosaic", "Composing a plane"}, {"open", "Opening"}, {"import", "CZI to OME-Zarr"}},
		hidden: func(o *outcome) bool {
			return (o.Group == "mosaic" || o.Group == "tiles") && strings.HasSuffix(o.Name, "/1")
		},
	}
}
