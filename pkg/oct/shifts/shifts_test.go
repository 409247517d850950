package shifts

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"strata/pkg/metrics"
	"strata/pkg/registration"
	"strata/tests/golden"
)

func table(t *testing.T, text string) *registration.ShiftTable {
	t.Helper()
	s, err := registration.ReadShiftTable(strings.NewReader(text), "shifts.csv")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9 || math.IsNaN(a) && math.IsNaN(b) }

// equal compares two tables row by row, with numbers to the golden tolerance.
func equal(t *testing.T, name string, got, want *registration.ShiftTable) {
	t.Helper()
	if len(got.Rows) != len(want.Rows) || got.Judged != want.Judged {
		t.Fatalf("%s: %d rows, judged %v, want %d, %v", name, len(got.Rows), got.Judged, len(want.Rows), want.Judged)
	}
	for i, g := range got.Rows {
		w := want.Rows[i]
		if g.Fixed != w.Fixed || g.Moving != w.Moving || !near(g.X, w.X) || !near(g.Y, w.Y) || !near(g.PX[0], w.PX[0]) || !near(g.PX[1], w.PX[1]) || g.Reliable != w.Reliable {
			t.Errorf("%s: row %d: %+v, want %+v", name, i, g, w)
		}
	}
}

type rehoming struct {
	Params struct {
		ReturnFraction   *float64 `json:"return_fraction"`
		MaxShiftMM       *float64 `json:"max_shift_mm"`
		TileFOVMM        *float64 `json:"tile_fov_mm"`
		TileFOVTolerance *float64 `json:"tile_fov_tolerance"`
	}
	Shifts    string `json:"shifts_xy"`
	Reference string `json:"shifts_clean_reference"`
	Want      []struct {
		X        float64 `json:"x_shift_mm"`
		Y        float64 `json:"y_shift_mm"`
		Reliable int
	} `json:"shifts_clean"`
	Spikes  []int
	Metrics struct {
		Step    string `json:"step_name"`
		Metrics map[string]any
	} `json:"metrics_reference"`
	Report  Cleaned                           `json:"report_reference"`
	Analyze struct{ Report, Filtered string } `json:"analyze_shifts"`
	Config  string                            `json:"slice_config_in"`
	Out     string                            `json:"slice_config_out"`
}

func rehomingCases(t *testing.T) map[string]rehoming {
	t.Helper()
	out := map[string]rehoming{}
	for _, c := range golden.Cases(t, "rehoming") {
		var r rehoming
		if err := json.Unmarshal(c.File, &r); err != nil {
			t.Fatal(err)
		}
		out[c.Name] = r
	}
	return out
}

