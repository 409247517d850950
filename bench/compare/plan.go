package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// strata is what the report calls our own programs.
const strata = "strata"

// plan knows where everything lies and makes the cases.
type plan struct {
	tools, bin, data, out, python string
	peers, stages                 string // scripts
	linumpy                       string // a checkout; "": none
	kvikio                        string // a Python that has it; "": none
	noCUDA                        string // folder of a library for it, where the driver's is missing
	files                         bool   // it is the file layer that is measured
	shape                         []int
}

// contestant is one program of a case.
type contestant struct {
	who  string
	argv []string
	env  []string
	// wall measures the process from start to end; otherwise it prints its own
	// measurement.
	wall  bool
	clear string // what it writes: removed before
	most  int    // rounds, at most; 0: all of the case's
}

// unit is a case with the programs that run it.
type unit struct {
	header
	reads  string   // file or folder that is read before, so that it is cached
	writes bool     // programs write the folder out: checked, then removed
	output string   // what they write, where that is not the array of the folder out
	env    []string // of all of its programs
	large  bool     // programs hold the array in memory
	least  int      // rounds, at least; 0: the runner's
	diff   []string // program that compares two outputs, once
	who    []contestant
}

func join(v []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ","), "[]") }

func cube(n int) string { return join([]int{n, n, n}) }

// edges are those of bench/arrays: of a large and of a small chunk.
func (p *plan) edges() (large, small int) {
	large = min(256, slices.Min(p.shape))
	return large, max(large/4, 1)
}

func (p *plan) array(name string) string { return filepath.Join(p.data, name+".zarr") }
func (p *plan) tool(name string) string  { return filepath.Join(p.tools, name) }

func (p *plan) mib() int64 {
	n := int64(4)
	for _, s := range p.shape {
		n *= int64(s)
	}
	return n >> 20
}

// everybody runs an operation of bench/arrays and of the peers.
func (p *plan) everybody(op, path string, args ...string) []contestant {
	who := []contestant{{who: strata, argv: append([]string{p.tool("arrays"), op, path}, args...)}}
	dashed := slices.Clone(args)
	for i, a := range dashed {
		if strings.HasPrefix(a, "-") {
			dashed[i] = "-" + a
		}
	}
	for _, peer := range []string{"zarr", "zarr+zarrs", "tensorstore"} {
		who = append(who, contestant{who: peerNames[peer], argv: append([]string{p.python, p.peers, peer, op, path}, dashed...)})
	}
	if _, err := os.Stat(p.tool("zarrs-bench")); err == nil {
		who = append(who, contestant{who: "zarrs", argv: append([]string{p.tool("zarrs-bench"), op, path}, dashed...)})
	}
	return who
}

var peerNames = map[string]string{"zarr": "zarr-python", "zarr+zarrs": "zarr-python + zarrs", "tensorstore": "tensorstore"}

