package registration

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"strata/pkg/filter"
)

const header = "fixed_id,moving_id,x_shift,y_shift,x_shift_mm,y_shift_mm\n"

func TestShifts(t *testing.T) {
	rows := "0,1,-2.63,1.63,-0.5,0.25\n1,2,1,1,0.125,-1\n2,4,9,9,1,1\n"
	for name, text := range map[string]string{
		"plain":        header + rows,
		"BOM, CRLF":    "\ufeff" + strings.ReplaceAll(header+rows, "\n", "\r\n"),
		"no last line": strings.TrimSuffix(header+rows, "\n"),
		"blank lines":  header + "\n" + rows + "\n,,,,,\n",
		"quotes":       strings.ReplaceAll(header+rows, ",", `","`)[:0] + strings.ReplaceAll(header, "fixed_id", `"fixed_id"`) + rows,
		"spaces":       strings.ReplaceAll(header+rows, ",", ", "),
		"floats":       header + strings.ReplaceAll(rows, "0,1,-2", "00,1.0,-2"),
		"any columns":  "reliable,y_shift_mm,x_shift_mm,moving_id,fixed_id\n1,0.25,-0.5,1,0\nx,-1,0.125,2,1\n,1,1,4,2\n",
	} {
		s, err := ReadShifts(strings.NewReader(text), "s.csv")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		at, warnings := s.Positions([]int{0, 1, 2, 3, 4})
		want := map[int][2]float64{0: {}, 1: {-0.5, 0.25}, 2: {-0.375, -0.75}, 3: {}, 4: {0.625, 0.25}}
		if !reflect.DeepEqual(at, want) {
			t.Errorf("%s: positions %v, want %v", name, at, want)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], "[3]") {
			t.Errorf("%s: warnings %q, want one about slice 3", name, warnings)
		}
	}
	// a missing pair counts nothing; one that skips a slice is not used
	s, err := ReadShifts(strings.NewReader(header+"0,1,,,1,1\n2,3,,,4,8\n0,3,,,100,100\n"), "s.csv")
	if err != nil {
		t.Fatal(err)
	}
	at, warnings := s.Positions([]int{0, 2, 3})
	if at[2] != [2]float64{1, 1} || at[3] != [2]float64{5, 9} || len(warnings) != 2 {
		t.Errorf("positions %v, warnings %q", at, warnings)
	}
	s, err = ReadShifts(strings.NewReader(header), "s.csv")
	if err != nil {
		t.Fatal(err)
	}
	if at, warnings := s.Positions([]int{7}); at[7] != [2]float64{} || len(warnings) != 1 {
		t.Errorf("no shifts at all: %v, %q", at, warnings)
	}
}

