package shifts

import (
	"context"
	"io"
	"path/filepath"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/shifts"
	"strata/pkg/registration"
)

func analyzeCommand() *cli.Command {
	o := shifts.DefaultAnalyzeOptions()
	return &cli.Command{
		Name:  "analyze",
		Usage: "describe the drift of slices, and what it would be without outliers",
		Description: "Writes three files into DIR: shifts_analysis.txt (statistics, outliers, drift), drift_analysis.svg (plots of\n" +
			"the shifts and the drift) and shifts_filtered.csv, the table with outliers replaced by the median of the shifts\n" +
			"near them.\n\n" +
			"An outlier is longer than the third quartile of the lengths by --iqr_multiplier interquartile ranges.",
		Args:   []cli.Arg{tableArg(), {Name: "DIR", Usage: "folder to write into"}},
		Shared: cli.Outputs,
		Flags: []cli.Flag{
			cli.Bind(&o.Resolution, cli.Flag{Name: "resolution", Check: cli.VoxelSize, Value: "UM", Usage: "voxel size in µm, for drifts in pixels"}),
			cli.Bind(&o.IQRMultiplier, cli.Flag{Name: "iqr_multiplier", Check: cli.AtLeast(0), Usage: "number of interquartile ranges above the third quartile at which outliers begin"}),
		},
		Examples: []cli.Example{
			{Command: "shifts analyze shifts_xy.csv shifts/", Usage: "text, plots and a filtered table"},
			{Command: "shifts analyze shifts_xy.csv shifts/ --resolution 25 --iqr_multiplier 3 -f", Usage: "drift in pixels of 25 µm, only far outliers; replace an older analysis"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error { return runAnalyze(ctx, r, o) }),
	}
}

func runAnalyze(ctx context.Context, r *cli.Run, o shifts.AnalyzeOptions) error {
	table, err := stage.ReadFile(ctx, r, r.Arg("IN"), registration.ReadShiftTable)
	if err != nil {
		return err
	}
	a, err := shifts.Analyze(table, o)
	if err != nil {
		return cli.BadInputf("%s: %w", table.Name, err)
	}
	dir := r.Arg("DIR")
	if err := stage.WriteFile(r, filepath.Join(dir, "shifts_analysis.txt"), func(w io.Writer) error {
		_, err := io.WriteString(w, a.Text())
		return err
	}); err != nil {
		return err
	}
	table.Rows = a.Filtered
	if err := stage.WriteFile(r, filepath.Join(dir, "shifts_filtered.csv"), func(w io.Writer) error { return table.Write(w, false) }); err != nil {
		return err
	}
	r.Conclude("%d of %d shifts are outliers", len(a.Outliers), len(a.Rows))
	return stage.WriteFile(r, filepath.Join(dir, "drift_analysis.svg"), a.WritePlot)
}
