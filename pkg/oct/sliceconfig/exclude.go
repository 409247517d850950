package sliceconfig

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/metrics"
	"strata/pkg/oct"
	"strata/pkg/pattern"
	"strata/pkg/registration"
	"strata/pkg/smallfile"
)

// Correlation is how well a slice's registration fits along z.
type Correlation struct {
	Slice int
	Value float64
	Known bool // or else the metrics state no value
	Path  string
}

// pairMetrics is the name of the metrics of a pairwise registration.
const pairMetrics = "pairwise_registration_metrics.json"

// Limits of the folders that ReadCorrelations looks into.
const (
	mostDepth   = 8
	mostFolders = 100_000
)

var registered = pattern.Lazy(`slice_z(\d+)`)

// ReadCorrelations reads the metrics of all pairwise registrations below a folder, by the number in the name of the
// folder that they lie in (slice_z<NN>…), ordered by slice. It follows links. Of two for one slice the first by path
// counts, with a warning.
func ReadCorrelations(ctx context.Context, dir string) (out []Correlation, warnings []string, err error) {
	paths, err := findAll(ctx, dir, pairMetrics)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		m := registered().FindStringSubmatch(filepath.Base(filepath.Dir(path)))
		if m == nil {
			warnings = append(warnings, fmt.Sprintf("%s: not used: its folder is not named slice_z<NN>", path))
			continue
		}
		id, err := strconv.Atoi(m[1])
		if err != nil || id > 1e9 {
			return nil, nil, oct.BadInput("%s: the number of the slice is too large", path)
		}
		if k := slices.IndexFunc(out, func(c Correlation) bool { return c.Slice == id }); k >= 0 {
			warnings = append(warnings, fmt.Sprintf("%s: not used: %s is of slice %d too", path, out[k].Path, id))
			continue
		}
		c := Correlation{Slice: id, Path: path}
		f, err := smallfile.Open(ctx, path)
		if err != nil {
			return nil, nil, oct.InputFault(err)
		}
		step, err := metrics.Read(f, path)
		f.Close()
		if err != nil {
			return nil, nil, oct.InputFault(err)
		}
		if value, ok := step.Metric("z_correlation"); ok {
			c.Value, c.Known = value.Value.(float64)
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Correlation) int { return cmp.Compare(a.Slice, b.Slice) })
	return out, warnings, nil
}

// findAll returns the paths of all files of a name below a folder, in order, through links too.
func findAll(ctx context.Context, root, name string) (found []string, err error) {
	type folder struct {
		path  string
		depth int
	}
	seen := map[string]bool{}
	for queue := []folder{{root, 0}}; len(queue) > 0; queue = queue[1:] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f := queue[0]
		if real, err := filepath.EvalSymlinks(f.path); err != nil || seen[real] {
			continue
		} else if seen[real] = true; len(seen) > mostFolders {
			return nil, oct.BadInput("%s: there are more than %d folders below it", root, mostFolders)
		}
		entries, err := os.ReadDir(f.path)
		if err != nil {
			return nil, oct.InputFault(err)
		}
		for _, e := range entries {
			path := filepath.Join(f.path, e.Name())
			if e.Name() == name {
				found = append(found, path)
				continue
			}
			if f.depth >= mostDepth || strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(e.Name(), ".zarr") {
				continue
			}
			info, err := os.Stat(path)
			if err != nil && e.Type()&fs.ModeSymlink != 0 {
				if lost := smallfile.Lost(path); lost != nil {
					return nil, oct.InputFault(lost) // reports may be behind it
				}
			}
			if e.IsDir() || e.Type()&fs.ModeSymlink != 0 && err == nil && info.IsDir() {
				queue = append(queue, folder{path, f.depth + 1})
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// ExcludeOptions are the options of [Exclude].
type ExcludeOptions struct {
	Consecutive int     // length from which on a run of slices is excluded
	Threshold   float64 // correlation below which a slice counts
}

// DefaultExcludeOptions returns the defaults.
func DefaultExcludeOptions() ExcludeOptions { return ExcludeOptions{Consecutive: 3, Threshold: 0.4} }

// lowRun is the reason for an exclusion.
const lowRun = "consecutive_low_z_corr"

// Exclude marks the runs of slices whose correlation is low: maximal runs of slices with consecutive numbers, each with
// a value below the threshold, that are long enough. A number that is missing and a registration without a value end a
// run. A slice that the table lacks is added, not used. It returns the runs.
func Exclude(t *registration.SliceTable, all []Correlation, o ExcludeOptions) (runs [][]int) {
	var run []int
	end := func() {
		if len(run) >= o.Consecutive && len(run) > 0 {
			runs = append(runs, run)
		}
		run = nil
	}
	for i, c := range all {
		if i > 0 && c.Slice != all[i-1].Slice+1 {
			end()
		}
		if !c.Known || !(c.Value < o.Threshold) {
			end()
			continue
		}
		run = append(run, c.Slice)
	}
	end()
	for _, id := range slices.Concat(runs...) {
		row := t.Stamp(id)
		row.SetBool(registration.AutoExcluded, true)
		row.Set(registration.AutoExcludeReason, lowRun)
	}
	return runs
}

// ExcludeMetrics returns the metrics of the step. output is the path of the table.
func ExcludeMetrics(output string, all []Correlation, runs [][]int, o ExcludeOptions) *metrics.Step {
	total := 1
	for _, c := range all {
		if c.Known {
			total++
		}
	}
	ids := numbers(slices.Concat(runs...))
	s := metrics.New("auto_exclude")
	s.Note("output_slice_config", output, "Slice configuration with the excluded slices marked")
	s.Note("num_total_slices", total, "Slices considered")
	s.Note("num_auto_excluded", len(ids), "Slices excluded by this step")
	s.Note("auto_excluded_slice_ids", ids, "Numbers of these slices")
	s.Note("num_clusters", len(runs), "Runs of slices with a low correlation")
	s.Note("z_corr_threshold", o.Threshold, "Correlation below which a slice counts")
	s.Note("consecutive_threshold", o.Consecutive, "Length from which on a run is excluded")
	return s
}

// numbers returns a list that JSON encodes as [], and not as null, if it is empty.
func numbers(ids []int) []int { return append([]int{}, ids...) }
