package slices

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/progress"
	"strata/pkg/cli/stage"
	"strata/pkg/oct"
	"strata/pkg/oct/sliceconfig"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/webpage"
	"strata/pkg/zarr/store"
)

// What is done with slices that have a fault.
const (
	faultyExclude = "exclude"
	faultyKeep    = "keep"
	faultyStop    = "stop"
	faultyIgnore  = "ignore"
)

// findFaults looks for slices with a fault, and tells of each. The result is nil only if nobody looked.
func findFaults(ctx context.Context, r *cli.Run, all []sliceconfig.Slice, o sliceconfig.AssessOptions, task *progress.Task) ([]sliceconfig.Fault, error) {
	policy, folder := r.String("faulty_slices"), r.String("mosaics")
	if policy == faultyIgnore {
		if folder != "" {
			return nil, cli.Usage("--mosaics is for finding faulty slices, which --faulty_slices ignore switches off: give one of them")
		}
		return nil, nil
	}
	faults, err := sliceconfig.FindFaults(ctx, all, o, stage.Resources(r, task))
	if err != nil {
		return nil, stage.Failed(err)
	}
	if folder != "" {
		grids, err := gridsOf(ctx, r, folder, all)
		if err != nil {
			return nil, err
		}
		faults = sliceconfig.Merge(faults, sliceconfig.CompareGrids(grids))
	}
	var told []string
	for _, f := range faults {
		what := map[bool]string{true: "kept", false: "excluded"}[policy == faultyKeep || f.Lasting]
		if policy != faultyStop {
			r.Warn("slice %d: %s: %s: %s", f.Slice, f.Name, f.Text, what)
		}
		if !f.Lasting {
			told = append(told, fmt.Sprintf("slice %d: %s: %s", f.Slice, f.Name, f.Text))
		}
	}
	if policy == faultyStop && len(told) > 0 {
		return nil, cli.BadInputf("%s: %s, and --faulty_slices is stop: %s", r.Arg("SLICES_DIR"), webpage.Plural(len(told), "faulty slice"), strings.Join(told, "; "))
	}
	return append([]sliceconfig.Fault{}, faults...), nil
}

// gridsOf returns the grids of the mosaics of slices, in their order. A slice whose mosaic is not in the folder has
// none, which is told.
func gridsOf(ctx context.Context, r *cli.Run, folder string, all []sliceconfig.Slice) (out []sliceconfig.Grid, err error) {
	dir, err := r.Input(folder)
	if err != nil {
		return nil, err
	}
	files, err := slicefiles.FindAny(ctx, dir, "*", store.Settings(r.Options.HTTP))
	if err != nil {
		return nil, stage.Failed(err)
	}
	var absent []int
	for _, s := range all {
		i := slices.IndexFunc(files, func(f slicefiles.File) bool { return f.ID == s.ID })
		if i < 0 {
			absent = append(absent, s.ID)
			continue
		}
		image, err := stage.Open(ctx, r, files[i].Path)
		if err != nil {
			return nil, err
		}
		mosaic, err := oct.OpenMosaic(image)
		if err != nil {
			return nil, stage.Failed(err)
		}
		r.Read(datasets.DescribeImage(image, files[i].Path))
		out = append(out, sliceconfig.GridOf(s.ID, mosaic))
	}
	if len(absent) > 0 {
		r.Warn("%s: there are no mosaics of slices %v: their grids are not known", dir, absent)
	}
	return out, nil
}
