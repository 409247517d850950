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

func tiffPart() *part {
	return &part{
		name: "tiff", page: "benchmarks-slides.md", picture: "benchmarks-tiff.svg", brief: true,
		plot: "Speed of strata and of other programs on the same TIFF files", plotted: []string{"level", "codecs", "copy"},
		groups: []group{{"level", "A whole level"}, {"regions", "Regions"}, {"codecs", "Compressed tiles"}, {"copy", "TIFF to Zarr"}, {"import", "TIFF to OME-Zarr"}, {"views", "Halo views"}},
		hidden: func(o *outcome) bool {
			return o.Name == "jpeg-libjpeg-turbo/2" || o.Name == "copy/lz4" || (o.Group == "level" || o.Group == "regions" || o.Group == "codecs") && strings.HasSuffix(o.Name, "/1")
		},
	}
}
