package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	ioAlone = "I/O alone"
	peers   = "Python"
	linumpy = "linumpy"
)

type stageCase struct {
	name, input string
	args        []string // besides IN and OUT
	passes      string   // what the stage has to read of its input, as lab/arrays takes it
	alone       float64  // target: in multiples of the I/O alone
	old         float64  // target: so many times as fast as linumpy
	python      bool     // with the same operators called from Python
}

// cropPasses: the percentile at which the search clips is one of all voxels, the
// search sees half of the planes and, with a sigma of 2, 8 more, and where the
// cut lies follows from it; memory does not hold the image in between.
const cropPasses = "1,0.5+8,out"

// inputs lists the mosaics, with their names in rows, in the order of the page.
var inputs = []struct{ name, label string }{
	{"tiles", "tiles of 105 MB, zstd:3"}, {"zstd", "phantom, shards of zstd:3"}, {"raw", "phantom, raw"}, {"blosc", "phantom, blosc-zstd:1"},
	{"structured", "structured, blosc-zstd:1"}, {"noise", "noise, blosc-zstd:1"},
}

// stageCases returns the stages, by default, on every mosaic that is informative for them, and stack on slices. Other
// programs run on tiles of real size and on the phantom as shards and raw, and those of one pass also on the other
// kinds of data.
func stageCases() []stageCase {
	var all []stageCase
	for _, in := range inputs {
		c := stageCase{input: in.name, passes: "1", alone: 1.3, python: in.name != "blosc"}
		aip, resample, focal, crop, stitch, estimate := c, c, c, c, c, c
		aip.name, resample.name, focal.name, crop.name, stitch.name, estimate.name = "aip", "resample", "focal", "crop", "stitch", "estimate"
		resample.args = []string{"-r", "10"}
		focal.passes, crop.passes = "1,1", cropPasses
		switch in.name {
		case "tiles", "zstd":
			aip.old, resample.old, focal.old = 5, 9, 12
			all = append(all, aip, resample, focal, crop, stitch, estimate)
		case "raw": // where resample computes most of the time
			aip.alone, aip.old, resample.alone, resample.old = 1.35, 20, 2.5, 25
			all = append(all, aip, resample)
		case "blosc":
			all = append(all, aip, resample, focal, crop, stitch, estimate)
		default: // no tissue: the tiles' overlaps differ, and A-lines have no interface
			all = append(all, aip, resample, stitch)
		}
	}
	return append(all,
		stageCase{name: "stack", input: "slices", args: asReference, passes: "1", alone: 1.4, old: 12, python: true},
		stageCase{name: "stack", input: "workflow", args: []string{"--blend", "--blend_match", "depth"}, passes: "1", alone: 2})
}

// asReference holds flags that make stack do the same as the other programs.
var asReference = []string{"--blend", "--overlap_search", "centre", "--blend_match", "pairwise", "--repair_shifts", "off", "--no-use_origins"}

// label returns the name of the case in a row of the page.
func (c *stageCase) label() string {
	name := c.name
	if name == "estimate" {
		name = "stitch --estimate_only"
	}
	for _, in := range inputs {
		if in.name == c.input {
			return name + ", " + in.label
		}
	}
	if c.input == "workflow" {
		return name + ", the same, as the workflow does it"
	}
	return name + ", slices of the phantom, blosc-zstd:1"
}

// in returns the input of the case in a folder, as one path and as a list of images.
func (c *stageCase) in(data string) (path, images string, err error) {
	if c.name != "stack" {
		path = filepath.Join(data, "mosaic_"+c.input+".ome.zarr")
		return path, path, nil
	}
	path = filepath.Join(data, "slices")
	found, err := filepath.Glob(filepath.Join(path, "slice_z*.ome.zarr"))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: no slices", path)
	}
	return path, strings.Join(found, ","), err
}

// stageUnits returns the benchmark of the stages.
func (p *plan) stageUnits() ([]unit, error) {
	var all []unit
	for _, c := range stageCases() {
		u, err := p.stageUnit(&c)
		if err != nil {
			return nil, err
		}
		all = append(all, *u)
	}
	for _, name := range []string{"aip", "resample", "focal", "crop", "stitch", "stack"} {
		all = append(all, unit{header: header{Name: "start/" + name, Group: "start", Label: "`" + name + " --version`", Unit: "ms", Targets: against(absolute, startTarget)},
			reads: filepath.Join(p.bin, name), least: 11, who: []contestant{
				{who: strata, argv: []string{filepath.Join(p.bin, name), "--version"}, wall: true},
				{who: inC, argv: []string{p.tool("floor"), "nothing"}, wall: true}}})
	}
	return all, nil
}