func (r *rehoming) options() CleanOptions {
	o := DefaultCleanOptions()
	for _, f := range []struct{ to, from *float64 }{{&o.ReturnFraction, r.Params.ReturnFraction}, {&o.MaxShiftMM, r.Params.MaxShiftMM},
		{&o.TileFOVMM, r.Params.TileFOVMM}, {&o.TileFOVTolerance, r.Params.TileFOVTolerance}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return o
}

func TestCleanGolden(t *testing.T) {
	for name, r := range rehomingCases(t) {
		s := table(t, r.Shifts)
		c := Clean(s, r.options())
		want := table(t, r.Reference)
		for i := range want.Rows {
			w := &want.Rows[i]
			w.X, w.Y, w.Reliable = r.Want[i].X, r.Want[i].Y, r.Want[i].Reliable == 1
		}
		if name == "spike_and_rehome" { // pixels like millimetres, where the reference leaves a spike
			want.Rows[3].PX = [2]float64{1.75, -0.5}
		}
		equal(t, name, s, want)
		var spikes []int
		for _, k := range c.Spikes {
			spikes = append(spikes, k.Index)
		}
		if !slices.Equal(spikes, r.Spikes) {
			t.Errorf("%s: spikes %v, want %v", name, spikes, r.Spikes)
		}
		if !slices.EqualFunc(c.TileOffsets, r.Report.TileOffsets, func(a, b Correction) bool {
			near := near(a.X, b.X) && near(a.Y, b.Y) && near(a.OriginalX, b.OriginalX) && near(a.OriginalY, b.OriginalY)
			return near && a.Index == b.Index && a.Fixed == b.Fixed && a.Moving == b.Moving && a.Kind == b.Kind
		}) {
			t.Errorf("%s: tile offsets %+v, want %+v", name, c.TileOffsets, r.Report.TileOffsets)
		}
		if want := len(r.Spikes) + len(r.Report.TileOffsets); c.Changed != want {
			t.Errorf("%s: %d rows changed, want %d", name, c.Changed, want)
		}
		var b bytes.Buffer
		if err := s.Write(&b, false); err != nil {
			t.Fatal(err)
		}
		equal(t, name+", written", table(t, b.String()), want)
	}
}

// The reference's configuration, but slice 4, whose spike it leaves, and no rows for slices that nobody configured.
func TestStampGolden(t *testing.T) {
	r := rehomingCases(t)["spike_and_rehome"]
	s := table(t, r.Shifts)
	c := Clean(s, r.options())
	config, err := registration.ReadSliceTable(strings.NewReader(r.Config), "in.csv")
	if err != nil {
		t.Fatal(err)
	}
	if missing := c.Stamp(config, s); !slices.Equal(missing, []int{4, 6, 7, 8, 9}) {
		t.Errorf("not configured: %v", missing)
	}
	var b bytes.Buffer
	if err := config.Write(&b); err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(r.Out) {
		if id, _, _ := strings.Cut(line, ","); !slices.Contains([]string{"04", "06", "07", "08", "09"}, id) {
			want = append(want, line)
		}
	}
	if got := strings.ReplaceAll(b.String(), "\r\n", "\n"); got != strings.Join(want, "") {
		t.Errorf("%s\nwant\n%s", got, strings.Join(want, ""))
	}
	config.Add(4)
	c.Stamp(config, s)
	if row := config.Row(4); !row.Bool(registration.Rehomed) || row.Text(registration.RehomingReliable) != "1" {
		t.Errorf("slice 4: %+v", row)
	}
	m := c.Metrics("clean.csv")
	for name := range r.Metrics.Metrics {
		if v, ok := m.Metric(name); !ok || v.Status != metrics.Info {
			t.Errorf("metric %s is %q", name, v.Status)
		}
	}
	if m.Name != r.Metrics.Step || len(m.Names()) != len(r.Metrics.Metrics) {
		t.Errorf("metrics %s, %q", m.Name, m.Names())
	}
	for name, want := range map[string]any{"n_total_transitions": 9, "n_tile_corrected": 0, "n_spike_corrected": 2, "n_unreliable": 1} {
		if got, _ := m.Metric(name); got.Value != want {
			t.Errorf("%s is %v, want %v", name, got.Value, want)
		}
	}
	if got, _ := m.Metric("max_correction_mm"); !near(got.Value.(float64), math.Hypot(-1.98-0.0175, 0.01+0.005)) {
		t.Errorf("largest correction %v", got.Value)
	}
}

const columns = "fixed_id,moving_id,x_shift,y_shift,x_shift_mm,y_shift_mm\n"

func TestCleanRules(t *testing.T) {
	o := DefaultCleanOptions()
	// nothing within the limit: there is nothing to put in place of the spikes
	s := table(t, columns+"0,1,200,0,2,0\n1,2,-200,0,-2,0\n")
	if c := Clean(s, o); c.Changed != 0 || !slices.Equal(c.Unreliable, []int{0, 1}) || s.Rows[0].X != 2 {
		t.Errorf("%+v, %+v", c, s.Rows)
	}
	// the rows within two are all too long: all others count; those without pixels get none
	s = table(t, columns+"0,1,,,0.1,0.2\n1,2,,,0.1,0.2\n2,3,,,9,0\n3,4,,,0,9\n4,5,,,2,0\n5,6,,,-2,0\n6,7,,,9,0\n7,8,,,0,-9\n8,9,,,0.3,0.2\n")
	if Clean(s, o); s.Rows[4].X != 0.1 || s.Rows[5].Y != 0.2 || !math.IsNaN(s.Rows[4].PX[0]) || s.Rows[2].X != 9 {
		t.Errorf("%+v", s.Rows)
	}
	// on the limit is not beyond it, and 60 % of the way back is no return
	s = table(t, columns+"0,1,0,0,0.5,0\n1,2,0,0,-0.5,0\n2,3,0,0,1,0\n3,4,0,0,-0.6,0\n")
	if c := Clean(s, o); c.Changed != 0 || !slices.Equal(c.Unreliable, []int{2, 3}) {
		t.Errorf("%+v", c)
	}
	// both halves of a round trip are replaced, also where only one of them is long enough or cancelled well enough
	for _, trip := range [][2]string{{"0.7", "-0.45"}, {"-0.45", "0.7"}, {"1", "-1.45"}, {"-1.45", "1"}, {"1", "-1"}} {
		s = table(t, columns+"0,1,0,0,0.01,0\n1,2,0,0,"+trip[0]+",0\n2,3,0,0,"+trip[1]+",0\n3,4,0,0,0.03,0\n")
		if c := Clean(s, o); c.Changed != 2 || s.Rows[1].X != 0.02 || s.Rows[2].X != 0.02 {
			t.Errorf("%s: %+v, %+v", trip, c, s.Rows)
		}
	}
	// rows are neighbours by their slices, whatever their order in the file
	s = table(t, columns+"3,4,1,1,0.01,0\n1,2,1,1,2,0\n0,1,1,1,0.01,0\n2,3,1,1,-2,0\n")
	if c := Clean(s, o); c.Changed != 2 || s.Rows[0].Moving != 1 {
		t.Errorf("%+v, %+v", c, s.Rows)
	}
	// a component of almost one tile, next to one of none, and one that is too far from any
	o.TileFOVMM = 0.875
	s = table(t, columns+"0,1,87,1,0.87,0.02\n1,2,80,40,0.8,0.4\n")
	if c := Clean(s, o); c.Changed != 1 || !near(s.Rows[0].X, -0.005) || !near(s.Rows[0].PX[0], -0.5) || s.Rows[0].Y != 0.02 || s.Rows[1].X != 0.8 {
		t.Errorf("%+v, %+v", c, s.Rows)
	}
	if c := Clean(table(t, columns), o); c.Rows != 0 || c.Changed != 0 {
		t.Errorf("no rows: %+v", c)
	}
}

func TestAnalyzeGolden(t *testing.T) {
	for name, r := range rehomingCases(t) {
		s := table(t, r.Shifts)
		a, err := Analyze(s, DefaultAnalyzeOptions())
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Text(); got != r.Analyze.Report {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, r.Analyze.Report)
		}
		s.Rows = a.Filtered
		equal(t, name, s, table(t, r.Analyze.Filtered))
	}
}

