package qc

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/pattern"
	"strata/pkg/runrecord"
	"strata/pkg/webpage"
)

// Notice is a message for the reader of the report.
type Notice struct {
	Grade string // "error", "warning" or "note"
	Where string // the program or the pair of slices
	Text  string
	Do    string   // what may be done about it; "" for notes that ask for nothing
	Runs  []string // runs with the same notice; empty if it does not belong to a run
	// Similar holds further texts that differ only in numbers.
	Similar []string
}

// lowCorrelation is the correlation that a pair should reach: the default of stack's --z_overlap_min_corr for
// aligning slices.
const lowCorrelation = 0.1

// notices returns everything that went wrong or may have, the worst first.
func (r *Report) notices() []*Notice {
	var all []*Notice
	add := func(grade, where, run, do, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		for _, n := range all {
			if n.Grade == grade && n.Where == where && n.Text == text && run != "" {
				if !slices.Contains(n.Runs, run) {
					n.Runs = append(n.Runs, run)
				}
				return
			}
		}
		n := &Notice{Grade: grade, Where: where, Text: text, Do: do}
		if run != "" {
			n.Runs = []string{run}
		}
		all = append(all, n)
	}
	for _, m := range r.Missing {
		add("error", m.Slice, "", "Read the task's log below the workflow's work folder, mend its cause, and start the workflow again with -resume.",
			"missing: %s ended with %s: %s", m.Process, m.Exit, m.Reason)
	}
	for _, run := range r.Runs {
		if run.ExitCode != 0 || run.Error != "" {
			add("error", run.Tool, run.slice(), doExit[run.ExitCode], "exit code %d: %s", run.ExitCode, run.Error)
		}
		if f := run.Fallback; f != nil {
			where, what := run.Tool, run.slice()
			if !run.warnedOf(f.Reason) { // it is a matter of course on this machine: said once for all programs
				where, what = "GPU", run.Tool
			}
			add("note", where, what, "", "%s instead of %s: %s", strings.ToUpper(f.To), strings.ToUpper(f.From), f.Reason)
		}
		for _, w := range run.Warnings {
			if f := run.Fallback; f != nil && strings.Contains(w, f.Reason) {
				continue // said above
			}
			grade, do := "warning", r.adviceOn(w, run.Tool)
			if strings.HasPrefix(do, doNothing) {
				grade = "note"
			}
			add(grade, run.Tool, run.slice(), do, "%s", r.inWords(w))
		}
		if run.NonFinite > 0 && !run.warnedOf("are NaN or infinite") {
			add("note", run.Tool, run.slice(), "", "%d voxels of the input are NaN or infinite", run.NonFinite)
		}
	}
	for _, s := range r.Found {
		if s.Contradicted && !r.said(fmt.Sprintf("slices %d and %d: recorded", s.Fixed, s.Moving)) {
			add("warning", fmt.Sprintf("slices %d–%d", s.Fixed, s.Moving), "", doShift, "the recorded shift, (%.0f, %.0f) µm, is contradicted by the slices' pictures, which show (%.0f, %.0f) µm",
				1000*s.RecordedX, 1000*s.RecordedY, 1000*s.X, 1000*s.Y)
		}
	}
	r.badNotices(add)
	r.joinNotices(add)
	r.stepNotices(add)
	for _, w := range r.shiftWarnings() {
		if _, text, _ := strings.Cut(w, ": "); !r.said(text) {
			add("warning", "shifts", "", adviceFor(w, ""), "%s", w)
		}
	}
	for _, gap := range gaps(r.sliceNumbers()) {
		add("note", "slices", "", "", "%s", gap)
	}
	if stacked := r.stacked(); r.Shifts != nil && len(stacked) > 0 {
		if _, outside := r.Shifts.Absent(stacked); len(outside) > 0 {
			add("note", "slices", "", "", "the shifts name slices %v, the volume begins or ends without them", outside)
		}
	}
	for _, p := range r.Problems {
		add("warning", "this report", "", adviceFor(p, "qc-report"), "%s", p)
	}
	all = together(all)
	grade := func(n *Notice) int { return slices.Index([]string{"error", "warning", "note"}, n.Grade) }
	slices.SortStableFunc(all, func(a, b *Notice) int { return grade(a) - grade(b) })
	return all
}

