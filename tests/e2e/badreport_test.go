package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What qc-report is given by name must be right; errors name file and line.
func TestBadReports(t *testing.T) {
	const (
		matches = "fixed_id,moving_id,overlap_voxels,blend_overlap_voxels,moving_z_start,correlation,correlation_fallback_used\n"
		pair    = "0,1,10,10,2,0.8,False\n"
		choices = "slice_id,fixed_id,transform_loaded,transform_source,manual_override,confidence,overlap_source,overlap_voxels,blend_overlap_voxels,correlation\n"
		choice  = "1,0,True,automated,False,0.8000,correlation,10,10,0.8000\n"
		shift   = "0,1,2,1,0.02,0.01\n"
		trace   = "name\tstatus\tsubmit\tcomplete\n"
	)
	windows := func(s string) string { return "\ufeff" + strings.ReplaceAll(s, "\n", "\r\n") }
	for _, c := range []struct {
		name, file, content string
		flags               string
		want                outcome
	}{
		{"shifts", "in.csv", shiftsHeader + shift, "--shifts in.csv", fine},
		{"shifts with BOM and CRLF", "in.csv", windows(shiftsHeader + shift), "--shifts in.csv", fine},
		{"shifts without pairs", "in.csv", shiftsHeader, "--shifts in.csv", fine},
		{"shifts with a gap", "in.csv", shiftsHeader + shift + "5,6,1,1,0.01,0.01\n", "--shifts in.csv", fine},
		{"shifts twice", "in.csv", shiftsHeader + shift + shift, "--shifts in.csv", outcome{3, `in\.csv:3: .*already`}},
		{"shifts of text", "in.csv", shiftsHeader + "0,1,2,1,east,0.01\n", "--shifts in.csv", outcome{3, `in\.csv:2: x_shift_mm is "east"`}},
		{"shifts with semicolons", "in.csv", strings.ReplaceAll(shiftsHeader, ",", ";"), "--shifts in.csv", outcome{3, `in\.csv:1: .*";"`}},
		{"shifts beyond numbers", "in.csv", shiftsHeader + "0,1,2,1,1e300,-1e300\n1,2,0,0,1e308,1\n", "--shifts in.csv", outcome{3, `in\.csv:2: .*1e300.*want a number from`}},
		{"an empty file", "in.csv", "", "--shifts in.csv", outcome{3, `in\.csv:1: `}},
		{"matches", "in.csv", matches + pair, "--z_matches in.csv", fine},
		{"matches with BOM and CRLF", "in.csv", windows(matches + pair), "--z_matches in.csv", fine},
		{"matches without pairs", "in.csv", matches, "--z_matches in.csv", fine},
		{"matches of text", "in.csv", matches + "0,1,ten,10,2,0.8,False\n", "--z_matches in.csv", outcome{3, `in\.csv:2: overlap_voxels is "ten"`}},
		{"matches with NaN", "in.csv", matches + "0,1,10,10,2,nan,False\n", "--z_matches in.csv", outcome{3, `in\.csv:2: correlation`}},
		{"matches with another word", "in.csv", matches + "0,1,10,10,2,0.8,maybe\n", "--z_matches in.csv", outcome{3, `in\.csv:2: correlation_fallback_used is "maybe"`}},
		{"matches with tabs", "in.csv", strings.ReplaceAll(matches+pair, ",", "\t"), "--z_matches in.csv", outcome{3, `in\.csv:1: `}},
		{"matches cut off", "in.csv", matches + "0,1,10", "--z_matches in.csv", outcome{3, `in\.csv:2: `}},
		{"decisions", "in.csv", choices + choice, "--decisions in.csv", fine},
		{"decisions with BOM and CRLF", "in.csv", windows(choices + choice), "--decisions in.csv", fine},
		{"decisions of another file", "in.csv", matches + pair, "--decisions in.csv", outcome{3, `in\.csv:1: .*"slice_id"`}},
		{"decisions of text", "in.csv", choices + strings.Replace(choice, "1,", "one,", 1), "--decisions in.csv", outcome{3, `in\.csv:2: slice_id is "one"`}},
		{"trace", "in.tsv", trace + "A\tCOMPLETED\t2026-01-31 12:00:00\t2026-01-31 12:00:05\n", "--trace in.tsv", fine},
		{"trace with text", "in.tsv", trace + "A\tCOMPLETED\tnoon\t-\n", "--trace in.tsv", outcome{3, `in\.tsv:2: submit is "noon"`}},
		{"trace with commas", "in.tsv", strings.ReplaceAll(trace, "\t", ","), "--trace in.tsv", outcome{3, `in\.tsv:1: there is no column "name"`}},
		{"missing slices of another table", "in.tsv", trace, "--missing in.tsv", outcome{3, `in\.tsv:1: there is no column "process"`}},
		{"a record of another program", "in.json", `{"hello": "world"}`, "--reports in.json", outcome{3, `in\.json: field tool is missing`}},
		{"a record with huge numbers", "in.json", `{"tool": "aip", "wall_seconds": 1e300, "bytes_read": 9223372036854775807, "inputs": [{"path": "x", "shape": [4611686018427387904, 9], "dtype": "float64"}]}`, "--reports in.json", fine},
		{"a record with negative times", "in.json", `{"tool": "aip", "wall_seconds": -3, "phases": {"read": -1, "compute": -5}}`, "--reports in.json", fine},
		{"a picture cut off", "in.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x10\x00\x00\x00\x10\x08\x00\x00\x00\x00", "--previews in.png", outcome{3, `in\.png: (no|broken) PNG`}},
		{"crop of a list", "in.json", "[1,\n2]", "--crop in.json", outcome{3, `in\.json:1: want a JSON object`}},
		{"crop with text for a number", "in.json", `{"input_planes": "many"}`, "--crop in.json", fine}, // shown as it is
		{"stitch with text for a number", "in.json", `{"tiles": [{"residual": "far"}]}`, "--stitch in.json", fine},
		{"no such file", "in.json", "{}", "--stitch none.json", outcome{3, `none\.json: no such file`}},
		{"a folder for a table", "in/x", "", "--shifts in", outcome{3, `in: is a folder`}},
		{"a folder of nothing", "in/x", "", "--reports in", outcome{0, `warning: in: no run records`}},
		{"a run of nothing", "in/x", "", "--run in", outcome{0, `warning: in: nothing in this folder`}},
		{"no maps", "in/x", "", "--focal in", outcome{3, `in: no maps`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text(t, dir, c.file, c.content)
			c.want.check(t, dir, append([]string{"qc-report", "out.html"}, strings.Fields(c.flags)...))
		})
	}
}

