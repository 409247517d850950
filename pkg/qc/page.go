package qc

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"strata/pkg/page"
	"strata/pkg/registration"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"bytes": page.Size, "seconds": page.Seconds, "short": page.Short, "plural": page.Plural, "overlapFrom": overlapFrom,
}).Parse(pageHTML))

// view holds the content of the page in its order.
type view struct {
	*Report
	CSS      template.CSS
	Subtitle string
	Key      []keyFigure
	Notices  []*Notice
	Worst    string
	Stages   []*stageRow
	Phases   []phaseKey
	Timeline template.HTML
	Engine   *Engine
	Shift    []*page.Plot
	Pairs    []pairRow
	Match    []*page.Plot
	Tables   []factTable
	Depths   []*page.Plot
	Curves   []*page.Plot
	Sections []section
	Groups   []group
}

// section is a part of the page: its anchor, and its name in the navigation.
type section struct{ ID, Name string }

// group is pictures of one kind.
type group struct {
	Name     string
	Pictures []*Picture
}

// fewPictures is the maximum number of pictures of a kind that are shown at once; of more, only the first
// ones are: all of a few rows.
const fewPictures, firstPictures = 24, 12

// First returns the pictures that are shown at once.
func (g group) First() []*Picture {
	if len(g.Pictures) > fewPictures {
		return g.Pictures[:firstPictures]
	}
	return g.Pictures
}

// Others returns the pictures that are shown on demand.
func (g group) Others() []*Picture { return g.Pictures[len(g.First()):] }

type keyFigure struct{ Name, Value, Note string }

type stageRow struct {
	*Stage
	Parts []part
}

// part is a phase's share of a stage's busy time.
type part struct {
	Class, Name string
	Percent     float64
	Seconds     float64
}

type phaseKey struct{ Class, Name string }

type pairRow struct {
	registration.PairShift
	DriftX, DriftY float64 // µm, of the moving slice
}

// XMicrometres returns the shift along X.
func (p pairRow) XMicrometres() float64 { return p.X * 1000 }

// YMicrometres returns the shift along Y.
func (p pairRow) YMicrometres() float64 { return p.Y * 1000 }

type factTable struct {
	First   string // what the rows are
	Caption string
	Columns []string
	Rows    []*Facts
	Known   bool // short values in our words
}

// Cell returns a value, or a dash.
func (f *Facts) Cell(column string) string {
	if v, ok := f.Values[column]; ok {
		return v
	}
	return "–"
}

// WriteHTML writes the page. Call [Report.Fit] first.
func (r *Report) WriteHTML(w io.Writer) error {
	return pageTemplate.Execute(w, r.view())
}

func (r *Report) view() *view {
	v := &view{Report: r, CSS: page.CSS + template.CSS(pageCSS), Notices: r.notices(), Engine: engine(r.Trace), Shift: r.shiftPlots(), Match: r.matchPlots()}
	if len(v.Notices) > 0 {
		v.Worst = v.Notices[0].Grade
	}
	for i, name := range phaseNames {
		v.Phases = append(v.Phases, phaseKey{"p" + strconv.Itoa(i+1), name})
	}
	for _, s := range stages(r.Runs) {
		row := &stageRow{Stage: s}
		total := 0.0
		for _, p := range s.Phases {
			total += p
		}
		for i, p := range s.Phases {
			if total > 0 && p > 0 {
				row.Parts = append(row.Parts, part{"p" + strconv.Itoa(i+1), phaseNames[i], 100 * p / total, p})
			}
		}
		v.Stages = append(v.Stages, row)
	}
	if len(r.Runs) > 1 {
		v.Timeline = r.timeline()
	}
	if r.Shifts != nil {
		at, _ := r.Shifts.Positions(r.positionIDs())
		for _, p := range r.Shifts.Pairs() {
			v.Pairs = append(v.Pairs, pairRow{p, at[p.Moving][0] * 1000, at[p.Moving][1] * 1000})
		}
	}
	for _, t := range []struct {
		files           []*Facts
		caption, others string
	}{
		{r.Stitch, "Stitching, slice by slice. Difference at seams: mean of the absolute difference of two tiles where they overlap, as a part of the mean there.", "Transforms and other files of stitching."},
		{r.Crop, "Cropping, slice by slice.", "Other files of cropping."},
	} {
		known, others := apart(t.files)
		if len(known) > 0 {
			v.Tables = append(v.Tables, factTable{"Slice", t.caption, columns(known), known, true})
		}
		if len(others) > 0 {
			v.Tables = append(v.Tables, factTable{"File", t.others, columns(others), others, false})
		}
	}
	for _, p := range []*page.Plot{
		perSlice(r.Stitch, "Difference of tiles at their seams", "difference, %", "%", "Difference of neighbouring tiles where they overlap, mean and worst seam of each slice.", seamMean, seamWorst),
		perSlice(r.Crop, "Depth of the tissue interface", "depth, µm", "µm", "Depth of the tissue interface below the first plane of each slice.", cropDepth),
	} {
		if p != nil {
			v.Depths = append(v.Depths, p)
		}
	}
	v.Curves = r.mapPlots()
	v.Groups = groups(r.Previews)
	v.Key, v.Subtitle = r.keyFigures(), r.subtitle()
	for _, s := range []struct {
		section
		there bool
	}{
		{section{"warnings", "Warnings"}, true},
		{section{"previews", "Previews"}, len(r.Previews) > 0},
		{section{"shifts", "Shifts"}, r.Shifts != nil},
		{section{"overlap", "Overlap"}, len(r.Matches) > 0},
		{section{"decisions", "Decisions"}, len(r.Decisions) > 0},
		{section{"maps", "Maps"}, len(r.Maps) > 0},
		{section{"slices", "Stitch and crop"}, len(v.Tables) > 0},
		{section{"stages", "Stages"}, len(v.Stages) > 0 || v.Engine != nil},
		{section{"runs", "Runs"}, len(r.Runs) > 0},
	} {
		if s.there {
			v.Sections = append(v.Sections, s.section)
		}
	}
	return v
}