// cases is the benchmark.
func (p *plan) cases() ([]unit, error) {
	large, small := p.edges()
	l, s := fmt.Sprintf("%d³", large), fmt.Sprintf("%d³", small)
	var all []unit
	add := func(u unit) { all = append(all, u) }

	const piece = 1 << 20
	for _, c := range []struct {
		array, label, floor string
		edge                int
		ratio               float64
	}{
		{"raw", "raw " + l + ", pieces of 1 MiB", "pread", 0, 0.9},
		{"zstd", "zstd " + l, "zstd", large, 0.8},
		{"zstdsmall", "zstd " + s, "zstd", small, 0.8},
		{"shard", "shards " + l + " of " + s + " zstd", "shard", small, 0.8},
		{"blosclz4", "blosc-lz4 " + l, "blosc", large, 0.85},
		{"blosczstdbit", "blosc-zstd-bitshuffle " + l, "blosc", large, 0.85},
		{"gzip", "gzip " + l + " (floor: libdeflate)", "deflate", large, 0},
	} {
		files, err := chunkFiles(p.array(c.array))
		if err != nil {
			return nil, err
		}
		size := 4 * c.edge * c.edge * c.edge
		if size == 0 {
			size = piece
		}
		inner := large / small
		floor := contestant{who: "C", argv: append([]string{p.tool("floor"), c.floor, strconv.Itoa(size), "2", "3"}, files...),
			env: []string{"INNER=" + strconv.Itoa(inner*inner*inner)}}
		ours := contestant{who: strata, argv: []string{p.tool("arrays"), "stream", p.array(c.array), "-reps", "3", "-piece", strconv.Itoa(piece)}}
		add(unit{header: header{Name: "stream/" + c.array, Group: "stream", Label: c.label, Unit: "GiB/s", Target: target{Against: "C", Ratio: c.ratio}},
			reads: p.array(c.array), who: []contestant{ours, floor}})
	}

	for _, c := range []struct {
		array, label string
		ratio        float64
	}{
		{"raw", "raw " + l, 2},
		{"blosclz4", "blosc-lz4 " + l, 1.5},
		{"blosczstdbit", "blosc-zstd-bitshuffle " + l, 1.5},
		{"zstd", "zstd " + l, 1.1},
		{"zstdsmall", "zstd " + s, 1.1},
		{"shard", "shards " + l + " of " + s + " zstd", 1.2},
		{"gzip", "gzip " + l, 0},
	} {
		add(unit{header: header{Name: "full/" + c.array, Group: "full", Label: c.label, Unit: "GiB/s",
			Target: target{Against: "peers", Ratio: c.ratio}, Memory: p.mib() + 256},
			reads: p.array(c.array), large: true, who: p.everybody("full", p.array(c.array))})
	}

	for _, c := range []struct{ array, label string }{{"zstdsmall", "zstd " + s}, {"shard", "shards " + l + " of " + s + " zstd"}, {"raw", "raw " + l}} {
		add(unit{header: header{Name: "random/" + c.array, Group: "random", Label: "40 boxes of " + s + ", " + c.label, Unit: "ms", Target: target{Against: "peers", Ratio: 2}},
			reads: p.array(c.array), who: p.everybody("random", p.array(c.array), "-edge", strconv.Itoa(small))})
	}
	for _, c := range []struct{ array, label string }{{"zstdsmall", "zstd " + s}, {"shard", "shards " + l + " of " + s + " zstd"}, {"raw", "raw " + l}} {
		add(unit{header: header{Name: "slab/" + c.array, Group: "random", Label: "a plane across each axis, " + c.label, Unit: "ms", Target: target{Against: "peers", Ratio: 2}},
			reads: p.array(c.array), who: p.everybody("slab", p.array(c.array))})
	}

	for _, c := range []struct{ name, codec, label string }{
		{"raw", "raw", "raw " + l}, {"zstd", "zstd:3", "zstd:3 " + l}, {"blosczstd", "blosc-zstd:1", "blosc-zstd:1 " + l},
		{"shard", "zstd:3", "shards " + l + " of " + s + " zstd:3"},
	} {
		args := []string{"-shape", join(p.shape), "-codec", c.codec, "-out", filepath.Join(p.out, "array.zarr"), "-chunks", cube(large)}
		if c.name == "shard" {
			args[len(args)-1] = cube(small)
			args = append(args, "-shard", cube(large))
		}
		add(unit{header: header{Name: "write/" + c.name, Group: "write", Label: c.label, Unit: "GiB/s",
			Target: target{Against: "peers", Ratio: 1.2}, Memory: p.mib() + 256},
			reads: filepath.Join(p.data, "plain.f32"), writes: true, large: true, who: p.everybody("write", filepath.Join(p.data, "plain.f32"), args...)})
	}

	add(unit{header: header{Name: "open", Group: "start", Label: "open an array again", Unit: "ms", Target: target{Against: "ms", Ratio: 0.05}},
		reads: p.array("raw"), who: p.everybody("open", p.array("raw"))})
	add(unit{header: header{Name: "version", Group: "start", Label: "start of a process: `--version`", Unit: "ms", Target: target{Against: "ms", Ratio: 6}},
		reads: p.bin, who: []contestant{
			{who: strata, argv: []string{filepath.Join(p.bin, "zarr-tool"), "--version"}, wall: true},
			{who: "C", argv: []string{p.tool("floor"), "nothing"}, wall: true}}})
	add(p.oneRegion(small))

	for _, c := range []struct {
		name, label string
		ratio       float64
	}{{"raw", "raw", 1.35}, {"zstd", "shards of zstd:3", 1.1}, {"blosc", "blosc-zstd:1", 0}} {
		image, err := filepath.Glob(filepath.Join(p.data, "mosaic_"+c.name, "*.ome.zarr"))
		if err != nil || len(image) != 1 {
			return nil, fmt.Errorf("%s: want one mosaic in mosaic_%s", p.data, c.name)
		}
		in := filepath.Join(image[0], "0")
		add(unit{header: header{Name: "aip/" + c.name, Group: "aip", Label: c.label, Unit: "ms",
			Target: target{Against: "reading alone", Ratio: c.ratio, Inverse: true}, Memory: 512},
			reads: in, who: []contestant{
				{who: strata, argv: []string{filepath.Join(p.bin, "aip"), image[0], filepath.Join(p.out, "aip.ome.zarr"), "-f", "-q", "--threads", "2"}, wall: true},
				{who: "reading alone", argv: []string{p.tool("arrays"), "alone", in, "-piece", strconv.Itoa(512 << 10)}, wall: true},
				{who: "zarr-python, numpy mean", argv: []string{p.python, p.peers, "zarr", "mean", in}, wall: true},
			}})
	}

	for _, r := range []int{0, 32} {
		add(unit{header: header{Name: fmt.Sprintf("tiles/%d", r), Group: "tiles", Label: fmt.Sprintf("views of radius %d", r), Unit: "GiB/s",
			Target: target{Against: "tiles alone", Ratio: 0.8}},
			reads: p.array("tiles"), who: []contestant{
				{who: strata, argv: []string{p.tool("arrays"), "views", p.array("tiles"), "-radius", strconv.Itoa(r), "-reps", "5"}},
				{who: "tiles alone", argv: []string{p.tool("arrays"), "alone", p.array("tiles"), "-piece", "0", "-reps", "5"}},
			}})
	}
	for _, codec := range []string{"raw", "blosc-zstd:1"} {
		edge := large / 2
		args := []string{filepath.Join(p.data, "plain.f32"), "-shape", join(p.shape), "-codec", codec, "-chunks", cube(edge), "-out", filepath.Join(p.out, "image.zarr")}
		ours := func(op string, more ...string) []string {
			return append(append([]string{p.tool("arrays"), op}, args...), more...)
		}
		add(unit{header: header{Name: "ome/" + codec, Group: "ome", Label: fmt.Sprintf("%s %d³", codec, edge), Unit: "GiB/s", Target: target{Against: "array alone"}},
			reads: filepath.Join(p.data, "plain.f32"), who: []contestant{
				{who: strata, argv: ours("ome", "-levels", "5")},
				{who: "level 0 alone", argv: ours("ome", "-levels", "0")},
				{who: "array alone", argv: ours("write")},
			}})
	}
	return all, nil
}

