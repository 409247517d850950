package qc

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"strata/pkg/address"
	"strata/pkg/metrics"
	"strata/pkg/oct/stitch"
	"strata/pkg/registration"
	"strata/pkg/runrecord"
)

// stacked returns a report of a volume of four slices of 40 planes, whose record has some more arguments.
func stacked(arguments ...address.Address) *Report {
	set := func(name string, shape ...int) runrecord.Dataset {
		return runrecord.Dataset{Path: address.Address("results/" + name), Shape: shape, VoxelSize: []float64{4, 5, 5}}
	}
	r := &Report{Title: "t", Runs: []Run{{"volume", &runrecord.Record{Tool: "stack", Arguments: arguments, Outputs: []runrecord.Dataset{set("volume/volume.ome.zarr", 131, 80, 100)}}}},
		Matches:   []registration.Match{{Fixed: 0, Moving: 1, Overlap: 8, MovingZ: 1}, {Fixed: 1, Moving: 2, Overlap: 20, MovingZ: 1}, {Fixed: 2, Moving: 3, Overlap: 9, MovingZ: 1}},
		Decisions: []registration.Decision{{Slice: 1, Fixed: 0, Overlap: 8}, {Slice: 2, Fixed: 1, Overlap: 9}, {Slice: 3, Fixed: 2, Overlap: 9, TransformLoaded: true}},
		Found:     []registration.FoundShift{{Fixed: 0, Moving: 1, X: 0.5, RecordedX: 0.01, RecordedY: -0.02}, {Fixed: 1, Moving: 2, X: 0.015, RecordedX: 1, Repaired: true}, {Fixed: 2, Moving: 3}},
	}
	for i := range 4 {
		r.Runs[0].Inputs = append(r.Runs[0].Inputs, set(fmt.Sprintf("slices/slice_z%02d.ome.zarr", i), 40, 72, 90))
	}
	s := metrics.New("pairwise_registration")
	s.Note("rotation", 90.0, "")
	s.Note("translation_x", 3.0, "")
	s.Note("translation_y", -2.5, "")
	r.Steps = []StepFile{{"slice_z03", s}}
	return r
}

// The joins of a page are marked with the two slices as stack laid them on each other, and with their plane in the
// volume.
func TestJoinSpots(t *testing.T) {
	places := func(r *Report) (out []string) {
		var page bytes.Buffer
		if err := r.WriteHTML(&page); err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Matches {
			text := ">" + pairName(m.Fixed, m.Moving) + "</span>"
			before, _, ok := strings.Cut(page.String(), text)
			if !ok {
				out = append(out, "")
				continue
			}
			out = append(out, before[strings.LastIndex(before, "<span"):])
		}
		if strings.Contains(page.String(), "places in the images") != (strings.Join(out, "") != "") {
			t.Error("the page does not say what its marks are for, or has none")
		}
		return out
	}
	same := func(what string, got []string, want ...string) {
		t.Helper()
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s, join %d: %s\nwant %s", what, i, got[i], want[i])
			}
		}
	}
	or := func(z int, prefix string) string {
		return fmt.Sprintf(` %simage="volume/volume.ome.zarr" %sat="%d,," %spanel="xz"`, prefix, prefix, z, prefix)
	}
	pair := func(a, z int, lay string) string {
		return fmt.Sprintf(`<span class="view" data-image="slices/slice_z%02d.ome.zarr" data-overlay="slices/slice_z%02d.ome.zarr" data-at="%d,," data-lay="%s"`, a, a+1, z, lay)
	}
	same("slices", places(stacked()), pair(0, 36, "0,-2,4,47,32,32,1")+or(36, "data-or-"), pair(1, 35, "0,-3,0,48,36,31,1")+or(66, "data-or-"),
		pair(2, 35, "1.57079633,3,-2.5,45,36,31,1")+or(96, "data-or-"))

	// Without what places a slice on the one before it there is the volume, and without its depth nothing.
	volume := func(z int) string { return `<span class="view"` + or(z, "data-") }
	same("accumulated translations", places(stacked("--accumulate_translations")), volume(36), volume(66), volume(96))
	r := stacked()
	r.Found, r.Decisions[2].ManualOverride = nil, true
	same("no shifts", places(r), volume(36), volume(66), volume(96))
	r.Runs[0].Arguments = append(r.Runs[0].Arguments, "--no_xy_shift")
	same("shifts that are not used", places(r)[:1], pair(0, 36, "0,0,0,45,36,32,1")+or(36, "data-or-"))
	r = stacked("--accumulate_translations")
	r.Runs[0].Outputs[0].Shape[0] = 140
	same("planes between slices that are empty", places(r), "", "", "")
	r.Runs = nil
	same("no records", places(r), "", "", "")
}