func TestAnalyzeRules(t *testing.T) {
	a, err := Analyze(table(t, columns+"4,5,-1,0,-0.0001,0\n"), AnalyzeOptions{Resolution: 6.5, IQRMultiplier: 1.5})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Resolution: 6.5 µm/pixel", "X shift (mm): Mean=-0.0001, Std=nan", "Before: X=0 px, Y=0 px", "(around slice 0)", "X range: 0 to 0 px"} {
		if !strings.Contains(a.Text(), want) {
			t.Errorf("no %q in\n%s", want, a.Text())
		}
	}
	if _, err := Analyze(table(t, columns), DefaultAnalyzeOptions()); err == nil {
		t.Error("no error for a table without rows")
	}
	// an outlier with nothing but outliers around stays
	text := columns
	for i := range 40 {
		mm := "0.01"
		if i >= 20 && i < 25 {
			mm = "3"
		}
		text += strings.Join([]string{itoa(i), itoa(i + 1), "0", "0", mm, "0"}, ",") + "\n"
	}
	if a, err = Analyze(table(t, text), DefaultAnalyzeOptions()); err != nil || len(a.Outliers) != 5 || a.Filtered[22].X != 3 || a.Filtered[21].X != 0.01 || a.Filtered[24].X != 0.01 {
		t.Errorf("%v, %+v", err, a.Filtered[18:28])
	}
}

func itoa(i int) string { return string(rune('0'+i/10)) + string(rune('0'+i%10)) }

// A stage that loses its place by millimetres for single slices, and finds it again, moves no other slice: after the
// repair all slices lie within the scatter of the true steps.
func TestCleanTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 7))
	worst := 0.0
	for range 300 {
		const n = 40
		var steps, stray [n][2]float64 // stray: of the slice at the end of a step
		for i := range n {
			for d := range 2 {
				steps[i][d] = 0.02 * r.NormFloat64()
				if i%4 == 1 && i < n-1 && r.IntN(2) == 0 {
					stray[i][d] = 0.8 + 3*r.Float64()
				}
			}
		}
		s := &registration.ShiftTable{}
		for i := range n {
			row := registration.ShiftRow{PairShift: registration.PairShift{Fixed: i, Moving: i + 1}}
			row.X, row.Y = steps[i][0]+stray[i][0], steps[i][1]+stray[i][1]
			if i > 0 {
				row.X, row.Y = row.X-stray[i-1][0], row.Y-stray[i-1][1]
			}
			s.Rows = append(s.Rows, row)
		}
		Clean(s, DefaultCleanOptions())
		var x, y float64
		for i, at := range track(s.Rows) {
			x, y = x+steps[i][0], y+steps[i][1]
			worst = max(worst, math.Hypot(at[0]-x, at[1]-y))
		}
	}
	if t.Logf("largest error %.3f mm", worst); worst > 0.5 { // 20 repaired steps of a scatter of 0.02 mm each
		t.Errorf("a slice is off by %.3f mm", worst)
	}
}