func TestBadShifts(t *testing.T) {
	for text, want := range map[string]string{
		"": "s.csv:1: the file is empty",
		strings.ReplaceAll(header, ",", ";") + "0;1;1;1;1;1\n":  `s.csv:1: columns are separated by ";", want commas`,
		strings.ReplaceAll(header, ",", "\t") + "0\t1\t1\t1\t1": `s.csv:1: columns are separated by "\t", want commas`,
		"fixed_id,moving_id,x_shift,y_shift\n0,1,2,3\n":         `s.csv:1: there is no column "x_shift_mm"`,
		"fixed_id,fixed_id,moving_id,x_shift_mm,y_shift_mm\n":   `s.csv:1: column "fixed_id" appears twice`,
		header + "0,1,1,1,1,1\n\n0,1,1,1,2,2\n":                 "s.csv:4: slices 0 and 1 are a pair already on line 2",
		header + "0,1,1,1,abc,1\n":                              `s.csv:2: x_shift_mm is "abc", want a number`,
		header + "0,1,1,1,1\n":                                  `s.csv:2: y_shift_mm is "", want a number`,
		header + "0,1,1,1,nan,1\n":                              `s.csv:2: x_shift_mm is "nan", want a number`,
		header + "0,1,1,1,1,-1e13\n":                            `s.csv:2: y_shift_mm is "-1e13", want a number from -1e+12 to 1e+12`,
		header + "0,1,1,1,1e400,1\n":                            `s.csv:2: x_shift_mm is "1e400", want a number from -1e+12 to 1e+12`,
		header + "0,1,1,1,1e999,1\n":                            "s.csv:2: x_shift_mm",
		header + "0,1.5,1,1,1,1\n":                              `s.csv:2: moving_id is "1.5", want the number of a slice`,
		header + "-1,1,1,1,1,1\n":                               `s.csv:2: fixed_id is "-1"`,
		header + "3,3,1,1,1,1\n":                                "s.csv:2: slice 3 is moved against slice 3",
		header + "0,1,1,1,\"1,1\n":                              "s.csv:2: ",
		header + "0,1,1,1,1,1\n1,2,a\"b,1,1,1\n":                "s.csv:3: ",
	} {
		if _, err := ReadShifts(strings.NewReader(text), "s.csv"); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

const magic = "#Insight Transform File V1.0\n#Transform 0\n"

func TestTransform(t *testing.T) {
	for text, want := range map[string]struct {
		t       filter.Rigid
		warning string
	}{
		magic + "Transform: Euler3DTransform_double_3_3\nParameters: 0 0 0.5 1 -2 0\nFixedParameters: 24 25 0 0\n":                {filter.Rigid{Angle: 0.5, TX: 1, TY: -2, CX: 24, CY: 25}, ""},
		"\ufeff" + magic + "Transform: Euler2DTransform_double_2_2\r\nParameters: 0.5 1e0 -2\r\nFixedParameters: 24 25\r\n":       {filter.Rigid{Angle: 0.5, TX: 1, TY: -2, CX: 24, CY: 25}, ""},
		magic + "Transform: Euler3DTransform_float_3_3\nParameters: 0.1 0 0.5 1 -2 3\nFixedParameters: 24 25 0\n":                 {filter.Rigid{Angle: 0.5, TX: 1, TY: -2, CX: 24, CY: 25}, "not applied"},
		magic + "Transform: AffineTransform_double_2_2\nParameters: 1 0 0 1 5 5\nFixedParameters: 0 0\n":                          {filter.Rigid{}, "AffineTransform is no Euler transform"},
		magic + "Transform: CompositeTransform_double_3_3\n#Transform 1\nTransform: Euler3DTransform_double_3_3\nParameters: 1\n": {filter.Rigid{}, "2 transforms"},
	} {
		got, warning, err := readTransform(strings.NewReader(text), "t.tfm")
		if err != nil || got != want.t || (want.warning == "") != (warning == "") || !strings.Contains(warning, want.warning) {
			t.Errorf("%q: %+v, %q, %v", text, got, warning, err)
		}
	}
	for text, want := range map[string]string{
		"":                 "t.tfm:1: ",
		"\n\nhello":        "t.tfm:3: \"hello\" where",
		magic:              "t.tfm:2: no line \"Transform: …\"",
		magic + "nonsense": "t.tfm:3: \"nonsense\", want",
		magic + "Transform: Euler3DTransform_double_3_3\nParameters: 0 0 x 0 0 0\n":                       "t.tfm:4: number 3 is \"x\", want a number",
		magic + "Transform: Euler3DTransform_double_3_3\nParameters: 0 0 nan 0 0 0\n":                     "t.tfm:4: number 3 is \"nan\", want a number",
		magic + "Transform: Euler3DTransform_double_3_3\nParameters: 0 0 0 0 -1e13 0\n":                   "t.tfm:4: number 5 is \"-1e13\", want a number from -1e+12 to 1e+12",
		magic + "Transform: Euler3DTransform_double_3_3\nParameters: 0 0 0 1e999 0 0\n":                   "t.tfm:4: number 4 is \"1e999\", want a number from -1e+12 to 1e+12",
		magic + "Transform: Euler2DTransform_double_2_2\nParameters: 0 0 0\nFixedParameters: 1 +Inf\n":    "t.tfm:5: number 2 is \"+Inf\", want a number",
		magic + "Transform: Euler2DTransform_double_2_2\nParameters: -6.3 0 0\nFixedParameters: 1 1\n":    "t.tfm:4: an angle of -6.3 radians: want at most a full turn",
		magic + "Transform: Euler3DTransform_double_3_3\nParameters: 0 0 0 0 0\nFixedParameters: 1 1 1\n": "t.tfm:4: 5 parameters of an Euler3DTransform, want 6",
		magic + "Transform: Euler2DTransform_double_2_2\nParameters: 0 0 0\nFixedParameters: 1\n":         "t.tfm:5: 1 fixed parameters of an Euler2DTransform, want at least 2",
		magic + "Transform: Euler2DTransform_double_2_2\nParameters: 0 0 0\n":                             "t.tfm:1: 0 fixed parameters",
	} {
		if _, _, err := readTransform(strings.NewReader(text), "t.tfm"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestOffsets(t *testing.T) {
	for text, want := range map[string]Offsets{
		"13\n1\n": {13, 1}, "13 1": {13, 1}, "# fixed, moving\r\n1.3e+01\r\n1.0\r\n": {13, 1}, "\ufeff0\t0": {0, 0},
	} {
		if got, err := ReadOffsets(strings.NewReader(text), "o.txt"); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "o.txt:1: 0 numbers", "1": "o.txt:1: 1 numbers", "1\n2\n3": "o.txt:3: 3 numbers", "1\nx": "o.txt:2: \"x\"", "1 -2": "o.txt:1: \"-2\"", "nan 1": "o.txt:1: \"nan\"",
	} {
		if _, err := ReadOffsets(strings.NewReader(text), "o.txt"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestMetrics(t *testing.T) {
	for text, want := range map[string]Metrics{
		`{"overall_status": "ok", "metrics": {"registration_confidence": {"value": 0.5}, "translation_x": {"value": 1}, "translation_y": {"value": -2},
		  "z_correlation": {"value": 0.75}, "rotation": {"value": 3, "unit": "deg"}, "other": {"value": 9}}, "more": [1]}`: {Status: "ok", Confidence: 0.5, TX: 1, TY: -2, ZCorrelation: 0.75, Rotation: 3, Correlation: 0.75},
		`{"metrics": {"z_correlation": {"value": 0.75}, "registration_correlation": {"value": 0.25}}}`:                                         {Confidence: 1, ZCorrelation: 0.75, Correlation: 0.25},
		`{"metrics": {"registration_confidence": {"value": NaN}, "rotation": {"value": -Infinity}, "z_correlation": {}, "NaN\"Infinity": {}}}`: {Confidence: 1},
		`{"metrics": {"quality": {"value": "good"}, "history": [1, 2], "rotation": {"value": 1}}}`:                                             {Confidence: 1, Rotation: 1},
		`{}`: {Confidence: 1},
		`{"metrics": {"fixed_volume": {"value": "a"}, "moving_volume": "b", "files": {"value": {"t.tfm": "sha256:00"}}}}`: {Confidence: 1, Fixed: "a", Files: map[string]string{"t.tfm": "sha256:00"}},
		`{"metrics": {"fixed_volume": {"value": 3}, "moving_volume": {"value": null}, "files": {"value": [1]}}}`:          {Confidence: 1},
	} {
		if got, err := readMetrics(strings.NewReader(text), "m.json"); err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":             "m.json:1: ",
		"{\n\"a\": 1,": "m.json:2: ",
		"{\n\"metrics\": {\"rotation\": {\n\"value\": \"x\"}}}":        "m.json:3: metrics.rotation.value is a string, want a float64",
		"{\n\"metrics\": {\n\"translation_x\": {\n\"value\": 1e300}}}": "m.json:4: metrics.translation_x is 1e+300, want a number from -1e+12 to 1e+12",
		"{\"metrics\": {\"registration_confidence\": {\"value\": 7}}}": "m.json:1: metrics.registration_confidence is 7, want a number from -1 to 1",
		"{\"metrics\": {\"rotation\": {\"value\": 1e999}}}":            "m.json:1: metrics.rotation.value is 1e999, which is too large",
		"{\"overall_status\": 3}":                                      "m.json:1: overall_status is a number, want a string",
		"[]":                                                           "m.json:1: ",
	} {
		if _, err := readMetrics(strings.NewReader(text), "m.json"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestSliceConfig(t *testing.T) {
	got, err := ReadSliceConfig(strings.NewReader("\ufeffslice_id,use,auto_excluded,note,fault,interpolated\r\n03,true,False,a\r\n4,false,,b,noise\r\n5,,TRUE,,,true\r\n6\r\n"), "c.csv")
	want := map[int]SliceConfig{3: {Use: true}, 4: {Fault: "noise"}, 5: {Use: true, AutoExcluded: true, Interpolated: true}, 6: {Use: true}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for id, skip := range map[int]bool{3: false, 4: true, 5: true, 6: false} {
		if got[id].Skip() != skip {
			t.Errorf("slice %d: skip %v, want %v", id, got[id].Skip(), skip)
		}
	}
	for text, want := range map[string]string{
		"":                           "c.csv:1: ",
		"id\n3\n":                    `c.csv:1: there is no column "slice_id"`,
		"slice_id;use\n3;true\n":     `c.csv:1: there is no column "slice_id"`,
		"slice_id,use\n3,maybe\n":    `c.csv:2: use is "maybe", want true or false`,
		"slice_id\nx\n":              `c.csv:2: slice_id is "x"`,
		"slice_id,use\n3,1\n\n3,1\n": "c.csv:4: slice 3 is already on line 2",
	} {
		if _, err := ReadSliceConfig(strings.NewReader(text), "c.csv"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	euler := func(angle string) string {
		return magic + "Transform: Euler2DTransform_double_2_2\nParameters: " + angle + " 0 0\nFixedParameters: 0 0\n"
	}
	put("slice_z10_x/transform.tfm", euler("6"))
	put("slice_z01_b/other.tfm", euler("1"))
	put("slice_z01_b/readme.txt", "not offsets")
	put("slice_z01_b/my_offsets.txt", "4 5")
	put("slice_z01_c/transform.tfm", euler("5"))
	put("slice_z02/a.tfm", "broken")
	put("slice_z02/transform.tfm", euler("2"))
	put("slice_z02/pairwise_registration_metrics.json", `{"metrics": {"registration_confidence": {"value": 0.25}}}`)
	put("slice_z03/pairwise_registration_metrics.json", `{}`)
	put("slice_z04/transform.tfm", "broken")
	put("z5", "a file, no folder")
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, warnings, err := f.Pair(t.Context(), 1)
	if err != nil || p.Transform.Angle != 1 || *p.Offsets != (Offsets{4, 5}) || p.Metrics != nil || p.Confidence() != 1 || len(warnings) != 1 {
		t.Errorf("slice 1: %+v, %q, %v", p, warnings, err)
	}
	p, warnings, err = f.Pair(t.Context(), 2)
	if err != nil || p.Transform.Angle != 2 || p.Offsets != nil || p.Confidence() != 0.25 || len(warnings) != 0 {
		t.Errorf("slice 2: %+v, %q, %v", p, warnings, err)
	}
	p, warnings, err = f.Pair(t.Context(), 3)
	if err != nil || p.Transform != nil || math.Abs(p.Confidence()-1) > 0 || len(warnings) != 1 {
		t.Errorf("slice 3: %+v, %q, %v", p, warnings, err)
	}
	if _, _, err := f.Pair(t.Context(), 4); err == nil || !strings.Contains(err.Error(), filepath.Join("slice_z04", "transform.tfm")+":1: ") {
		t.Errorf("slice 4: %v, want the file and the line", err)
	}
	for _, id := range []int{0, 5, 100} {
		if p, _, err := f.Pair(t.Context(), id); p != nil || err != nil {
			t.Errorf("slice %d: %+v, %v", id, p, err)
		}
	}
	if p, _, _ := f.Pair(t.Context(), 10); p == nil || p.Transform.Angle != 6 {
		t.Errorf("slice 10: %+v", p)
	}
	if _, err := OpenFolder(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing folder opens")
	}
}

// fuzz checks that a reader says either numbers or where the file is wrong.
func checkError(t *testing.T, err error, name string) {
	if err != nil && (!strings.HasPrefix(err.Error(), name+":") || strings.Contains(err.Error(), "\n")) {
		t.Errorf("error %q does not begin with the file, or has several lines", err)
	}
}

func FuzzShifts(f *testing.F) {
	f.Add(header + "0,1,1,1,1,1\n")
	f.Add("\"0\n\"")
	f.Add("\ufeff" + header + "0,1,1,1,1,\"1\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadShifts(strings.NewReader(text), "f")
		checkError(t, err, "f")
		if err == nil {
			for id, p := range first(s.Positions([]int{0, 1, 2})) {
				if p[0] != p[0] {
					t.Errorf("slice %d is at %v", id, p)
				}
			}
		}
	})
}

func first[A, B any](a A, _ B) A { return a }

func FuzzTransform(f *testing.F) {
	f.Add(magic + "Transform: Euler3DTransform_double_3_3\nParameters: 0 0 0.5 1 -2 0\nFixedParameters: 24 25 0 0\n")
	f.Add(magic + "Transform: Euler2DTransform_double_2_2\nParameters: 0.5 1e0 -2\nFixedParameters: 24 25\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, _, err := readTransform(strings.NewReader(text), "f")
		checkError(t, err, "f")
		if err == nil && (math.IsNaN(r.Angle+r.TX+r.TY+r.CX+r.CY) && !math.IsInf(r.TX, 0)) {
			t.Errorf("%+v", r)
		}
	})
}

func FuzzOffsets(f *testing.F) {
	f.Add("13\n1\n")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ReadOffsets(strings.NewReader(text), "f")
		checkError(t, err, "f")
		if o.FixedZ < 0 || o.MovingZ < 0 {
			t.Errorf("%+v", o)
		}
	})
}

func FuzzMetrics(f *testing.F) {
	f.Add(`{"overall_status": "ok", "metrics": {"registration_confidence": {"value": NaN}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := readMetrics(strings.NewReader(text), "f")
		checkError(t, err, "f")
		if err == nil && (m.Confidence != m.Confidence || math.IsInf(m.TX, 0)) {
			t.Errorf("%+v", m)
		}
	})
}

func FuzzSliceConfig(f *testing.F) {
	f.Add("slice_id,use,auto_excluded\n3,true,false\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := ReadSliceConfig(strings.NewReader(text), "f")
		checkError(t, err, "f")
	})
}
