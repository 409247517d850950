package methods

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strata/pkg/runrecord"
)

// A paragraph names programs in their order, what they do, how often they ran, and parameters that are not defaults.
func TestOf(t *testing.T) {
	set := func(list ...string) (out []runrecord.Setting) {
		out = []runrecord.Setting{}
		for i := 0; i < len(list); i += 2 {
			out = append(out, runrecord.Setting{Name: list[i], Value: list[i+1]})
		}
		return out
	}
	resample := Run{Program: "resample", Version: "1.2.0", Noted: true, Settings: []runrecord.Setting{{Name: "resolution", Value: "10,20,20", Unit: "µm"}, {Name: "map", Value: "m.json", File: true}}}
	stitch := Run{Program: "stitch", Version: "1.2.0", Noted: true, Settings: set("overlap", "0.1", "blend", "false")}
	for _, c := range []struct {
		name string
		runs []Run
		want string
	}{
		{"nothing", nil, ""},
		{"programs that change nothing", []Run{{Program: "view"}, {Program: "stitch", Sub: "compare"}, {Program: "zarr-tool", Sub: "info"}}, ""},
		{"defaults", []Run{{Program: "aip", Version: "1.2.0", Noted: true}},
			"Images were processed with strata 1.2.0 [1] and stored as OME-Zarr [2]. Average intensity projections along z were computed (aip). All parameters had their default values."},
		{"a chain", []Run{resample, stitch, {Program: "bias-field", Version: "1.2.0", Noted: true}},
			"Images were processed with strata 1.2.0 [1] and stored as OME-Zarr [2]. Mosaic grids were resampled (resample; resolution 10,20,20 µm). " +
				"Tiles were stitched into slices [3] (stitch; overlap 0.1, blend off). The bias field of the volume was estimated and removed [4] (bias-field). Parameters that are not named had their default values."},
		{"versions, runs that differ, and a run without settings", []Run{
			{Program: "crop", Version: "1.2.0", Noted: true, Settings: set("depth", "300", "pad", "true")},
			{Program: "crop", Version: "1.2.0", Noted: true, Settings: set("depth", "300", "pad", "true")},
			{Program: "crop", Version: "1.3.0", Noted: true, Settings: set("depth", "250", "pad", "true")},
			{Program: "smooth", Version: "1.3.0", Workflow: true}},
			"Images were processed with strata 1.2.0 and 1.3.0 [1] and stored as OME-Zarr [2]. Nextflow ran the programs [3]. " +
				"Images were cropped to a depth below the tissue surface (crop 1.2.0 and 1.3.0, 3 runs; depth 300 in 2 of the runs and 250 in 1 of the runs, pad on). Images were filtered (smooth 1.3.0). " +
				"Parameters that are not named had their default values. The parameters of smooth were not recorded."},
		{"many values", []Run{
			{Program: "smooth", Noted: true, Settings: set("median", "3")}, {Program: "smooth", Noted: true, Settings: set("median", "5")},
			{Program: "smooth", Noted: true, Settings: set("median", "7")}, {Program: "smooth", Noted: true, Settings: set("median", "9")}},
			"Images were processed with strata [1] and stored as OME-Zarr [2]. Images were filtered (smooth, 4 runs; median of 4 values). Parameters that are not named had their default values."},
		{"texts of others", []Run{{Program: "smooth", Version: "1\x1b[2J", Noted: true, Settings: set("url", "https://u:s3cr3t@h/a?token=s3cr3t", "x", strings.Repeat("y", 1e6)+"\n")}},
			"Images were processed with strata 1\uFFFD[2J [1] and stored as OME-Zarr [2]. Images were filtered (smooth; url https://xxxxx@h/a?token=xxxxx, x " + strings.Repeat("y", 49)},
	} {
		got := Of(c.runs)
		if c.want == "" && got.String() != "" || !strings.HasPrefix(got.Paragraph, c.want) || c.name != "texts of others" && got.Paragraph != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got.Paragraph, c.want)
		}
		if strings.Contains(got.String(), "s3cr3t") || len(got.Paragraph) > 2000 {
			t.Errorf("%s: %.3000s", c.name, got)
		}
		for i, r := range got.References {
			if n := strings.Count(got.Paragraph, "["+string(rune('1'+i))+"]"); n == 0 {
				t.Errorf("%s: nothing cites %s", c.name, r)
			}
		}
	}
}

// Records tell whether Nextflow ran a program, and images the flags that were given.
func TestFrom(t *testing.T) {
	r := FromRecord(&runrecord.Record{Tool: "slices", Command: "assess", Version: "1", Folder: "/scratch/work/0f/0123456789abcdef0123456789abcd", Settings: []runrecord.Setting{}})
	if !r.Workflow || !r.Noted || r.name() != "slices assess" {
		t.Errorf("%+v", r)
	}
	if r := FromRecord(&runrecord.Record{Tool: "aip", Folder: "/home/ada"}); r.Workflow || r.Noted {
		t.Errorf("%+v", r)
	}
	for _, c := range []struct {
		command []string
		sub     string
		want    []runrecord.Setting
	}{
		{[]string{"crop", "in.zarr", "--depth", "-3", "--pad-after", "--no-fast", "--chunks", "1,2"}, "", []runrecord.Setting{{Name: "depth", Value: "-3"}, {Name: "pad_after", Value: "true"}, {Name: "fast", Value: "false"}}},
		{[]string{"zarr-tool", "clip", "in.zarr", "--low", "1"}, "clip", []runrecord.Setting{{Name: "low", Value: "1"}}},
		{[]string{"zarr-tool", "reencode", "in.zarr", "--codec", "raw"}, "reencode", nil},
		{[]string{"aip", "--"}, "", []runrecord.Setting{{Value: "true"}}},
		{nil, "", nil},
	} {
		p := runrecord.Provenance{Command: c.command}
		if len(c.command) > 0 {
			p.Program = c.command[0]
		}
		if r := FromImage(&p); r.Sub != c.sub || !slices.Equal(r.Settings, c.want) {
			t.Errorf("%q: %+v", c.command, r)
		}
	}
}

// The references are those of CITATIONS.md, and strata is cited as CITATION.cff says.
func TestReferences(t *testing.T) {
	text, err := os.ReadFile("../../../CITATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	plain := regexp.MustCompile(`\[(doi:[^]]*)\]\([^)]*\)`).ReplaceAllString(string(text), "$1")
	for _, reference := range []string{nextflow, omeZarr, basic, phase, n4} {
		if !strings.Contains(plain, "| "+reference+" |") {
			t.Errorf("CITATIONS.md does not have %s", reference)
		}
	}
	for program := range referencesOf {
		if sentences[program] == "" || !strings.Contains(plain, "`"+program+"`") {
			t.Errorf("CITATIONS.md does not name %s", program)
		}
	}
	text, err = os.ReadFile("../../../CITATION.cff")
	if err != nil {
		t.Fatal(err)
	}
	authors, title, _ := strings.Cut(strings.TrimSuffix(strataReference, " Software, version %s."), ". ")
	for _, want := range []string{`- name: ` + authors + "\n", `title: "` + strings.TrimSuffix(title, ".") + "\"\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("CITATION.cff does not have %q", want)
		}
	}
}

// Sentences are about programs that exist.
func TestSentences(t *testing.T) {
	for name, text := range sentences {
		program, _, _ := strings.Cut(name, " ")
		if _, err := os.Stat("../../../cmd/" + program); err != nil || text == "" || strings.HasSuffix(text, ".") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
