package shifts

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"strata/pkg/registration"
	"strata/pkg/webpage"
)

// WriteTable writes a row for each shift, as CSV: its direction, the change of direction and the running sum of
// changes, and the shift as registered.
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

// WritePlot draws, as SVG, the shifts in the plane, their directions, how these turn, and the turn that registrations
// show.
func (a *Rotation) WritePlot(w io.Writer) error {
	recorded, found := webpage.Series{Name: "recorded"}, webpage.Series{Name: "registered"}
	angles, running := webpage.Series{Name: "direction"}, webpage.Series{Name: "direction of shifts", Joined: true}
	for i, r := range a.rows {
		tip := fmt.Sprintf("slices %d–%d: x %s mm, y %s mm, %s°", r.Fixed, r.Moving, webpage.Short(r.X), webpage.Short(r.Y), webpage.Short(a.angles[i]))
		recorded.Points = append(recorded.Points, webpage.Point{X: r.X, Y: r.Y, Tip: tip})
		if at := a.residual; at != nil && at[i][0] == at[i][0] {
			found.Points = append(found.Points, webpage.Point{X: at[i][0], Y: at[i][1], Tip: fmt.Sprintf("slices %d–%d as registered", r.Fixed, r.Moving)})
		}
		if length(r.X, r.Y) > 0 {
			angles.Points = append(angles.Points, webpage.Point{X: float64(r.Moving), Y: a.angles[i], Tip: tip})
		}
		running.Points = append(running.Points, webpage.Point{X: float64(r.Moving), Y: a.running[i], Tip: tip})
	}
	plane := &webpage.Chart{Title: "Shifts in the plane", XLabel: "x, mm", YLabel: "y, mm", Series: []webpage.Series{recorded}}
	if len(found.Points) > 0 {
		plane.Series = append(plane.Series, found)
	}
	direction := &webpage.Chart{Title: "Directions of the shifts", XLabel: sliceLabel, YLabel: "degrees", Whole: true, Series: []webpage.Series{angles}}
	if e := a.Expected; e != nil {
		direction.Limits = []webpage.Limit{{Y: *e, Name: "expected"}}
	}
	turned := &webpage.Chart{Title: "Changes of direction, added up", XLabel: sliceLabel, YLabel: "degrees", Whole: true, Series: []webpage.Series{running}}
	charts := []*webpage.Chart{plane, direction, turned}
	if a.Found != nil {
		sum, s := 0.0, webpage.Series{Name: "registered rotations", Joined: true}
		for _, m := range a.turns {
			if sum += m.Rotation; !math.IsNaN(sum) {
				s.Points = append(s.Points, webpage.Point{X: float64(m.Slice), Y: sum, Tip: fmt.Sprintf("slice %d: %s°", m.Slice, webpage.Short(sum))})
			}
		}
		charts = append(charts, &webpage.Chart{Title: "Registered rotations, added up", XLabel: sliceLabel, YLabel: "degrees", Whole: true, Series: []webpage.Series{s}})
	}
	return webpage.WriteSheet(w, "Rotation of the acquisition", charts...)
}
