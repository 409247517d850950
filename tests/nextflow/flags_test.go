package nextflow

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"strata/tests/repo"
)

// stages are the programs of the chain, with their subcommands.
var stages = []string{"mosaic", "aip", "resample", "focal", "flatfield", "stitch", "beam-profile", "crop", "attenuation", "normalize",
	"shifts estimate", "shifts clean", "slices config", "slices assess", "slices exclude", "slices finalise",
	"common-space", "interpolate", "register", "manual export", "stack", "bias-field", "align", "preview", "qc-report"}

// withoutParameter are the flags that no parameter sets, and why. "*" stands for
// every stage.
var withoutParameter = map[string]string{
	"* --gpu":       "the engine says which by CUDA_VISIBLE_DEVICES",
	"* --overwrite": "a task's folder is empty",
	"* --batch":     "gpu_batch says how many slices a task has",

	"* --compat_mode":   "of a machine: STRATA_COMPAT_MODE",
	"* --gds_threads":   "of a machine: STRATA_GDS_THREADS",
	"* --task_size":     "of a machine: STRATA_TASK_SIZE",
	"* --gds_threshold": "of a machine: STRATA_GDS_THRESHOLD",
	"* --bounce_buffer": "of a machine: STRATA_BOUNCE_BUFFER",
	"* --direct_io":     "of a machine: STRATA_DIRECT_IO",
	"* --gds_register":  "of a machine: STRATA_GDS_REGISTER",

	"* --http_status_codes": "of a server: STRATA_HTTP_STATUS_CODES",
	"* --http_max_attempts": "of a server: STRATA_HTTP_MAX_ATTEMPTS",
	"* --http_timeout":      "of a server: STRATA_HTTP_TIMEOUT",
	"* --http_min_rate":     "of a server: STRATA_HTTP_MIN_RATE",
	"* --http_absent_codes": "of a server: STRATA_HTTP_ABSENT_CODES",

	"* --report":     "always given",
	"* --progress":   "nobody watches a task",
	"* --log_format": "of a task's log",
	"* --verbose":    "of a task's log",
	"* --quiet":      "of a task's log",
	"* --version":    "prints and ends",
	"* --help":       "prints and ends",
	"* --completion": "prints and ends",

	"aip --png": "always given",

	"resample --chunks": "are the tiles, by which the next stages go",

	"focal --save_map": "always given",
	"focal --chunks":   "are the tiles, by which the next stages go",

	"stitch --estimate":       "once for all slices: --estimate_only",
	"stitch --estimate_rules": "for comparing one mosaic with linumpy",
	"stitch --save_transform": "published by the estimate",
	"stitch --save_positions": "always given",

	"stitch --metrics":            "always given",
	"stitch --refinement_mode":    "stitch_max_refinement_px bounds what it does",
	"stitch --input_transform":    "stitch_transform is of any tool",
	"stitch --output_refinements": "save_positions says it",

	"stitch --positions":          "of one scan: mosaics of the workflow lie where their motor was sent",
	"stitch --position_tolerance": "goes with --positions",
	"stitch --channel":            "mosaics of the workflow have none",

	"preview --at":        "a place in one image",
	"preview --channel":   "mosaics have none",
	"preview --thumbnail": "mosaics have none",
	"preview --title":     "the image's name",

	"mosaic --chunks":       "are the tiles, by which the next stages go",
	"flatfield --chunks":    "are the tiles, by which the next stages go",
	"beam-profile --chunks": "are those of stitch",
	"attenuation --chunks":  "are those of crop",
	"normalize --chunks":    "are those of crop",
	"common-space --chunks": "are those of crop",
	"interpolate --chunks":  "are those of crop",
	"bias-field --chunks":   "are those of the stack",
	"align --chunks":        "are those of the stack",

	"mosaic --aip":              "given with the stage aip",
	"mosaic --aip_png":          "given with the stage aip",
	"mosaic --resampled":        "given with the stage resample",
	"mosaic --resampled_chunks": "are the tiles, by which the next stages go",

	"mosaic --sharding_factor": "mosaic_shard says it in voxels",

	"mosaic --whole_tiles": "linumpy's programs need it, no stage does",
	"mosaic --slice":       "one task for each",
	"mosaic --all":         "one task for each slice",
	"mosaic --list":        "makes nothing",
	"mosaic --json":        "goes with --list",
	"mosaic --tiles":       "a task has the tiles of one slice",

	"mosaic --pattern":        "of a folder of tiles, which comes before the chain",
	"mosaic --axes":           "goes with --pattern",
	"mosaic --grid":           "goes with --pattern",
	"mosaic --order":          "goes with --pattern",
	"mosaic --snake":          "goes with --pattern",
	"mosaic --start":          "goes with --pattern",
	"mosaic --overlap":        "goes with --pattern",
	"mosaic --voxel_size":     "goes with --pattern",
	"mosaic --save_positions": "goes with --pattern",

	"stitch --pattern":    "of a folder of tiles, which comes before the chain",
	"stitch --axes":       "goes with --pattern",
	"stitch --grid":       "goes with --pattern",
	"stitch --order":      "goes with --pattern",
	"stitch --snake":      "goes with --pattern",
	"stitch --start":      "goes with --pattern",
	"stitch --slice":      "goes with --pattern",
	"stitch --voxel_size": "goes with --pattern",

	"common-space --no_center_drift": "has no effect",
	"common-space --slice_config":    "given where there is a table of slices",

	"bias-field --n_serial_slices": "the slices that there are",
	"bias-field --save_bias_field": "for looking at one volume",
	"bias-field --n_levels":        "stack_pyramid_resolutions says which",

	"attenuation --scratch": "a task's folder, which --scratch of the workflow chooses",

	"interpolate --slice_id":       "always given",
	"interpolate --diagnostics":    "always given",
	"interpolate --manifest_entry": "always given",
	"interpolate --preview":        "preview draws slices",
	"interpolate --preview_slice":  "goes with --preview",

	"align --preview":              "always given",
	"align --start_preview":        "align_start_preview: a name that is always the same",
	"align --start_only":           "makes no volume",
	"align --out_transform":        "beside the volume",
	"align --store_transform_only": "makes no volume",
	"align --n_levels":             "stack_pyramid_resolutions says which",

	"stack --nominal_correlation": "what linumpy's name does",
	"stack --overlap_planes":      "for a volume by the motor alone",
	"stack --z_spacing_um":        "slices of the workflow state it",
	"stack --blending":            "stack_blend says whether",
	"stack --native_resolution":   "for a volume by the motor alone",
	"stack --preview":             "preview draws the volume",

	"register --all":           "one task for each pair",
	"register --on_error":      "goes with --all",
	"register --out_transform": "stack knows the name",
	"register --out_offsets":   "stack knows the name",
	"register --screenshot":    "for looking at one pair",
	"register --slices_apart":  "the names tell it",

	"flatfield --diagnostics_dir": "metrics lie beside the mosaic",
	"flatfield --slice_id":        "the mosaic's name",

	"beam-profile --output_plot": "the metrics say it",

	"shifts clean --diagnostics":      "always given",
	"shifts clean --slice_config_in":  "given where there is a table of slices",
	"shifts clean --slice_config_out": "given where there is a table of slices",

	"slices config --from":            "always the slices that there are",
	"slices config --detect_galvo":    "mosaic does",
	"slices config --tiles_dir":       "goes with --detect_galvo",
	"slices config --galvo_threshold": "goes with --detect_galvo",
	"slices assess --pyramid_level":   "slices of the workflow have level 0 only",
	"slices assess --existing_config": "given where there is a table of slices",
	"slices assess --update_existing": "a table is begun where there is none",
	"slices assess --report_only":     "makes nothing",
	"slices assess --mosaics":         "always given, where mosaics are stitched",

	"stack --output_z_matches":          "always given",
	"stack --output_shifts":             "always given",
	"stack --output_stacking_decisions": "always given",
	"stack --blend_depth":               "has no effect",
	"stack --leave_out_excluded":        "given with assess",
	"stack --interpolated_overlap":      "for comparison with linumpy",
	"stack --n_levels":                  "stack_pyramid_resolutions says which",

	"qc-report --diagnostics":  "given with diagnostics",
	"qc-report --multiqc":      "the workflow publishes its files",
	"aip --scale_bar":          "the workflow keeps the default",
	"qc-report --run":          "gets its parts",
	"qc-report --slice_config": "gets what there is",
	"qc-report --reports":      "gets what there is",
	"qc-report --previews":     "gets what there is",
	"qc-report --shifts":       "gets what there is",
	"qc-report --shifts_clean": "gets what there is",
	"qc-report --shifts_plots": "gets what there is",

	"qc-report --shifts_found": "gets what there is",

	"qc-report --z_matches": "gets what there is",
	"qc-report --decisions": "gets what there is",
	"qc-report --focal":     "gets what there is",
	"qc-report --stitch":    "gets what there is",
	"qc-report --crop":      "gets what there is",
	"qc-report --metrics":   "gets what there is",

	"qc-report --format":        "always a page",
	"qc-report --no_images":     "qc_report_max_pictures bounds them",
	"qc-report --overview_png":  "of a picture made by hand",
	"qc-report --annotated_png": "of a picture made by hand",

	"qc-report --missing": "gets what there is",
	"qc-report --trace":   "the engine writes it when the report is there",
}

