package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// processCase is a process of the workflow: a program on data of one size. In its texts {raw}, {mosaic}, {slices},
// {shifts} and {template} stand for the data, {a}, {b} and {c} for the first three slices, and {out} for what the
// program writes.
type processCase struct {
	name   string
	ours   string  // command line
	theirs string  // linumpy's; "": it has none, or none that runs without a network
	slow   bool    // theirs takes minutes: one round is enough
	reads  string  // images that the I/O alone reads, separated by commas; "": there is none
	frames bool    // these are folders of raw frames
	passes string  // as lab/arrays takes it
	like   string  // images that the I/O alone writes; "": the program writes next to nothing
	alone  float64 // target: in multiples of the I/O alone
	same   bool    // theirs are meant to be the same numbers
}

// processSizes lists the sizes of the data, as they are called in file names and on the page.
var processSizes = []struct{ name, label string }{{"small", "40×400×400"}, {"large", "80×800×800"}}

// Targets of all processes: multiples of linumpy's speed and of the I/O alone's time.
const (
	processOld   = 10
	processAlone = 1.5
)

// processCases returns the programs of the workflow that stageCases lacks, in the order in which the workflow runs
// them.
func processCases() []processCase {
	const image, other = "{out}/image.ome.zarr", " {out}/image.ome.zarr"
	const anyhow = " --min_overlap_correlation 0.05 --min_ncc_improvement -1" // speckle hides what both planes have in common
	return []processCase{
		{name: "mosaic", ours: "mosaic {raw}" + other + " --slice 0 --resolution -1", theirs: "create_mosaic_grid_3d --from_root_directory {raw} -z 0 -r -1 --no-use_gpu --n_processes 2" + other,
			reads: "{raw}/z00", frames: true, passes: "1", like: image, alone: processAlone, same: true},
		{name: "shifts estimate", ours: "shifts estimate {raw} {out}/shifts.csv", theirs: "estimate_xy_shift_from_metadata {raw} {out}/shifts.csv --n_processes 2"},
		{name: "flatfield", ours: "flatfield {mosaic}" + other, theirs: "fix_illumination_3d --no-use_gpu --n_processes 2 {mosaic}" + other, slow: true,
			reads: "{mosaic}", passes: "1,1,1", like: image, alone: processAlone, same: true},
		{name: "beam-profile", ours: "beam-profile {a}" + other, theirs: "compensate_psf_model_free {a}" + other, reads: "{a}", passes: "1", like: image, alone: processAlone, same: true},
		{name: "attenuation", ours: "attenuation {a}" + other, theirs: "compensate_attenuation_inplace {a}" + other, slow: true, reads: "{a}", passes: "1", like: image, alone: processAlone},
		{name: "normalize", ours: "normalize {a}" + other, theirs: "normalize_intensities_per_slice --no-use_gpu {a}" + other, reads: "{a}", passes: "1", like: image, alone: processAlone, same: true},
		{name: "slices assess", ours: "slices assess {slices} {out}/slice_config.csv", theirs: "assess_slice_quality --no-use_gpu --processes 2 {slices} {out}/slice_config.csv",
			reads: "{a},{b},{c}", passes: "1", alone: processAlone},
		{name: "common-space", ours: "common-space {slices} {shifts} {out}/slices", theirs: "align_mosaics_3d_from_shifts {slices} {shifts} {out}/slices",
			reads: "{a},{b},{c}", passes: "1", like: "{out}/slices/slice_z00.ome.zarr,{out}/slices/slice_z01.ome.zarr,{out}/slices/slice_z02.ome.zarr", alone: processAlone},
		{name: "interpolate", ours: "interpolate {a} {c}" + other + anyhow, theirs: "interpolate_missing_slice {a} {c}" + other + anyhow, reads: "{a},{c}", passes: "0.1", like: image, alone: processAlone},
		{name: "register", ours: "register {a} {b} {out}/transform", theirs: "register_pairwise {a} {b} {out}/transform", reads: "{a},{b}", passes: "1", alone: processAlone},
		{name: "bias-field", ours: "bias-field {a}" + other, theirs: "correct_bias_field --backend cpu --n_processes 2 {a}" + other, slow: true, reads: "{a}", passes: "1", like: image, alone: processAlone},
		{name: "align", ours: "align {a}" + other + " --template {template}", reads: "{a},{template}", passes: "1", like: image, alone: processAlone},
	}
}

