package qc

import (
	"context"
	"fmt"
	"slices"

	"strata/pkg/registration"
	"strata/pkg/smallfile"
	"strata/pkg/webpage"
)

// BadSlice is a slice that slices assess found faulty, or too unlike its neighbours.
type BadSlice struct {
	ID           int
	Fault        string // or the reason for which it is excluded
	Figures      string // that show it
	Used         bool   // by the table
	Interpolated bool   // made anew from the slices beside it
}

// badReasons lists the reasons for exclusion that concern the slice itself, not its place in the series.
var badReasons = []string{"low_quality", "no_data"}

// loadBad reads slice tables: faults from those that have them, and from all of them whether a slice was interpolated.
func (r *Report) loadBad(ctx context.Context, list []found) error {
	bad, made := map[int]BadSlice{}, map[int]bool{}
	for _, f := range list {
		t, err := readSlices(ctx, f.path)
		if err != nil {
			if err := r.unusable(f, err); err != nil {
				return err
			}
			continue
		}
		for _, id := range t.IDs() {
			row := t.Row(id)
			made[id] = made[id] || row.Bool(registration.Interpolated)
			b := BadSlice{ID: id, Fault: row.Text(registration.Fault), Figures: row.Text(registration.FaultReason), Used: row.Bool(registration.Use)}
			if reason := row.Text(registration.ExcludeReason); b.Fault == "" && !b.Used && slices.Contains(badReasons, reason) {
				b.Fault = reason
				if q := row.Text(registration.QualityScore); q != "" {
					b.Figures = "quality " + q
				}
			}
			if known, ok := bad[id]; b.Fault != "" && (!ok || known.Figures == "") {
				bad[id] = b
			}
		}
	}
	for id, b := range bad {
		b.Interpolated = made[id]
		r.Bad = append(r.Bad, b)
	}
	slices.SortFunc(r.Bad, func(a, b BadSlice) int { return a.ID - b.ID })
	return nil
}

func readSlices(ctx context.Context, path string) (*registration.SliceTable, error) {
	f, err := smallfile.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return registration.ReadSliceTable(f, path)
}

// done says what became of a bad slice.
func (r *Report) done(b BadSlice) string {
	stacked := r.stacked()
	in := slices.Contains(stacked, b.ID)
	switch {
	case in && b.Interpolated:
		return "excluded; an interpolated slice takes its place in the volume"
	case in && b.Used:
		return "kept: it is in the volume"
	case in:
		return "in the volume, without its transform"
	case len(stacked) == 0 && b.Used:
		return "kept"
	case len(stacked) == 0:
		return "excluded"
	case b.Fault == registration.FaultDuplicate:
		return "left out of the volume, in which it had no depth of its own"
	case b.ID < stacked[0] || b.ID > stacked[len(stacked)-1]:
		return "left out: the volume begins or ends without it"
	}
	for _, d := range r.Decisions {
		if d.OverlapSource == "left_out" && d.Fixed < b.ID && b.ID < d.Slice {
			return fmt.Sprintf("left out of the volume; the slicing interval places slice %d behind it", d.Slice)
		}
	}
	return "left out of the volume"
}

// faultNames say faults in words.
var faultNames = map[string]string{
	"no_tissue": "no tissue", "grid": "another grid of tiles", "low_quality": "low quality", "no_data": "no data",
}

// badTable lists the bad slices.
func (r *Report) badTable() *table {
	t := &table{File: "bad-slices.csv", Caption: webpage.Plural(len(r.Bad), "slice") + " that slices assess found faulty, by what figures, and what was done.", Columns: columnsOf("Slice", "Fault", "Figures", "What was done")}
	for _, b := range r.Bad {
		t.Rows = append(t.Rows, []cell{whole(b.ID), text(faultName(b)), text(or(b.Figures, "–")), text(r.done(b))})
	}
	return t.orNone()
}

func faultName(b BadSlice) string { return or(faultNames[b.Fault], b.Fault) }

// badNotices tells of bad slices, unless the program that found them is among the runs and did.
func (r *Report) badNotices(add func(grade, where, run, do, format string, args ...any)) {
	for _, b := range r.Bad {
		mark := fmt.Sprintf("slice %d: %s: ", b.ID, b.Fault)
		if slices.ContainsFunc(r.Runs, func(run Run) bool { return run.warnedOf(mark) }) {
			continue
		}
		what := faultName(b)
		if b.Figures != "" {
			what += ": " + b.Figures
		}
		add("warning", fmt.Sprintf("slice %d", b.ID), "", doBad, "%s; %s", what, r.done(b))
	}
}
