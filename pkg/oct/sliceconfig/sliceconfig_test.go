package sliceconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/images"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/rawtiles"
	"strata/pkg/registration"
	"strata/tests/golden"
	"strata/tests/octtest"
)

func table(t *testing.T, text string) *registration.SliceTable {
	t.Helper()
	s, err := registration.ReadSliceTable(strings.NewReader(text), "config.csv")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// written returns a table as text, with lines that end in LF as in the golden set.
func written(t *testing.T, s *registration.SliceTable) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(b.String(), "\r\n", "\n")
}

func TestGenerateGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "mosaic_grid") {
		var of struct {
			Params     struct{ Raw string }
			Shifts     string `json:"shifts_xy"`
			FromShifts string `json:"slice_config_from_shifts"`
			Galvo      string `json:"slice_config_detect_galvo"`
		}
		if err := json.Unmarshal(c.File, &of); err != nil {
			t.Fatal(err)
		}
		raw, err := rawtiles.Find(octtest.Ctx, golden.Unpack(t, of.Params.Raw))
		if err != nil {
			t.Fatal(err)
		}
		var ids []int
		for _, s := range raw {
			ids = append(ids, s.ID)
		}
		if of.FromShifts != "" {
			shifts, err := registration.ReadShiftTable(strings.NewReader(of.Shifts), "s.csv")
			if err != nil || !slices.Equal(shifts.IDs(), ids) {
				t.Fatalf("%v: slices %v, the tiles are of %v", err, shifts.IDs(), ids)
			}
			got, _ := Generate(ids, GenerateOptions{ExcludeFirst: 1})
			if text := written(t, got); text != of.FromShifts {
				t.Errorf("%s: %s\nwant\n%s", c.Name, text, of.FromShifts)
			}
		}
		if of.Galvo == "" {
			continue
		}
		for _, workers := range []int{1, 4} {
			got, _ := Generate(ids, GenerateOptions{})
			if err := StampGalvo(octtest.Ctx, got, raw, 0.6, rawtiles.GalvoOptions{Workers: workers, Mem: 64 << 20}); err != nil {
				t.Fatal(err)
			}
			if text := written(t, got); text != of.Galvo {
				t.Errorf("%s: %s\nwant\n%s", c.Name, text, of.Galvo)
			}
		}
	}
}

