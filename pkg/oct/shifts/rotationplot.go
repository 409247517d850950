package shifts

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"strata/pkg/page"
	"strata/pkg/registration"
)

// WriteTable writes a row for each shift, as CSV: its direction, the change of direction and the running sum of changes, and the shift
// as registered.
func (a *Rotation) WriteTable(w io.Writer) error {
	rows := [][]string{{"fixed_id", "moving_id", "x_shift_mm", "y_shift_mm", "shift_angle", "angular_velocity", "cumulative_rotation", "registered_x_shift_mm", "registered_y_shift_mm"}}
	for i, r := range a.rows {
		row := []string{strconv.Itoa(r.Fixed), strconv.Itoa(r.Moving)}
		for _, v := range []float64{r.X, r.Y, a.angles[i], a.changes[i], a.running[i]} {
			row = append(row, registration.Float(v))
		}
		if at := a.residual; at != nil && at[i][0] == at[i][0] {
			row = append(row, registration.Float(at[i][0]), registration.Float(at[i][1]))
		} else {
			row = append(row, "", "")
		}
		rows = append(rows, row)
	}
	return csv.NewWriter(w).WriteAll(rows)
}

// WritePlot draws, as SVG, the shifts in the plane, their directions, how these turn, and the turn that registrations show.
func (a *Rotation) WritePlot(w io.Writer) error {
	recorded, found := page.Series{Name: "recorded"}, page.Series{Name: "registered"}
	angles, running := page.Series{Name: "direction"}, page.Series{Name: "direction of shifts", Joined: true}
	for i, r := range a.rows {
		tip := fmt.Sprintf("slices %d–%d: x %s mm, y %s mm, %s°", r.Fixed, r.Moving, page.Short(r.X), page.Short(r.Y), page.Short(a.angles[i]))
		recorded.Points = append(recorded.Points, page.Point{X: r.X, Y: r.Y, Tip: tip})
		if at := a.residual; at != nil && at[i][0] == at[i][0] {
			found.Points = append(found.Points, page.Point{X: at[i][0], Y: at[i][1], Tip: fmt.Sprintf("slices %d–%d as registered", r.Fixed, r.Moving)})
		}
		if length(r.X, r.Y) > 0 {
			angles.Points = append(angles.Points, page.Point{X: float64(r.Moving), Y: a.angles[i], Tip: tip})
		}
		running.Points = append(running.Points, page.Point{X: float64(r.Moving), Y: a.running[i], Tip: tip})
	}
	plane := &page.Chart{Title: "Shifts in the plane", XLabel: "x, mm", YLabel: "y, mm", Series: []page.Series{recorded}}
	if len(found.Points) > 0 {
		plane.Series = append(plane.Series, found)
	}
	direction := &page.Chart{Title: "Directions of the shifts", XLabel: sliceLabel, YLabel: "degrees", Whole: true, Series: []page.Series{angles}}
	if e := a.Expected; e != nil {
		direction.Limits = []page.Limit{{Y: *e, Name: "expected"}}
	}
	turned := &page.Chart{Title: "Changes of direction, added up", XLabel: sliceLabel, YLabel: "degrees", Whole: true, Series: []page.Series{running}}
	charts := []*page.Chart{plane, direction, turned}
	if a.Found != nil {
		sum, s := 0.0, page.Series{Name: "registered rotations", Joined: true}
		for _, m := range a.turns {
			if sum += m.Rotation; !math.IsNaN(sum) {
				s.Points = append(s.Points, page.Point{X: float64(m.Slice), Y: sum, Tip: fmt.Sprintf("slice %d: %s°", m.Slice, page.Short(sum))})
			}
		}
		charts = append(charts, &page.Chart{Title: "Registered rotations, added up", XLabel: sliceLabel, YLabel: "degrees", Whole: true, Series: []page.Series{s}})
	}
	return page.WriteSheet(w, "Rotation of the acquisition", charts...)
}
