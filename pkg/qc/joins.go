package qc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/registration"
	"strata/pkg/runrecord"
	"strata/pkg/webpage"
)

// join is where a slice meets the one before it.
type join struct {
	Fixed, Moving int
	Overlap       int // planes
	Correlation   float64
	Measured      bool
	Registered    bool   // the overlap and the correlation are register's
	Doubt         string // why it is uncertain; "" where it is not
}

// registered is the source of an overlap that stack took from the registration of the pair.
const registered = "registration"

// registered reports whether the overlap of a match is that of its registration: by the decisions or, without them, by
// the correlation of 1 that no planes have.
func (r *Report) registered(m registration.Match) bool {
	return slices.ContainsFunc(r.Decisions, func(d registration.Decision) bool {
		return d.Fixed == m.Fixed && d.Slice == m.Moving && d.OverlapSource == registered
	}) || len(r.Decisions) == 0 && m.Correlation == 1
}

// measured reports whether a correlation in stack's tables was measured: 0 stands for none, and so does 1 for
// registered pairs in the tables of linumpy and of stack up to version 0.10.
func measured(correlation float64, registered bool) bool {
	return webpage.Finite(correlation) && correlation != 0 && !(registered && correlation == 1)
}

// joins returns the joins of the stack, by the matches or, where there are none, by the decisions.
func (r *Report) joins() (out []join) {
	for _, m := range r.Matches {
		j := join{Fixed: m.Fixed, Moving: m.Moving, Overlap: m.Overlap, Correlation: m.Correlation, Registered: r.registered(m)}
		j.Measured = measured(m.Correlation, j.Registered) || m.Fallback
		switch {
		case m.Fallback:
			j.Doubt = "correlation too low: expected overlap used"
		case j.low():
			j.Doubt = "low correlation"
		case m.Overlap == 0:
			j.Doubt = "no overlap"
		}
		out = append(out, j)
	}
	if len(r.Matches) == 0 {
		for _, d := range r.Decisions {
			j := join{Fixed: d.Fixed, Moving: d.Slice, Overlap: d.Overlap, Registered: d.OverlapSource == registered}
			if v, err := strconv.ParseFloat(d.Correlation, 64); err == nil && measured(v, j.Registered) {
				j.Correlation, j.Measured = v, true
			}
			if d.OverlapSource == "correlation_fallback" {
				j.Doubt = "correlation too low: expected overlap used"
			}
			out = append(out, j)
		}
	}
	for i := range out {
		j := &out[i]
		for _, s := range r.Found {
			if s.Fixed == j.Fixed && s.Moving == j.Moving && s.Contradicted && j.Doubt == "" {
				j.Doubt = "recorded shift contradicted by the pictures"
			}
		}
	}
	return out
}

// low reports whether the correlation is one that no good overlap has. Register judges those of its planes itself.
func (j join) low() bool { return j.Measured && !j.Registered && j.Correlation < lowCorrelation }

// result returns what is known of a join in words.
func (j join) result() string {
	switch {
	case j.Doubt != "":
		return j.Doubt
	case j.Registered:
		return "registered"
	case j.Measured:
		return "good"
	}
	return "not measured"
}

// verdict is the summary at the top of the report: a grade in one word, and the reasons.
type verdict struct {
	Grade string // the class of its colours: good, warning or error
	Word  string
	Text  string
}

// verdict sums the notices and the joins up.
func (r *Report) verdict(all []*Notice) verdict {
	v := verdict{"good", "Good", ""}
	count := map[string]int{}
	for _, n := range all {
		count[n.Grade] += 1 + len(n.Similar)
	}
	var parts []string
	if joins := r.joins(); len(joins) > 0 {
		doubtful := len(slices.DeleteFunc(slices.Clone(joins), func(j join) bool { return j.Doubt == "" }))
		measured := slices.ContainsFunc(joins, func(j join) bool { return j.Measured })
		switch {
		case doubtful > 0:
			parts = append(parts, fmt.Sprintf("%s, %d uncertain", webpage.Plural(len(joins), "join"), doubtful))
			v.Grade, v.Word = "warning", "Check"
		case !measured:
			parts = append(parts, webpage.Plural(len(joins), "join")+", not measured")
		default:
			parts = append(parts, webpage.Plural(len(joins), "join")+", none uncertain")
		}
	}
	if n := len(r.missing()); n > 0 {
		parts = append(parts, webpage.Plural(n, "slice")+" missing")
		v.Grade, v.Word = "warning", "Check"
	}
	if n := count["warning"]; n > 0 {
		parts = append(parts, webpage.Plural(n, "warning"))
		v.Grade, v.Word = "warning", "Check"
	}
	if n := count["error"]; n > 0 {
		parts = append(parts, webpage.Plural(n, "error"))
		v.Grade, v.Word = "error", "Failed"
	}
	if v.Text = strings.Join(parts, " · "); v.Text == "" {
		v.Text = "nothing to report"
	} else if v.Grade == "good" {
		v.Text += " · no warnings"
	}
	return v
}

// voxel returns the voxel size (z, y, x) in µm of what a program wrote, by its records; false where they do not say.
func (r *Report) voxel(tool string) (v [3]float64, ok bool) {
	for _, run := range r.Runs {
		if run.Tool != tool {
			continue
		}
		for _, d := range slices.Concat(run.Outputs, run.Inputs) {
			if size, ok := voxelOf(d); ok {
				return size, true
			}
		}
	}
	return v, false
}

// voxelOf returns the voxel size of a 3-D image in a record.
func voxelOf(d runrecord.Dataset) (v [3]float64, ok bool) {
	if len(d.VoxelSize) != 3 {
		return v, false
	}
	copy(v[:], d.VoxelSize)
	return v, webpage.Finite(v[0]) && v[0] > 0
}

// depth writes a number of planes along z of a program's images as a length in µm, or in planes where the records do
// not say how thick they are.
type depth struct {
	um   float64 // of a plane; 1 where it is not known
	unit string
}

func (r *Report) depth(tool string) depth {
	if v, ok := r.voxel(tool); ok {
		return depth{v[0], "µm"}
	}
	return depth{1, "planes"}
}

// of returns the length of a number of planes as text, with the unit.
func (d depth) of(planes float64) string { return webpage.Short(planes*d.um) + " " + d.unit }

// cell returns the length of a number of planes as a table's cell. The head of the column names the unit.
func (d depth) cell(planes float64) cell { return number(planes*d.um, webpage.Short(planes*d.um)) }