// oneRegion is a process that starts, reads one box and writes it to a file.
func (p *plan) oneRegion(small int) unit {
	path, file := p.array("zstdsmall"), filepath.Join(p.out, "region.npy")
	box := fmt.Sprintf("0:%d,0:%[1]d,0:%[1]d", small)
	// as one types it
	script := func(open string) []string {
		return []string{p.python, "-c", fmt.Sprintf("import numpy\n%s\nnumpy.save(%q, x)", fmt.Sprintf(open, path, box), file)}
	}
	const zarr = "x = zarr.open_array(%q, mode='r')[%s]"
	u := unit{header: header{Name: "region", Group: "start", Label: "process that reads a region of " + cube(small) + " into a file", Unit: "ms", Target: target{Against: "ms", Ratio: 10}},
		reads: path, who: []contestant{
			{who: strata, wall: true, argv: []string{filepath.Join(p.bin, "zarr-tool"), "cat", path, "--region", box, "-f", "-q", "-o", file}},
			{who: "zarr-python", wall: true, argv: script("import zarr\n" + zarr)},
			{who: "zarr-python + zarrs", wall: true, argv: script("import zarr, zarrs; zarr.config.set({'codec_pipeline.path': 'zarrs.ZarrsCodecPipeline'})\n" + zarr)},
			{who: "tensorstore", wall: true, argv: script("import tensorstore as ts\n" +
				"x = ts.open({'driver': 'zarr3', 'kvstore': {'driver': 'file', 'path': %q}}, open=True, read=True).result()[%s].read().result()")},
		}}
	if _, err := os.Stat(p.tool("zarrs-bench")); err == nil {
		u.who = append(u.who, contestant{who: "zarrs", wall: true, argv: []string{p.tool("zarrs-bench"), "region", path, "--edge", strconv.Itoa(small), "--out", file}})
	}
	return u
}

// chunkFiles are the files of an array's chunks, in the order of the grid.
func chunkFiles(array string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(array, "c", "*", "*", "*"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no chunks: run arrays gen first", array)
	}
	return files, err
}
