package metrics

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestStep(t *testing.T) {
	s := New("normalize_intensities")
	s.Note("input_volume", "slice_z05.ome.zarr", "Input volume path")
	limit := Limits["agarose_coverage"]
	s.Judge("agarose_coverage", 0.02, "", "share of agarose", &limit)
	s.Judge("exact", 0.05, "px", "on the limit", &limit)
	s.Judge("free", 3, "px", "not judged", nil)
	std := Limits["std_background"]
	s.Judge("std_background", math.NaN(), "", "spread", &std)
	text, err := s.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var raw struct {
		Status   string                    `json:"overall_status"`
		Metrics  map[string]map[string]any `json:"metrics"`
		Warnings []string                  `json:"warnings"`
		Errors   []string                  `json:"errors"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for name, want := range map[string]string{"agarose_coverage": "warning", "exact": "ok", "free": "ok", "std_background": "error", "input_volume": "info"} {
		if got := raw.Metrics[name]["status"]; got != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
	if raw.Status != "error" || len(raw.Errors) != 1 || len(raw.Warnings) != 1 || raw.Warnings[0] != "agarose_coverage: 0.02 < 0.05 (warning threshold)" {
		t.Errorf("%s: %q %q", raw.Status, raw.Warnings, raw.Errors)
	}
	if v, ok := raw.Metrics["std_background"]["value"]; !ok || v != nil {
		t.Errorf("NaN is written as %v", v)
	}
	if _, ok := raw.Metrics["input_volume"]["unit"]; ok {
		t.Error("a metric that is not judged has a unit")
	}
	if unit, ok := raw.Metrics["agarose_coverage"]["unit"]; !ok || unit != nil {
		t.Error("a judged metric without unit has no null")
	}
	again, err := Read(bytes.NewReader(text), "m.json")
	if err != nil {
		t.Fatal(err)
	}
	if twice, _ := again.JSON(); !bytes.Equal(dropTime(twice), dropTime(text)) {
		t.Errorf("read and written again:\n%s\nwant\n%s", twice, text)
	}
}

// dropTime removes the line with the time, which is kept to the microsecond only.
func dropTime(text []byte) []byte {
	lines := strings.Split(string(text), "\n")
	return []byte(strings.Join(append(lines[:2], lines[3:]...), "\n"))
}

func TestFileName(t *testing.T) {
	for out, want := range map[string]string{
		"a/slice_z05_normalize.ome.zarr":  "a/slice_z05_normalize.ome_metrics.json",
		"a/slice_z05_normalize.ome.zarr/": "a/slice_z05_normalize.ome_metrics.json",
		"s3://b/x.zarr":                   "s3://b/x_metrics.json",
		"plain":                           "plain_metrics.json",
		".hidden":                         ".hidden_metrics.json",
	} {
		if got := FileName(out); got != want {
			t.Errorf("%s: %s, want %s", out, got, want)
		}
	}
}

func TestBadFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "m.json:1: ",
		"{}":                                "m.json: no step_name",
		`{"step_name": 3}`:                  "m.json:1: step_name is a number, want a string",
		`{"step_name": "a", "metrics": []}`: "m.json: metrics is not an object",
		"{\"step_name\": \"a\",\n\"metrics\": {\"x\": 1}}": "m.json: metric x: ",
	} {
		if _, err := Read(strings.NewReader(text), "m.json"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"step_name": "a", "overall_status": "ok", "metrics": {"x": {"value": NaN, "unit": null, "description": "d", "status": "ok"}}, "warnings": [], "errors": []}`)
	f.Add(`{"step_name": "", "metrics": {"": {}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read(strings.NewReader(text), "m.json")
		if err != nil {
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "m.json") {
				t.Errorf("error %q", err)
			}
			return
		}
		if _, err := s.JSON(); err != nil {
			t.Errorf("%q was read, but cannot be written: %v", text, err)
		}
	})
}

// Messages have numbers of three digits, or as many as tell a value from its limit.
func TestMessageDigits(t *testing.T) {
	for value, want := range map[float64]string{0.12212914113737007: "0.122", 0.12001: "0.12001", 3.5: "3.5", 40: "40.0", 12345.678: "12346.0"} {
		s := New("step")
		if s.Judge("m", value, "", "", &Limit{Warning: 0.12, Error: 1e9}); len(s.Warnings) != 1 || s.Warnings[0] != "m: "+want+" > 0.12 (warning threshold)" {
			t.Errorf("%v: %q", value, s.Warnings)
		}
	}
}