// processUnits returns the benchmark of the workflow's processes on both sizes, in folders small and large of the data.
func (p *plan) processUnits() ([]unit, error) {
	var all []unit
	for _, size := range processSizes {
		for _, c := range processCases() {
			u, err := p.processUnit(&c, size.name)
			if err != nil {
				return nil, err
			}
			all = append(all, *u)
		}
	}
	return all, nil
}

func (p *plan) processUnit(c *processCase, size string) (*unit, error) {
	data := filepath.Join(p.data, size)
	slice := func(i int) string { return filepath.Join(data, "slices", fmt.Sprintf("slice_z%02d.ome.zarr", i)) }
	words := func(text, out string) string {
		return strings.NewReplacer("{raw}", filepath.Join(data, "raw"), "{mosaic}", filepath.Join(data, "mosaic.ome.zarr"), "{slices}", filepath.Join(data, "slices"),
			"{shifts}", filepath.Join(data, "shifts_xy.csv"), "{template}", filepath.Join(data, "template.ome.zarr"),
			"{a}", slice(0), "{b}", slice(1), "{c}", slice(2), "{out}", out).Replace(text)
	}
	line := func(text, out string) []string { // folders may have spaces in their names
		argv := strings.Fields(text)
		for i := range argv {
			argv[i] = words(argv[i], out)
		}
		return argv
	}
	out := filepath.Join(p.out, "out")
	ours := append(line(c.ours, out), "--threads", "2", "--overwrite")
	ours[0] = filepath.Join(p.bin, ours[0])
	u := &unit{header: header{Name: strings.ReplaceAll(c.name, " ", "-") + "/" + size, Group: size, Label: "`" + c.name + "`", Unit: "s", Memory: 1024}, reads: data, apart: true,
		who: []contestant{{who: strata, argv: ours, clear: out, wall: true}}}
	if c.reads != "" {
		argv := []string{p.tool("arrays"), "io", words(c.reads, ""), "-like", words(c.like, out), "-out", filepath.Join(p.out, "io"), "-passes", c.passes, "-piece", strconv.Itoa(512 << 10)}
		if c.frames {
			argv = append(argv, "-frames")
		}
		if !strings.Contains(c.reads, ",") {
			u.reads, u.apart = words(c.reads, ""), false
		}
		u.who = append(u.who, contestant{who: ioAlone, argv: argv})
		u.Targets = []target{{Against: ioAlone, Ratio: c.alone, Inverse: true}}
	}
	if c.theirs == "" || p.linumpy == "" {
		return u, nil
	}
	script, args, _ := strings.Cut(c.theirs, " ")
	old, err := findScript(p.linumpy, "linum_"+script+".py")
	if err != nil {
		return nil, err
	}
	theirs := filepath.Join(p.out, "linumpy")
	k := contestant{who: linumpy, argv: append(old.argv, line(args, theirs)...), env: old.env, clear: theirs, wall: true, most: 3}
	if c.slow {
		k.most = 1
	}
	if c.same {
		u.diff = []string{p.python, p.stages, "diff", words(c.like, out)}
		k.diff = words(c.like, theirs)
	}
	u.who = append(u.who, k)
	u.Targets = append(u.Targets, target{Against: linumpy, Ratio: processOld})
	return u, nil
}

func workflowPart() *part {
	var groups []group
	var plotted []string
	for _, s := range processSizes {
		groups, plotted = append(groups, group{s.name, s.label}), append(plotted, s.name)
	}
	return &part{
		name: "workflow", page: "benchmarks.md", picture: "benchmarks-workflow.svg", groups: groups, plotted: plotted,
		plot:   "Speed of the workflow's processes, of their input and output alone, and of linumpy's programs",
		hidden: func(o *outcome) bool { return o.Group != "large" },
		more: func(all []*outcome, _ string) (map[string]string, error) {
			return map[string]string{"workflow/differences": differences(all)}, nil
		},
	}
}
