package qc

import (
	"fmt"
	"strconv"
	"strings"

	"strata/pkg/registration"
	"strata/pkg/webpage"
)

func pairName(fixed, moving int) string { return fmt.Sprintf("%d–%d", fixed, moving) }

// matchTable lists the overlaps as they were measured.
func (r *Report) matchTable() *table {
	d := r.depth("stack")
	t := &table{File: "joins.csv", Caption: "Overlap of neighbouring slices as measured, before the consistency check.",
		Columns: columnsOf("Slices", "Overlap, "+d.unit+"|n", "Blended, "+d.unit+"|n", "First depth used, "+d.unit+"|n", "Correlation|n", "Result")}
	for i, j := range r.joins() {
		if i >= len(r.Matches) {
			break
		}
		m := r.Matches[i]
		correlation := text("–")
		if j.Measured {
			correlation = fixed(j.Correlation, 3)
		}
		t.Rows = append(t.Rows, []cell{text(pairName(m.Fixed, m.Moving)).at(r.spots[[2]int{m.Fixed, m.Moving}]), d.cell(float64(m.Overlap)), d.cell(float64(m.BlendOverlap)), d.cell(float64(m.MovingZ)), correlation, text(j.result())})
	}
	return t.orNone()
}

// decisionTable lists what stack did with each slice.
func (r *Report) decisionTable() *table {
	d := r.depth("stack")
	t := &table{File: "decisions.csv", Caption: "How each slice was placed, after the consistency check.",
		Columns: columnsOf("Slice", "On slice", "Transform", "Confidence|n", "Overlap from", "Overlap, "+d.unit+"|n", "Blended, "+d.unit+"|n", "Correlation|n")}
	for _, s := range r.Decisions {
		transform := "none"
		if s.TransformLoaded {
			transform = or(s.TransformSource, "loaded")
		}
		if s.ManualOverride {
			transform += " (manual override)"
		}
		t.Rows = append(t.Rows, []cell{whole(s.Slice), whole(s.Fixed), text(transform), written(or(s.Confidence, "–")), text(overlapFrom(s.OverlapSource)),
			d.cell(float64(s.Overlap)), d.cell(float64(s.BlendOverlap)), written(correlationOf(s))})
	}
	return t.orNone()
}

// written returns a cell of a number as a table has it, with three decimals on the page; other text stays.
func written(s string) cell {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !webpage.Finite(v) {
		return text(s)
	}
	return cell{Text: strconv.FormatFloat(v, 'f', 3, 64), Value: s}
}

// correlationOf returns the correlation of a decision as the table has it, or a dash where none was measured.
func correlationOf(d registration.Decision) string {
	v, err := strconv.ParseFloat(d.Correlation, 64)
	if err == nil && d.OverlapSource != "correlation_fallback" && !measured(v, d.OverlapSource == registered) {
		return "–"
	}
	return or(d.Correlation, "–")
}

// factTables list what stitch and crop left: what is known of it in our words, and other files as they are.
func (r *Report) factTables() (out []*table) {
	for _, k := range []struct {
		files                 []*Facts
		file, caption, others string
	}{
		{r.Stitch, "stitching", "Stitching of each slice. Difference at seams: mean absolute difference of two tiles where they overlap, relative to the mean there.", "Transforms and other files of stitch."},
		{r.Crop, "cropping", "Cropping of each slice.", "Other files of crop."},
	} {
		known, others := apart(k.files)
		for _, g := range []struct {
			files         []*Facts
			first, suffix string
			caption, how  string
		}{{known, "Slice", "", k.caption, "facts known"}, {others, "File", "-files", k.others, "facts"}} {
			names := columns(g.files)
			t := &table{File: k.file + g.suffix + ".csv", Caption: g.caption, Columns: []column{{Name: g.first}}, Class: g.how}
			for _, n := range names {
				t.Columns = append(t.Columns, column{Name: n})
			}
			for _, f := range g.files {
				row := []cell{text(f.Name)}
				for _, n := range names {
					c := text(f.Cell(n))
					if n == seamWorst && f.worst != nil {
						c = c.at(r.seamSpot(f, *f.worst))
					}
					row = append(row, c)
				}
				t.Rows = append(t.Rows, row)
			}
			if t.orNone() != nil {
				out = append(out, t)
			}
		}
	}
	return out
}

// stageTable sums the runs up by program.
func stageTable(all []*Stage) *table {
	t := &table{File: "stages.csv", Caption: "All runs of each program. MB/s: uncompressed voxels of the inputs per second of wall time. Time spent: busy time of all workers.",
		Columns: columnsOf("Program", "Runs|n", "Wall time|n|s", "Median|n|s", "Longest|n|s", "MB/s|n", "Read|n|bytes", "Written|n|bytes", "Peak memory|n|bytes", "Time spent")}
	for _, s := range all {
		runs := whole(s.Runs)
		if s.Failed > 0 {
			runs.Bad = fmt.Sprintf("(%d failed)", s.Failed)
		}
		longest := number(s.Longest, webpage.Seconds(s.Longest))
		longest.Tip = s.LongestName
		spent := text("–")
		if parts := s.parts(); len(parts) > 0 {
			spent = cell{Parts: parts, Value: barLabel(parts)}
		}
		t.Rows = append(t.Rows, []cell{text(s.Tool), runs, number(s.Wall, webpage.Seconds(s.Wall)), number(s.Median, webpage.Seconds(s.Median)), longest,
			text(s.MBs()), number(float64(s.Read), webpage.Size(s.Read)), number(float64(s.Written), webpage.Size(s.Written)), number(float64(s.Peak), webpage.Size(s.Peak)), spent})
	}
	return t.orNone()
}

// runTable lists every run record.
func (r *Report) runTable() *table {
	t := &table{File: "runs.csv", Caption: "Every run record, in the order of their starts.",
		Columns: columnsOf("Run", "Program", "Wall time|n|s", "Workers|n", "Peak memory|n|bytes", "Read|n|bytes", "Written|n|bytes", "Exit code|n", "Arguments")}
	for _, run := range r.Runs {
		var args []string
		for _, a := range run.Arguments {
			args = append(args, a.String())
		}
		t.Rows = append(t.Rows, []cell{text(run.Name), text(strings.TrimSpace(run.Tool + " " + run.Command)), number(run.WallSeconds, webpage.Seconds(run.WallSeconds)), whole(run.Threads),
			number(float64(run.PeakResidentBytes), webpage.Size(run.PeakResidentBytes)), number(float64(run.BytesRead), webpage.Size(run.BytesRead)),
			number(float64(run.BytesWritten), webpage.Size(run.BytesWritten)), whole(run.ExitCode), {Text: strings.Join(args, " "), Code: true}})
	}
	return t.orNone()
}

// orNone returns nil in place of a table without rows.
func (t *table) orNone() *table {
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// parts are the shares of the phases in the busy time.
func (s *Stage) parts() (out []part) {
	total := 0.0
	for _, p := range s.Phases {
		total += p
	}
	for i, p := range s.Phases {
		if total > 0 && p > 0 {
			out = append(out, part{fmt.Sprintf("p%d", i+1), phaseNames[i], 100 * p / total, p})
		}
	}
	return out
}

// barLabel says in words what a bar of parts shows.
func barLabel(parts []part) string {
	var words []string
	for _, p := range parts {
		words = append(words, fmt.Sprintf("%s %.0f %%", p.Name, p.Percent))
	}
	return strings.Join(words, ", ")
}
