package registration

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"strata/pkg/filter/bspline"
)

// itkElastic was written by SimpleITK 2.5.7.
const itkElastic = `#Insight Transform File V1.0
#Transform 0
Transform: BSplineTransform_double_2_2
Parameters: -2.5 -1.5 1.5 -0.5 -0.5 1.5 -1.5 -2.5 -1.5 1.5 -0.5 -0.5 1.5 -1.5 -2.5 -1.5 1.5 -0.5 -0.5 1.5 -1 0.5 -0.5 1 0 -1 0.5 -0.5 1 0 -1 0.5 -0.5 1 0 -1 0.5 -0.5 1 0
FixedParameters: 5 4 -6 -8 6 8 1 0 0 1
`

// Displacements written by ITK are read, and what is written is read again.
func TestElastic(t *testing.T) {
	w, err := ReadElastic(strings.NewReader(itkElastic), "e.tfm")
	if err != nil {
		t.Fatal(err)
	}
	if w.Control != [2]int{4, 5} || w.Origin != [2]float64{-8, -6} || w.Spacing != [2]float64{8, 6} || w.DX[7] != -2.5 || w.DY[1] != 0.5 || len(w.DY) != 20 {
		t.Errorf("%+v", w)
	}
	for _, w := range []*bspline.Warp{w, bspline.NewWarp(70, 333, 41)} {
		var b bytes.Buffer
		if err := WriteElastic(&b, w); err != nil {
			t.Fatal(err)
		}
		again, err := ReadElastic(&b, "e.tfm")
		if err != nil || !reflect.DeepEqual(again, w) {
			t.Errorf("%+v, %v, want %+v", again, err, w)
		}
	}
}

// Files that hold something else are told in a line, with the place.
func TestElasticBad(t *testing.T) {
	for change, want := range map[[2]string]string{
		{"#Insight", "#Inside"}:                 "e.tfm:1: ",
		{"BSplineTransform", "Euler"}:           "e.tfm:5: holds Euler_double_2_2, want one BSplineTransform_double_2_2",
		{"_2_2", "_3_3"}:                        "e.tfm:5: holds BSplineTransform_double_3_3, want one",
		{"5 4 -6", "4 5 5 4 -6"}:                "e.tfm:5: 12 fixed parameters of a BSplineTransform, want 10",
		{"5 4 -6", "5 3 -6"}:                    "e.tfm:5: 3 control points along an axis, want 4 to 4096",
		{"5 4 -6", "5 1e9 -6"}:                  "e.tfm:5: 1e+09 control points along an axis, want 4 to 4096",
		{"6 8 1", "6 0 1"}:                      "e.tfm:5: control points from -8 on, 0 apart: want a positive distance",
		{"1 0 0 1", "0 1 1 0"}:                  "e.tfm:5: the grid is turned: direction [0 1 1 0], want 1 0 0 1",
		{"Parameters: -2.5", "Parameters: "}:    "e.tfm:4: 39 parameters for 5 × 4 control points, want 40",
		{"Parameters: -2.5", "Parameters: x"}:   "e.tfm:4: number 1 is \"x\", want a number",
		{"Parameters: -2.5", "Parameters: 1e9"}: "e.tfm:4: a displacement of 1e+09 pixels",
	} {
		_, err := ReadElastic(strings.NewReader(strings.Replace(itkElastic, change[0], change[1], 1)), "e.tfm")
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", change, err, want)
		}
	}
}

// The displacements lie beside the rigid transform, for which they are never taken.
func TestElasticFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "slice_z03")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	pair := func() (*Pair, []string, error) {
		f, err := OpenFolder(filepath.Dir(dir))
		if err != nil {
			t.Fatal(err)
		}
		return f.Pair(t.Context(), 3)
	}
	write(ElasticName, itkElastic)
	if p, warnings, err := pair(); err != nil || p.Transform != nil || p.Elastic != nil || len(warnings) != 1 {
		t.Errorf("alone: %+v, %v, %v", p, warnings, err)
	}
	write("x.tfm", magic+"Transform: Euler2DTransform_double_2_2\nParameters: 0.1 2 3\nFixedParameters: 4 5\n")
	if p, warnings, err := pair(); err != nil || p.Transform == nil || p.Transform.TX != 2 || p.Elastic == nil || len(warnings) != 0 {
		t.Errorf("both: %+v, %v, %v", p, warnings, err)
	}
	write(ElasticName, "nothing")
	if _, _, err := pair(); err == nil || !strings.Contains(err.Error(), ElasticName+":1: ") {
		t.Errorf("broken: %v", err)
	}
}

func FuzzElastic(f *testing.F) {
	f.Add(itkElastic)
	f.Fuzz(func(t *testing.T, text string) {
		w, err := ReadElastic(strings.NewReader(text), "e.tfm")
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %v", err)
			}
			return
		}
		if dx, dy := w.At(3, 5); dx != dx || dy != dy {
			t.Errorf("displacement (%v, %v)", dx, dy)
		}
	})
}
