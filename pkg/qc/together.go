package qc

import (
	"context"
	"fmt"
	"path/filepath"

	"strata/pkg/runrecord"
)

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
