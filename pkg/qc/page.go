package qc

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"strata/pkg/pattern"
	"strata/pkg/provenance/methods"
	"strata/pkg/webpage"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

// pageTemplate parses the page when it is first needed: other programs of the same binary start without it.
var pageTemplate = sync.OnceValue(func() *template.Template {
	return webpage.Template(pageHTML, template.FuncMap{
		"seconds": webpage.Seconds, "short": webpage.Short, "plural": webpage.Plural, "barLabel": barLabel, "do": commands,
	})
})

// view holds the content of the page in its order.
type view struct {
	*Report
	CSS       template.CSS
	Subtitle  string
	Verdict   verdict
	Key       []keyFigure
	Notices   []*Notice
	Stages    *table
	Phases    []phaseKey
	Timeline  template.HTML
	Engine    *Engine
	Shift     []*webpage.Plot
	Pairs     *table
	Match     []*webpage.Plot
	Joins     *table
	Decisions *table
	BadSlices *table
	Tables    []*table
	Depths    []*webpage.Plot
	Curves    []*webpage.Plot
	Steps     []*stepGroup
	Records   *table
	Sections  []section
	Groups    []group

	Comparisons *table
	Diagnostics group
	Methods     methods.Text
}

// Tool returns the name of the program that makes the page.
func (*view) Tool() string { return "qc-report" }

// section is a part of the page: its anchor, and its name in the navigation.
type section struct{ ID, Name string }

// group is pictures of one kind, and what a reader should know of them.
type group struct {
	Name, Note string
	Pictures   []*Picture
}

// fewPictures is the maximum number of pictures of a kind that are shown at once; of more, only the first
// ones are: all of a few rows.
const fewPictures, firstPictures = 24, 12

// First returns the pictures that are shown at once.
func (g group) First() []*Picture {
	return inTheOpen(g.Pictures, fewPictures, firstPictures)
}

// inTheOpen returns the elements that are shown at once: all, or, if there are more than few, the first ones.
func inTheOpen[T any](all []T, few, first int) []T {
	if len(all) > few {
		return all[:first]
	}
	return all
}

// Others returns the pictures that are shown on demand.
func (g group) Others() []*Picture { return g.Pictures[len(g.First()):] }

type keyFigure struct{ Name, Value, Note string }

// part is a phase's share of a stage's busy time.
type part struct {
	Class, Name string
	Percent     float64
	Seconds     float64
}

type phaseKey struct{ Class, Name string }

// Cell returns a value, or a dash.
func (f *Facts) Cell(column string) string {
	if v, ok := f.Values[column]; ok {
		return v
	}
	return "–"
}

// WriteHTML writes the page. Call [Report.Fit] first.
func (r *Report) WriteHTML(w io.Writer) error {
	return pageTemplate().Execute(w, r.view())
}

