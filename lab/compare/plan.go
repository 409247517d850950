package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// strata is the name of strata's own programs in the report.
const strata = "strata"

// plan knows the locations of everything and makes the cases.
type plan struct {
	tools, bin, data, out, python string
	peers, stages                 string // scripts
	linumpy                       string // folder of linumpy; "": none
	about                         string // the data, in words
	kvikio                        string // a Python that has it; "": none
	fastLoader                    string // a program by which FastLoader streams views; "": none
	noCUDA                        string // folder of a library for it, where the driver's is missing
	files                         bool   // it is the file layer that is measured
	shape                         []int
	mosaics                       string // of scaling: their names in the folder of the data
	packages                      string // of Python, whose versions are facts; "": those of arrays or stages
}

// contestant is one program of a case.
type contestant struct {
	who  string
	argv []string
	env  []string
	// wall measures the process from start to end; otherwise it prints its own
	// measurement.
	wall  bool
	clear string // folder of what it writes: emptied before, sized up after
	// record is the run record that the program writes: its number of workers is noted, then it is removed.
	record string
	diff   string // in it: what is compared with strata's output, once; "": nothing
	most   int    // rounds, at most; 0: all of the case's
}

// unit is a case with the programs that run it.
type unit struct {
	header
	reads  string   // file or folder that is read before, so that it is cached
	stored string   // what is read lies here too, and is sized up; "": reads, if that is a folder
	apart  bool     // programs read different parts of it, which is why its size is not stated
	writes bool     // programs write the folder out: checked, then removed
	output string   // what they write, where that is not the array of the folder out
	env    []string // of all of its programs
	large  bool     // programs hold the array in memory
	least  int      // rounds, at least; 0: the runner's
	diff   []string // program that compares another's output with strata's; nil: none
	who    []contestant
}

func join(v []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ","), "[]") }

func cube(n int) string { return join([]int{n, n, n}) }

// edges returns the chunk edges of lab/arrays: of a large and of a small chunk.
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

// everybody returns the programs that run an operation: lab/arrays and the peers.
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

// kindsOf returns the kinds of data with which an array of a codec is measured. Without encoding, all kinds are
// the same to every program.
func kindsOf(array string) []string {
	if array == "raw" {
		return []string{""}
	}
	return []string{"", "-noise"}
}

// kindLabel names a kind in a row.
func kindLabel(array, kind string) string {
	switch {
	case array == "raw":
		return ""
	case kind == "":
		return ", structured"
	}
	return ", noise"
}

// arrayCase is an array that is read or written with all kinds of data.
type arrayCase struct {
	array, label string
	ratio        float64 // target
	floor        string  // of C
	edge         int     // of a chunk that the floor decodes at once; 0: none
}

