package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	ioAlone = "I/O alone"
	peers   = "Python"
	linumpy = "linumpy"
)

// reference is what the pipeline that strata replaces takes for a stage: the
// seconds measured with it on another machine, whose own floor is known.
type reference struct {
	Seconds float64 `json:"s"`
	Floor   string  `json:"floor"` // case of this run whose speed is compared: "floor/pread" or "floor/zstd"
	Speed   float64 `json:"gbps"`  // speed of that floor there, GB/s
	Ratio   float64 `json:"ratio"` // strata should be so many times as fast
}

// difference is how far our result and a peer's lie apart.
type difference struct {
	Case   string  `json:"case"`
	Max    float64 `json:"max"`
	Mean   float64 `json:"mean"`
	Range  float64 `json:"range"`            // largest magnitude
	Far    float64 `json:"far"`              // share of voxels further apart than a thousandth of it
	Shapes [][]int `json:"shapes,omitempty"` // when these differ
}

// Floors that the reference's machine had: reading in pieces of some MiB, and
// reading and decoding zstd, GB/s.
const (
	preadThere = 20
	zstdThere  = 1.7
)

type stageCase struct {
	name, codec string
	args        []string // besides IN and OUT
	passes      string   // what the stage has to read of its input, as bench/arrays takes it
	alone       float64  // target: in multiples of the I/O alone
	ref         *reference
	peer        bool
	old         string // program of linumpy
}

// cropPasses: the percentile at which the search clips is one of all voxels, the
// search sees half of the planes and, with a sigma of 2, 8 more, and where the
// cut lies follows from it; memory does not hold the image in between.
const cropPasses = "1,0.5+8,out"

// stageCases are the stages on the mosaic as zstd shards, as it is, and as
// Blosc chunks, and stack on slices.
func stageCases() []stageCase {
	zstd := func(s, ratio float64) *reference { return &reference{s, "floor/zstd", zstdThere, ratio} }
	pread := func(s, ratio float64) *reference { return &reference{s, "floor/pread", preadThere, ratio} }
	var all []stageCase
	for _, codec := range []string{"zstd", "raw", "blosc"} {
		limit := map[string]float64{"zstd": 1.3, "blosc": 1.3}[codec]
		resampleLimit := limit
		aipRef, resampleRef := (*reference)(nil), (*reference)(nil)
		switch codec {
		case "raw":
			resampleLimit = 2.5
			aipRef, resampleRef = pread(4.6, 20), pread(16, 25)
		case "zstd":
			aipRef, resampleRef = zstd(7.7, 5), zstd(16, 9)
		}
		one := codec == "zstd"
		var focalRef *reference
		if one {
			focalRef = zstd(70, 12)
		}
		all = append(all,
			stageCase{name: "aip", codec: codec, passes: "1", alone: limit, ref: aipRef, peer: codec != "blosc", old: "linum-aip"},
			stageCase{name: "resample", codec: codec, args: []string{"-r", "10"}, passes: "1", alone: resampleLimit, ref: resampleRef, peer: codec != "blosc", old: "linum-resample-mosaic-grid"},
			stageCase{name: "focal", codec: codec, passes: "1,1", alone: limit, ref: focalRef, peer: one, old: "linum-detect-focal-curvature"},
			stageCase{name: "crop", codec: codec, passes: cropPasses, alone: limit, peer: one, old: "linum-crop-3d-mosaic-below-interface"},
			stageCase{name: "stitch", codec: codec, args: []string{"--blending", "average"}, passes: "1", alone: limit, peer: one},
			stageCase{name: "estimate", codec: codec, passes: "1", alone: limit, peer: one},
		)
	}
	return append(all, stageCase{name: "stack", codec: "blosc", args: []string{"--blend"}, passes: "1", alone: 1.3, ref: zstd(81, 12), peer: true, old: "linum-stack-slices-motor"})
}

