package qc

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/registration"
	"strata/pkg/runrecord"
	"strata/pkg/smallfile"
	"strata/pkg/webpage"
)

// asRecorded leaves out of the tables of shifts those that were found and are copies of a repaired one, such as the
// copy that the workflow puts beside its volume, or of another one in the list.
func asRecorded(ctx context.Context, tables, cleaned []found) (left []found) {
	seen := map[string]bool{}
	for _, f := range cleaned {
		if d, err := runrecord.Digest(ctx, f.path); err == nil {
			seen[d] = true
		}
	}
	for _, f := range tables {
		d, err := runrecord.Digest(ctx, f.path)
		if f.named || err != nil || !seen[d] { // what cannot be read is said elsewhere
			left = append(left, f)
		}
		seen[d] = seen[d] || err == nil
	}
	return left
}

// svgType is the type of drawings, which browsers show as pictures: nothing in them runs, and they load nothing.
const svgType = "image/svg+xml"

var errLarge = errors.New("a drawing that is larger than its share")

// loadDrift reads the plots of shifts clean and analyze.
func (r *Report) loadDrift(ctx context.Context, list []found, mem int64) error {
	for _, f := range list {
		p, err := readPlot(ctx, f.path, mem)
		if err != nil {
			if err := r.unusable(f, err); err != nil {
				return err
			}
			continue
		}
		p.Name = strings.TrimSuffix(filepath.Base(f.path), filepath.Ext(f.path))
		p.Alt = "Plot " + p.Name
		r.Drift = append(r.Drift, p)
	}
	return nil
}

// readPlot reads a plot, PNG or SVG by its ending.
func readPlot(ctx context.Context, path string, mem int64) (*Picture, error) {
	if strings.EqualFold(filepath.Ext(path), ".png") {
		return readPNG(ctx, path, mem)
	}
	return readSVG(ctx, path)
}

// readSVG reads a drawing, which must have a size in pixels and be well-formed to its end.
func readSVG(ctx context.Context, path string) (*Picture, error) {
	b, err := smallfile.Read(ctx, path)
	if err != nil {
		return nil, err
	}
	p := &Picture{file: path, encoded: b, bytes: int64(len(b)), mime: svgType}
	d := xml.NewDecoder(bytes.NewReader(b))
	for first := true; ; {
		t, err := d.Token()
		if err == io.EOF && !first {
			return p, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: no SVG: %w", path, lineAt(b, d.InputOffset()), err)
		}
		start, ok := t.(xml.StartElement)
		if !ok || !first {
			continue
		}
		first = false
		for _, a := range start.Attr {
			size := map[string]*int{"width": &p.Width, "height": &p.Height}[a.Name.Local]
			if v := 0.0; size != nil {
				if _, err := fmt.Sscanf(a.Value, "%f", &v); err == nil && v >= 1 && v < math.MaxInt32 {
					*size = int(v)
				}
			}
		}
		if start.Name.Local != "svg" || p.Width == 0 || p.Height == 0 {
			return nil, fmt.Errorf("%s:%d: no SVG with a width and a height in pixels", path, lineAt(b, d.InputOffset()))
		}
	}
}

// repaired is a shift before and after its repair.
type repaired struct {
	registration.PairShift
	after             registration.PairShift
	changed, reliable bool
}

// repairs returns the shifts of which both tables have the pair; none if they are not known before or after a repair.
func (r *Report) repairs() (out []repaired) {
	if r.Cleaned == nil || r.unrecorded {
		return nil
	}
	after := map[[2]int]registration.ShiftRow{}
	for _, row := range r.Cleaned.Rows {
		after[[2]int{row.Fixed, row.Moving}] = row
	}
	for _, p := range r.Shifts.Pairs() {
		if row, ok := after[[2]int{p.Fixed, p.Moving}]; ok {
			out = append(out, repaired{p, row.PairShift, row.X != p.X || row.Y != p.Y, row.Reliable})
		}
	}
	return out
}

// pairSeries returns shifts in µm over the moving slices, x and y; ringed marks some of them.
func pairSeries(suffix, tip string, joined bool, pairs []registration.PairShift, ringed func(i int) bool) []webpage.Series {
	out := []webpage.Series{{Name: "x" + suffix, Joined: joined}, {Name: "y" + suffix, Joined: joined}}
	for i, p := range pairs {
		text := fmt.Sprintf("slices %d–%d: %sx %s µm, y %s µm", p.Fixed, p.Moving, tip, webpage.Short(p.X*1000), webpage.Short(p.Y*1000))
		for d, mm := range [2]float64{p.X, p.Y} {
			out[d].Points = append(out[d].Points, webpage.Point{X: float64(p.Moving), Y: mm * 1000, Tip: text, Bad: ringed != nil && ringed(i)})
		}
	}
	return out
}

// driftSeries returns places of slices in µm, x and y.
func driftSeries(suffix, tip string, ids []int, at map[int][2]float64) []webpage.Series {
	out := []webpage.Series{{Name: "x" + suffix, Joined: true}, {Name: "y" + suffix, Joined: true}}
	for _, id := range ids {
		text := fmt.Sprintf("slice %d: %sx %s µm, y %s µm", id, tip, webpage.Short(at[id][0]*1000), webpage.Short(at[id][1]*1000))
		for d, mm := range at[id] {
			out[d].Points = append(out[d].Points, webpage.Point{X: float64(id), Y: mm * 1000, Tip: text})
		}
	}
	return out
}

const shiftTitle = "Shift of each slice against the one before it"

