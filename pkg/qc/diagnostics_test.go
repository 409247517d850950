package qc

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const comparedTiles = `{"z_slice": 4, "compared_px": 900, "first": {"label": "Motor", "relative_seam_sharpness": 0.91}, "second": {"label": "Estimate", "relative_seam_sharpness": 1.01},
 "correlation": {"all": 0.87654, "at_seams": null}, "difference": {"relative_rms": 0.5},
 "tile_displacement": {"mean_px": 2.5, "max_px": 7, "mean_um": 12.5, "max_um": 35.25, "fit": {"scale_y": 1.0125, "scale_x": 1.01, "rotation_deg": -0.5}}}`

// diagnosedRun makes a run with diagnostics of each kind.
func diagnosedRun(t *testing.T) string {
	t.Helper()
	return tree(t, map[string]string{
		"diagnostics/stitch/slice_z03/metrics.json":               comparedTiles,
		"diagnostics/stitch/slice_z03/comparison.png":             noise(t, 40, 30),
		"diagnostics/stack/motor.png":                             noise(t, 50, 30),
		"diagnostics/registration/rotation_analysis.json":         `{"verdict": "look", "findings": ["More than 2° turn slice 7 <b>."]}`,
		"diagnostics/registration/rotation_analysis.svg":          `<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><path d="M0 0"/></svg>`,
		"diagnostics/rotation/acquisition_rotation_analysis.json": `{"verdict": "ok", "findings": ["Same axes."]}`,
		"diagnostics/stack/motor.ome.zarr/metrics.json":           "{}",
		"shifts/diagnostics/comparison.png":                       "no picture",
		"diagnostics/registration/registration_transforms.csv":    "slice_id\n",
		"diagnostics/rotation/acquisition_rotation_analysis.txt":  "text",
	})
}

// The page shows what the diagnostics of a run say, found in it or named, also through the links that engines make.
func TestDiagnostics(t *testing.T) {
	run := diagnosedRun(t)
	staged := t.TempDir()
	for _, name := range []string{"stitch", "stack", "registration", "rotation"} {
		if err := os.Symlink(filepath.Join(run, "diagnostics", name), filepath.Join(staged, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []Sources{{Run: run}, {Diagnosed: []string{filepath.Join(run, "diagnostics")}}, {Diagnosed: []string{staged}}} {
		r := load(t, s)
		if len(r.Problems) > 0 || len(r.Diagnosed) != 3 || len(r.Compared) != 1 || len(r.Analyses) != 2 {
			t.Fatalf("%+v: problems %q, %d pictures, %d comparisons, %d analyses", s, r.Problems, len(r.Diagnosed), len(r.Compared), len(r.Analyses))
		}
		if err := r.Fit(ctx, PictureBytes, res); err != nil {
			t.Fatal(err)
		}
		var page, words bytes.Buffer
		if err := r.WriteHTML(&page); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`<section id="diagnostics">`, `href="#diagnostics"`, "More than 2° turn slice 7 &lt;b&gt;.", "Same axes.", "comparison slice_z03", "0.877", "35.2", "1.0125", "stitchings.csv", "data:image/svg+xml"} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("%+v: the page lacks %q", s, want)
			}
		}
		if err := r.WriteText(&words); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Registrations: look", "slice_z03: Motor and Estimate: correlation 0.877, tiles moved by 2.5 px on average and 7 px at most"} {
			if !strings.Contains(words.String(), want) {
				t.Errorf("the text lacks %q:\n%s", want, &words)
			}
		}
	}
	if r := load(t, Sources{Shifts: filepath.Join(tree(t, map[string]string{"s.csv": shifts + "0,1,1,1,0.1,0.1\n"}), "s.csv")}); r.view().Has("diagnostics") {
		t.Error("a section without diagnostics")
	}
}

// What is no diagnostics is said: as an error of a named file, as a problem of one that was found.
func TestBadDiagnostics(t *testing.T) {
	run := tree(t, map[string]string{"diagnostics/a/metrics.json": "{", "diagnostics/b/metrics.json": `{"z_slice": 3}`, "diagnostics/c/rotation_analysis.json": "{}", "diagnostics/d/comparison.png": "no"})
	if r := load(t, Sources{Run: run}); len(r.Problems) != 4 || r.hasDiagnostics() {
		t.Errorf("%q", r.Problems)
	}
	for _, name := range []string{"a/metrics.json", "b/metrics.json", "c/rotation_analysis.json", "d/comparison.png", "e"} {
		if _, err := Load(ctx, Sources{Diagnosed: []string{filepath.Join(run, "diagnostics", name)}}, res); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if r := load(t, Sources{Diagnosed: []string{t.TempDir()}}); len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "no diagnostics in this folder") {
		t.Errorf("%q", r.Problems)
	}
}
