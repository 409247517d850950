package main

import (
	"context"
	"path/filepath"
	"strings"
)

// Names of rows for ways that are not programs.
const (
	preadvPlaced = "preadv to the rows"
	preadvAlone  = "preadv of tiles alone"
	tilesAlone   = "tiles alone"
	fastLoader   = "FastLoader"
)

// tiffRuns returns the runs of bench-tiff. turbo is the library that decodes JPEG in a separate run; "": there is
// none.
func (p *plan) tiffRuns(turbo string) []toolRun {
	file := func(name string) string { return filepath.Join(p.data, name) }
	read := func(path string, ops string, more ...string) []string {
		return append([]string{"read", file(path), "--ops", ops, "--regions", "100", "--size", "256", "--mem", "4GiB", "--python", p.python, "--no-use_gpu"}, more...)
	}
	threads := []string{"1", "2"}
	var runs []toolRun
	level := toolRun{program: "bench-tiff", command: read("raw.tif", "full", "--vary", "backend=host,preadv,tiles", "--vary", "threads=1,2")}
	regions := toolRun{program: "bench-tiff", command: read("raw.tif", "rand", "--vary", "backend=host", "--vary", "threads=1,2")}
	for _, t := range threads {
		label := t + " thread" + map[string]string{"1": "", "2": "s"}[t]
		level.cases = append(level.cases, toolCase{header{Name: "level/" + t, Group: "level", Label: "whole level, " + label, Unit: "GiB/s",
			Targets: []target{{Against: anyProgram, Ratio: 2}, {Against: preadvPlaced, Ratio: 0.85}}}, "full", map[string]string{"threads": t}})
		regions.cases = append(regions.cases, toolCase{header{Name: "regions/" + t, Group: "regions", Label: "100 regions of 256², " + label, Unit: "ms",
			Targets: []target{{Against: "tifffile", Ratio: 3}, {Against: "cuCIM", Ratio: 3}}}, "rand", map[string]string{"threads": t}})
	}
	runs = append(runs, level, regions)
	for _, c := range []struct {
		file, label string
		ratio       float64
		env         []string
	}{{"lzw.tif", "LZW", 1.2, nil}, {"deflate.tif", "Deflate", 1.2, nil}, {"zstd.tif", "Zstd", 1.2, nil}, {"jpeg.tif", "JPEG", 0.7, []string{"STRATA_LIBJPEG=off"}},
		{"jpeg.tif", "JPEG, through libjpeg-turbo", 0.7, []string{"STRATA_LIBJPEG=" + turbo}}} {
		if len(c.env) > 0 && strings.HasSuffix(c.env[0], "=") {
			continue
		}
		r := toolRun{program: "bench-tiff", command: read(c.file, "full", "--vary", "backend=host", "--vary", "threads=1,2"), env: c.env}
		for _, t := range threads {
			r.cases = append(r.cases, toolCase{header{Name: strings.ToLower(strings.ReplaceAll(c.label, ", through ", "-")) + "/" + t, Group: "codecs", Label: c.label + ", " + t + " thread" + map[string]string{"1": "", "2": "s"}[t],
				Unit: "GiB/s", Targets: []target{{Against: "tifffile", Ratio: c.ratio}}}, "full", map[string]string{"threads": t}})
		}
		runs = append(runs, r)
	}
	trip := toolRun{program: "bench-tiff", command: []string{"round-trip", file("raw.tif"), filepath.Join(p.out, "copy.zarr"), "--codecs", "raw,blosc-lz4,lz4,zstd:1", "--mem", "2GiB", "--python", p.python}}
	for _, codec := range []string{"raw", "blosc-lz4", "lz4", "zstd:1"} {
		h := header{Name: "copy/" + codec, Group: "copy", Label: "to Zarr, " + codec, Unit: "GiB/s"}
		if codec == "raw" || strings.Contains(codec, "lz4") {
			h.Targets = []target{{Against: "tifffile + tensorstore", Ratio: 1.2}, {Against: "tifffile + zarr-python", Ratio: 5}}
		}
		trip.cases = append(trip.cases, toolCase{h, "round-trip", map[string]string{"codec": codec}})
	}
	return append(runs, trip, p.viewsRun())
}