// Pictures of what stages refuse: they may be looked at.
func TestPreviewsOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		volume
		want outcome
	}{
		"two axes":              {volume{shape: []int{32, 32}, chunks: []int{16, 16}, axes: "yx", scale: "10, 10"}, fine},
		"axes in another order": {volume{axes: "xyz"}, fine},
		"bool":                  {volume{dtype: "|b1", value: constant(1)}, fine},
		"float16":               {volume{dtype: "<f2"}, fine},
		"no y":                  {volume{axes: "zcx"}, outcome{3, `in\.ome\.zarr`}},
	} {
		for _, flags := range []string{"", " --projection mip", " --max_size 64", " --no-labels --no-scale_bar"} {
			t.Run(name+flags, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				c.write(t, dir+"/in.ome.zarr")
				c.want.check(t, dir, strings.Fields("preview in.ome.zarr out.png"+flags))
			})
		}
	}
}

// Several mosaics for one matrix: all of them must fit together.
func TestBadEstimates(t *testing.T) {
	const line = "stitch --estimate_only out.json in.ome.zarr other.ome.zarr --overlap 0.25"
	for name, c := range map[string]struct {
		other volume
		line  string
		want  outcome
	}{
		"other tiles":      {volume{shape: []int{12, 40, 40}, chunks: []int{12, 20, 20}}, line, outcome{3, `other\.ome\.zarr/0: tiles of \[20 20\]`}},
		"two axes":         {volume{shape: []int{32, 32}, chunks: []int{16, 16}, axes: "yx", scale: "10, 10"}, line, outcome{0, ""}},
		"complex":          {volume{dtype: "<c8"}, line, outcome{3, `other\.ome\.zarr/0: data type complex64`}},
		"no such mosaic":   {volume{}, strings.Replace(line, "other", "none", 1), outcome{3, `none\.ome\.zarr: no such file`}},
		"existing file":    {volume{}, strings.Replace(line, "out.json", "in.ome.zarr/.zattrs", 1), outcome{2, `in\.ome\.zarr/\.zattrs`}},
		"zeros everywhere": {volume{value: constant(0)}, strings.Replace(line, "in.ome.zarr ", "", 1), outcome{0, `warning: other\.ome\.zarr/0: no two neighbouring tiles`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			volume{}.write(t, dir+"/in.ome.zarr")
			c.other.write(t, dir+"/other.ome.zarr")
			if c.want.code == 0 { // it is no image that it writes
				told(t, dir, strings.Fields(c.line), c.want.line)
				return
			}
			c.want.check(t, dir, strings.Fields(c.line))
		})
	}
}

// told runs a program that succeeds, and says so.
func told(t *testing.T, dir string, line []string, want string) {
	t.Helper()
	out, err := command(dir, line[0], line[1:]...).CombinedOutput()
	if err != nil || !regexp.MustCompile(want).Match(out) {
		t.Errorf("%s: %v, nothing matches %q in:\n%s", strings.Join(line, " "), err, want, out)
	}
}

// An existing file beside the output is not lost, nor is anything of the output
// left behind.
func TestSidecarsInTheWay(t *testing.T) {
	for file, line := range map[string]string{
		"kept_crop.json": "crop in.ome.zarr kept.ome.zarr",
		"kept.png":       "aip in.ome.zarr kept.ome.zarr --png kept.png",
		"kept/z0.png":    "focal in.ome.zarr kept.ome.zarr --save_map kept",
		"kept.json":      "stitch in.ome.zarr kept.ome.zarr --overlap 0.25 --save_positions kept.json",
	} {
		t.Run(strings.Fields(line)[0], func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			volume{}.write(t, dir+"/in.ome.zarr")
			text(t, dir, file, "precious")
			outcome{2, `kept\S* exists: give --overwrite`}.check(t, dir, strings.Fields(line))
			if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(b) != "precious" {
				t.Errorf("%s: %q, %v", file, b, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "kept.ome.zarr")); err == nil {
				t.Error("an output beside it")
			}
		})
	}
}
