package sliceconfig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/metrics"
	"strata/pkg/oct"
	"strata/pkg/registration"
	"strata/pkg/smallfile"
)

// ReadManifests reads the interpolation manifests (*.csv) of a folder, in the order of their names, with a row per
// slice: of several for one slice the last counts, with a warning.
func ReadManifests(ctx context.Context, dir string) (out []registration.Filled, warnings []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, oct.InputFault(err)
	}
	from := map[int]string{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !strings.HasSuffix(e.Name(), ".csv") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		f, err := smallfile.Open(ctx, path)
		if err != nil {
			return nil, nil, oct.InputFault(err)
		}
		rows, err := registration.ReadManifest(f, path)
		f.Close()
		if err != nil {
			return nil, nil, oct.InputFault(err)
		}
		for _, row := range rows {
			if before, ok := from[row.Slice]; ok {
				warnings = append(warnings, fmt.Sprintf("%s: replaces what %s says of slice %d", path, before, row.Slice))
				out = slices.DeleteFunc(out, func(o registration.Filled) bool { return o.Slice == row.Slice })
			}
			from[row.Slice] = path
			out = append(out, row)
		}
	}
	slices.SortFunc(out, func(a, b registration.Filled) int { return a.Slice - b.Slice })
	return out, warnings, nil
}

// Finalise notes in a configuration what came of the interpolation of missing slices. A slice that the table lacks is
// added, not used.
func Finalise(t *registration.SliceTable, filled []registration.Filled) {
	for _, f := range filled {
		row := t.Stamp(f.Slice)
		row.SetBool(registration.Interpolated, !f.Failed)
		row.SetBool(registration.InterpolationFailed, f.Failed)
		used := f.Used
		if f.Failed {
			used = ""
		}
		row.Set(registration.InterpolationMethod, used)
		row.Set(registration.InterpolationReason, f.Reason)
	}
}

// FinaliseMetrics returns the metrics of the step. output is the path of the table.
func FinaliseMetrics(output string, filled []registration.Filled) *metrics.Step {
	done, failed := []int{}, []int{}
	reasons, methods := map[string]any{}, map[string]any{}
	count := func(m map[string]any, key string) {
		n, _ := m[key].(int)
		m[key] = n + 1
	}
	for _, f := range filled {
		if f.Failed {
			failed = append(failed, f.Slice)
		} else {
			done = append(done, f.Slice)
			count(methods, f.Used)
		}
		if f.Reason != "" {
			count(reasons, f.Reason)
		}
	}
	s := metrics.New("slice_interpolation")
	s.Note("output_slice_config", output, "Slice configuration with the interpolated slices marked")
	s.Note("n_fragments", len(filled), "Slices that were missing")
	s.Note("n_interpolated", len(done), "Slices that were interpolated")
	s.Note("n_failed", len(failed), "Slices that are still missing")
	s.Note("interpolated_slice_ids", done, "Numbers of the interpolated slices")
	s.Note("failed_slice_ids", failed, "Numbers of the slices that are still missing")
	s.Note("fallback_reasons", reasons, "Reasons why a method was not used, with the number of slices")
	s.Note("method_counts", methods, "Methods that were used, with the number of slices")
	return s
}