// shiftPlots returns the shifts of each pair and where they add up to, as recorded and as repaired.
func (r *Report) shiftPlots() (plots []*webpage.Plot) {
	if r.Shifts == nil {
		return nil
	}
	add := func(title, label, caption string, series []webpage.Series) {
		if p := (&webpage.Chart{Title: title, XLabel: "slice", YLabel: label, Whole: true, Series: series}).Plot(caption); p != nil {
			plots = append(plots, p)
		}
	}
	repairs := r.repairs()
	var after []registration.PairShift
	changed, doubtful := 0, 0
	for _, p := range repairs {
		after = append(after, p.after)
		if p.changed {
			changed++
		}
		if !p.changed && !p.reliable {
			doubtful++
		}
	}
	series := pairSeries("", "", true, r.Shifts.Pairs(), nil)
	caption := "Motor shift of each slice against the one before it."
	if r.unrecorded {
		caption = "Motor shift of each slice against the one before it, as repaired; the table of the recorded shifts is not among the results."
	}
	var pictures []webpage.Series
	if len(r.Found) > 0 {
		var pairs []registration.PairShift
		for _, s := range r.Found {
			pairs = append(pairs, registration.PairShift{Fixed: s.Fixed, Moving: s.Moving, X: s.X, Y: s.Y})
		}
		pictures = pairSeries(", pictures", "pictures show ", false, pairs, func(i int) bool { return r.Found[i].Contradicted })
		caption = "Shift of each slice against the one before it, as the motors recorded it and as the pictures of both slices show it. A ring marks pairs for which the two clearly differ."
	}
	switch {
	case repairs != nil && changed == 0 && doubtful == 0:
		caption += " The repair of shifts changed none."
		fallthrough
	case repairs == nil:
		add(shiftTitle, "shift, µm", caption, slices.Concat(series, pictures))
	default: // a repaired glitch is often 100 times as long as other shifts: these in a chart of their own
		fixed := pairSeries(", repaired", "repaired to ", true, after, func(i int) bool { return repairs[i].changed || !repairs[i].reliable })
		add(shiftTitle+", before and after repair", "shift, µm", fmt.Sprintf("Motor shift of each slice against the one before it, as recorded and as repaired. "+
			"Rings: %d of %d changed, %d kept although not reliable.", changed, len(repairs), doubtful), slices.Concat(series, fixed))
		caption = "The repaired shifts alone."
		if pictures != nil {
			caption = "The repaired shifts, and those that the pictures of both slices show. A ring marks pairs for which the two clearly differ."
		}
		add("Repaired shifts", "shift, µm", caption, slices.Concat(pairSeries("", "repaired to ", true, after, nil), pictures))
	}
	ids := r.positionIDs()
	at, _ := r.Shifts.Positions(ids)
	drift, caption := driftSeries("", "", ids, at), "Accumulated drift: the shifts added up from the first slice on."
	if changed > 0 {
		at, _ := r.Cleaned.Shifts().Positions(ids)
		drift, caption = append(drift, driftSeries(", repaired", "repaired ", ids, at)...), "Accumulated drift: the shifts added up from the first slice on, as recorded and as repaired."
	}
	add("Accumulated drift of the slices", "drift, µm", caption, drift)
	return plots
}

// positionIDs returns the slices whose position is shown: all that the shifts name.
func (r *Report) positionIDs() []int {
	var ids []int
	for _, p := range r.Shifts.Pairs() {
		ids = append(ids, p.Fixed, p.Moving)
	}
	return sorted(ids)
}

// shiftTable lists the motor shifts and where they add up to, and what their repair made of them.
func (r *Report) shiftTable() *table {
	if r.Shifts == nil {
		return nil
	}
	ids := r.positionIDs()
	at, _ := r.Shifts.Positions(ids)
	t := &table{File: "shifts.csv", Caption: "Motor shifts and accumulated drift, in µm.",
		Columns: columnsOf("Slices", "Shift x, µm|n", "Shift y, µm|n", "Drift x, µm|n", "Drift y, µm|n")}
	repairs := r.repairs()
	var cleanAt map[int][2]float64
	if repairs != nil {
		t.Caption = "Motor shifts and accumulated drift, in µm, as recorded and as repaired."
		t.Columns = append(t.Columns, columnsOf("Repaired x, µm|n", "Repaired y, µm|n", "Repaired drift x, µm|n", "Repaired drift y, µm|n", "Repair")...)
		cleanAt, _ = r.Cleaned.Shifts().Positions(ids)
	}
	for _, p := range r.Shifts.Pairs() {
		drift := at[p.Moving]
		row := []cell{text(pairName(p.Fixed, p.Moving)), fixed(p.X*1000, 1), fixed(p.Y*1000, 1), fixed(drift[0]*1000, 1), fixed(drift[1]*1000, 1)}
		if repairs != nil {
			row = append(row, repairCells(repairs, p, cleanAt[p.Moving])...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t.orNone()
}

// repairCells returns the cells that describe the repair of a shift.
func repairCells(repairs []repaired, p registration.PairShift, drift [2]float64) []cell {
	i := slices.IndexFunc(repairs, func(c repaired) bool { return c.Fixed == p.Fixed && c.Moving == p.Moving })
	if i < 0 {
		return []cell{text("–"), text("–"), text("–"), text("–"), text("left out")}
	}
	c, what := repairs[i], []string{}
	if c.changed {
		what = append(what, "changed")
	}
	if !c.reliable {
		what = append(what, "not reliable")
	}
	return []cell{fixed(c.after.X*1000, 1), fixed(c.after.Y*1000, 1), fixed(drift[0]*1000, 1), fixed(drift[1]*1000, 1), text(or(strings.Join(what, ", "), "–"))}
}
