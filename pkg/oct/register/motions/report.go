package motions

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/registration"
	"strata/pkg/webpage"
)

// WriteTable writes a row for each slice, as CSV; what is not known is empty.
func (a *Analysis) WriteTable(w io.Writer) error {
	optional := func(v *float64) string {
		if v == nil {
			return ""
		}
		return registration.Float(*v)
	}
	rows := [][]string{{"slice_id", "directory", "rotation", "translation_x", "translation_y", "translation_magnitude", "cumulative_rotation", "cumulative_x", "cumulative_y",
		"registration_correlation", "registration_confidence", "status", "fixed_z", "moving_z", "large", "outlier"}}
	var turned, x, y float64
	for i := range a.motions {
		m := &a.motions[i]
		turned, x, y = turned+m.Rotation, x+m.TX, y+m.TY
		fixed, moving := "", ""
		if m.Planes != nil {
			fixed, moving = strconv.Itoa(m.Planes[0]), strconv.Itoa(m.Planes[1])
		}
		row := []string{strconv.Itoa(m.Slice), m.Folder}
		for _, v := range []float64{m.Rotation, m.TX, m.TY, m.length(), turned, x, y} {
			row = append(row, registration.Float(v))
		}
		rows = append(rows, append(row, optional(m.Correlation), optional(m.Confidence), m.Status, fixed, moving,
			truth(slices.Contains(a.Large, m.Slice)), truth(slices.Contains(a.Outliers, m.Slice))))
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// truth is a truth value as the other tables have it.
func truth(v bool) string {
	if v {
		return "True"
	}
	return "False"
}

// Text returns the report: numbers, and what they mean.
func (a *Analysis) Text() string {
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, "\n%s\n%s\n", title, strings.Repeat("-", len(title))) }
	spread := func(s Spread, unit string) {
		fmt.Fprintf(&b, "mean %.4g%s, standard deviation %.4g%s, median %.4g%s, from %.4g%s to %.4g%s\n", s.Mean, unit, s.Std, unit, s.Median, unit, s.Min, unit, s.Max, unit)
	}
	fmt.Fprintf(&b, "Registration of %d slices, %g µm a pixel\n", a.Slices, a.Resolution)
	section("Rotation against the slice before")
	spread(a.Rotation, "°")
	fmt.Fprintf(&b, "added up: %.4g°, at most %.4g°\n", a.Turned.Total, a.Turned.Most)
	section("Translation against the slice before")
	spread(a.Length, " px")
	spread(a.LengthUM, " µm")
	fmt.Fprintf(&b, "added up: x %.4g µm, y %.4g µm; at most %.4g µm and %.4g µm\n", a.MovedX.Total, a.MovedY.Total, a.MovedX.Most, a.MovedY.Most)
	if a.Correlation != nil {
		section("Correlation of registered planes")
		spread(*a.Correlation, "")
	}
	section("Verdict: " + a.Verdict)
	for _, f := range a.Findings {
		fmt.Fprintf(&b, "- %s\n", f)
	}
	return b.String()
}

// WritePlot draws, as SVG, rotations and translations of slices, what they add up to, and each against the other.
func (a *Analysis) WritePlot(w io.Writer) error {
	over := func(title, label string, series ...webpage.Series) *webpage.Chart {
		return &webpage.Chart{Title: title, XLabel: "slice", YLabel: label, Whole: true, Series: series}
	}
	series := func(name string, of func(m *Motion) float64, unit string, ringed []int, running bool) webpage.Series {
		s, sum := webpage.Series{Name: name, Joined: true}, 0.0
		for i := range a.motions {
			m := &a.motions[i]
			v := of(m)
			if sum += v; running {
				v = sum
			}
			s.Points = append(s.Points, webpage.Point{X: float64(m.Slice), Y: v, Tip: fmt.Sprintf("slice %d: %s %s %s", m.Slice, name, webpage.Short(v), unit), Bad: slices.Contains(ringed, m.Slice)})
		}
		return s
	}
	turn := func(m *Motion) float64 { return m.Rotation }
	x := func(m *Motion) float64 { return m.TX * a.Resolution }
	y := func(m *Motion) float64 { return m.TY * a.Resolution }
	ringed := slices.Concat(a.Large, a.Outliers)
	rotation := over("Rotation against the slice before (rings: large, or outliers)", "rotation, degrees", series("rotation", turn, "°", ringed, false))
	if t := a.options.RotationThreshold; t < 4*max(math.Abs(a.Rotation.Min), math.Abs(a.Rotation.Max)) {
		rotation.Limits = []webpage.Limit{{Y: t, Name: fmt.Sprintf("%g°", t)}, {Y: -t, Name: fmt.Sprintf("−%g°", t)}}
	}
	both := webpage.Series{Name: "slices"}
	for i := range a.motions {
		m := &a.motions[i]
		both.Points = append(both.Points, webpage.Point{X: math.Abs(m.Rotation), Y: m.length() * a.Resolution, Tip: fmt.Sprintf("slice %d", m.Slice), Bad: slices.Contains(ringed, m.Slice)})
	}
	return webpage.WriteSheet(w, "Registration of slices", rotation,
		over("Rotations added up", "rotation, degrees", series("added up", turn, "°", nil, true)),
		over("Translation against the slice before (rings: outliers)", "translation, µm", series("x", x, "µm", a.Outliers, false), series("y", y, "µm", a.Outliers, false)),
		over("Translations added up", "translation, µm", series("x", x, "µm", nil, true), series("y", y, "µm", nil, true)),
		&webpage.Chart{Title: "Rotation and translation of slices", XLabel: "size of the rotation, degrees", YLabel: "translation, µm", Zero: true, Series: []webpage.Series{both}})
}