func (r *Report) view() *view {
	notices := r.notices()
	r.spots, r.moved = r.joinSpots(), r.movedSlices()
	for _, f := range r.Stitch {
		if f.pairs != nil {
			f.pairs.Seams = r.seamList(f)
		}
	}
	v := &view{Report: r, CSS: webpage.CSS + template.CSS(pageCSS), Verdict: r.verdict(notices), Notices: notices, Engine: engine(r.Trace),
		Shift: r.shiftPlots(), Pairs: r.shiftTable(), Match: r.matchPlots(), Joins: r.matchTable(), Decisions: r.decisionTable(), BadSlices: r.badTable(),
		Tables: r.factTables(), Steps: r.stepGroups(), Stages: stageTable(stages(r.Runs)), Records: r.runTable()}
	for i, name := range phaseNames {
		v.Phases = append(v.Phases, phaseKey{"p" + strconv.Itoa(i+1), name})
	}
	if len(r.Runs) > 1 {
		v.Timeline = r.timeline()
	}
	for _, p := range []*webpage.Plot{
		perSlice(r.Stitch, "Difference of tiles at their seams", "difference, %", "%", "Difference of neighbouring tiles where they overlap, mean and worst seam of each slice.", seamMean, seamWorst),
		perSlice(r.Crop, "Depth of the tissue interface", "depth, µm", "µm", "Depth of the tissue interface below the first plane of each slice.", cropDepth),
	} {
		if p != nil {
			v.Depths = append(v.Depths, p)
		}
	}
	v.Curves = r.mapPlots()
	v.Groups = groups(r.Previews)
	v.Comparisons, v.Diagnostics = r.comparisonTable(), group{Pictures: r.Diagnosed}
	v.Key, v.Subtitle, v.Methods = r.keyFigures(), r.subtitle(), r.methods()
	for _, s := range []struct {
		section
		there bool
	}{
		{section{"warnings", "Warnings"}, true},
		{section{"previews", "Pictures"}, len(r.Previews) > 0},
		{section{"bad", "Bad slices"}, v.BadSlices != nil},
		{section{"shifts", "Shifts"}, r.Shifts != nil || len(r.Drift) > 0},
		{section{"overlap", "Overlap"}, len(r.Matches) > 0},
		{section{"decisions", "Decisions"}, v.Decisions != nil},
		{section{"maps", "Maps"}, len(r.Maps) > 0},
		{section{"slices", "Stitching and cropping"}, len(v.Tables) > 0},
		{section{"diagnostics", "Diagnostics"}, r.hasDiagnostics()},
		{section{"steps", "Metrics"}, len(v.Steps) > 0},
		{section{"stages", "Stages"}, v.Stages != nil || v.Engine != nil},
		{section{"methods", "Methods"}, v.Methods.Paragraph != ""},
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

// bands explains what a reader sees first in cuts along z.
const bands = "Bands along z come from attenuation: light weakens on its way through the tissue, so that each slice is brightest just below its cut surface and darker towards its bottom. " +
	"beam-profile and attenuation correct it. Without them, compare brightness at equal depths below the cuts only."

// groups returns the cuts, then the projections, then those of the mosaics as they were
// recorded; in each the pictures of volumes come first and large.
func groups(all []*Picture) []group {
	g := []group{{Name: "Cuts", Note: bands}, {Name: "Average intensity projections"}, {Name: "Average intensity projections of the mosaics as recorded"}}
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

// methods returns the paragraph for a paper, of the runs that wrote something.
func (r *Report) methods() methods.Text {
	var runs []methods.Run
	for _, run := range r.Runs {
		if run.ExitCode == 0 {
			runs = append(runs, methods.FromRecord(run.Record))
		}
	}
	return methods.Of(runs)
}

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
		if v, ok := voxelOf(*d); ok {
			um := func(i int) string { return strconv.FormatFloat(math.Round(float64(s[i])*v[i]), 'f', 0, 64) }
			add("Volume, µm", um(0)+" × "+um(1)+" × "+um(2), fmt.Sprintf("voxels of %s × %s × %s µm", webpage.Short(v[0]), webpage.Short(v[1]), webpage.Short(v[2])))
		}
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
	add("Wall time", webpage.Seconds(length), "first start to last end")
	add("Program time", webpage.Seconds(busy), "sum of "+webpage.Plural(len(r.Runs), "run"))
	add("Read", webpage.Size(read), "from storage")
	add("Written", webpage.Size(written), "to storage")
	if peak > 0 {
		add("Peak memory", webpage.Size(peak), "resident, "+peakTool)
	}
	return out
}

// overlapFrom puts in words where stack took an overlap from.
func overlapFrom(source string) string {
	switch source {
	case "":
		return "–"
	case "correlation_fallback":
		return "expected (correlation too low)"
	case "left_out":
		return "slicing interval (slices left out)"
	case "interpolated":
		return "slicing interval (interpolated slice)"
	}
	return strings.ReplaceAll(source, "_", " ")
}

// MBs returns the throughput for display: MB of elements per second.
func (s *Stage) MBs() string {
	if !s.HasThroughput {
		return "–"
	}
	return webpage.Short(s.Throughput / 1e6)
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
		{"Engine, whole run", webpage.Seconds(e.Span.Seconds()), "first submission to last completion"},
		{"Some task running", webpage.Seconds(e.Busy.Seconds()), share},
		{"Beside the tasks", webpage.Seconds(each.Seconds()), "per task: queue, staging, publishing"},
	}
}

// flagInText is a flag that stands in an advice by itself.
var flagInText = pattern.Lazy(`--[a-z_]+`)

// commands marks up what stands between backquotes in an advice, and flags, as code.
func commands(s string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(s, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			b.WriteString("<code>" + part + "</code>")
		} else {
			b.WriteString(flagInText().ReplaceAllString(part, "<code>$0</code>"))
		}
	}
	return template.HTML(b.String())
}
