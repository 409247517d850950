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

func cleanCommand() *cli.Command {
	o := shifts.DefaultCleanOptions()
	return &cli.Command{
		Name:  "clean",
		Usage: "repair shifts that a stage recorded while it had lost its reference",
		Description: "Writes the table again, with wrong shifts replaced and a column \"reliable\" (1 or 0). Two kinds are repaired:\n" +
			"shifts that contain whole tiles (--tile_fov_mm), and shifts longer than --max_shift_mm that the shift before\n" +
			"or after cancels, because the stage went astray and came back. The latter become the median of the shifts near\n" +
			"them. Other long shifts are kept, and are not reliable.\n\n" +
			"Writes the counts next to OUT, as rehoming_detection_metrics.json.",
		Args:   []cli.Arg{tableArg(), {Name: "OUT", Usage: "CSV to write, with all columns of IN"}},
		Shared: cli.Outputs,
		Flags: []cli.Flag{
			cli.Bind(&o.ReturnFraction, cli.Flag{Name: "return_fraction", Check: cli.Between(0, 1), Usage: "two shifts cancel if their sum is shorter than this fraction of the one that is judged, 0 to 1"}),
			cli.Bind(&o.MaxShiftMM, cli.Flag{Name: "max_shift_mm", Check: cli.Above(0), Value: "MM", Usage: "length from which on a shift is suspect, in mm"}),
			{Name: "tile_fov_mm", Kind: cli.Float, Note: "off", Check: cli.Above(0), Value: "MM", Usage: "width of a tile in mm: remove whole tiles from shifts"},
			cli.Bind(&o.TileFOVTolerance, cli.Flag{Name: "tile_fov_tolerance", Check: cli.Between(0, 0.5), Usage: "how far a shift may be from whole tiles for --tile_fov_mm, as a fraction of a tile, 0 to 0.5"}),
			{Name: "diagnostics", Value: "DIR", Usage: "write every correction (rehoming_report.json) and a plot (rehoming_plot.svg) into this folder"},
			{Name: "slice_config_in", Value: "CSV", Usage: "slice configuration to note in which slices were corrected; needs --slice_config_out"},
			{Name: "slice_config_out", Value: "CSV", Usage: "file to write that slice configuration to"},
		},
		Examples: []cli.Example{
			{Command: "shifts clean shifts_xy.csv shifts_xy_clean.csv", Usage: "remove glitches that cancel each other"},
			{Command: "shifts clean shifts_xy.csv shifts_xy_clean.csv --tile_fov_mm 0.875 --diagnostics rehoming/", Usage: "whole tiles of 875 µm too; write a plot and a list"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error { return runClean(ctx, r, o) }),
	}
}

func runClean(ctx context.Context, r *cli.Run, o shifts.CleanOptions) error {
	o.TileFOVMM = r.Float("tile_fov_mm")
	configIn, configOut := r.String("slice_config_in"), r.String("slice_config_out")
	if (configIn == "") != (configOut == "") {
		return cli.Usage("--slice_config_in and --slice_config_out belong together: give both")
	}
	table, err := stage.ReadFile(ctx, r, r.Arg("IN"), registration.ReadShiftTable)
	if err != nil {
		return err
	}
	var config *registration.SliceTable
	if configIn != "" {
		if config, err = stage.ReadFile(ctx, r, configIn, registration.ReadSliceTable); err != nil {
			return err
		}
	}
	cleaned := shifts.Clean(table, o)
	if err := stage.WriteFile(r, r.Arg("OUT"), func(w io.Writer) error { return table.Write(w, false) }); err != nil {
		return err
	}
	for _, i := range cleaned.Unreliable {
		row := table.Rows[i]
		r.Warn("%s: the shift from slice %d to %d, (%.3f, %.3f) mm, is longer than %g mm and nothing cancels it: kept as not reliable",
			table.Name, row.Fixed, row.Moving, row.X, row.Y, o.MaxShiftMM)
	}
	if config != nil {
		if missing := cleaned.Stamp(config, table); len(missing) > 0 {
			r.Warn("%s: slices %v of the shifts have no row: not added", configIn, missing)
		}
		if err := stage.WriteFile(r, configOut, config.Write); err != nil {
			return err
		}
	}
	if dir := r.String("diagnostics"); dir != "" {
		if err := stage.WriteFile(r, filepath.Join(dir, "rehoming_report.json"), stage.JSON(cleaned)); err != nil {
			return err
		}
		if len(table.Rows) > 0 {
			plot := func(w io.Writer) error { return cleaned.WritePlot(w, table) }
			if err := stage.WriteFile(r, filepath.Join(dir, "rehoming_plot.svg"), plot); err != nil {
				return err
			}
		}
	}
	r.Conclude("%d of %d shifts corrected", cleaned.Changed, cleaned.Rows)
	beside := filepath.Join(filepath.Dir(r.Arg("OUT")), "rehoming_detection_metrics.json")
	return stage.WriteFile(r, beside, stage.MetricsJSON(cleaned.Metrics(r.Arg("OUT"))))
}
