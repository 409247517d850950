package qc

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/metrics"
	"strata/pkg/smallfile"
	"strata/pkg/webpage"
)

// StepFile holds the metrics of a step of the workflow on one slice, pair or volume, as strata or linumpy wrote them.
type StepFile struct {
	Name string // of the slice, pair or volume, from the file's name and folder
	*metrics.Step
}

// stepOrder is the order of the workflow; other steps follow by name.
var stepOrder = []string{
	"slice_quality_assessment", "fix_illumination_basic", "stitch_3d", "stitch_3d_refined", "rehoming_detection", "xy_transform_estimation",
	"normalize_intensities", "psf_compensation", "compensate_attenuation", "crop_interface", "pairwise_registration", "auto_exclude",
	"common_space_alignment", "slice_interpolation", "stack_slices", "bias_field_correction", "align_to_ras",
}

// metricsEnding ends the names of files of metrics.
const metricsEnding = "_metrics.json"

// loadSteps reads files of metrics.
func (r *Report) loadSteps(ctx context.Context, list []found) error {
	for _, f := range list {
		b, err := smallfile.Read(ctx, f.path)
		if err == nil {
			var s *metrics.Step
			if s, err = metrics.Read(bytes.NewReader(b), f.path); err == nil {
				r.Steps = append(r.Steps, StepFile{stepSubject(f.path), s})
				continue
			}
		}
		if err := r.unusable(f, err); err != nil {
			return err
		}
	}
	place := func(s StepFile) int {
		if i := slices.Index(stepOrder, s.Step.Name); i >= 0 {
			return i
		}
		return len(stepOrder)
	}
	slices.SortStableFunc(r.Steps, func(a, b StepFile) int {
		return cmp.Or(place(a)-place(b), cmp.Compare(a.Step.Name, b.Step.Name), sliceOf(a.Name)-sliceOf(b.Name), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// stepSubject returns what a file of metrics is about: its name without the ending, or that of its folder where all
// files of a step have one name.
func stepSubject(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), metricsEnding)
	folder := filepath.Base(filepath.Dir(file))
	if sliceName().FindString(name) == "" && sliceName().FindString(folder) != "" {
		name = folder
	}
	return strings.TrimSuffix(strings.TrimSuffix(name, path.Ext(name)), ".ome")
}

// sliceOf returns the number of the slice in a name, or -1.
func sliceOf(name string) int {
	all := sliceName().FindAllStringSubmatch(name, -1)
	if len(all) == 0 {
		return -1
	}
	n, err := strconv.Atoi(all[len(all)-1][1])
	if err != nil {
		return -1
	}
	return n
}

// stepGroup is the files of one step, for the page.
type stepGroup struct {
	Title, Counts string
	Status        metrics.Status
	Plots         []*webpage.Plot
	Table         *table
}

// stepGroups returns the steps for the page.
func (r *Report) stepGroups() (out []*stepGroup) {
	for rest := r.Steps; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(s StepFile) bool { return s.Step.Name != rest[0].Step.Name })
		if n < 0 {
			n = len(rest)
		}
		out = append(out, newStepGroup(rest[:n]))
		rest = rest[n:]
	}
	return out
}

// mostPlots limits the plots of a step; all numbers stand in its table.
const mostPlots = 4

func newStepGroup(files []StepFile) *stepGroup {
	name := files[0].Step.Name
	g := &stepGroup{Title: stepTitle(name), Status: metrics.OK}
	counts := map[metrics.Status]int{}
	for _, f := range files {
		status := f.Status()
		counts[status]++
		if status == metrics.Error || g.Status != metrics.Error && status == metrics.Warning {
			g.Status = status
		}
	}
	var words []string
	for _, s := range []metrics.Status{metrics.Error, metrics.Warning, metrics.OK} {
		if counts[s] > 0 {
			words = append(words, fmt.Sprintf("%d %s", counts[s], s))
		}
	}
	g.Counts = strings.Join(words, ", ")
	columns := numbersOf(files)
	for _, c := range columns {
		if p := stepPlot(files, c); p != nil && len(g.Plots) < mostPlots {
			g.Plots = append(g.Plots, p)
		}
	}
	g.Table = stepTable(name, files, columns)
	return g
}

// stepTitle returns a step's name in words.
func stepTitle(name string) string {
	return capital(strings.ReplaceAll(name, "_", " "))
}

// capital returns words that begin with a capital letter, if they begin with one of ASCII.
func capital(words string) string {
	return strings.ToUpper(words[:min(1, len(words))]) + words[min(1, len(words)):]
}

// numbersOf returns the names of the metrics that are numbers, those that are judged first.
func numbersOf(files []StepFile) (names []string) {
	judged := map[string]bool{}
	for _, f := range files {
		for _, n := range f.Names() {
			m, _ := f.Metric(n)
			if _, ok := m.Value.(float64); !ok {
				continue
			}
			if m.Status != metrics.Info {
				judged[n] = true
			}
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case judged[a] == judged[b]:
			return 0
		case judged[a]:
			return -1
		}
		return 1
	})
	return names
}

