package nextflow

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	translator   = "../../scripts/linumpy-params.sh"
	translations = "../../scripts/linumpy-params.tsv"
)

// translation is a row of the table.
type translation struct{ name, workflow, ours, value, note string }

func tableOfLinumpy(t *testing.T) []translation {
	t.Helper()
	var rows []translation
	for line := range strings.Lines(text(t, translations)) {
		field := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || field[0] == "name" {
			continue
		}
		if len(field) != 5 {
			t.Fatalf("%s: %d fields instead of 5: %s", translations, len(field), line)
		}
		rows = append(rows, translation{field[0], field[1], field[2], field[3], field[4]})
	}
	return rows
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// translate runs the script, and returns what it prints, and its exit code.
func translate(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, messages bytes.Buffer
	cmd := exec.Command(translator, args...)
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), messages.String(), cmd.ProcessState.ExitCode()
}

// parsed reads the YAML that the script writes: a name and a value as JSON has it on each line, and comments.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	for line := range strings.Lines(text) {
		name, rest, setting := strings.Cut(line, ": ")
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if _, twice := values[name]; !setting || twice {
			t.Fatalf("no setting, or the second one: %q", line)
		}
		var value any
		if rest == "full\n" {
			rest = `"full"`
		}
		from := json.NewDecoder(strings.NewReader(rest))
		if err := from.Decode(&value); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if after := rest[from.InputOffset():]; strings.TrimSpace(after) != "" && !strings.HasPrefix(after, "  # ") {
			t.Fatalf("%q goes on after its value", line)
		}
		values[name] = value
	}
	return values
}

func TestLinumpyParametersAreInTheTable(t *testing.T) {
	rows, names := tableOfLinumpy(t), 0
	for line := range strings.Lines(text(t, "testdata/linumpy/names.txt")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		names++
		workflow, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !slices.ContainsFunc(rows, func(r translation) bool {
			return r.name == name && (r.workflow == workflow || r.workflow == "any")
		}) {
			t.Errorf("%s has no row for %s of %s", translations, name, workflow)
		}
	}
	if names < 150 {
		t.Errorf("testdata/linumpy/names.txt has %d names only", names)
	}
}

// Every name of ours exists, with a type that the rule makes; what has no counterpart says why.
func TestLinumpyTranslationsFitTheSchema(t *testing.T) {
	ours := schema(t)
	for _, r := range tableOfLinumpy(t) {
		if r.ours == "-" {
			if r.note == "-" {
				t.Errorf("%s has neither a counterpart nor a reason", r.name)
			}
			continue
		}
		e, exists := ours[r.ours]
		if !exists {
			t.Errorf("%s: there is no parameter %s", r.name, r.ours)
			continue
		}
		for _, rule := range strings.Split(r.value, ";") {
			_, to, mapped := strings.Cut(rule, "=")
			if !mapped {
				to = rule
			}
			asText := to == "list" || strings.HasPrefix(to, `"`)
			asBoolean := to == "true" || to == "false"
			switch {
			case to == "" || to == "!" || r.name == "scratch_dir" && asBoolean:
			case asText && e.Type != "string", to == "&" && e.Type == "string", asBoolean && e.Type != "boolean":
				t.Errorf("%s: %s is a %s, but %q writes another type", r.name, r.ours, e.Type, r.value)
			}
		}
	}
}

func TestLinumpyConfiguration(t *testing.T) {
	out, messages, code := translate(t, "testdata/linumpy/all_forms.config")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(`{
		"chain": "full", "use_gpu": false, "input": "/data/it's", "outdir": "/data/it's/out", "slice_config": "/data/it's/slice_config.csv",
		"qc_report_title": "Quality report: sub \"22\"", "resample": false, "resample_prefetch": 6, "flatfield": false, "crop_depth": 1000.5,
		"stitch_blending": "average", "stack_pyramid_resolutions": "10,25,50", "align_initial_rotation": "0.0,0.0,90.0",
		"only_slices": "25,27-29", "diagnostics": true}`), &want); err != nil {
		t.Fatal(err)
	}
	got := parsed(t, out)
	for name := range want {
		if asJSON(t, got[name]) != asJSON(t, want[name]) {
			t.Errorf("%s is %v, want %v", name, got[name], want[name])
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("also has %v", got)
	}
	for _, line := range []string{
		"includeConfig testdata/linumpy/absent.config: there is no such file; what it sets is missing here",
		"stack_smooth_window = {task.attempt>1?3:5}: is computed: set stack_smooth_window",
		"manual_transforms_dir = ${System.getenv('HOME')}/x: is computed: set manual_transforms_dir",
		"mine = 'own': linumpy has no parameter of this name",
		"nested.deep = 1: linumpy has no parameter of this name",
		"allen_metric = 'CC': has no counterpart: always mutual information, which also compares images of different contrast",
		"profiles with parameters of their own: fast: -profile NAME takes them",
	} {
		if !strings.Contains("\n"+messages, "\n"+line+"\n") {
			t.Errorf("standard error lacks: %s\n%s", line, messages)
		}
		if !strings.Contains(out, "\n#   "+line+"\n") {
			t.Errorf("the comments lack: %s", line)
		}
	}
	if n := strings.Count(messages, "\n"); n != 8 {
		t.Errorf("%d messages instead of 8:\n%s", n, messages)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A later file takes precedence, a profile is taken when it is asked for, and preproc's file goes with that of
// reconst_3d.
func TestLinumpyConfigurationsTogether(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	preproc := file("preproc.config", "params { input = '/raw'\r\n resolution = -1\r\n axial_resolution = 1.36\r\n }\r\n")
	defaults := file("reconst.config", "params { input = 'mosaics'; resolution = -1; compare_stitching = true; crop_interface_out_depth = 600 }\n"+
		"profiles { deep { params.crop_interface_out_depth = 800 } }")
	own := file("own.config", "params.resolution = 25\nparams.compare_stitching = false\n")

	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{defaults}, `{"chain":"full","crop_depth":600,"diagnostics":true,"input":"mosaics","resample":false}`},
		{[]string{defaults, own}, `{"chain":"full","crop_depth":600,"input":"mosaics","resample_resolution":"25"}`},
		{[]string{"-profile", "deep", defaults}, `{"chain":"full","crop_depth":800,"diagnostics":true,"input":"mosaics","resample":false}`},
		{[]string{preproc, defaults, own}, `{"chain":"full","crop_depth":600,"mosaic_axial_resolution":1.36,"mosaic_resolution":-1,"raw":"/raw","resample_resolution":"25"}`},
	} {
		out, messages, code := translate(t, test.args...)
		if code != 0 || asJSON(t, parsed(t, out)) != test.want {
			t.Errorf("%v: exit code %d\n%s\nwant %s\n%s", test.args, code, asJSON(t, parsed(t, out)), test.want, messages)
		}
	}

	none := file("none.config", "process.cpus = 4 // params.input = 'x'\n")
	for want, args := range map[int][]string{3: {none}, 2: {"-profile", "other", defaults}} {
		if out, messages, code := translate(t, args...); code != want || out != "" || messages == "" {
			t.Errorf("%v: exit code %d instead of %d: %s", args, code, want, messages)
		}
	}
	if _, messages, code := translate(t, filepath.Join(folder, "absent")); code != 3 || !strings.Contains(messages, "absent") {
		t.Errorf("a file that is not there: exit code %d: %s", code, messages)
	}
	if _, messages, code := translate(t); code != 2 || !strings.HasPrefix(messages, "usage: ") {
		t.Errorf("without arguments: exit code %d: %s", code, messages)
	}
}
