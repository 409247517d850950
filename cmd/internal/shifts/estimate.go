package shifts

import (
	"context"
	"io"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/shifts"
)

func estimateCommand() *cli.Command {
	return &cli.Command{
		Name:  "estimate",
		Usage: "make the table from the stage's positions of raw tiles",
		Description: "Reads where the stage was for each tile (info.txt in the folders tile_x<XX>_y<YY>_z<ZZ> below DIR) and writes the\n" +
			"shift between each two slices that follow each other: from the edges of the areas that they cover, the left or\n" +
			"the right one, whichever moved less. A shift is not reliable (column \"reliable\", 1 or 0) if the number of rows\n" +
			"or columns of tiles changed.\n\n" +
			"x is the stage's x, along which a frame is recorded. In mosaics that linumpy makes without --preprocess, this is\n" +
			"the axis Y of the file: --swap_xy exchanges the columns.",
		Args: []cli.Arg{
			{Name: "DIR", Usage: "folder of raw tiles, here or in folders below"},
			{Name: "OUT", Usage: "CSV to write"},
		},
		Shared: cli.Outputs | cli.Resources,
		Flags: []cli.Flag{
			{Name: "swap_xy", Kind: cli.Bool, Usage: "write the stage's x as y, and its y as x"},
		},
		Examples: []cli.Example{
			{Command: "shifts estimate raw/ shifts_xy.csv", Usage: "shifts between all slices of a specimen"},
			{Command: "shifts estimate raw/ shifts_xy.csv --swap_xy -f", Usage: "for volumes whose axis Y is the stage's x"},
		},
		Run: cli.Do(runEstimate),
	}
}

func runEstimate(ctx context.Context, r *cli.Run) error {
	slices, dir, err := stage.RawTiles(ctx, r, r.Arg("DIR"))
	if err != nil {
		return err
	}
	table, warnings, err := shifts.Estimate(ctx, slices, shifts.EstimateOptions{SwapXY: r.Bool("swap_xy"), Workers: r.Options.Threads})
	if err != nil {
		return stage.Failed(err)
	}
	for _, w := range warnings {
		r.Warn("%s: %s", dir, w)
	}
	r.Conclude("%d slices", len(slices))
	return stage.WriteFile(r, r.Arg("OUT"), func(w io.Writer) error { return table.Write(w, true) })
}