// Has reports whether the page has a section.
func (v *view) Has(id string) bool {
	for _, s := range v.Sections {
		if s.ID == id {
			return true
		}
	}
	return false
}

// groups returns the cuts, then the projections, then those of the mosaics as they were recorded; in each the
// pictures of volumes come first and large.
func groups(all []*Picture) []group {
	g := []group{{Name: "Cuts"}, {Name: "Average intensity projections"}, {Name: "Average intensity projections of the mosaics as recorded"}}
	for _, p := range all {
		i := 0
		switch {
		case p.projection && strings.HasPrefix(p.Name, "mosaic"):
			i = 2
		case p.projection:
			i = 1
		}
		g[i].Pictures = append(g[i].Pictures, p)
	}
	for i := range g {
		slices.SortStableFunc(g[i].Pictures, func(a, b *Picture) int {
			switch {
			case a.Lead() == b.Lead():
				return 0
			case a.Lead():
				return -1
			}
			return 1
		})
	}
	return slices.DeleteFunc(g, func(g group) bool { return len(g.Pictures) == 0 })
}

// Lead reports whether a picture shows the result and not one slice.
func (p *Picture) Lead() bool { return strings.HasPrefix(p.Name, "volume") }

func (r *Report) subtitle() string {
	var parts []string
	if first, _ := extent(r.Runs); !first.IsZero() {
		parts = append(parts, first.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	hosts, versions := map[string]bool{}, map[string]bool{}
	for _, run := range r.Runs {
		if run.Host != "" && !hosts[run.Host] && len(hosts) < 4 {
			hosts[run.Host] = true
			parts = append(parts, run.Host)
		}
	}
	for _, run := range r.Runs {
		if run.Version != "" && !versions[run.Version] && len(versions) < 4 {
			versions[run.Version] = true
			parts = append(parts, "strata "+run.Version)
		}
	}
	return strings.Join(parts, " · ")
}

func (r *Report) keyFigures() (out []keyFigure) {
	add := func(name, value, note string) { out = append(out, keyFigure{name, value, note}) }
	if ids := r.sliceNumbers(); len(ids) > 0 {
		note := fmt.Sprintf("%d to %d", ids[0], ids[len(ids)-1])
		if n := len(r.missing()); n > 0 {
			note += fmt.Sprintf(", %d missing", n)
		}
		add("Slices", strconv.Itoa(len(ids)), note)
	} else if n := len(r.missing()); n > 0 {
		add("Missing slices", strconv.Itoa(n), "")
	}
	if d := r.volume(); d != nil {
		s := d.Shape
		add("Volume", fmt.Sprintf("%d × %d × %d", s[0], s[1], s[2]), d.DType+", z × y × x voxels")
	}
	if len(r.Runs) == 0 {
		return out
	}
	var busy float64
	var read, written, peak int64
	peakTool := ""
	for _, run := range r.Runs {
		busy += run.WallSeconds
		read += run.BytesRead
		written += run.BytesWritten
		if run.PeakResidentBytes > peak {
			peak, peakTool = run.PeakResidentBytes, run.Tool
		}
	}
	_, length := extent(r.Runs)
	add("Wall time", page.Seconds(length), "first start to last end")
	add("Programs ran", page.Seconds(busy), page.Plural(len(r.Runs), "run"))
	add("Read", page.Size(read), "from storage")
	add("Written", page.Size(written), "to storage")
	if peak > 0 {
		add("Peak memory", page.Size(peak), "resident, "+peakTool)
	}
	return out
}

// overlapFrom puts in words where stack took an overlap from.
func overlapFrom(source string) string {
	switch source {
	case "":
		return "–"
	case "correlation_fallback":
		return "expected (low correlation)"
	}
	return strings.ReplaceAll(source, "_", " ")
}

// MBs returns the throughput for display: MB of elements per second.
func (s *Stage) MBs() string {
	if !s.HasThroughput {
		return "–"
	}
	return page.Short(s.Throughput / 1e6)
}

// Reading returns an interpretation of the overlap's correlation.
func (r *Report) Reading(m registration.Match) string {
	switch {
	case m.Fallback:
		return "too low: expected overlap taken"
	case m.Correlation == 0:
		return "not measured"
	case m.Correlation < lowCorrelation:
		return "low"
	}
	return "good"
}

// Times returns the engine's numbers for display.
func (e *Engine) Times() []keyFigure {
	share := ""
	if e.Span > 0 {
		share = fmt.Sprintf("%.0f %% of the run without a task", 100*float64(e.Span-e.Busy)/float64(e.Span))
	}
	each := time.Duration(0)
	if e.Tasks > 0 {
		each = e.Waiting / time.Duration(e.Tasks)
	}
	return []keyFigure{
		{"Tasks", strconv.Itoa(e.Tasks), fmt.Sprintf("%d from the cache, %d attempts failed", e.Cached, e.Failed)},
		{"Engine, whole run", page.Seconds(e.Span.Seconds()), "first submission to last completion"},
		{"Some task running", page.Seconds(e.Busy.Seconds()), share},
		{"Beside the tasks", page.Seconds(each.Seconds()), "per task: queue, staging, publishing"},
	}
}