// cases returns the benchmark of the arrays.
func (p *plan) cases() ([]unit, error) {
	large, small := p.edges()
	l, s := fmt.Sprintf("%d³", large), fmt.Sprintf("%d³", small)
	shards := "shards " + l + " of " + s + " zstd:3"
	all, err := p.streams([]arrayCase{
		{"raw", "raw " + l + ", pieces of 1 MiB", 0.9, "pread", 0},
		{"zstd", "zstd:3 " + l, 1.15, "zstd", large},
		{"zstdsmall", "zstd:3 " + s, 1.15, "zstd", small},
		{"shard", shards, 1.15, "shard", small},
		{"blosclz4", "blosc-lz4 " + l, 0.85, "blosc", large},
		{"blosczstdbit", "blosc-zstd-bitshuffle " + l, 0.85, "blosc", large},
		{"gzip", "gzip " + l + " (C: libdeflate)", 0, "deflate", large},
	}, large/small)
	if err != nil {
		return nil, err
	}
	read := func(op, group, unitOf, prefix string, list []arrayCase, args ...string) {
		for _, c := range list {
			for _, kind := range kindsOf(c.array) {
				path := p.array(c.array + kind)
				u := unit{header: header{Name: op + "/" + c.array + kind, Group: group, Label: prefix + c.label + kindLabel(c.array, kind), Unit: unitOf, Targets: against(anyPeer, c.ratio)},
					reads: path, who: p.everybody(op, path, append(args, "-again", "2")...)}
				if op == "full" {
					u.large, u.Memory = true, p.mib()+256
				}
				all = append(all, u)
			}
		}
	}
	read("full", "full", "GiB/s", "", []arrayCase{
		{"raw", "raw " + l, 2.5, "", 0}, {"blosclz4", "blosc-lz4 " + l, 2.5, "", 0}, {"blosczstdbit", "blosc-zstd-bitshuffle " + l, 2.5, "", 0},
		{"zstd", "zstd:3 " + l, 1.5, "", 0}, {"zstdsmall", "zstd:3 " + s, 1.5, "", 0}, {"shard", shards, 1.5, "", 0}, {"gzip", "gzip " + l, 0, "", 0}})
	parts := []arrayCase{{"zstdsmall", "zstd:3 " + s, 2, "", 0}, {"shard", shards, 2, "", 0}, {"raw", "raw " + l, 2, "", 0}}
	read("random", "random", "ms", "40 boxes of "+s+", ", parts, "-edge", strconv.Itoa(small))
	read("slab", "random", "ms", "a plane across each axis, ", parts)
	all = append(all, p.writes([]arrayCase{
		{"raw", "raw " + l, 1.5, "raw", large}, {"zstd", "zstd:3 " + l, 1.5, "zstd:3", large}, {"blosczstd", "blosc-zstd:1 " + l, 2, "blosc-zstd:1", large},
		{"shard", shards, 1.5, "zstd:3", small}}, large)...)

	all = append(all,
		unit{header: header{Name: "open", Group: "start", Label: "open an array again", Unit: "ms", Targets: against(absolute, 0.05)},
			reads: p.array("raw"), who: p.everybody("open", p.array("raw"))},
		unit{header: header{Name: "version", Group: "start", Label: "start of a process: `--version`", Unit: "ms", Targets: against(absolute, startTarget)},
			reads: p.bin, who: []contestant{
				{who: strata, argv: []string{filepath.Join(p.bin, "zarr-tool"), "--version"}, wall: true},
				{who: inC, argv: []string{p.tool("floor"), "nothing"}, wall: true}}},
		p.oneRegion(small))
	return append(all, p.layers(large/2)...), nil
}

// startTarget is the time of a process that prints its version, in milliseconds.
const startTarget = 3

// against returns a target as a multiple of a yardstick's speed; 0: none.
func against(who string, ratio float64) []target {
	if ratio == 0 {
		return nil
	}
	return []target{{Against: who, Ratio: ratio}}
}

// plain returns the file with the numbers of a kind.
func (p *plan) plain(kind string) string {
	return filepath.Join(p.data, map[string]string{"": "structured", "-noise": "noise"}[kind]+".f32")
}

// streams returns the cases compared with C; inner is the number of small edges in a large one.
func (p *plan) streams(list []arrayCase, inner int) ([]unit, error) {
	const piece = 1 << 20
	var all []unit
	for _, c := range list {
		for _, kind := range kindsOf(c.array) {
			path := p.array(c.array + kind)
			files, err := chunkFiles(path)
			if err != nil {
				return nil, err
			}
			size := 4 * c.edge * c.edge * c.edge
			if size == 0 {
				size = piece
			}
			all = append(all, unit{header: header{Name: "stream/" + c.array + kind, Group: "stream", Label: c.label + kindLabel(c.array, kind), Unit: "GiB/s", Targets: against(inC, c.ratio)},
				reads: path, who: []contestant{
					{who: strata, argv: []string{p.tool("arrays"), "stream", path, "-again", "3", "-piece", strconv.Itoa(piece)}},
					{who: inC, argv: append([]string{p.tool("floor"), c.floor, strconv.Itoa(size), "2", "4"}, files...), env: []string{"INNER=" + strconv.Itoa(inner*inner*inner)}},
				}})
		}
	}
	return all, nil
}

// writes returns the cases of writing whole arrays; floor is the codec, edge that of a chunk, which lies in shards
// unless it is the large one.
func (p *plan) writes(list []arrayCase, large int) []unit {
	var all []unit
	for _, c := range list {
		for _, kind := range kindsOf(c.array) {
			args := []string{"-shape", join(p.shape), "-codec", c.floor, "-out", filepath.Join(p.out, "array.zarr"), "-chunks", cube(c.edge)}
			if c.edge != large {
				args = append(args, "-shard", cube(large))
			}
			all = append(all, unit{header: header{Name: "write/" + c.array + kind, Group: "write", Label: c.label + kindLabel(c.array, kind), Unit: "GiB/s",
				Targets: against(anyPeer, c.ratio), Memory: p.mib() + 256},
				reads: p.plain(kind), writes: true, large: true, who: p.everybody("write", p.plain(kind), args...)})
		}
	}
	return all
}

