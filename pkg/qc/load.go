package qc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/oct"
	"strata/pkg/registration"
	"strata/pkg/runrecord"
	"strata/pkg/smallfile"
)

// Load reads the files named in the sources and those found in their folders. It draws pictures of maps with
// the given resources; [Report.Fit] reads those in files.
func Load(ctx context.Context, s Sources, res oct.Resources) (*Report, error) {
	lists, err := s.lists()
	if err != nil {
		return nil, err
	}
	r := &Report{Problems: s.empty(lists)}
	lists["shifts"] = asRecorded(ctx, lists["shifts"], lists["cleaned"])
	for _, load := range []func() error{
		func() error { return r.loadRecords(ctx, lists["reports"]) },
		func() error { return readTable(ctx, r, lists["shifts"], &r.Shifts, registration.ReadShifts) },
		func() error { return readTable(ctx, r, lists["cleaned"], &r.Cleaned, registration.ReadShiftTable) },
		func() error { return r.loadDrift(ctx, lists["drift"], res.Mem) },
		func() error { return readTable(ctx, r, lists["found"], &r.Found, registration.ReadFoundShifts) },
		func() error { return readTable(ctx, r, lists["matches"], &r.Matches, registration.ReadMatches) },
		func() error { return readTable(ctx, r, lists["decisions"], &r.Decisions, registration.ReadDecisions) },
		func() error { return r.loadBad(ctx, lists["slices"]) },
		func() error { return readTable(ctx, r, lists["missing"], &r.Missing, readMissing) },
		func() error { return readTable(ctx, r, lists["trace"], &r.Trace, readTrace) },
		func() error { return r.loadFacts(ctx, lists["stitch"], &r.Stitch, "", (*Facts).stitched) },
		func() error { return r.loadFacts(ctx, lists["crop"], &r.Crop, "_crop", (*Facts).cropped) },
		func() error { return r.loadSteps(ctx, lists["metrics"]) },
		func() error { return r.loadDiagnostics(ctx, lists["diagnostics"], res.Mem) },
		func() error { return r.loadMaps(ctx, lists["focal"], res) },
		func() error { return r.loadPreviews(ctx, lists["previews"], res.Mem) },
		func() error { return r.checkTogether(ctx, lists) },
	} {
		if err := load(); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if r.Shifts == nil && r.Cleaned != nil {
		r.Shifts, r.unrecorded = r.Cleaned.Shifts(), true
	}
	return r, nil
}

// lists returns the files of each kind: those that are named, and, for kinds that are not, those found in the
// run's folder.
func (s Sources) lists() (map[string][]found, error) {
	lists := map[string][]found{}
	if s.Run != "" {
		var err error
		if lists, err = find(s.Run); err != nil {
			return nil, err
		}
	}
	// What is named takes the place of what would be found.
	for kind, named := range map[string][]string{"reports": s.Reports, "previews": s.Previews, "stitch": s.Stitch, "crop": s.Crop, "metrics": s.Metrics} {
		if len(named) == 0 {
			continue
		}
		list, err := files(named, map[string]string{"reports": ".json", "previews": ".png", "stitch": ".json", "crop": ".json", "metrics": metricsEnding}[kind])
		if err != nil {
			return nil, err
		}
		lists[kind] = list
	}
	if len(s.Drift) > 0 {
		list, err := files(s.Drift, plotEndings...)
		if err != nil {
			return nil, err
		}
		lists["drift"] = list
	}
	if len(s.Diagnosed) > 0 {
		list, err := diagnosed(s.Diagnosed)
		if err != nil {
			return nil, err
		}
		lists["diagnostics"] = list
	}
	if lists["cleaned"] == nil { // what the workflow's positions follow comes first
		lists["cleaned"] = lists["filtered"]
	}
	delete(lists, "filtered")
	for i, name := range s.Overviews {
		lists["previews"] = slices.Insert(slices.Clone(lists["previews"]), i, found{name, true})
	}
	for kind, name := range map[string]string{"shifts": s.Shifts, "cleaned": s.Cleaned, "found": s.Found, "matches": s.Matches, "decisions": s.Decisions, "slices": s.Slices, "missing": s.Missing, "trace": s.Trace} {
		if name != "" {
			lists[kind] = []found{{name, true}}
		}
	}
	if len(s.Focal) > 0 {
		lists["focal"] = nil
		for _, f := range s.Focal {
			lists["focal"] = append(lists["focal"], found{f, true})
		}
	}
	return lists, nil
}

// empty reports which of the named folders hold nothing to show.
func (s Sources) empty(lists map[string][]found) (problems []string) {
	if n := 0; s.Run != "" {
		for _, list := range lists {
			n += len(list)
		}
		if n == 0 {
			problems = append(problems, s.Run+": nothing in this folder that a report shows: no reports/*.json, previews/*.png, z_matches.csv or the like")
		}
	}
	for _, kind := range []struct {
		name, what string
		named      []string
	}{{"reports", "run records (*.json)", s.Reports}, {"previews", "pictures (*.png)", s.Previews}, {"stitch", "JSON files", s.Stitch}, {"crop", "JSON files", s.Crop}, {"metrics", "metrics (*" + metricsEnding + ")", s.Metrics}, {"drift", "plots (*.svg, *.png)", s.Drift}} {
		for _, folder := range kind.named {
			if !slices.ContainsFunc(lists[kind.name], func(f found) bool { return f.path == folder || filepath.Dir(f.path) == filepath.Clean(folder) }) {
				problems = append(problems, folder+": no "+kind.what+" in this folder")
			}
		}
	}
	for _, folder := range s.Diagnosed {
		if !slices.ContainsFunc(lists["diagnostics"], func(f found) bool { return isBelow(f.path, folder) }) {
			problems = append(problems, folder+": no diagnostics in this folder (metrics.json, rotation_analysis.json, pictures)")
		}
	}
	return problems
}

// Files returns the files that a report of these sources reads, and the folders of maps.
func (s Sources) Files() ([]string, error) {
	lists, err := s.lists()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, list := range lists {
		for _, f := range list {
			out = append(out, f.path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// unusable handles a file that is not what it should be: it returns an error if the file was named, and
// records a problem in the report if it was found.
func (r *Report) unusable(f found, err error) error {
	if f.named || errors.Is(err, context.Canceled) {
		return inputError{err}
	}
	text := err.Error()
	if p := (*fs.PathError)(nil); errors.As(err, &p) && text == p.Error() {
		text = p.Path + ": " + p.Err.Error()
	}
	r.Problems = append(r.Problems, text)
	return nil
}

func (r *Report) loadRecords(ctx context.Context, list []found) error {
	for _, f := range list {
		rec, err := runrecord.Read(ctx, f.path)
		if err != nil {
			if err := r.unusable(f, fmt.Errorf("%s: %w", f.path, plainJSON(err, f.path))); err != nil {
				return err
			}
			continue
		}
		r.Runs = append(r.Runs, Run{strings.TrimSuffix(filepath.Base(f.path), ".json"), rec})
	}
	slices.SortStableFunc(r.Runs, func(a, b Run) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// readTable reads the first file of a list, if there is one, and reports the others as not used.
func readTable[T any](ctx context.Context, r *Report, list []found, to *T, parse func(f io.Reader, name string) (T, error)) error {
	if len(list) == 0 {
		return nil
	}
	f := list[0]
	for _, other := range list[1:] {
		r.Problems = append(r.Problems, fmt.Sprintf("%s: not used, %s is", other.path, f.path))
	}
	file, err := smallfile.Open(ctx, f.path)
	if err == nil {
		defer file.Close()
		*to, err = parse(file, f.path)
	}
	if err != nil {
		return r.unusable(f, err)
	}
	return nil
}

// checkTogether reports files that differ from what the records say was written under their names: a run that
// is killed while it replaces its outputs leaves new files beside the records and images of the run before.
func (r *Report) checkTogether(ctx context.Context, lists map[string][]found) error {
	wrote, by := map[string][]string{}, map[string]string{}
	for _, run := range r.Runs {
		for _, f := range run.Files {
			name := filepath.Base(f.Path)
			wrote[name] = append(wrote[name], f.Digest)
			by[name] = run.Tool
		}
	}
	for _, kind := range []string{"matches", "decisions", "stitch", "crop", "focal", "previews"} {
		for _, f := range lists[kind] {
			name := filepath.Base(f.path)
			// Pictures that preview made have the names of projections, and no digests.
			if wrote[name] == nil || filepath.Base(filepath.Dir(f.path)) == "previews" {
				continue
			}
			same, err := runrecord.Wrote(ctx, f.path, wrote[name])
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil && !same { // what cannot be read is said elsewhere
				r.Problems = append(r.Problems, fmt.Sprintf("%s: is not what %s wrote by the records: one of them is of another run, or was changed", f.path, by[name]))
			}
		}
	}
	return nil
}