// stageUnits is the benchmark of the stages.
func (p *plan) stageUnits() ([]unit, error) {
	var all []unit
	mosaic := func(codec string) string { return filepath.Join(p.data, "mosaic_"+codec+".ome.zarr") }
	slices := filepath.Join(p.data, "slices")
	// floors of the machine, in C
	for _, f := range []struct{ name, codec, label string }{
		{"pread", "raw", "pread, pieces of 1 MiB"}, {"zstd", "zstd", "pread and libzstd, a chunk at a time"}} {
		array := filepath.Join(mosaic(f.codec), "0")
		files, err := chunkFiles(array)
		if err != nil {
			return nil, err
		}
		shape, inner, err := chunkOf(array)
		if err != nil {
			return nil, err
		}
		mode, size := "pread", 1<<20
		if inner > 1 || f.codec == "zstd" {
			mode, size = "shard", 4*volumeOf(shape)
		}
		all = append(all, unit{header: header{Name: "floor/" + f.name, Group: "floor", Label: f.label, Unit: "GB/s"}, reads: array,
			who: []contestant{{who: "C", argv: append([]string{p.tool("floor"), mode, strconv.Itoa(size), "2", "3"}, files...), env: []string{"INNER=" + strconv.Itoa(inner)}}}})
	}
	for _, c := range stageCases() {
		in, shifts, inputs := mosaic(c.codec), "", mosaic(c.codec)
		label := map[string]string{"stitch": "stitch (average)", "estimate": "stitch --estimate_only"}[c.name]
		if label == "" {
			label = c.name
		}
		label += ", " + map[string]string{"zstd": "shards of zstd:3", "raw": "raw", "blosc": "blosc-zstd:1"}[c.codec]
		if c.name == "stack" {
			in, shifts, label = slices, filepath.Join(p.data, "shifts_xy.csv"), "stack, slices of blosc-zstd:1"
			found, err := filepath.Glob(filepath.Join(slices, "slice_z*.ome.zarr"))
			if err != nil || len(found) == 0 {
				return nil, fmt.Errorf("%s: no slices", slices)
			}
			inputs = strings.Join(found, ",")
		}
		out := filepath.Join(p.out, "out", c.name+".ome.zarr")
		like := out
		if c.name == "estimate" {
			like = ""
		}
		u := unit{header: header{Name: c.name + "/" + c.codec, Group: "stage", Label: label, Unit: "s", Memory: 1024, Reference: c.ref,
			Target: target{Against: ioAlone, Ratio: c.alone, Inverse: true}}, reads: in,
			who: []contestant{
				{who: strata, argv: p.stageCommand(&c, p.data, out), clear: filepath.Dir(out), wall: true},
				{who: ioAlone, argv: []string{p.tool("arrays"), "io", inputs, "-like", like, "-out", filepath.Join(p.out, "io"), "-passes", c.passes, "-piece", strconv.Itoa(512 << 10)}},
			}}
		if c.peer {
			theirs := filepath.Join(p.out, "python")
			argv := []string{p.python, p.stages, c.name, in, theirs}
			if shifts != "" {
				argv = append(argv, "--shifts", shifts)
			}
			u.who = append(u.who, contestant{who: peers, argv: argv, clear: theirs, wall: true, most: 1})
			if like != "" {
				u.diff = []string{p.python, p.stages, "diff", out, theirs}
			}
		}
		if p.linumpy != "" && c.old != "" {
			old, err := program(p.linumpy, c.old)
			if err != nil {
				return nil, err
			}
			theirs := filepath.Join(p.out, "linumpy.ome.zarr")
			argv := []string{old, in, theirs}
			if shifts != "" {
				argv = []string{old, in, shifts, theirs}
			}
			argv = append(argv, oldFlags[c.name]...)
			u.who = append(u.who, contestant{who: linumpy, argv: argv, clear: theirs, wall: true, most: 3})
		}
		all = append(all, u)
	}
	for _, name := range []string{"aip", "resample", "focal", "crop", "stitch", "stack"} {
		all = append(all, unit{header: header{Name: "start/" + name, Group: "start", Label: "`" + name + " --version`", Unit: "ms", Target: target{Against: "ms", Ratio: 6}},
			reads: filepath.Join(p.bin, name), least: 11, who: []contestant{
				{who: strata, argv: []string{filepath.Join(p.bin, name), "--version"}, wall: true},
				{who: "C", argv: []string{p.tool("floor"), "nothing"}, wall: true}}})
	}
	return all, nil
}

// oldFlags are linumpy's, where its defaults are not what is compared.
var oldFlags = map[string][]string{
	"resample": {"-r", "10"},
	"crop":     {"--depth", "600"},
	"stack":    {"--blend"},
}

// program finds a program of a checkout with its environment, or on the path.
func program(dir, name string) (string, error) {
	for _, sub := range []string{".venv/bin", "venv/bin", "bin", "scripts", "."} {
		for _, file := range []string{name, strings.ReplaceAll(name, "-", "_") + ".py"} {
			path := filepath.Join(dir, sub, file)
			if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
				return filepath.Abs(path)
			}
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("LINUMPY=%s: no program %s in it (looked in .venv/bin, venv/bin, bin, scripts and the path)", dir, name)
}

// chunkOf reads the shape of a chunk (inner, where there are shards) and how
// many of them a file holds from an array's metadata.
func chunkOf(array string) (shape []int, perFile int, err error) {
	var m struct {
		Grid struct {
			Configuration struct {
				Shape []int `json:"chunk_shape"`
			} `json:"configuration"`
		} `json:"chunk_grid"`
		Codecs []struct {
			Name          string `json:"name"`
			Configuration struct {
				Shape []int `json:"chunk_shape"`
			} `json:"configuration"`
		} `json:"codecs"`
	}
	b, err := os.ReadFile(filepath.Join(array, "zarr.json"))
	if err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", array, err)
	}
	shape = m.Grid.Configuration.Shape
	if len(m.Codecs) == 1 && m.Codecs[0].Name == "sharding_indexed" {
		inner := m.Codecs[0].Configuration.Shape
		return inner, volumeOf(shape) / max(volumeOf(inner), 1), nil
	}
	return shape, 1, nil
}

func volumeOf(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// compareResults runs a unit's program that says how far two outputs lie apart.
func compareResults(ctx context.Context, u *unit) (*difference, error) {
	b, err := exec.CommandContext(ctx, u.diff[0], u.diff[1:]...).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(u.diff[1:], " "), err)
	}
	d := &difference{}
	if err := json.Unmarshal(b, d); err != nil {
		return nil, fmt.Errorf("%s printed %q: %w", u.diff[1], b, err)
	}
	d.Case = u.Name
	return d, nil
}