// Warns reports whether there is an error or a warning among what the page lists, rather than notes alone.
func (v *view) Warns() bool {
	return slices.ContainsFunc(v.Notices, func(n *Notice) bool { return n.Grade != "note" })
}

// judged matches a metric beyond a limit, as metrics of steps word it.
var judged = pattern.Lazy(`^(\w+): (\S+) ([<>]) (\S+) \((?:warning|error) threshold\)$`)

// longNumber matches a decimal number of more than three decimals that is a word of its own.
var longNumber = pattern.Lazy(`(^|[\s(,:\[])(-?\d+\.\d{4,}(?:e[-+]?\d+)?)($|[\s),:;%°\]])`)

// inWords returns a message with the names of metrics in words, and with numbers of three digits.
func (r *Report) inWords(text string) string {
	if m := judged().FindStringSubmatch(text); m != nil {
		name, than := stepTitle(m[1]), "above"
		for _, s := range r.Steps {
			if metric, ok := s.Metric(m[1]); ok && metric.Description != "" {
				name = capital(metric.Description)
			}
		}
		if m[3] == "<" {
			than = "below"
		}
		text = fmt.Sprintf("%s: %s, %s the limit of %s", name, m[2], than, m[4])
	}
	for range 2 { // of two numbers beside each other, the first takes what is between them
		text = longNumber().ReplaceAllStringFunc(text, func(found string) string {
			m := longNumber().FindStringSubmatch(found)
			v, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return found
			}
			return m[1] + webpage.Short(v) + m[3]
		})
	}
	return text
}

// joinNotices tells of joins that are uncertain.
func (r *Report) joinNotices(add func(grade, where, run, do, format string, args ...any)) {
	thick := r.depth("stack")
	for i, j := range r.joins()[:len(r.Matches)] {
		m := r.Matches[i]
		pair := fmt.Sprintf("slices %d–%d", m.Fixed, m.Moving)
		switch {
		case m.Fallback && r.said(fmt.Sprintf("slices %d and %d:", m.Fixed, m.Moving)):
		case m.Fallback:
			add("warning", pair, "", doOverlap, "correlation %.2f is too low: the expected overlap of %s was used", m.Correlation, thick.of(float64(m.Overlap)))
		case j.low():
			add("warning", pair, "", doOverlap, "the overlap's correlation of %.2f is low (under %.1f)", m.Correlation, lowCorrelation)
		}
		if m.Overlap == 0 && !r.said(fmt.Sprintf("slices %d and %d: no slice shows", m.Fixed, m.Moving)) {
			add("warning", pair, "", "Keep more planes by `crop --depth`, or check the distance that was cut (`stack --slicing_interval_mm`).", "no overlap")
		}
	}
	for _, d := range r.Decisions {
		if d.OverlapSource == "correlation_fallback" && len(r.Matches) == 0 && !r.said(fmt.Sprintf("slices %d and %d:", d.Fixed, d.Slice)) {
			add("warning", fmt.Sprintf("slices %d–%d", d.Fixed, d.Slice), "", doOverlap, "the correlation is too low: the expected overlap of %s was used", thick.of(float64(d.Overlap)))
		}
	}
}

// fewSimilar is the maximum number of similar notices that are listed individually.
const fewSimilar = 4

var digits = pattern.Lazy(`\d+(\.\d+)?`)