func TestStampGalvoNotes(t *testing.T) {
	dir := t.TempDir()
	tile := filepath.Join(dir, "tile_x00_y00_z02")
	if err := errors.Join(os.Mkdir(tile, 0o777), os.WriteFile(filepath.Join(tile, "info.txt"),
		[]byte("nx: 10\nny: 20\nn_extra: 0\ntop_z: 0\nbottom_z: 3\nwidth: 20\nheight: 100\n"), 0o666)); err != nil {
		t.Fatal(err)
	}
	raw, err := rawtiles.Find(octtest.Ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	got, unknown := Generate([]int{1, 2}, GenerateOptions{ExcludeFirst: 1, Exclude: []int{2, 9}})
	if !slices.Equal(unknown, []int{9}) {
		t.Errorf("unknown %v", unknown)
	}
	if err := StampGalvo(octtest.Ctx, got, raw, 0, rawtiles.GalvoOptions{Workers: 1, Mem: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if text := written(t, got); !strings.Contains(text, "\n01,false,,,,,calibration_slice; no_tiles,") || !strings.Contains(text, "\n02,false,,,0.000,false,no_extra_alines,") {
		t.Error(text)
	}
}

// transforms makes a folder of pairwise registrations; NaN is a file without the value.
func transforms(t *testing.T, correlation map[string]*float64) string {
	t.Helper()
	dir := t.TempDir()
	for id, v := range correlation {
		text := `{"step_name": "pairwise_registration", "overall_status": "ok", "metrics": {`
		if v != nil {
			value, _ := json.Marshal(*v)
			text += `"z_correlation": {"value": ` + string(value) + `, "unit": null, "description": "", "status": "ok"}`
		}
		if len(id) < 2 {
			id = "0" + id
		}
		sub := filepath.Join(dir, "slice_z"+id+"_normalize")
		if err := errors.Join(os.Mkdir(sub, 0o777), os.WriteFile(filepath.Join(sub, pairMetrics), []byte(text+`}, "warnings": [], "errors": []}`), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestExcludeGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "auto_exclude") {
		var of struct {
			Params struct {
				Consecutive int     `json:"consecutive_threshold"`
				Threshold   float64 `json:"z_corr_threshold"`
			}
			Correlation map[string]*float64 `json:"z_correlation"`
			In          string              `json:"slice_config_in"`
			Out         string              `json:"slice_config_out"`
			Metrics     *struct {
				Metrics map[string]struct{ Value any }
			}
			Fix string
		}
		if err := json.Unmarshal(c.File, &of); err != nil {
			t.Fatal(err)
		}
		all, warnings, err := ReadCorrelations(octtest.Ctx, transforms(t, of.Correlation))
		if err != nil || len(warnings) != 0 || len(all) != len(of.Correlation) {
			t.Fatalf("%s: %v, %q, %d", c.Name, err, warnings, len(all))
		}
		o := ExcludeOptions{of.Params.Consecutive, of.Params.Threshold}
		got := table(t, of.In)
		runs := Exclude(got, all, o)
		if of.Fix != "" { // nothing is excluded
			of.Out = written(t, table(t, of.In))
			for name, value := range map[string]any{"num_auto_excluded": 0.0, "num_clusters": 0.0, "auto_excluded_slice_ids": []any{}} {
				m := of.Metrics.Metrics[name]
				m.Value = value
				of.Metrics.Metrics[name] = m
			}
		}
		if text := written(t, got); text != of.Out {
			t.Errorf("%s:\n%s\nwant\n%s", c.Name, text, of.Out)
		}
		if of.Metrics == nil {
			continue
		}
		text, err := ExcludeMetrics("slice_config.csv", all, runs, o).JSON()
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Metrics map[string]struct{ Value any }
		}
		if err := json.Unmarshal(text, &m); err != nil || !reflect.DeepEqual(m.Metrics, of.Metrics.Metrics) {
			t.Errorf("%s: %v, metrics %v, want %v", c.Name, err, m.Metrics, of.Metrics.Metrics)
		}
	}
}

func TestReadCorrelations(t *testing.T) {
	v := 0.25
	dir := transforms(t, map[string]*float64{"3": &v, "100": nil})
	linked := t.TempDir()
	if err := errors.Join(os.Symlink(dir, filepath.Join(linked, "all")), os.Symlink("..", filepath.Join(dir, "round")),
		os.Symlink(filepath.Join(dir, "slice_z03_normalize"), filepath.Join(dir, "slice_z03_again")),
		os.MkdirAll(filepath.Join(dir, "other", "deep"), 0o777), os.WriteFile(filepath.Join(dir, "other", pairMetrics), []byte("{}"), 0o666),
		os.Mkdir(filepath.Join(dir, "x.zarr"), 0o777), os.WriteFile(filepath.Join(dir, "x.zarr", pairMetrics), []byte("{"), 0o666)); err != nil {
		t.Fatal(err)
	}
	all, warnings, err := ReadCorrelations(octtest.Ctx, linked)
	if err != nil || len(all) != 2 || all[0].Slice != 3 || all[0].Value != 0.25 || all[1].Slice != 100 || all[1].Known {
		t.Errorf("%v, %+v", err, all)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "other") {
		t.Errorf("warnings %q", warnings)
	}
	bad := filepath.Join(dir, "slice_z04", pairMetrics)
	if err := errors.Join(os.Mkdir(filepath.Dir(bad), 0o777), os.WriteFile(bad, []byte("{\n]"), 0o666)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadCorrelations(octtest.Ctx, dir); !errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), "slice_z04/"+pairMetrics+":2: ") {
		t.Error(err)
	}
}

func TestFinalise(t *testing.T) {
	dir := t.TempDir()
	head := "slice_id,method,method_used,fallback_reason,interpolation_failed,output_path\n"
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a.csv"), []byte(head+"7,zmorph,zmorph,,false,slice_z07.ome.zarr\n05,zmorph,zmorph,low_overlap_ncc,true,\n"), 0o666),
		os.WriteFile(filepath.Join(dir, "b.csv"), []byte(head+"07.0,zmorph,average,,false,s.ome.zarr\n"), 0o666), os.WriteFile(filepath.Join(dir, "c.txt"), []byte("?"), 0o666)); err != nil {
		t.Fatal(err)
	}
	filled, warnings, err := ReadManifests(octtest.Ctx, dir)
	if err != nil || len(filled) != 2 || len(warnings) != 1 || !strings.Contains(warnings[0], "slice 7") {
		t.Fatalf("%v, %+v, %q", err, filled, warnings)
	}
	got := table(t, "slice_id,use,mine\n4,true,x\n5,true,y\n")
	Finalise(got, filled)
	text := written(t, got)
	for _, want := range []string{"\n04,true,,,,,,,,,,,,,,x\n", "\n05,true,,,,,,,,,,false,true,,low_overlap_ncc,y\n", "\n07,false,,,,,,,,,,true,false,average,,\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	m := FinaliseMetrics("c.csv", filled)
	for name, want := range map[string]any{"n_fragments": 2, "n_interpolated": 1, "n_failed": 1, "interpolated_slice_ids": []int{7}, "failed_slice_ids": []int{5},
		"fallback_reasons": map[string]any{"low_overlap_ncc": 1}, "method_counts": map[string]any{"average": 1}} {
		if v, _ := m.Metric(name); !reflect.DeepEqual(v.Value, want) {
			t.Errorf("%s: %v, want %v", name, v.Value, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "d.csv"), []byte("slice_id\n1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadManifests(octtest.Ctx, dir); !errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), "d.csv:1: ") {
		t.Error(err)
	}
}

func openSlices(t *testing.T, dir string) (out []Slice) {
	t.Helper()
	files, err := slicefiles.Find(octtest.Ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		st, _, err := images.Open(octtest.Ctx, f.Path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Slice{f.ID, octtest.Open(t, st)})
	}
	return out
}

type assessed struct {
	Params struct {
		Slices       string
		Existing     bool
		MinQuality   float64 `json:"min_quality"`
		ExcludeFirst int     `json:"exclude_first"`
		ROI          int     `json:"roi_size"`
		Depth        *int    `json:"sample_depth"`
		Calibration  bool    `json:"detect_calibration"`
	}
	Scores  map[string]struct{ SSIM, Edge, Variance, Quality float64 } `json:"scores_fixed"`
	Metrics struct {
		Step    string `json:"step_name"`
		Metrics map[string]struct{ Status metrics.Status }
	}
}

func TestAssessGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "assess_quality") {
		var of assessed
		if err := json.Unmarshal(c.File, &of); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(golden.Unpack(t, of.Params.Slices), "slices")
		o := DefaultAssessOptions()
		if o.ROI = of.Params.ROI; of.Params.Depth != nil {
			o.Depth = *of.Params.Depth
		}
		var first []Score
		for _, res := range []oct.Resources{{Workers: 1, Mem: 64 << 20}, {Workers: 3, Mem: 64 << 20}, {Workers: 3, Mem: 350 << 10}} {
			scores, err := Assess(octtest.Ctx, openSlices(t, dir), o, res)
			if err != nil {
				t.Fatal(err)
			}
			if first != nil && !reflect.DeepEqual(scores, first) {
				t.Errorf("%s: %d workers, %d bytes: other scores: %+v, %+v", c.Name, res.Workers, res.Mem, scores, first)
			}
			first = scores
		}
		if len(first) != len(of.Scores) {
			t.Fatalf("%s: %d scores, want %d", c.Name, len(first), len(of.Scores))
		}
		worst := 0.0
		for _, s := range first {
			w := of.Scores[registration.SliceName(s.ID)]
			for _, d := range []float64{s.SSIM - w.SSIM, s.Edge - w.Edge, s.Variance - w.Variance, s.Quality - w.Quality} {
				worst = max(worst, math.Abs(d))
			}
		}
		if t.Logf("%s: largest difference %.2g", c.Name, worst); worst > 2e-4 { // the case allows 2e-3
			t.Errorf("%s: %+v, want %+v", c.Name, first, of.Scores)
		}
		config := new(registration.SliceTable)
		if of.Params.Existing {
			text, err := os.ReadFile(filepath.Join(dir, "existing.csv"))
			if err != nil {
				t.Fatal(err)
			}
			config = table(t, string(text))
		}
		d := DecideOptions{MinQuality: of.Params.MinQuality, ExcludeFirst: of.Params.ExcludeFirst}
		if of.Params.Calibration {
			d.CalibrationRatio = 1.5
		}
		verdicts := Decide(config, first, d)
		text := written(t, config)
		wants := map[string][]string{ // the golden tables with the scores of the FIX
			"workflow": {"\n00,false,first_slice_excluded,0.911,", "\n01,true,,0.625,", "\n02,true,,0.353,", "\n03,false,low_quality,0.000,", "\n04,true,,0.345,"},
			"roi_existing": {"\n02,false,calibration_slice,0.832,", "\n03,false,hand,0.552,,true,hand,", "\n05,false,low_quality,0.214,",
				"\n06,false,low_quality,0.196,,,ok,"},
		}[c.Name]
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", c.Name, want, text)
			}
		}
		if len(wants) == 0 {
			t.Errorf("%s: nothing is expected of the table", c.Name)
		}
		m := AssessMetrics("c.csv", verdicts, d)
		if v, _ := m.Metric("num_slices"); v.Value != len(first) {
			t.Errorf("%s: %v slices", c.Name, v.Value)
		}
		if m.Name != of.Metrics.Step || len(m.Names()) != len(of.Metrics.Metrics) {
			t.Errorf("%s: metrics %s, %q, want %+v", c.Name, m.Name, m.Names(), of.Metrics)
		}
		for name, want := range of.Metrics.Metrics {
			if v, ok := m.Metric(name); !ok || v.Status != want.Status {
				t.Errorf("%s: %s is %q, want %q", c.Name, name, v.Status, want.Status)
			}
		}
	}
}

// specimen returns slices whose voxels are a pattern, scaled, or constant where the factor is 0.
func specimen(t *testing.T, factors []float32, shape [3]int) (out []Slice) {
	t.Helper()
	for i, f := range factors {
		im, _ := octtest.Made(t, shape[:], []int{2, 8, 8}, nil, nil, func(k int) float32 {
			x, y := k%shape[2], k/shape[2]%shape[1]
			return 3 + f*float32(math.Sin(float64(x)/3)*math.Cos(float64(y)/4))
		})
		out = append(out, Slice{10 * i, im})
	}
	return out
}

func assess(t *testing.T, in []Slice) []Score {
	t.Helper()
	scores, err := Assess(octtest.Ctx, in, DefaultAssessOptions(), octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	return scores
}

func TestAssessNeighbours(t *testing.T) {
	// an empty slice does not condemn its neighbours
	for i, s := range assess(t, specimen(t, []float32{1, 1, 0, 1, 1}, [3]int{4, 24, 30})) {
		if i == 2 && (s.HasData || s.Judged || s.Quality != 0) || i != 2 && !(s.Quality > 0.999) {
			t.Errorf("%d: %+v", i, s)
		}
	}
	// a slice without any other is not judged, and not excluded
	only := assess(t, specimen(t, []float32{0, 1, 0}, [3]int{4, 24, 30}))
	if s := only[1]; !s.HasData || s.Judged {
		t.Errorf("%+v", s)
	}
	config := new(registration.SliceTable)
	Decide(config, only, DecideOptions{MinQuality: 0.3})
	if text := written(t, config); !strings.Contains(text, "\n00,false,low_quality,0.000,") || !strings.Contains(text, "\n10,true,,,") {
		t.Error(text)
	}
	unasked := new(registration.SliceTable)
	Decide(unasked, only, DecideOptions{})
	if text := written(t, unasked); !strings.Contains(text, "\n00,false,no_data,0.000,") || !strings.Contains(text, "\n10,true,,,") {
		t.Error(text)
	}
	step := AssessMetrics("c.csv", Decide(config, only, DecideOptions{}), DecideOptions{})
	if text, err := step.JSON(); err != nil || !bytes.Contains(text, []byte(`"mean_quality": {
      "value": null`)) {
		t.Errorf("%v, %s", err, text)
	}
	// a hundred times the contrast: only the variance tells
	scores := assess(t, specimen(t, []float32{1, 1, 100, 1, 1}, [3]int{4, 24, 30}))
	if s := scores[2]; !(s.SSIM > 0.999 && s.Edge > 0.999 && s.Variance < 0.3 && s.Variance > 0.1) {
		t.Errorf("%+v", s)
	}
	// NaN counts as 0
	dark, _ := octtest.Made(t, []int{3, 9, 9}, []int{3, 9, 9}, nil, nil, func(int) float32 { return float32(math.NaN()) })
	if s := assess(t, append(specimen(t, []float32{1}, [3]int{3, 9, 9}), Slice{5, dark})); s[1].HasData || s[0].Judged {
		t.Errorf("%+v", s)
	}
	// slices of another size are compared in the middle
	large := append(specimen(t, []float32{1}, [3]int{4, 24, 30}), specimen(t, []float32{1}, [3]int{6, 40, 30})...)
	if s := assess(t, large); !s[0].Judged || s[0].SSIM != s[1].SSIM {
		t.Errorf("%+v", s)
	}
}

func TestAssessBadInput(t *testing.T) {
	good := specimen(t, []float32{1, 1}, [3]int{4, 24, 30})
	for name, c := range map[string]struct {
		in []Slice
		o  AssessOptions
	}{
		"no level 7 of this image: the last is 0": {good, AssessOptions{Depth: 5, Level: 7}},
		"want at least 7":                         {specimen(t, []float32{1}, [3]int{4, 6, 30}), DefaultAssessOptions()},
		"planes of 24 × 6 ":                       {specimen(t, []float32{1}, [3]int{4, 24, 6}), DefaultAssessOptions()},
	} {
		if _, err := Assess(octtest.Ctx, c.in, c.o, octtest.Small()); !errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Assess(octtest.Ctx, good, DefaultAssessOptions(), oct.Resources{Workers: 2, Mem: 1000})
	if err == nil || errors.Is(err, oct.ErrInput) || !strings.Contains(err.Error(), "--mem grants") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(octtest.Ctx)
	cancel()
	if _, err := Assess(ctx, good, DefaultAssessOptions(), octtest.Small()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The type and the chunks of slices do not matter.
func TestAssessTypes(t *testing.T) {
	made := func(kind dtype.Type, chunks []int) (out []Slice) {
		for i := range 3 {
			value := func(k int) int { return (k*7919%251 + i*k%17) % 200 }
			var im *ngff.Image
			if kind == dtype.Uint16 {
				im, _ = octtest.Made(t, []int{5, 16, 12}, chunks, nil, nil, func(k int) uint16 { return uint16(value(k)) })
			} else {
				im, _ = octtest.Made(t, []int{5, 16, 12}, chunks, nil, nil, func(k int) float32 { return float32(value(k)) })
			}
			out = append(out, Slice{i, im})
		}
		return out
	}
	want := assess(t, made(dtype.Float32, []int{5, 16, 12}))
	if got := assess(t, made(dtype.Uint16, []int{2, 5, 7})); !reflect.DeepEqual(got, want) || !want[1].Judged {
		t.Errorf("%+v, want %+v", got, want)
	}
}