// otherwise are the flags that a parameter sets on another way than by "sets",
// because it is a file, goes by more than one stage, or changes no result, and the
// parameter. STAGE stands for the stage's name.
var otherwise = map[string]string{
	"* --use_gpu":        "use_gpu",
	"* --require_gpu":    "require_gpu",
	"* --gpu_mem":        "gpu_mem",
	"* --backend":        "backend",
	"* --sync":           "sync",
	"* --missing_chunks": "missing_chunks",
	"* --threads":        "STAGE_cpus",
	"* --mem":            "STAGE_memory",
	"* --zarr_format":    "zarr_format",
	"* --codec":          "codec",
	"* --checksum":       "checksum",
	"* --n_levels":       "slices_n_levels",

	"aip --n_levels": "n_levels",

	"shifts * --threads": "table_cpus",
	"shifts * --mem":     "table_memory",
	"slices * --threads": "table_cpus",
	"slices * --mem":     "table_memory",

	"manual export --threads": "manual_cpus",
	"manual export --mem":     "manual_memory",
	"slices assess --threads": "assess_cpus",
	"slices assess --mem":     "assess_memory",

	"register --slicing_interval_mm":   "stack_slicing_interval_mm",
	"register --search_range_mm":       "stack_search_range_mm",
	"bias-field --pyramid_resolutions": "stack_pyramid_resolutions",
	"bias-field --make_isotropic":      "stack_make_isotropic",
	"align --template":                 "align_template",
	"align --pyramid_resolutions":      "stack_pyramid_resolutions",
	"align --make_isotropic":           "stack_make_isotropic",

	"mosaic --keep_mosaic":          "keep_mosaic",
	"mosaic --aip_n_levels":         "n_levels",
	"mosaic --aip_codec":            "codec",
	"mosaic --aip_chunks":           "aip_chunks",
	"mosaic --aip_shard":            "aip_shard",
	"mosaic --resampled_resolution": "resample_resolution",
	"mosaic --resampled_sampling":   "resample_sampling",
	"mosaic --resampled_n_levels":   "slices_n_levels",
	"mosaic --resampled_codec":      "codec",
	"mosaic --resampled_shard":      "resample_shard",

	"resample --prefetch": "resample_prefetch",
	"focal --correction":  "focal_correction",

	"stitch --transform":     "stitch_transform",
	"stitch --estimate_only": "stitch_estimate",

	"stack --transforms_dir":        "transforms_dir",
	"stack --manual_transforms_dir": "manual_transforms_dir",
	"stack --slice_config":          "slice_config",

	"qc-report --title":   "qc_report_title",
	"qc-report --threads": "preview_cpus",
	"qc-report --mem":     "preview_memory",
}

