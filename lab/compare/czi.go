package main

import "path/filepath"

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

func cziPage() *page {
	return &page{
		part: "czi", file: "benchmarks-czi.md", title: "Benchmarks of CZI files",
		plot: "Speed of strata and of other programs on the same CZI files", plotted: []string{"tiles", "mosaic"},
		groups: []group{
			{"tiles", "Tiles", "Opening the file and reading each tile of level 0 into reused memory: 400 tiles of 1024² 16-bit pixels, or 100 for JPEG XR. pylibCZIrw reads the regions that the tiles cover. czifile cannot decode zstd."},
			{"mosaic", "Composing a plane", "Opening the file and composing the same 400 tiles in fresh memory, 20480² pixels."},
			{"open", "Opening", "Reading the file's directory and the position of each tile."},
			{"import", "CZI to OME-Zarr", "Whole commands, from start to end, that make a multi-resolution image: `zarr-tool import`, and bioio's reader and writer in a script of ten lines (lab/czi-omezarr.py) with the same blosc-zstd:1 chunks. bioio-conversion is their command line."},
		},
		intro: func(f *facts) string {
			return "This page compares strata's speed at reading CZI files and converting them to OME-Zarr with that of other programs. Inputs are in the page cache. bench-czi alternates the programs, each in a persistent process, in rounds that each start with a different one; " +
				"figures are medians over the rounds of one run on one machine. **Compare ratios, not times**, which depend on the machine. With 2 threads the other programs are called from a pool of two Python threads. " +
				"Outside the measurement, the pixels of up to 64 tiles and of the whole plane and the tiles' positions are compared between all programs; a row says if they differ. Processor time covers all threads; resident memory is the peak.\n\n" + f.About
		},
		commands: "PARTS=czi make bench                   # this page\nBENCH_ONLY=zstd1 PARTS=czi make bench    # some cases, no report\n",
		programs: "strata's [bench-czi](bench-czi.md), `zarr-tool info` and `import`, and cmd/internal/benchczi/peers.py (Python)",
	}
}
