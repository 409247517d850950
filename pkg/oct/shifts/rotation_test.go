package shifts

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"strata/pkg/oct/register/motions"
	"strata/pkg/registration"
)

// acquisition makes shifts whose content really was shifted by a turned and scaled vector, and registrations that say
// so, with an error in px of 10 µm.
func acquisition(angle, scale, err float64) (*registration.ShiftTable, []motions.Motion) {
	random := rand.New(rand.NewPCG(7, 8))
	t := &registration.ShiftTable{Name: "shifts.csv"}
	var found []motions.Motion
	s, c := math.Sincos(angle / degrees)
	for i := range 25 {
		x, y := 0.3+0.2*random.NormFloat64(), 0.2*random.NormFloat64()
		t.Rows = append(t.Rows, registration.ShiftRow{PairShift: registration.PairShift{Fixed: i, Moving: i + 1, X: x, Y: y}})
		tx, ty := scale*(c*x-s*y), scale*(s*x+c*y)
		found = append(found, motions.Motion{Slice: i + 1, TX: (x-tx)*100 + err*random.NormFloat64(), TY: (y-ty)*100 + err*random.NormFloat64(), Rotation: 0.01})
	}
	return t, found
}

// The angle between image and motor, and the scale, are found again, and none where there is none.
func TestAnalyzeRotation(t *testing.T) {
	for _, c := range []struct {
		angle, scale, err float64
		verdict           string
	}{{1.5, 1, 0.2, "rotated"}, {-4, 1.03, 0.2, "rotated"}, {0, 1, 0.2, "ok"}, {1.5, 1, 40, "unclear"}} {
		table, found := acquisition(c.angle, c.scale, c.err)
		a, err := AnalyzeRotation(table, found, DefaultRotationOptions())
		if err != nil {
			t.Fatal(err)
		}
		m := a.Found
		if a.Verdict != c.verdict || m.Pairs != 25 || math.Abs(m.Turned-0.25) > 1e-6 {
			t.Errorf("%+v: %s, %+v: %q", c, a.Verdict, m, a.Findings)
		}
		if c.err < 1 && (math.Abs(m.Angle-c.angle) > 4*m.Error || m.Error > 0.2 || math.Abs(m.Scale-c.scale) > 4*m.Error/degrees) {
			t.Errorf("%+v: %+v", c, m)
		}
		if text := a.Text(); !strings.Contains(text, "Verdict: "+c.verdict) {
			t.Error(text)
		}
		if said := strings.Contains(a.Text(), "times as long"); said != (c.scale != 1 && c.err < 1) {
			t.Errorf("%+v: says that shifts have another length: %v", c, said)
		}
		var plot, rows bytes.Buffer
		if err := a.WritePlot(&plot); err != nil || strings.Contains(plot.String(), "NaN") || strings.Count(plot.String(), "<svg y=") != 4 {
			t.Errorf("%v: %d charts", err, strings.Count(plot.String(), "<svg y="))
		}
		if err := a.WriteTable(&rows); err != nil || strings.Count(rows.String(), "\n") != 26 {
			t.Errorf("%v: %s", err, &rows)
		}
	}
}

// A registration that is far off does not hide the angle.
func TestRotationWithStray(t *testing.T) {
	table, found := acquisition(1.5, 1, 0.2)
	found[11].TY -= 30
	a, err := AnalyzeRotation(table, found, DefaultRotationOptions())
	if err != nil {
		t.Fatal(err)
	}
	if m := a.Found; a.Verdict != "rotated" || m.Pairs != 24 || !slices.Equal(m.LeftOut, []int{12}) || math.Abs(m.Angle-1.5) > 4*m.Error || m.Error > 0.2 {
		t.Errorf("%s: %+v", a.Verdict, m)
	}
}

// Directions wrap around 180°; a stage that goes to and fro has an axis and no mean; shifts of no length have no
// direction.
func TestDirections(t *testing.T) {
	table := func(angles ...float64) *registration.ShiftTable {
		out := &registration.ShiftTable{Name: "shifts.csv"}
		for i, a := range angles {
			s, c := math.Sincos(a / degrees)
			if a != a {
				s, c = 0, 0
			}
			out.Rows = append(out.Rows, registration.ShiftRow{PairShift: registration.PairShift{Fixed: i, Moving: i + 1, X: 0.1 * c, Y: 0.1 * s}})
		}
		return out
	}
	a, err := AnalyzeRotation(table(170, 175, 180, -175, -170), nil, DefaultRotationOptions())
	if err != nil || math.Abs(math.Abs(a.Direction.Mean)-180) > 1e-3 || a.Direction.Unity < 0.99 || math.Abs(a.Drift.Total-20) > 1e-3 || math.Abs(a.Drift.Rate-5) > 1e-3 || a.Verdict != "unclear" {
		t.Errorf("%+v %v", a, err)
	}
	a, err = AnalyzeRotation(table(30, -150, 30, -150, 30, -150), nil, DefaultRotationOptions())
	if err != nil || a.Direction.Unity > 1e-6 || math.Abs(a.Direction.Axis-30) > 1e-3 || a.Direction.Strong < 0.999 || len(a.Drift.Jumps) != 4 {
		t.Errorf("%+v %v", a, err)
	}
	expected := 40.0
	a, err = AnalyzeRotation(table(30, math.NaN(), 30), nil, RotationOptions{Resolution: 10, Window: 5, Expected: &expected})
	if err != nil || a.Drift.Total != 0 || math.Abs(*a.Off+10) > 1e-3 {
		t.Errorf("%+v %v", a, err)
	}
	if a, err = AnalyzeRotation(table(math.NaN(), math.NaN()), nil, DefaultRotationOptions()); err != nil || !strings.Contains(a.Text(), "All shifts are 0") {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := AnalyzeRotation(table(), nil, DefaultRotationOptions()); err == nil {
		t.Error("an empty table is analysed")
	}
}