// Seams lie in the middle of the overlap of their tiles, in the slice that was stitched and, moved, in that on the
// canvas.
func TestSeamSpots(t *testing.T) {
	file := func(name string, height int) *Facts {
		f := &Facts{Name: name, Values: map[string]string{}}
		residual, less := 3.0, 2.0
		s := &stitch.Result{Voxel: [2]float64{5, 5}, Tile: [2]int{40, 50}, Grid: [2]int{1, 3}, Origin: [2]int{0, -2}, Size: [2]int{height, 130},
			Tiles: []stitch.TilePlan{{Tile: [2]int{0, 0}, Position: [2]float64{0, -2}}, {Tile: [2]int{0, 1}, Position: [2]float64{4, 38}}, {Tile: [2]int{0, 2}, Position: [2]float64{0, 78}}},
			Pairs: []stitch.TilePair{{Tiles: [2][2]int{{0, 0}, {0, 1}}, Residual: &residual, Reason: stitch.Outlier}, {Tiles: [2][2]int{{0, 1}, {0, 2}}, Residual: &less, Used: true}}}
		f.size, f.seams = s.Size, doubtful(s)
		if s.Pairs[0].Reason = ""; len(doubtful(s)) != 1 || !strings.HasPrefix(doubtful(s)[0].text, "worst pair: tiles 0, 1 and 0, 2") {
			t.Errorf("of pairs without a mark: %v", doubtful(s))
		}
		return f
	}
	r := &Report{Stitch: []*Facts{file("slice_z00", 44), file("slice_z01", 46)}}
	check := func(what, or string) {
		t.Helper()
		r.moved = r.movedSlices()
		want := `<span class="view" data-image="stitched/slice_z01.ome.zarr" data-at=",22,45" data-width="100"` + or + `>tiles 0, 0 and 0, 1: outlier, residual 3 px, correlation 0</span>`
		if got := string(r.seamList(r.Stitch[1])); got != strings.Replace(want, "outlier", stitch.Outlier, 1) {
			t.Errorf("%s: %s\nwant %s", what, got, want)
		}
	}
	check("no canvas", ` data-or-image="slices/slice_z01.ome.zarr" data-or-at=",22,45" data-or-width="100"`)
	table, err := registration.ReadShifts(strings.NewReader("fixed_id,moving_id,x_shift,y_shift,x_shift_mm,y_shift_mm\n0,1,0,0,0.02,-0.05\n"), "shifts.csv")
	if err != nil {
		t.Fatal(err)
	}
	r.Shifts = table
	r.Runs = []Run{{"slices", &runrecord.Record{Tool: "common-space", Outputs: []runrecord.Dataset{{Shape: []int{40, 54, 134}, VoxelSize: []float64{5, 5, 5}}}}}}
	check("a canvas", ` data-or-image="slices/slice_z01.ome.zarr" data-or-at=",22,49" data-or-width="100"`)
	r.Runs[0].Outputs[0].Shape[1] = 90
	check("a canvas of another size", "")
}

// Messages name metrics in words and have numbers of three digits; names of files keep theirs.
func TestMessageWords(t *testing.T) {
	s := metrics.New("fix_illumination_basic")
	s.Note("seam_l1", 0.12212914113737007, "Mean difference at seams")
	r := &Report{Steps: []StepFile{{"slice_z00", s}}}
	for text, want := range map[string]string{
		"seam_l1: 0.12212914113737007 > 0.12 (warning threshold)":  "Mean difference at seams: 0.122, above the limit of 0.12",
		"psf_max: 0.0123456 < 0.05 (error threshold)":              "Psf max: 0.0123, below the limit of 0.05",
		"a_1.23456.ome.zarr: tiles at (12.345678, -0.00012345) mm": "a_1.23456.ome.zarr: tiles at (12.3, −1.23e−04) mm",
		"the matrix [[1.01086 0.262001] [0.12345 1.00052]]":        "the matrix [[1.01 0.262] [0.123 1]]",
		"version 0.17.0, 25 %, 3.125 µm":                           "version 0.17.0, 25 %, 3.125 µm",
	} {
		if got := r.inWords(text); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
	r.Runs = []Run{{"slice_z00.attenuation", &runrecord.Record{Tool: "attenuation", Warnings: []string{"a: the tissue does not darken towards its last plane: next to nothing is corrected"}}}}
	if n := r.notices(); len(n) != 1 || n[0].Grade != "note" || r.verdict(n).Word != "Good" || r.view().Warns() {
		t.Errorf("a message that asks for nothing: %+v, %+v", n[0], r.verdict(n))
	}
}

// Warnings stand before the pictures.
func TestWarningsFirst(t *testing.T) {
	var page bytes.Buffer
	if err := (&Report{Title: "t", Previews: []*Picture{{Name: "volume"}}}).WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`id="%s"`, `href="#%s"`} {
		w, p := strings.Index(page.String(), fmt.Sprintf(part, "warnings")), strings.Index(page.String(), fmt.Sprintf(part, "previews"))
		if w < 0 || p < w {
			t.Errorf(part+" is at %d, the pictures are at %d", "warnings", w, p)
		}
	}
}
