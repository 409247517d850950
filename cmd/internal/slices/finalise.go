package slices

import (
	"context"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/sliceconfig"
)

func finaliseCommand() *cli.Command {
	return &cli.Command{
		Name:  "finalise",
		Usage: "note which missing slices were interpolated",
		Description: "Reads the manifests (*.csv) that interpolate wrote for each missing slice, and notes in the table whether the slice\n" +
			"was interpolated, how, and why not. A slice that the table lacks gets a row with use=false.\n\n" +
			"Writes the counts next to OUT, as slice_interpolation_metrics.json.",
		Args: []cli.Arg{
			{Name: "MANIFESTS_DIR", Usage: "folder of manifests (CSV)"},
			{Name: "IN", Usage: "slice configuration (CSV)"},
			{Name: "OUT", Usage: "CSV to write"},
		},
		Shared: cli.Outputs,
		Examples: []cli.Example{
			{Command: "slices finalise interpolated/ slice_config.csv slice_config_final.csv", Usage: "the last table of a run"},
			{Command: "slices finalise interpolated/ slice_config.csv slice_config_final.csv -f", Usage: "replace that of an earlier run"},
		},
		Run: cli.Do(runFinalise),
	}
}

func runFinalise(ctx context.Context, r *cli.Run) error {
	dir, table, err := folderAndTable(ctx, r, "MANIFESTS_DIR")
	if err != nil {
		return err
	}
	filled, warnings, err := sliceconfig.ReadManifests(ctx, dir)
	if err != nil {
		return stage.Failed(err)
	}
	told(r, dir, warnings)
	sliceconfig.Finalise(table, filled)
	if err := stage.WriteFile(r, r.Arg("OUT"), table.Write); err != nil {
		return err
	}
	r.Conclude("%d missing slices", len(filled))
	return writeBeside(r, r.Arg("OUT"), "slice_interpolation_metrics.json", sliceconfig.FinaliseMetrics(r.Arg("OUT"), filled))
}
