package qc

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"strata/pkg/webpage"
)

// MultiQC is a custom-content file for the program MultiQC, which gathers the reports of many tools and runs on one
// page. Files of several runs have the same ID, so that their rows come into one table.
type MultiQC struct {
	Name        string                    `json:"-"` // of the file; MultiQC looks for *_mqc.json
	ID          string                    `json:"id"`
	Section     string                    `json:"section_name,omitempty"`
	Description string                    `json:"description,omitempty"`
	PlotType    string                    `json:"plot_type"`
	Config      any                       `json:"pconfig"`
	Headers     map[string]multiQCHeader  `json:"headers"`
	Data        map[string]map[string]any `json:"data"`
}

type multiQCHeader struct {
	Title       string  `json:"title"`
	Description string  `json:"description"`
	Suffix      string  `json:"suffix,omitempty"`
	Format      string  `json:"format,omitempty"`
	Scale       bool    `json:"scale"`     // false: no colours behind the numbers
	Placement   float64 `json:"placement"` // columns stand in the order of these
}

// WriteJSON writes the file's content.
func (m *MultiQC) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(m)
}

// header adds a column after the others. A form of "" is that of text.
func (m *MultiQC) header(key, title, form, suffix, description string) {
	h := multiQCHeader{Title: title, Description: description, Suffix: suffix, Format: form, Placement: float64(1000 + 10*len(m.Headers))}
	if m.Headers == nil {
		m.Headers = map[string]multiQCHeader{}
	}
	m.Headers[key] = h
}

// set fills in a value; one that JSON has no form for is left out.
func (m *MultiQC) set(row, key string, value any) {
	if f, ok := value.(float64); ok && !webpage.Finite(f) {
		return
	}
	if m.Data == nil {
		m.Data = map[string]map[string]any{}
	}
	if m.Data[row] == nil {
		m.Data[row] = map[string]any{}
	}
	m.Data[row][key] = value
}

// MultiQC sums the report up for MultiQC: a row for the run in the general statistics, and tables of its joins and its
// slices. Rows bear the name of the run, since the page has those of other runs, too. Tables without rows are left out.
func (r *Report) MultiQC(run string) (out []*MultiQC) {
	for _, m := range []*MultiQC{r.runSummary(run), r.joinSummary(run), r.sliceSummary(run)} {
		if len(m.Data) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// runSummary is the row of the run.
func (r *Report) runSummary(run string) *MultiQC {
	m := &MultiQC{Name: "strata_run_mqc.json", ID: "strata_run", PlotType: "generalstats", Config: map[string]string{"namespace": "strata"}}
	m.header("strata_verdict", "Verdict", "", "", "Good, Check or Failed, as the quality report says")
	m.header("strata_slices", "Slices", "{:,.0f}", "", "Slices in the volume")
	m.header("strata_joins", "Joins", "{:,.0f}", "", "Joins of neighbouring slices")
	m.header("strata_uncertain", "Uncertain", "{:,.0f}", "", "Joins whose overlap or shift is uncertain")
	m.header("strata_missing", "Missing", "{:,.0f}", "", "Slices that the volume lacks")
	m.header("strata_warnings", "Warnings", "{:,.0f}", "", "Warnings and errors of the run")
	m.header("strata_minutes", "Time", "{:,.1f}", " min", "Wall time from the first start to the last end")
	notices, joins := r.notices(), r.joins()
	uncertain, warnings := 0, 0
	for _, j := range joins {
		if j.Doubt != "" {
			uncertain++
		}
	}
	for _, n := range notices {
		if n.Grade != "note" {
			warnings += 1 + len(n.Similar)
		}
	}
	m.set(run, "strata_verdict", r.verdict(notices).Word)
	m.set(run, "strata_slices", len(r.sliceNumbers()))
	m.set(run, "strata_joins", len(joins))
	m.set(run, "strata_uncertain", uncertain)
	m.set(run, "strata_missing", len(r.missing()))
	m.set(run, "strata_warnings", warnings)
	if first, seconds := extent(r.Runs); !first.IsZero() {
		m.set(run, "strata_minutes", seconds/60)
	}
	return m
}

// joinSummary has a row for each join.
func (r *Report) joinSummary(run string) *MultiQC {
	d := r.depth("stack")
	m := &MultiQC{Name: "strata_joins_mqc.json", ID: "strata_joins", Section: "Strata: joins", PlotType: "table",
		Description: "How neighbouring slices of serial-sectioning volumes were joined: measured overlap along z, and its correlation.",
		Config:      map[string]string{"id": "strata_joins_table", "title": "Strata: joins of neighbouring slices", "col1_header": "Join"}}
	m.header("overlap", "Overlap", "{:,.1f}", " "+d.unit, "Overlap of the slices along z")
	m.header("correlation", "Correlation", "{:,.3f}", "", "Correlation of the overlap; empty where it was not measured")
	m.header("result", "Result", "", "", "Good, registered, or why the join is uncertain")
	for _, j := range r.joins() {
		row := fmt.Sprintf("%s z%02d-z%02d", run, j.Fixed, j.Moving)
		m.set(row, "overlap", float64(j.Overlap)*d.um)
		if j.Measured {
			m.set(row, "correlation", j.Correlation)
		}
		m.set(row, "result", j.result())
	}
	return m
}

// sliceSummary has a row for each slice.
func (r *Report) sliceSummary(run string) *MultiQC {
	m := &MultiQC{Name: "strata_slices_mqc.json", ID: "strata_slices", Section: "Strata: slices", PlotType: "table",
		Description: "Stitching and cropping of each slice.",
		Config:      map[string]string{"id": "strata_slices_table", "title": "Strata: slices", "col1_header": "Slice"}}
	m.header("seams", "Difference at seams", "{:,.1f}", " %", "Mean absolute difference of neighbouring tiles where they overlap, relative to the mean there")
	m.header("worst_seam", "Worst seam", "{:,.1f}", " %", "The same at the worst seam")
	m.header("interface", "Interface depth", "{:,.0f}", " µm", "Depth of the tissue interface below the first plane")
	for _, k := range []struct {
		files []*Facts
		keys  map[string]string
	}{{r.Stitch, map[string]string{seamMean: "seams", seamWorst: "worst_seam"}}, {r.Crop, map[string]string{cropDepth: "interface"}}} {
		for _, f := range k.files {
			name := f.Name
			if found := sliceName().FindStringSubmatch(name); found != nil {
				id, _ := strconv.Atoi(found[1]) // six digits
				name = fmt.Sprintf("z%02d", id)
			}
			for fact, key := range k.keys {
				if v, ok := f.plot[fact]; ok {
					m.set(run+" "+name, key, v)
				}
			}
		}
	}
	return m
}