// stepPlot draws a metric over the slices; nil where fewer than three have it, or all are the same.
func stepPlot(files []StepFile, name string) *webpage.Plot {
	s := webpage.Series{Name: name, Joined: true}
	description, unit, differ := "", "", false
	for _, f := range files {
		m, ok := f.Metric(name)
		v, isNumber := m.Value.(float64)
		id := sliceOf(f.Name)
		if !ok || !isNumber || id < 0 {
			continue
		}
		description, unit = m.Description, m.Unit
		s.Points = append(s.Points, webpage.Point{X: float64(id), Y: v, Tip: fmt.Sprintf("%s: %s", f.Name, webpage.Short(v)), Bad: m.Status == metrics.Error || m.Status == metrics.Warning})
		differ = differ || v != s.Points[0].Y
	}
	if len(s.Points) < 3 || !differ {
		return nil
	}
	label := strings.ReplaceAll(name, "_", " ")
	if unit != "" {
		label += ", " + unit
	}
	c := &webpage.Chart{Title: stepTitle(name), XLabel: "slice", YLabel: label, Whole: true, Series: []webpage.Series{s}}
	if description == "" {
		description = stepTitle(name)
	}
	return c.Plot(capital(description) + ". A ring marks values beyond a limit.")
}

// stepTable lists the numbers of all files of a step, and sums them up in its last rows.
func stepTable(name string, files []StepFile, columns []string) *table {
	t := &table{File: strings.ReplaceAll(name, "/", "_") + ".csv", Caption: stepTitle(name) + ": metrics of each slice or pair.", Columns: columnsOf("Slice", "Status")}
	for _, c := range columns {
		t.Columns = append(t.Columns, column{Name: strings.ReplaceAll(c, "_", " "), Number: true})
	}
	values := make([][]float64, len(columns))
	for _, f := range files {
		row := []cell{text(f.Name), text(string(f.Status()))}
		for i, c := range columns {
			m, _ := f.Metric(c)
			v, ok := m.Value.(float64)
			if !ok {
				row = append(row, text("–"))
				continue
			}
			values[i] = append(values[i], v)
			e := number(v, webpage.Short(v))
			if m.Status == metrics.Error || m.Status == metrics.Warning {
				e.Bad = string(m.Status)
			}
			e.Tip = m.Description
			row = append(row, e)
		}
		t.Rows = append(t.Rows, row)
	}
	if len(files) > 2 {
		for _, of := range []struct {
			name string
			get  func([]float64) float64
		}{{"median", medianOf}, {"least", slices.Min[[]float64]}, {"greatest", slices.Max[[]float64]}} {
			row := []cell{text(of.name), text("")}
			for _, v := range values {
				if len(v) == 0 {
					row = append(row, text("–"))
				} else {
					row = append(row, number(of.get(v), webpage.Short(of.get(v))))
				}
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t.orNone()
}

func medianOf(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// stepNotices tells of metrics beyond their limits.
func (r *Report) stepNotices(add func(grade, where, run, do, format string, args ...any)) {
	said := map[string]bool{} // by the program itself, in its run record
	for _, run := range r.Runs {
		for _, w := range run.Warnings {
			said[w] = true
		}
	}
	for _, s := range r.Steps {
		for _, m := range []struct {
			grade string
			texts []string
		}{{"error", s.Errors}, {"warning", s.Warnings}} {
			for _, t := range m.texts {
				if said[t] {
					continue
				}
				do := knownAdvice(t)
				if do == "" {
					do = doStep[s.Step.Name]
				}
				add(m.grade, stepTitle(s.Step.Name), s.Name, do, "%s", r.inWords(t))
			}
		}
	}
}

// adviceOn returns what to do about a warning of a program: what is known of its text, or that of the step whose
// metrics say the same.
func (r *Report) adviceOn(text, tool string) string {
	if do := knownAdvice(text); do != "" {
		return do
	}
	for _, s := range r.Steps {
		if slices.Contains(s.Warnings, text) || slices.Contains(s.Errors, text) {
			if do := doStep[s.Step.Name]; do != "" {
				return do
			}
		}
	}
	return adviceFor(text, tool)
}

// doStep maps a step to the remedy for metrics beyond their limits.
var doStep = map[string]string{
	"pairwise_registration":    "Look at the pair (`register --screenshot`), correct it with `manual`, or leave the slice out by --slice_config.",
	"normalize_intensities":    "Look at the slice in `view`: little agarose, or a bright background, make the division uncertain.",
	"psf_compensation":         "Look at the slice in `view`: without enough agarose the profile along z is uncertain; leave `beam-profile` out for this slice.",
	"fix_illumination_basic":   "Look at the seams in `view`; try the other --solver of `flatfield`.",
	"crop_interface":           "Look at the slice in `view`, and raise or lower --max_interface_fraction of `crop`.",
	"slice_quality_assessment": "Look at the slices that are named, and decide in the slice configuration.",
}
