package registration

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

const matchesText = "\ufefffixed_id,moving_id,overlap_voxels,blend_overlap_voxels,moving_z_start,correlation,correlation_fallback_used\r\n" +
	"0,1,12,10,8,0.91234,False\r\n1,2,7.0,7,8,0,True\r\n"

const decisionsText = "slice_id,fixed_id,transform_loaded,transform_source,manual_override,confidence,overlap_source,overlap_voxels,blend_overlap_voxels,correlation\n" +
	"1,0,True,automated,False,0.8000,registration,12,10,0.9123\n2,1,False,manual,True,,expected,7,7,\n"

func TestSidecars(t *testing.T) {
	m, err := ReadMatches(strings.NewReader(matchesText), "m.csv")
	if want := []Match{{0, 1, 12, 10, 8, 0.91234, false}, {1, 2, 7, 7, 8, 0, true}}; err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, %v", m, err)
	}
	d, err := ReadDecisions(strings.NewReader(decisionsText), "d.csv")
	want := []Decision{{1, 0, true, "automated", false, "0.8000", "registration", 12, 10, "0.9123"}, {2, 1, false, "manual", true, "", "expected", 7, 7, ""}}
	if err != nil || !reflect.DeepEqual(d, want) {
		t.Errorf("%+v, %v", d, err)
	}
	for text, message := range map[string]string{
		strings.Replace(matchesText, "0.91234", "high", 1):      `m.csv:2: correlation is "high", want a number`,
		strings.Replace(matchesText, "1,2,7.0", "1,two,7.0", 1): `m.csv:3: moving_id is "two", want a whole number`,
		strings.Replace(matchesText, "True", "perhaps", 1):      `m.csv:3: correlation_fallback_used is "perhaps"`,
		strings.Replace(matchesText, "moving_z_start", "z", 1):  `m.csv:1: there is no column "moving_z_start"`,
		"": "m.csv:1: the file is empty",
	} {
		if _, err := ReadMatches(strings.NewReader(text), "m.csv"); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("want %q: %v", message, err)
		}
	}
	for text, message := range map[string]string{
		strings.Replace(decisionsText, "0.8000", "sure", 1):    `d.csv:2: confidence is "sure"`,
		strings.Replace(decisionsText, "2,1,", "-2,1,", 1):     `d.csv:3: slice_id is "-2"`,
		strings.Replace(decisionsText, "1,0,True", "1,0,x", 1): `d.csv:2: transform_loaded is "x"`,
		matchesText: `d.csv:1: there is no column "slice_id"`,
	} {
		if _, err := ReadDecisions(strings.NewReader(text), "d.csv"); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("want %q: %v", message, err)
		}
	}
}

func TestPairs(t *testing.T) {
	s, err := ReadShifts(strings.NewReader("fixed_id,moving_id,x_shift_mm,y_shift_mm\n3,4,1,2\n0,2,0.5,-1\n0,1,7,8\n"), "s.csv")
	if want := []PairShift{{0, 1, 7, 8}, {0, 2, 0.5, -1}, {3, 4, 1, 2}}; err != nil || !reflect.DeepEqual(s.Pairs(), want) {
		t.Errorf("%v, %v", s.Pairs(), err)
	}
}

func FuzzSidecars(f *testing.F) {
	f.Add(matchesText)
	f.Add(decisionsText)
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := ReadMatches(strings.NewReader(text), "f"); err == nil {
			for _, p := range m {
				if p.Fixed < 0 || p.Overlap < 0 || p.Correlation != p.Correlation {
					t.Errorf("%+v", p)
				}
			}
		} else if !strings.HasPrefix(err.Error(), "f:") || strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%q", err)
		}
		if _, err := ReadDecisions(strings.NewReader(text), "f"); err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%q", err)
		}
	})
}

func TestAbsent(t *testing.T) {
	s, err := ReadShifts(strings.NewReader("fixed_id,moving_id,x_shift_mm,y_shift_mm\n0,1,1,1\n1,2,1,1\n2,3,1,1\n3,7,1,1\n"), "s.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ids, between, outside []int }{
		{[]int{0, 1, 2, 3, 7}, nil, nil}, {[]int{1, 3, 9}, []int{2, 7}, []int{0}}, {nil, nil, []int{0, 1, 2, 3, 7}}, {[]int{2}, nil, []int{0, 1, 3, 7}},
	} {
		if between, outside := s.Absent(c.ids); !slices.Equal(between, c.between) || !slices.Equal(outside, c.outside) {
			t.Errorf("without %v: %v between, %v outside", c.ids, between, outside)
		}
	}
}

const foundText = "fixed_id,moving_id,x_shift_mm,y_shift_mm,correlation,recorded_x_shift_mm,recorded_y_shift_mm,recorded_correlation,contradicted,repaired\n" +
	"0,1,0.0107,-0.0009,0.9670,0.4958,0.1902,-0.0029,True,False\n"

func TestFoundShifts(t *testing.T) {
	got, err := ReadFoundShifts(strings.NewReader(foundText), "s.csv")
	if want := (FoundShift{0, 1, 0.0107, -0.0009, 0.9670, 0.4958, 0.1902, -0.0029, true, false}); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%+v, %v", got, err)
	}
	for text, message := range map[string]string{
		strings.Replace(foundText, "0.9670", "much", 1):   `s.csv:2: correlation`,
		strings.Replace(foundText, "0,1,", "zero,1,", 1):  `s.csv:2: fixed_id`,
		strings.Replace(foundText, "True", "perhaps", 1):  `s.csv:2: contradicted`,
		strings.Replace(foundText, "repaired", "fine", 1): `s.csv:1: there is no column "repaired"`,
	} {
		if _, err := ReadFoundShifts(strings.NewReader(text), "s.csv"); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%v, want %s", err, message)
		}
	}
	// it can take the place of the shifts that it corrects
	s, err := ReadShifts(strings.NewReader(foundText), "s.csv")
	if err != nil || len(s.Pairs()) != 1 || s.Pairs()[0].X != 0.0107 {
		t.Errorf("as shifts: %+v, %v", s, err)
	}
}
