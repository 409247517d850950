package shifts

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"strata/pkg/registration"
)

// suggested returns suggestions by name.
func suggested(t *testing.T, table string, a Acquisition, resolution float64) map[string]Suggestion {
	t.Helper()
	shifts, err := registration.ReadShiftTable(strings.NewReader("fixed_id,moving_id,x_shift_mm,y_shift_mm\n"+table), "shifts.csv")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Suggestion{}
	for _, s := range Suggest(shifts, a, resolution) {
		out[s.Name] = s
	}
	return out
}

const usualShifts = "0,1,0.10,0\n1,2,0.12,0.02\n2,3,0.09,0\n3,5,0.11,0.01\n5,6,0.13,0\n6,7,0.1,0.03\n"

func TestSuggest(t *testing.T) {
	var a Acquisition
	state := `{"slice_thickness": 0.2, "overlap_fraction": 0.15, "tile_size_um": 875, "tile_n_samples": 400, "other": [1]}`
	if err := a.ReadState(strings.NewReader(state), "state.json"); err != nil {
		t.Fatal(err)
	}
	a.Axial, a.Depth = Fact{3.5, "info.txt"}, Fact{900, "info.txt"}
	got := suggested(t, usualShifts+"7,8,1.75,0.01\n8,12,-1.75,0\n", a, 0)
	for name, want := range map[string]string{
		"resample_resolution": `"5"`, "mosaic_axial_resolution": "3.5", "stitch_overlap": "0.15", "stack_slicing_interval_mm": "0.2", "stack_search_range_mm": "0.1",
		"register_max_translation_px": "180", "crop_depth": "300", "clean_shifts": "true", "shifts_clean_max_shift_mm": "0.15", "shifts_clean_tile_fov_mm": "0.875", "interpolate": "true",
	} {
		if got[name].Value != want || got[name].Why == "" {
			t.Errorf("%s: %+v, want %s", name, got[name], want)
		}
	}
	if why := got["interpolate"].Why; why != "missing slices: 4; gaps of several slices stay: 9–11" {
		t.Error(why)
	}
	if why := got["clean_shifts"].Why; !strings.Contains(why, "2 of 8 shifts") || !strings.Contains(why, "7–8 (1.750 mm)") {
		t.Error(why)
	}
	got = suggested(t, usualShifts, Acquisition{}, 0)
	for name, want := range map[string]string{"resample_resolution": "", "stitch_overlap": "", "stack_slicing_interval_mm": "", "shifts_clean_max_shift_mm": "0.15"} {
		if s, ok := got[name]; s.Value != want || !ok {
			t.Errorf("without metadata, %s: %+v, want %q", name, s, want)
		}
	}
	if _, ok := got["clean_shifts"]; ok {
		t.Error("shifts without glitches are to be cleaned")
	}
	if s := suggested(t, "0,1,0.1,0\n", Acquisition{}, 10); s["shifts_clean_max_shift_mm"].Value != "" || s["resample_resolution"].Value != `"10"` {
		t.Errorf("of one shift: %+v", s)
	}
}

// Every parameter is one of the workflow's, with a value of its type within its limits, and what is written is YAML of
// one line each.
func TestSuggestedParameters(t *testing.T) {
	b, err := os.ReadFile("../../../nextflow/nextflow_schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type property struct {
		Type    string   `json:"type"`
		Minimum *float64 `json:"minimum"`
		Maximum *float64 `json:"maximum"`
		Pattern string   `json:"pattern"`
	}
	var schema struct {
		Defs map[string]struct {
			Properties map[string]property `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(b, &schema); err != nil {
		t.Fatal(err)
	}
	known := map[string]property{}
	for _, group := range schema.Defs {
		for name, p := range group.Properties {
			known[name] = p
		}
	}
	a := Acquisition{Fact{0.2, "x"}, Fact{0.15, "x"}, Fact{875, "x"}, Fact{2.2, "x"}, Fact{3.5, "x"}, Fact{900, "x"}}
	all := suggested(t, usualShifts+"7,8,1.75,0.01\n", a, 0)
	var list []Suggestion
	for name, s := range all {
		list = append(list, s)
		p, ok := known[name]
		if !ok {
			t.Errorf("%s is no parameter of the workflow", name)
			continue
		}
		switch p.Type {
		case "boolean":
			_, err = strconv.ParseBool(s.Value)
		case "string":
			var text string
			if text, err = strconv.Unquote(s.Value); err == nil && p.Pattern != "" && !regexp.MustCompile(p.Pattern).MatchString(text) {
				t.Errorf("%s: %s does not match %s", name, text, p.Pattern)
			}
		default:
			var v float64
			v, err = strconv.ParseFloat(s.Value, 64)
			if p.Minimum != nil && v < *p.Minimum || p.Maximum != nil && v > *p.Maximum || p.Type == "integer" && v != math.Trunc(v) {
				t.Errorf("%s: %v is out of range", name, v)
			}
		}
		if err != nil {
			t.Errorf("%s (%s): %v", name, p.Type, err)
		}
	}
	var w bytes.Buffer
	if err := WriteParams(&w, append(list, Suggestion{"crop_depth", "", "not\nknown"}), "a\nb"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(w.String()), "\n")
	if len(lines) != len(list)+2 || lines[len(lines)-1] != "# crop_depth: # not known" {
		t.Errorf("%q", lines)
	}
	for _, l := range lines[1 : len(lines)-1] {
		if !regexp.MustCompile(`^[a-z_]+: ("[0-9.]+"|[0-9.]+|true|false) # .+`).MatchString(l) {
			t.Errorf("%q", l)
		}
	}
}