func (p *plan) stageUnit(c *stageCase) (*unit, error) {
	in, images, err := c.in(p.data)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(p.out, "out", c.name+".ome.zarr")
	like := out
	if c.name == "estimate" { // which writes next to nothing
		like = ""
	}
	u := &unit{header: header{Name: c.name + "/" + c.input, Group: "stage", Label: c.label(), Unit: "s", Memory: 1024,
		Targets: []target{{Against: ioAlone, Ratio: c.alone, Inverse: true}}}, reads: in,
		who: []contestant{
			{who: strata, argv: p.stageCommand(c, p.data, out), clear: filepath.Dir(out), wall: true},
			{who: ioAlone, argv: []string{p.tool("arrays"), "io", images, "-like", like, "-out", filepath.Join(p.out, "io"), "-passes", c.passes, "-piece", strconv.Itoa(512 << 10)}},
		}}
	if like != "" {
		u.diff = []string{p.python, p.stages, "diff", out}
	}
	add := func(who string, output string, argv []string, env ...string) {
		k := contestant{who: who, argv: argv, env: env, clear: filepath.Dir(output), wall: true, most: 3}
		if like != "" {
			k.diff = output
		}
		u.who = append(u.who, k)
	}
	var shifts []string
	if c.name == "stack" {
		shifts = []string{filepath.Join(p.data, "shifts_xy.csv")}
	}
	if c.python {
		theirs := filepath.Join(p.out, "python", c.name+".ome.zarr")
		argv := []string{p.python, p.stages, c.name, in, theirs}
		if shifts != nil {
			argv = append(argv, "--shifts", shifts[0])
		}
		add(peers, theirs, argv)
	}
	if c.old > 0 && p.linumpy != "" {
		old, err := findLinumpy(p.linumpy, c.name)
		if err != nil {
			return nil, err
		}
		theirs := filepath.Join(p.out, "linumpy", c.name+".ome.zarr")
		argv := append(append(append(old.argv, in), shifts...), theirs)
		add(linumpy, theirs, append(argv, old.flags...), old.env...)
		u.Targets = append(u.Targets, target{Against: linumpy, Ratio: c.old})
	}
	return u, nil
}

// linumpyScripts lists the programs of linumpy that do the same as a stage, with flags where its defaults differ.
var linumpyScripts = map[string][]string{
	"aip":      {"linum_aip.py", "--no-use_gpu"},
	"resample": {"linum_resample_mosaic_grid.py", "-r", "10", "--no-use_gpu"},
	"focal":    {"linum_detect_focal_curvature.py", "--no-use_gpu"},
	"stack":    {"linum_stack_slices_motor.py", "--blend", "--no-use_gpu"},
}

// oldProgram is the command line of a program of linumpy.
type oldProgram struct{ argv, flags, env []string }

// findLinumpy finds the script for a stage in a folder of linumpy, and the Python of
// the environment in it.
func findLinumpy(dir, stage string) (*oldProgram, error) {
	script := linumpyScripts[stage]
	old, err := findScript(dir, script[0])
	if err != nil {
		return nil, err
	}
	old.flags = script[1:]
	return old, nil
}

// findScript does so for a script of a name.
func findScript(dir, name string) (*oldProgram, error) {
	found, err := filepath.Glob(filepath.Join(dir, "scripts", "*", name))
	if err == nil && len(found) == 0 {
		found, err = filepath.Glob(filepath.Join(dir, "scripts", name))
	}
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("LINUMPY=%s: no %s in scripts", dir, name)
	}
	for _, env := range []string{".venv", "venv"} {
		python := filepath.Join(dir, env, "bin", "python")
		if _, err := os.Stat(python); err == nil {
			vars := []string{"PYTHONPATH=" + dir, "OMP_NUM_THREADS=2", "LINUMPY_MAX_CPUS=2"}
			return &oldProgram{argv: []string{python, found[0]}, env: vars}, nil
		}
	}
	return nil, fmt.Errorf("LINUMPY=%s: no Python in .venv or venv of it", dir)
}
