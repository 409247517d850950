package nextflow

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// switchedBy are the scripts here that turn each on/off parameter to the side that is not its default, in a run that
// really computes. What the stages are told otherwise stands in other.yml, with which full.sh runs the whole chain
// once.
var switchedBy = map[string]string{
	"watch":                 "full.sh",
	"publish_intermediates": "chain.sh",
	"stack_no_xy_shift":     "chain.sh",
	"allow_missing_slices":  "failures.sh",
	"require_gpu":           "failures.sh",
	"use_gpu":               "full.sh",
	"help":                  "single.sh",
	"align_start_preview":   "full.sh",
	"diagnostics":           "full.sh",

	"keep_mosaic":              "other.yml",
	"mosaic_keep_galvo_return": "other.yml",
	"mosaic_fix_galvo_shift":   "other.yml",
	"mosaic_fix_camera_shift":  "other.yml",
	"mosaic_preprocess":        "other.yml",
	"shifts_estimate_swap_xy":  "other.yml",

	"focal_use_log":                    "other.yml",
	"flatfield_use_darkfield":          "other.yml",
	"flatfield_per_z_fit":              "other.yml",
	"stitch_estimate":                  "other.yml",
	"stitch_interpolate":               "other.yml",
	"beam_profile_fit_gaussian":        "other.yml",
	"beam_profile_subtract_background": "other.yml",
	"crop_before_interface":            "other.yml",
	"crop_pad_after":                   "other.yml",
	"crop_use_log":                     "other.yml",
	"crop_zero_nonfinite":              "other.yml",

	"slices_assess_detect_calibration": "other.yml",
	"common_space_refine_unreliable":   "other.yml",
	"common_space_use_origins":         "other.yml",
	"common_space_whole_pixels":        "other.yml",
	"register_rotation":                "other.yml",
	"register_elastic":                 "other.yml",

	"stack_use_origins":                     "other.yml",
	"stack_skip_error_transforms":           "other.yml",
	"stack_skip_warning_transforms":         "other.yml",
	"stack_rotation_only":                   "other.yml",
	"stack_compose_transforms":              "other.yml",
	"stack_allow_large_motion":              "other.yml",
	"stack_accumulate_translations":         "other.yml",
	"stack_confidence_weight_translations":  "other.yml",
	"stack_use_expected_overlap":            "other.yml",
	"stack_blend":                           "other.yml",
	"stack_make_isotropic":                  "other.yml",
	"bias_field_histogram_match":            "other.yml",
	"bias_field_histogram_match_per_zplane": "other.yml",
	"bias_field_zero_outside_mask":          "other.yml",

	"preview_scale_bar": "other.yml",
	"preview_labels":    "other.yml",
	"checksum":          "other.yml",
	"sync":              "other.yml",
}

// addedBy are the scripts that put in the stages that no chain has by itself. Those of the full chain run in full.sh
// anyway, and all are left out there, one by one.
var addedBy = map[string]string{
	"focal": "other.yml", "assess": "other.yml", "bias_field": "other.yml", "manual": "full.sh", "align": "full.sh",
}

// turns tells whether a script gives a parameter a value, on a line that is no dry run.
func turns(script, name, value string) bool {
	flag := `--` + name + `[ =]` + value + `\b`
	if value == "true" {
		flag = `--` + name + `(?:[ =]true\b|["') ]* (?:-|"|<)|["')]*$)`
	}
	given := regexp.MustCompile(`(?m)(?:^` + name + `: ` + value + `$|` + flag + `)`)
	for line := range strings.Lines(strings.ReplaceAll(script, "\\\n", " ")) {
		if !strings.Contains(line, "-stub-run") && given.MatchString(strings.TrimSuffix(line, "\n")) {
			return true
		}
	}
	return false
}

// A switch that no script turns over is one that nobody has seen working.
func TestEverySwitchIsTurned(t *testing.T) {
	scripts := map[string]string{}
	text := func(name string) string {
		if _, there := scripts[name]; !there {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			scripts[name] = string(b)
		}
		return scripts[name]
	}
	if !strings.Contains(text("full.sh"), "/tests/nextflow/other.yml") {
		t.Error("full.sh does not run with other.yml")
	}
	list := regexp.MustCompile(`(?m)^for s in (.*); do off\+=`).FindStringSubmatch(text("full.sh"))
	if list == nil {
		t.Fatal("full.sh has no list of stages that it leaves out")
	}
	off := map[string]bool{}
	for _, stage := range strings.Fields(list[1]) {
		off[stage] = true
	}
	config := string(read(t, "lib/Chain.groovy"))
	without := regexp.MustCompile(`full : STAGES - \[(.*)\]`).FindStringSubmatch(config)
	if without == nil {
		t.Fatal("Chain.groovy does not say what the full chain leaves out")
	}
	added := map[string]bool{}
	for _, name := range regexp.MustCompile(`[a-z-]+`).FindAllString(without[1], -1) {
		added[strings.ReplaceAll(name, "-", "_")] = true
	}
	known := schema(t)
	for name, e := range known {
		if e.Type != "boolean" {
			continue
		}
		script, listed := switchedBy[name]
		if e.Default == nil && !listed { // a stage, which its chain has or not
			if !off[name] {
				t.Errorf("%s: full.sh does not run without it", name)
			}
			if by := addedBy[name]; added[name] && (by == "" || !turns(text(by), name, "true")) {
				t.Errorf("%s: no script adds it to the chain (%q)", name, by)
			}
			continue
		}
		other := "true"
		if e.Default == true {
			other = "false"
		}
		switch {
		case !listed:
			t.Errorf("%s: no script gives it the value %s: put it into other.yml", name, other)
		case !turns(text(script), name, other):
			t.Errorf("%s: %s does not give it the value %s", name, script, other)
		}
	}
	for _, table := range []map[string]string{switchedBy, addedBy} {
		for name := range table {
			if known[name].Type != "boolean" {
				t.Errorf("%s is listed, but is no on/off parameter", name)
			}
		}
	}
}

func TestTurns(t *testing.T) {
	for _, c := range []struct {
		line, value string
		want        bool
	}{
		{"warm a run main.nf --sync --n_levels 1", "true", true},
		{"warm a run main.nf --sync", "true", true},
		{"one=(run main.nf --sync \"$x\")", "true", true},
		{"sync: true", "true", true},
		{"warm a run main.nf \\\n  --sync", "true", true},
		{"warm a run main.nf --sync false", "true", false},
		{"warm a run main.nf --sync false", "false", true},
		{"warm a run main.nf --sync -stub-run", "true", false},
		{"warm a run main.nf --sync_more", "true", false},
		{"sync: false", "true", false},
	} {
		if got := turns(c.line, "sync", c.value); got != c.want {
			t.Errorf("turns(%q, %s) = %v", c.line, c.value, got)
		}
	}
}