// otherDefault are the parameters whose default is not the program's, and why.
var otherDefault = map[string]string{
	"crop_before_interface":                 "the stack expects slices that begin at the interface",
	"zarr_format":                           "raw frames have none: theirs is 3",
	"stitch_overlap":                        "mosaics of the workflow state none",
	"mosaic_resolution":                     "resample brings them to another",
	"bias_field_histogram_match_per_zplane": "as linumpy's workflow",
	"bias_field_tissue_threshold":           "as linumpy's workflow",
	"bias_field_zprofile_smooth_sigma":      "as linumpy's workflow",
	"slices_assess_min_quality":             "as linumpy's workflow",
	"slices_assess_roi_size":                "as linumpy's workflow",
	"slices_assess_exclude_first":           "no slice is left out unasked",
	"slices_config_exclude_first":           "no slice is left out unasked",
	"slices_exclude_z_corr_threshold":       "as linumpy's workflow",
	"common_space_excluded_slice_mode":      "as linumpy's workflow",
	"register_moving_z_index":               "as linumpy's workflow",
	"register_max_translation_px":           "as linumpy's workflow",

	"slices_n_levels": "what another stage reads needs no pyramid",

	"stitch_max_refinement_px": "--estimate moves tiles as far as they show",
	"stack_blend":              "makes the better volume",
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

// flags returns the flags of a program with their defaults as text, and what the
// help says of each.
func flags(t *testing.T, binary string, sub ...string) (all, text map[string]string) {
	t.Helper()
	out, err := exec.Command(binary, append(sub, "--help")...).Output()
	if err != nil {
		t.Fatalf("%s %v --help: %v", binary, sub, err)
	}
	all, text = map[string]string{}, map[string]string{}
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
		case name != "":
			text[name] += " " + strings.TrimSpace(line)
		}
	}
	value := regexp.MustCompile(`\(default: (.*)\)\s*$`)
	for name := range all {
		if m := value.FindStringSubmatch(text[name]); m != nil {
			all[name] = m[1]
		}
	}
	return all, text
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
	bin, err := repo.Programs()
	if err != nil {
		t.Fatal(err)
	}
	known := schema(t)
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
		prefix := strings.NewReplacer("-", "_", " ", "_").Replace(program) + "_"
		if want := prefix + strings.TrimPrefix(flag, prefix); program != "format" && name != want {
			t.Errorf("%s sets %s: should be called %s", name, e.Sets, want)
		}
	}
	used := map[string]bool{} // of the lists above
	listed := func(list map[string]string, program, flag string) (string, bool) {
		for _, key := range []string{program + " --" + flag, strings.Fields(program)[0] + " * --" + flag, "* --" + flag} {
			if what, there := list[key]; there {
				used[key] = true
				return what, true
			}
		}
		return "", false
	}
	for _, program := range stages {
		name := strings.Fields(program)
		defaults, help := flags(t, filepath.Join(bin, name[0]), name[1:]...)
		if len(defaults) == 0 {
			t.Errorf("%s --help has no options that this test understands", program)
		}
		for flag, text := range defaults {
			name, set := setBy[program+" --"+flag]
			_, without := listed(withoutParameter, program, flag)
			other, elsewhere := listed(otherwise, program, flag)
			if _, own := otherwise[program+" --"+flag]; own && without {
				t.Errorf("%s --%s is in both lists", program, flag)
			}
			switch {
			case set && without:
				t.Errorf("%s --%s: %s sets it, and it is listed as without a parameter", program, flag, name)
			case set:
			case without:
				continue
			case elsewhere:
				name = strings.ReplaceAll(other, "STAGE", strings.ReplaceAll(program, "-", "_"))
			default:
				t.Errorf("%s has --%s (default %q), which no parameter sets", program, flag, text)
				continue
			}
			e, there := known[name]
			if !there {
				t.Errorf("%s --%s: there is no parameter %s", program, flag, name)
				continue
			}
			if e.Enum != nil && e.Type == "string" && !strings.Contains(help[flag], joined(e.Enum)) {
				t.Errorf("%s: one of %v, %s --%s: %s", name, e.Enum, program, flag, help[flag])
			}
			// A task's share of the machine is no default of the program's, nor is a file.
			share := flag == "threads" || flag == "mem" || flag == "estimate_only"
			if otherDefault[name] == "" && !share && !same(text, e.Default) {
				t.Errorf("%s: default %v, %s --%s has %q", name, e.Default, program, flag, text)
			}
		}
		for sets, name := range setBy {
			if p, flag, _ := strings.Cut(sets, " --"); p == program {
				if _, there := defaults[flag]; !there {
					t.Errorf("%s sets %s, which does not exist", name, sets)
				}
			}
		}
	}
	for _, list := range []map[string]string{withoutParameter, otherwise} {
		for flag := range list {
			if !used[flag] {
				t.Errorf("%s is listed, but does not exist", flag)
			}
		}
	}
}