// viewsRun returns the run of bench-tile.
func (p *plan) viewsRun() toolRun {
	views := toolRun{program: "bench-tile", command: []string{"views", filepath.Join(p.data, "tiles.tif"), "--radius", "0,32", "--threads", "2"}}
	if p.fastLoader != "" {
		views.command = append(views.command, "--peer", fastLoader+"="+p.fastLoader)
	}
	for _, c := range []struct {
		radius  string
		targets []target
	}{{"0", against(fastLoader, 1.5)}, {"32", []target{{Against: fastLoader, Ratio: 2.5}, {Against: tilesAlone, Ratio: 0.8}}}} {
		views.cases = append(views.cases, toolCase{header{Name: "views/" + c.radius, Group: "views", Label: "radius " + c.radius, Unit: "GiB/s", Targets: c.targets},
			"views", map[string]string{"radius": c.radius}})
	}
	return views
}

// importUnits returns whole commands that convert a pyramid to OME-Zarr.
func (p *plan) importUnits() []unit {
	var all []unit
	bin := func(name string) string { return filepath.Join(filepath.Dir(p.python), name) }
	for _, c := range []struct{ file, label string }{{"pyramid-jpeg.tif", "RGB, JPEG"}, {"pyramid-grey.ome.tif", "16-bit grey, Zstd"}} {
		in, out := filepath.Join(p.data, c.file), filepath.Join(p.out, "imported")
		all = append(all, unit{header: header{Name: "import/" + c.file, Group: "import", Label: c.label, Unit: "s", Targets: against(anyPeer, 2)}, reads: in, who: []contestant{
			{who: strata, wall: true, clear: out, argv: []string{filepath.Join(p.bin, "zarr-tool"), "import", in, filepath.Join(out, "o.ome.zarr"), "-q", "--threads", "2"}},
			{who: "ngff-zarr", wall: true, clear: out, argv: []string{bin("ngff-zarr"), "-q", "-i", in, "-o", filepath.Join(out, "o.ome.zarr")}},
			{who: "bioio-conversion", wall: true, clear: out, argv: []string{bin("bioio-convert"), in, "--destination", out}},
		}})
	}
	return all
}

// tiff measures TIFF files.
func (r *runner) tiff(ctx context.Context, p *plan, turbo string) error {
	return r.toolRuns(ctx, p, p.tiffRuns(turbo), p.importUnits())
}

func tiffPage() *page {
	return &page{
		part: "tiff", file: "benchmarks-tiff.md", title: "Benchmarks of TIFF files",
		plot: "Speed of strata and of other programs on the same TIFF files", plotted: []string{"level", "codecs", "copy"},
		groups: []group{
			{"level", "A whole level", "13210×9960 RGB pixels, uncompressed in tiles of 512², into one image in fresh memory. *" + preadvPlaced + "* is the system call alone, which puts each row of a tile directly in its place in such an image; *" + preadvAlone +
				"* reads the same bytes into reused buffers and makes no image. OpenSlide returns RGBA."},
			{"regions", "Regions", "At random (seeded) places of the same level, one after another, with the file opened once. Times cover all regions."},
			{"codecs", "Compressed tiles", "8192×6144 RGB pixels in tiles of 512². LZW, Deflate and Zstd use the horizontal predictor; tifffile decodes with imagecodecs."},
			{"copy", "TIFF to Zarr", "The whole level into an array with chunks of the same size, one file per chunk. *tifffile + …* reads the level and then writes it, as their users do; strata works tile by tile."},
			{"import", "TIFF to OME-Zarr", "Whole commands, from start to end, that convert a pyramid to a multi-resolution image."},
			{"views", "Halo views", "A 16-bit grey image in uncompressed tiles of 1024², streamed as views by two threads with a cache of 10 MiB (bench-tile); speeds count the views' pixels. *" + tilesAlone +
				"* loads the tiles without making views. *tiles in a cache (C++)* is bench-tile's program over libtiff. FastLoader is a C++ library; a small program reads its tiles with pread."},
		},
		intro: func(f *facts) string {
			return "This page compares strata's speed at reading TIFF files and converting them to Zarr with that of other programs. Inputs are in the page cache. bench-tiff alternates the programs, each in a persistent process, in rounds that each start with a different one; " +
				"figures are medians over the rounds of one run on one machine. **Compare ratios, not times**, which depend on the machine. Each program gets the same number of threads, except OpenSlide, which takes none. " +
				"Outside the measurement, checksums over samples of the data read are compared between all programs; a row says if they differ. Processor time covers all threads; resident memory is the peak.\n\n" + f.About
		},
		commands: "PARTS=tiff make bench                 # this page\nBENCH_ONLY=level PARTS=tiff make bench   # some cases, no report\n",
		programs: "strata's [bench-tiff](bench-tiff.md), [bench-tile](bench-tile.md) and `zarr-tool import`, and cmd/internal/benchtiff/peers.py (Python)",
	}
}
