package shifts

import (
	"fmt"
	"io"
	"slices"

	"strata/pkg/registration"
	"strata/pkg/webpage"
)

const (
	stepsTitle = "Shift of each slice against the one before it"
	sliceLabel = "slice"
)

// xy returns the two components of places as series over the moving slices of rows, with rings around some.
func xy(suffix string, rows []registration.ShiftRow, at [][2]float64, ringed []int) []webpage.Series {
	out := []webpage.Series{{Name: "x" + suffix, Joined: true}, {Name: "y" + suffix, Joined: true}}
	for i, r := range rows {
		tip := fmt.Sprintf("slices %d–%d%s: x %s mm, y %s mm", r.Fixed, r.Moving, suffix, webpage.Short(at[i][0]), webpage.Short(at[i][1]))
		for d := range out {
			out[d].Points = append(out[d].Points, webpage.Point{X: float64(r.Moving), Y: at[i][d], Tip: tip, Bad: slices.Contains(ringed, i)})
		}
	}
	return out
}

// steps returns the shifts of rows.
func steps(rows []registration.ShiftRow) (at [][2]float64) {
	for _, r := range rows {
		at = append(at, [2]float64{r.X, r.Y})
	}
	return at
}

// overSlices returns a chart of lengths over slices.
func overSlices(title, what string, series ...webpage.Series) *webpage.Chart {
	return &webpage.Chart{Title: title, XLabel: sliceLabel, YLabel: what + ", mm", Whole: true, Series: series}
}

// WritePlot draws, as SVG, the shifts, where they add up to, the same around the middle row, and the path in the plane.
func (a *Analysis) WritePlot(w io.Writer) error {
	before, after := track(a.Rows), track(a.Filtered)
	both := func(f func([][2]float64) [][2]float64) []webpage.Series {
		return slices.Concat(xy(" recorded", a.Rows, f(before), nil), xy(" filtered", a.Rows, f(after), nil))
	}
	path := webpage.Series{Name: "path", Joined: true}
	for i, p := range after {
		path.Points = append(path.Points, webpage.Point{X: p[0], Y: p[1], Tip: fmt.Sprintf("slice %d", a.Rows[i].Moving)})
	}
	return webpage.WriteSheet(w, "Drift of the slices",
		overSlices(stepsTitle+" (rings: outliers)", "shift", xy("", a.Rows, steps(a.Rows), a.Outliers)...),
		overSlices("Drift: the shifts added up", "drift", both(func(at [][2]float64) [][2]float64 { return at })...),
		overSlices(fmt.Sprintf("Drift around slice %d", a.Rows[len(a.Rows)/2].Moving), "drift", both(centred)...),
		&webpage.Chart{Title: "Path of the slices, filtered", XLabel: "x, mm", YLabel: "y, mm", Series: []webpage.Series{path}})
}

// WritePlot draws, as SVG, the shifts of a cleaned table before and after, and where they add up to.
func (c *Cleaned) WritePlot(w io.Writer, t *registration.ShiftTable) error {
	was := slices.Clone(t.Rows)
	var changed []int
	for i := range was {
		if c.changed(i, &t.Rows[i]) {
			changed = append(changed, i)
		}
		was[i].X, was[i].Y = c.Before[i][0], c.Before[i][1]
	}
	return webpage.WriteSheet(w, "Corrected shifts",
		overSlices(stepsTitle+" (rings: corrected)", "shift", slices.Concat(xy(" recorded", was, c.Before, changed), xy(" corrected", t.Rows, steps(t.Rows), c.Unreliable))...),
		overSlices("Drift: the shifts added up", "drift", slices.Concat(xy(" recorded", was, track(was), nil), xy(" corrected", was, track(t.Rows), nil))...))
}
