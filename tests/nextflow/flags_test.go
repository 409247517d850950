package nextflow

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// stages are the programs of the chain.
var stages = []string{"aip", "resample", "focal", "stitch", "crop", "stack", "preview", "qc-report"}

// withoutParameter are the flags that no parameter of the same name sets, and why.
var withoutParameter = map[string]string{
	"aip --png": "always given",

	"resample --prefetch": "resample_prefetch; changes nothing in the result",

	"focal --save_map":   "always given",
	"focal --correction": "focal_correction: a file",

	"stitch --transform":      "stitch_transform: a file, or the estimate",
	"stitch --estimate":       "once for all slices: --estimate_only",
	"stitch --estimate_only":  "stitch_estimate",
	"stitch --save_transform": "published by the estimate",
	"stitch --save_positions": "always given",

	"preview --level":     "the finest that fits preview_max_size",
	"preview --at":        "a place in one image",
	"preview --window":    "of one image; preview_percentiles",
	"preview --scale_bar": "on",
	"preview --labels":    "on",
	"preview --title":     "the image's name",

	"stack --transforms_dir":            "transforms_dir: a folder",
	"stack --manual_transforms_dir":     "manual_transforms_dir: a folder",
	"stack --slice_config":              "slice_config: a file",
	"stack --output_z_matches":          "always given",
	"stack --output_stacking_decisions": "always given",
	"stack --blend_depth":               "has no effect",
}

// otherDefault are the parameters whose default is not the program's, and why.
var otherDefault = map[string]string{
	"crop_before_interface": "the stack expects slices that begin at the interface",
}

// flagLine is a flag in a program's help: "  -j, --threads N", "      --[no-]use_gpu".
var flagLine = regexp.MustCompile(`^ {2}(?:-\w, | {4})--(\[no-\])?([a-z0-9_]+)(.*)$`)

func joined(values []any) string {
	var all []string
	for _, v := range values {
		all = append(all, fmt.Sprint(v))
	}
	return strings.Join(all, "|")
}

// flags returns the flags of a program of its own, with their defaults as text,
// all of them, and what the help says of each.
func flags(t *testing.T, binary string) (own, all, text map[string]string) {
	t.Helper()
	out, err := exec.Command(binary, "--help").Output()
	if err != nil {
		t.Fatalf("%s --help: %v", binary, err)
	}
	own, all, text = map[string]string{}, map[string]string{}, map[string]string{}
	section, name := "", ""
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		m := flagLine.FindStringSubmatch(line)
		switch {
		case line != "" && line[0] != ' ':
			section, name = line, ""
		case m != nil && strings.HasSuffix(section, "ptions:"):
			name = m[2]
			text[name] = m[3]
			all[name] = ""
			if section == "Options:" {
				own[name] = ""
			}
		case name != "":
			text[name] += " " + strings.TrimSpace(line)
		}
	}
	value := regexp.MustCompile(`\(default: (.*)\)\s*$`)
	for name := range all {
		d := ""
		if m := value.FindStringSubmatch(text[name]); m != nil {
			d = m[1]
		}
		all[name] = d
		if _, mine := own[name]; mine {
			own[name] = d
		}
	}
	return own, all, text
}

// same tells whether a program's default is the schema's. A switch that is off
// has none in the help.
func same(program string, parameter any) bool {
	list := func(s string) string { return strings.NewReplacer(",", " ", "  ", " ").Replace(s) }
	switch v := parameter.(type) {
	case nil:
		// What is not given is left to the program, whatever its help calls that.
		_, err := strconv.ParseFloat(program, 64)
		return err != nil
	case bool:
		return v == (program == "on")
	case float64:
		f, err := strconv.ParseFloat(program, 64)
		return err == nil && f == v || program == "" && v == 0
	}
	return list(program) == list(fmt.Sprint(parameter))
}

// What the schema says of a flag has to be what the program says, and every flag
// of a stage has to be within reach of who runs the workflow.
func TestFlagsOfPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the programs")
	}
	bin := t.TempDir()
	args := []string{"build", "-tags", "urfave_cli_no_docs", "-o", bin + "/"}
	for _, program := range stages {
		args = append(args, "../../cmd/"+program)
	}
	build := exec.Command("go", args...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	known := schema(t)
	flagsOf := map[string]map[string]string{}
	setBy := map[string]string{} // "program --flag" → parameter
	for name, e := range known {
		if e.Sets == "" {
			continue
		}
		if other, twice := setBy[e.Sets]; twice {
			t.Errorf("%s and %s both set %s", name, other, e.Sets)
		}
		setBy[e.Sets] = name
		program, flag, _ := strings.Cut(e.Sets, " --")
		if want := program + "_" + strings.TrimPrefix(flag, program+"_"); program != "format" && name != want {
			t.Errorf("%s sets %s: should be called %s", name, e.Sets, want)
		}
	}
	for _, program := range stages {
		own, all, help := flags(t, filepath.Join(bin, program))
		flagsOf[program] = all
		if len(all) == 0 {
			t.Errorf("%s --help has no options that this test understands", program)
		}
		for flag, text := range own {
			name := setBy[program+" --"+flag]
			_, listed := withoutParameter[program+" --"+flag]
			switch {
			case program == "qc-report": // gets what there is
			case name == "" && !listed:
				t.Errorf("%s has --%s (default %q), which no parameter sets", program, flag, text)
			case name != "" && listed:
				t.Errorf("%s --%s: %s sets it, and it is listed as without a parameter", program, flag, name)
			case name != "" && known[name].Enum != nil && !strings.Contains(help[flag], joined(known[name].Enum)):
				t.Errorf("%s: one of %v, %s --%s: %s", name, known[name].Enum, program, flag, help[flag])
			case name != "" && otherDefault[name] == "" && !same(text, known[name].Default):
				t.Errorf("%s: default %v, %s --%s has %q", name, known[name].Default, program, flag, text)
			}
		}
		for sets, name := range setBy {
			if p, flag, _ := strings.Cut(sets, " --"); p == program {
				if _, there := all[flag]; !there {
					t.Errorf("%s sets %s, which does not exist", name, sets)
				}
			}
		}
		for _, common := range []string{"zarr_format", "codec", "n_levels"} {
			if text, there := all[common]; there && program != "stack" && !same(text, known[common].Default) {
				t.Errorf("%s: default %v, %s has %q", common, known[common].Default, program, text)
			}
		}
		if text, there := own["prefetch"]; there && !same(text, known[program+"_prefetch"].Default) {
			t.Errorf("%s_prefetch: default %v, the program has %q", program, known[program+"_prefetch"].Default, text)
		}
	}
	for flag := range withoutParameter {
		program, name, _ := strings.Cut(flag, " --")
		if _, there := flagsOf[program][name]; !there {
			t.Errorf("%s is listed as without a parameter, but does not exist", flag)
		}
	}
}