// layers returns the cases of the layers above the arrays, each compared with the layer below it.
func (p *plan) layers(edge int) []unit {
	var all []unit
	for _, r := range []int{0, 32} {
		all = append(all, unit{header: header{Name: fmt.Sprintf("tiles/%d", r), Group: "tiles", Label: fmt.Sprintf("views of radius %d", r), Unit: "GiB/s",
			Targets: against("tiles alone", 0.8)},
			reads: p.array("tiles"), who: []contestant{
				{who: strata, argv: []string{p.tool("arrays"), "views", p.array("tiles"), "-radius", strconv.Itoa(r), "-again", "5"}},
				{who: "tiles alone", argv: []string{p.tool("arrays"), "alone", p.array("tiles"), "-piece", "0", "-again", "5"}},
			}})
	}
	for _, codec := range []string{"raw", "blosc-zstd:1"} {
		for _, kind := range kindsOf(codec) {
			args := []string{p.plain(kind), "-shape", join(p.shape), "-codec", codec, "-chunks", cube(edge), "-out", filepath.Join(p.out, "image.zarr")}
			ours := func(op string, more ...string) []string {
				return append(append([]string{p.tool("arrays"), op}, args...), more...)
			}
			all = append(all, unit{header: header{Name: "ome/" + codec + kind, Group: "ome", Label: fmt.Sprintf("%s %d³%s", codec, edge, kindLabel(codec, kind)), Unit: "GiB/s"},
				reads: p.plain(kind), who: []contestant{
					{who: strata, argv: ours("ome", "-levels", "5")},
					{who: "level 0 alone", argv: ours("ome", "-levels", "0")},
					{who: "array alone", argv: ours("write")},
				}})
		}
	}
	return all
}

// oneRegion returns the case of a process that starts, reads one box and writes it to a file.
func (p *plan) oneRegion(small int) unit {
	path, file := p.array("zstdsmall"), filepath.Join(p.out, "region.npy")
	box := fmt.Sprintf("0:%d,0:%[1]d,0:%[1]d", small)
	// as one types it
	script := func(open string) []string {
		return []string{p.python, "-c", fmt.Sprintf("import numpy\n%s\nnumpy.save(%q, x)", fmt.Sprintf(open, path, box), file)}
	}
	const zarr = "x = zarr.open_array(%q, mode='r')[%s]"
	u := unit{header: header{Name: "region", Group: "start", Label: "process that reads a region of " + cube(small) + " into a file", Unit: "ms", Targets: against(absolute, 7)},
		reads: path, who: []contestant{
			{who: strata, wall: true, argv: []string{filepath.Join(p.bin, "zarr-tool"), "cat", path, "--region", box, "-f", "-q", "-o", file}},
			{who: "zarr-python", wall: true, argv: script("import zarr\n" + zarr)},
			{who: "zarr-python + zarrs", wall: true, argv: script("import zarr, zarrs; zarr.config.set({'codec_pipeline.path': 'zarrs.ZarrsCodecPipeline'})\n" + zarr)},
			{who: "tensorstore", wall: true, argv: script("import tensorstore as ts\n" +
				"x = ts.open({'driver': 'zarr3', 'kvstore': {'driver': 'file', 'path': %q}}, open=True, read=True).result()[%s].read().result()")},
		}}
	if _, err := os.Stat(p.tool("zarrs-bench")); err == nil {
		u.who = append(u.who, contestant{who: "zarrs", wall: true, argv: []string{p.tool("zarrs-bench"), "region", path, "--edge", strconv.Itoa(small), "--out", file + ".zarrs"}})
	}
	return u
}

// chunkFiles returns the files of an array's chunks, in the order of the grid.
func chunkFiles(array string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(array, "c", "*", "*", "*"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no chunks: run arrays gen first", array)
	}
	return files, err
}
