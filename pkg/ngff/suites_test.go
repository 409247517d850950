package ngff

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// stricter has the cases that their schemas take, and the specification's text does not: what we say of them.
var stricter = map[string]string{}

func init() {
	const numbers, path = "2 numbers for 3 axes", "the path says"
	for name, says := range map[string]string{
		"0.4/image/valid/mismatch_axes_units.json": numbers, "0.6/spec/valid/image/mismatch_axes_units.json": numbers,
		"0.4/plate/plate/minimal_no_acquisitions": path, "0.4/plate/plate/minimal_acquisitions": path, "0.4/plate/plate/non_alphanumeric_row": path,
		"0.4/strict_plate/plate/strict_no_acquisitions": path, "0.4/strict_plate/plate/strict_acquisitions": path,
		"0.6/spec/valid/plate/minimal_acquisitions.json": path, "0.6/spec/valid/plate/minimal_no_acquisitions.json": path,
		"0.6/spec/valid/plate/non_alphanumeric_row.json": path, "0.6/strict/valid/plate/strict_acquisitions.json": path,
		"0.6/strict/valid/plate/strict_no_acquisitions.json": path,
		"0.6/spec/valid/transforms/byDimension.json":         "0 space axes",
		"0.6/strict/valid/image/image_omero.json":            "to which the levels lead", "0.6/strict/valid/image/multiscales_example.json": "must be the path of the level",
	} {
		stricter[name] = says
	}
}

// The specification's own cases: what is valid has no errors, and what is not has at least one; in the strict suites,
// what is only recommended counts, too. testdata/suites.py renews them.
func TestSuites(t *testing.T) {
	file, err := os.Open("testdata/suites.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Version, Name string
		Strict, Valid bool
		Attributes    map[string]json.RawMessage
	}
	if err := json.NewDecoder(z).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, c := range cases {
		count[c.Version]++
		var f findings
		format := 3
		if c.Version == "0.4" {
			format = 2
		}
		m := parse(c.Attributes, format, &f)
		checkFormat(m, format, &f)
		if m.ImageLabel == nil { // their cases have nothing else
			checkPresent(m, &f)
		}
		wrong := false
		for _, p := range f.list {
			wrong = wrong || p.Severity == Error || c.Strict
		}
		if wrong == c.Valid && c.Valid && stricter[c.Name] != "" {
			if !strings.Contains(fmt.Sprint(f.list), stricter[c.Name]) {
				t.Errorf("%s: found %v, want %q", c.Name, f.list, stricter[c.Name])
			}
			continue
		}
		if wrong == c.Valid {
			t.Errorf("%s: valid %v, strict %v, found %v\n%s", c.Name, c.Valid, c.Strict, f.list, c.Attributes)
		}
	}
	if count["0.4"] < 50 || count["0.5"] < 50 || count["0.6"] < 100 {
		t.Errorf("cases: %v", count)
	}
}
