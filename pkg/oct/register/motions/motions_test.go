package motions

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/filter"
	"strata/pkg/registration"
)

// write writes the registration of a slice into a folder, with the metrics that are not "".
func write(t *testing.T, dir string, id int, m filter.Rigid, metrics string) {
	t.Helper()
	folder := filepath.Join(dir, fmt.Sprintf("slice_z%02d", id))
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := registration.WriteTransform(&b, m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "transform.tfm"), b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	if metrics != "" {
		if err := os.WriteFile(filepath.Join(folder, registration.MetricsName), []byte(metrics), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, dir string) []Motion {
	t.Helper()
	f, err := registration.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := Read(context.Background(), f, 4)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A slice that is turned, one that is moved far, one without registration, and a drift along x are found, each by its
// number.
func TestAnalyze(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(3, 4))
	var turned, x float64
	for id := 1; id <= 20; id++ {
		m := filter.Rigid{Angle: 0.1 * random.NormFloat64() * math.Pi / 180, TX: 1.5 + 0.3*random.NormFloat64(), TY: 0.5 * random.NormFloat64()}
		metrics := `{"overall_status": "ok", "metrics": {"registration_correlation": {"value": 0.9}, "registration_confidence": {"value": 0.8}}}`
		switch id {
		case 7:
			m.Angle = 3 * math.Pi / 180
		case 12:
			m.TY = -40
		case 15:
			m, metrics = filter.Rigid{}, `{"overall_status": "error", "metrics": {}}`
		}
		turned, x = turned+m.Angle*180/math.Pi, x+m.TX
		write(t, dir, id, m, metrics)
	}
	a, err := Analyze(read(t, dir), Options{Resolution: 5, RotationThreshold: 2, CumulativeThreshold: 5})
	if err != nil {
		t.Fatal(err)
	}
	if a.Slices != 20 || !slices.Equal(a.Large, []int{7}) || !slices.Contains(a.Outliers, 7) || !slices.Contains(a.Outliers, 12) || !slices.Equal(a.Doubted, []int{15}) || !slices.Equal(a.Drifts, []string{"x"}) || a.Verdict != "look" {
		t.Errorf("%+v", a)
	}
	if math.Abs(a.Turned.Total-turned) > 1e-4 || math.Abs(a.MovedX.Total-5*x) > 1e-3 || a.Correlation.Mean != 0.9 || math.Abs(a.LengthUM.Max-5*a.Length.Max) > 1e-3 {
		t.Errorf("%+v, want a turn of %v and a way of %v px", a, turned, x)
	}
	text := a.Text()
	for _, want := range []string{"Registration of 20 slices, 5 µm a pixel", "More than 2° turn slice 7.", "Translations along x", "Verdict: look", "1 of 20 slices could not be registered, slice 15."} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	var table, plot bytes.Buffer
	if err := a.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(rows) != 21 || rows[7][0] != "7" || rows[7][14] != "True" || rows[8][14] != "False" || rows[15][11] != "error" || rows[15][9] != "" {
		t.Errorf("%v: %v", err, rows)
	}
	if err := a.WritePlot(&plot); err != nil || strings.Contains(plot.String(), "NaN") || strings.Count(plot.String(), "<svg y=") != 5 {
		t.Errorf("%v: %d charts", err, strings.Count(plot.String(), "<svg y="))
	}
}

// Small motions without direction are fine, and so is one slice; files that say nothing are left out.
func TestNothingStandsOut(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(5, 6))
	for id := range 30 {
		write(t, dir, id, filter.Rigid{Angle: 0.0005 * random.NormFloat64(), TX: random.NormFloat64(), TY: random.NormFloat64()}, "")
	}
	if err := os.Mkdir(filepath.Join(dir, "slice_z99"), 0o777); err != nil {
		t.Fatal(err)
	}
	all := read(t, dir)
	for _, some := range [][]Motion{all, all[:1]} {
		if a, err := Analyze(some, Defaults()); err != nil || a.Verdict != "ok" || len(a.Findings) != 1 || a.Correlation != nil {
			t.Errorf("%+v %v", a, err)
		}
	}
	if _, err := Analyze(nil, Defaults()); err == nil {
		t.Error("no slices are analysed")
	}
}
