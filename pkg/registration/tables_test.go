package registration

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func written(t *testing.T, write func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func readShiftTable(t *testing.T, text string) *ShiftTable {
	t.Helper()
	s, err := ReadShiftTable(strings.NewReader(text), "s.csv")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What was not changed keeps its text and its place; what was is written as Python prints it.
func TestShiftTableKeepsText(t *testing.T) {
	text := "note,moving_id,fixed_id,x_shift,y_shift,x_shift_mm,y_shift_mm\n" +
		"\"a, b\",4.0,3.0,88.00,1.0,0.880,1e-2\n,12,7,,nan,0,-0.0\n"
	s := readShiftTable(t, text)
	if got := written(t, func(b *bytes.Buffer) error { return s.Write(b, false) }); got != text {
		t.Errorf("unchanged:\n%s", got)
	}
	if !slices.Equal(s.IDs(), []int{3, 4, 7, 12}) || s.Judged || !s.Rows[0].Reliable || !math.IsNaN(s.Rows[1].PX[0]+s.Rows[1].PX[1]) {
		t.Errorf("read %+v", s)
	}
	s.Rows[0].X, s.Rows[0].PX[0] = 0.0050000000000000044, 2
	s.Rows[1].PX[0] = -5e-5
	s.Rows[1].Reliable, s.Judged = false, true
	want := "note,moving_id,fixed_id,x_shift,y_shift,x_shift_mm,y_shift_mm,reliable\r\n" +
		"\"a, b\",4.0,3.0,2.0,1.0,0.0050000000000000044,1e-2,1\r\n,12,7,-5e-05,nan,0,-0.0,0\r\n"
	if got := written(t, func(b *bytes.Buffer) error { return s.Write(b, true) }); got != want {
		t.Errorf("changed:\n%s", got)
	}
}

func TestShiftTableReliable(t *testing.T) {
	s := readShiftTable(t, "reliable,fixed_id,moving_id,x_shift_mm,y_shift_mm\n1.0,8,9,1,1\n0,1,2,1,1\n,1,3,1,1\ntrue,0,3,1,1\n")
	s.Sort()
	var got []bool
	for _, r := range s.Rows {
		got = append(got, r.Reliable)
	}
	if !s.Judged || !slices.Equal(got, []bool{false, true, true, true}) || s.Rows[1].Fixed != 0 || s.Rows[0].Line != 3 {
		t.Errorf("%v, %+v", got, s)
	}
	s.Rows[3].Reliable = false
	if got := written(t, func(b *bytes.Buffer) error { return s.Write(b, false) }); got != "reliable,fixed_id,moving_id,x_shift_mm,y_shift_mm\n0,1,2,1,1\n1,0,3,1,1\n1,1,3,1,1\n0,8,9,1,1\n" {
		t.Error(got)
	}
}

func TestNewShiftTable(t *testing.T) {
	s := ShiftTable{Judged: true, Rows: []ShiftRow{{PairShift: PairShift{7, 9, -0.10000000000000009, 0}, PX: [2]float64{-50.00000000000004, 0}, Reliable: true},
		{PairShift: PairShift{9, 10, 1e16, 0}, PX: [2]float64{math.NaN(), 0}}}}
	want := "fixed_id,moving_id,x_shift,y_shift,x_shift_mm,y_shift_mm,reliable\r\n7.0,9.0,-50.00000000000004,0.0,-0.10000000000000009,0.0,1.0\r\n9.0,10.0,,0.0,1e+16,0.0,0.0\r\n"
	if got := written(t, func(b *bytes.Buffer) error { return s.Write(b, true) }); got != want {
		t.Error(got)
	}
}

func TestFloat(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0", math.Copysign(0, -1): "-0.0", 1: "1.0", 1234567: "1234567.0", 0.0001: "0.0001", 0.00001: "1e-05", 1.5e-7: "1.5e-07",
		1e15: "1000000000000000.0", 1e16: "1e+16", -2.5: "-2.5", 0.30000000000000004: "0.30000000000000004", math.Inf(1): "inf", math.Inf(-1): "-inf", 1e300: "1e+300"} {
		if got := Float(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	if got := Float(math.NaN()); got != "nan" {
		t.Error(got)
	}
}

func TestBadShiftTable(t *testing.T) {
	for text, want := range map[string]string{
		"fixed_id,moving_id,x_shift_mm\n":                     `s.csv:1: there is no column "y_shift_mm"`,
		header + "0,1,left,1,1,1\n":                           `s.csv:2: x_shift is "left", want a number`,
		header + "0,1,inf,1,1,1\n":                            `s.csv:2: x_shift is "inf", want a number`,
		header + "0,1,1,1,1,1\n1,2,1,1,1,1,1\n":               `s.csv:3: "1" is in column 7, the header has 6 columns`,
		header + "0,1,1,1,1,1\n0,1,1,1,1,1\n":                 "s.csv:3: slices 0 and 1 are a pair already on line 2",
		header + "2,1,1,1,1,1\n":                              "s.csv:2: slice 1 is moved against slice 2",
		"reliable," + header + "perhaps,0,1,1,1,1,1\n":        `s.csv:2: reliable is "perhaps", want true or false`,
		strings.Repeat(",", 300) + header:                     "s.csv:1: 306 columns, want at most 256",
		header + strings.Repeat("0,1,1,1,1,1        \n", 3e5): "s.csv: is longer than 4 MiB",
	} {
		_, err := ReadShiftTable(strings.NewReader(text), "s.csv")
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

func readSliceTable(t *testing.T, text string) *SliceTable {
	t.Helper()
	s, err := ReadSliceTable(strings.NewReader(text), "c.csv")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const canonical = "slice_id,use,exclude_reason,quality_score,galvo_confidence,galvo_fix,notes,rehomed,rehoming_reliable,auto_excluded,auto_exclude_reason,interpolated,interpolation_failed,interpolation_method_used,interpolation_fallback_reason"

func TestSliceTable(t *testing.T) {
	s := readSliceTable(t, "mine,use,slice_id,galvo_fix,rehoming_reliable,\n\"x, y\",YES,100,0,1,\n,no,3.0,,0\n,,99\n")
	s.Row(3).Set(Notes, "by hand")
	s.Row(3).Set("mine", "")
	s.Stamp(100).SetBool(Rehomed, true)
	s.Stamp(7).Set(AutoExcluded, "1.0")
	s.Add(0).Set(Interpolated, "maybe")
	want := strings.Join([]string{canonical + ",mine",
		"00,,,,,,,,,,,maybe,,,,",
		"03,false,,,,,by hand,,0,,,,,,,",
		"07,false,,,,,,,,true,,,,,,",
		"99,,,,,,,,,,,,,,,",
		`100,true,,,,false,,true,1,,,,,,,"x, y"`, ""}, "\r\n")
	if got := written(t, func(b *bytes.Buffer) error { return s.Write(b) }); got != want {
		t.Errorf("%s", got)
	}
	if r := s.Row(100); !r.Bool(Use) || r.Bool(GalvoFix) || r.Bool(AutoExcluded) || r.Text("mine") != "x, y" || r.Line != 2 || s.Row(99).Bool(Use) || s.Row(5) != nil {
		t.Errorf("row %+v", r)
	}
	if !slices.Equal(s.IDs(), []int{0, 3, 7, 99, 100}) {
		t.Error(s.IDs())
	}
	// what is written is what the reader of stack reads
	c, err := ReadSliceConfig(strings.NewReader(want), "c.csv")
	if err != nil || len(c) != 5 || !c[100].Use || !c[7].AutoExcluded || !c[7].Skip() || c[99].Skip() {
		t.Errorf("%v, %v", c, err)
	}
	if got := written(t, func(b *bytes.Buffer) error { return new(SliceTable).Write(b) }); got != canonical+"\r\n" {
		t.Errorf("empty: %s", got)
	}
}

func TestBadSliceTable(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "c.csv:1: the file is empty",
		"id,use\n1,true\n":                  `c.csv:1: there is no column "slice_id"`,
		"slice_id,use\n1,true\n01,true\n":   "c.csv:3: slice 1 is already on line 2",
		"slice_id,use\n1,maybe\n":           `c.csv:2: use is "maybe", want true or false`,
		"slice_id,auto_excluded\n1,often\n": `c.csv:2: auto_excluded is "often", want true or false`,
		"slice_id,use\nz03,true\n":          `c.csv:2: slice_id is "z03", want the number of a slice`,
		"slice_id,use,\n3,true,lost\n":      `c.csv:2: "lost" is in column 3, which has no name`,
		"slice_id,use\n3,true,,lost\n":      `c.csv:2: "lost" is in column 4, the header has 2 columns`,
		"slice_id,mine,mine\n":              `c.csv:1: column "mine" appears twice`,
	} {
		_, err := ReadSliceTable(strings.NewReader(text), "c.csv")
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestManifest(t *testing.T) {
	text := "slice_id,method,method_used,fallback_reason,interpolation_failed,output_path\n05,zmorph,zmorph,,false,slice_z05_interpolated.ome.zarr\n07,zmorph,,low_overlap_ncc,true,\n"
	got, err := ReadManifest(strings.NewReader(text), "m.csv")
	want := []Filled{{5, "zmorph", "zmorph", "", false, "slice_z05_interpolated.ome.zarr"}, {7, "zmorph", "", "low_overlap_ncc", true, ""}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	if again := written(t, func(b *bytes.Buffer) error { return WriteManifest(b, got) }); again != text {
		t.Error(again)
	}
	for text, want := range map[string]string{
		"slice_id\n5\n": `m.csv:1: there is no column "interpolation_failed"`,
		"slice_id,interpolation_failed\n5,true\n5,false\n": "m.csv:3: slice 5 is already on line 2",
		"slice_id,interpolation_failed\n5,sort of\n":       `m.csv:2: interpolation_failed is "sort of"`,
		"slice_id,interpolation_failed\nfive,true\n":       `m.csv:2: slice_id is "five"`,
	} {
		if _, err := ReadManifest(strings.NewReader(text), "m.csv"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A table that is read can be written and read again, and is the same.
func FuzzShiftTable(f *testing.F) {
	f.Add(header + "0.0,1,1,nan,1e-3,1\n")
	f.Add("reliable,fixed_id,moving_id,x_shift_mm,y_shift_mm,\"a\n\"\n0,1,2,1,-0,\"\"\"\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadShiftTable(strings.NewReader(text), "f")
		checkError(t, err, "f")
		if err != nil {
			return
		}
		for _, crlf := range []bool{false, true} {
			var b bytes.Buffer
			if err := s.Write(&b, crlf); err != nil {
				t.Fatal(err)
			}
			again, err := ReadShiftTable(&b, "f")
			if err != nil || len(again.Rows) != len(s.Rows) || again.Judged != s.Judged {
				t.Fatalf("%q: %v", b.String(), err)
			}
			for i, r := range again.Rows {
				if o := s.Rows[i]; r.PairShift != o.PairShift || r.Reliable != o.Reliable || !same(r.PX[0], o.PX[0]) || !same(r.PX[1], o.PX[1]) {
					t.Errorf("row %d: %+v, was %+v", i, r, o)
				}
			}
		}
	})
}

func FuzzSliceTable(f *testing.F) {
	f.Add("slice_id,use,mine\n3.0,Y,\"a\r\nb\"\n")
	f.Add("\ufeffuse , slice_id\n,100\ntrue,99\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadSliceTable(strings.NewReader(text), "f")
		checkError(t, err, "f")
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := s.Write(&b); err != nil {
			t.Fatal(err)
		}
		once := b.String()
		again, err := ReadSliceTable(&b, "f")
		if err != nil || !slices.Equal(again.IDs(), s.IDs()) {
			t.Fatalf("%q: %v", once, err)
		}
		for _, id := range s.IDs() {
			if s.Row(id).Bool(Use) != again.Row(id).Bool(Use) {
				t.Errorf("slice %d: use changed", id)
			}
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add("slice_id,method,method_used,fallback_reason,interpolation_failed,output_path\n05,zmorph,zmorph,,false,slice_z05_interpolated.ome.zarr\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ReadManifest(strings.NewReader(text), "f")
		checkError(t, err, "f")
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteManifest(&b, m); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadManifest(&b, "f"); err != nil || len(again) != len(m) {
			t.Fatalf("%+v: %v", again, err)
		}
	})
}
