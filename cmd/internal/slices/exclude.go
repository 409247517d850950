package slices

import (
	"context"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/sliceconfig"
	"strata/pkg/webpage"
)

func excludeCommand() *cli.Command {
	o := sliceconfig.DefaultExcludeOptions()
	return &cli.Command{
		Name:  "exclude",
		Usage: "exclude runs of slices that resemble the slice before them too little",
		Description: "Reads the z correlation that register found for each slice (pairwise_registration_metrics.json in the folders\n" +
			"slice_z<NN>… below TRANSFORMS_DIR). Slices with a correlation below --z_corr_threshold get auto_excluded=true if there\n" +
			"are at least --consecutive_threshold in a row: stack then places them by their neighbours. One bad slice on its own\n" +
			"is not excluded. A missing slice, or one without a value, ends a run.\n\n" +
			"Speckle and noise lower the correlation of good slices too: look at the values of a series (qc-report, z_correlation)\n" +
			"before you set a threshold. linumpy's workflow has 0.6, which excludes good slices of speckled volumes.\n\n" +
			"Writes the counts next to OUT, as auto_exclude_metrics.json. Without any metrics, OUT is the table as it was.",
		Args: []cli.Arg{
			{Name: "TRANSFORMS_DIR", Usage: "folder of pairwise registrations"},
			{Name: "IN", Usage: "slice configuration (CSV)"},
			{Name: "OUT", Usage: "CSV to write"},
		},
		Shared: cli.Outputs,
		Flags: []cli.Flag{
			cli.Bind(&o.Consecutive, cli.Flag{Name: "consecutive_threshold", Value: "N", Check: cli.AtLeast(1), Usage: "number of slices in a row from which on they are excluded, from 1"}),
			cli.Bind(&o.Threshold, cli.Flag{Name: "z_corr_threshold", Value: "R", Check: cli.Between(-1, 1), Usage: "correlation below which a slice counts, -1 to 1"}),
		},
		Examples: []cli.Example{
			{Command: "slices exclude registered/ slice_config.csv slice_config_excluded.csv", Usage: "three or more slices in a row below 0.4"},
			{Command: "slices exclude registered/ slice_config.csv out.csv --z_corr_threshold 0.6 --consecutive_threshold 2", Usage: "stricter"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error { return runExclude(ctx, r, o) }),
	}
}

func runExclude(ctx context.Context, r *cli.Run, o sliceconfig.ExcludeOptions) error {
	dir, table, err := folderAndTable(ctx, r, "TRANSFORMS_DIR")
	if err != nil {
		return err
	}
	all, warnings, err := sliceconfig.ReadCorrelations(ctx, dir)
	if err != nil {
		return stage.Failed(err)
	}
	told(r, dir, warnings)
	runs := sliceconfig.Exclude(table, all, o)
	for _, run := range runs {
		r.Warn("slices %d to %d: correlations below %g: excluded", run[0], run[len(run)-1], o.Threshold)
	}
	if err := stage.WriteFile(r, r.Arg("OUT"), table.Write); err != nil {
		return err
	}
	if len(all) == 0 {
		r.Warn("%s: no pairwise_registration_metrics.json below this folder: nothing is excluded", dir)
		return nil
	}
	r.Conclude("%s of slices excluded", webpage.Plural(len(runs), "run"))
	return writeBeside(r, r.Arg("OUT"), "auto_exclude_metrics.json", sliceconfig.ExcludeMetrics(r.Arg("OUT"), all, runs, o))
}