// together puts notices that differ in numbers only under the first of them, where
// there are more than a few.
func together(all []*Notice) (out []*Notice) {
	mask := func(n *Notice) string {
		return n.Grade + "\x00" + digits().ReplaceAllString(n.Where, "0") + "\x00" + digits().ReplaceAllString(n.Text, "0")
	}
	count, first := map[string]int{}, map[string]*Notice{}
	for _, n := range all {
		count[mask(n)]++
	}
	for _, n := range all {
		m := mask(n)
		switch f := first[m]; {
		case count[m] <= fewSimilar:
			out = append(out, n)
		case f == nil:
			first[m] = n
			out = append(out, n)
		case n.Where != f.Where:
			f.Similar = append(f.Similar, n.Where+": "+n.Text)
		default:
			f.Similar = append(f.Similar, n.Text)
		}
	}
	return out
}

// warnedOf reports whether a run gave a warning that holds a text.
func (run *Run) warnedOf(text string) bool {
	return slices.ContainsFunc(run.Warnings, func(w string) bool { return strings.Contains(w, text) })
}

// said reports whether the program stack itself gave a warning with that text.
func (r *Report) said(text string) bool {
	for _, run := range r.Runs {
		if run.Tool == "stack" && slices.ContainsFunc(run.Warnings, func(w string) bool { return strings.Contains(w, text) }) {
			return true
		}
	}
	return false
}

// shiftWarnings returns the warnings about shifts of the slices of the stack.
func (r *Report) shiftWarnings() []string {
	if r.Shifts == nil {
		return nil
	}
	_, warnings := r.Shifts.Positions(r.stacked())
	return warnings
}

// stacked returns the slices that stack used, in increasing order.
func (r *Report) stacked() []int {
	var ids []int
	for _, m := range r.Matches {
		ids = append(ids, m.Fixed, m.Moving)
	}
	for _, d := range r.Decisions {
		ids = append(ids, d.Slice, d.Fixed)
	}
	return sorted(ids)
}

// sliceNumbers returns all slices that tables name.
func (r *Report) sliceNumbers() []int {
	ids := r.stacked()
	if len(ids) == 0 && r.Shifts != nil {
		for _, p := range r.Shifts.Pairs() {
			ids = append(ids, p.Fixed, p.Moving)
		}
	}
	return sorted(ids)
}

// sliceInName is the number of a slice in the name of a task or an image.
var sliceInName = pattern.Lazy(`(?:^|_)z(\d{1,9})(?:\D|$)`)

// missing returns the slices that the volume lacks, each once, however many stages failed on it: those that
// the workflow gave up, and those that only the shifts name.
func (r *Report) missing() []string {
	stacked, lacks := r.stacked(), map[string]bool{}
	for _, m := range r.Missing {
		name := m.Slice
		if found := sliceInName().FindAllStringSubmatch(name, -1); found != nil {
			id, _ := strconv.Atoi(found[len(found)-1][1]) // nine digits
			if slices.Contains(stacked, id) {
				continue // only a picture of it failed
			}
			name = fmt.Sprintf("z%02d", id)
		}
		lacks[name] = true
	}
	if r.Shifts != nil && len(stacked) > 0 {
		between, outside := r.Shifts.Absent(stacked)
		for _, id := range append(between, outside...) {
			lacks[fmt.Sprintf("z%02d", id)] = true
		}
	}
	return slices.Sorted(maps.Keys(lacks))
}

func sorted(ids []int) []int {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// gaps lists the numbers missing in a series.
func gaps(ids []int) []string {
	var out []string
	for i := 1; i < len(ids); i++ {
		switch a, b := ids[i-1], ids[i]; b - a {
		case 1:
		case 2:
			out = append(out, fmt.Sprintf("there is no slice %d", a+1))
		default:
			out = append(out, fmt.Sprintf("there are no slices %d to %d", a+1, b-1))
		}
	}
	return out
}

// volume returns stack's output, if its record exists.
func (r *Report) volume() *runrecord.Dataset {
	if run := r.stackRun(); run != nil {
		return &run.Outputs[0]
	}
	return nil
}
