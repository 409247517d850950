package stitch

import (
	"context"
	"path/filepath"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/stitch/comparison"
)

// compareCommand describes the comparison of two stitchings of one mosaic.
func compareCommand() *cli.Command {
	opt := comparison.Defaults()
	return &cli.Command{
		Name:  "compare",
		Usage: "compare two stitched images of one mosaic",
		Description: "Compares a plane of two images, such as one by the motor's positions and one that stitch --estimate made, where both\n" +
			"cover the same place. Writes two files into DIR: metrics.json, with the difference of intensities, the correlation, how\n" +
			"sharp tiles are where they overlap and how far each tile was moved; and comparison.png, with both images and their\n" +
			"difference, whole and around the seam where they differ most.\n\n" +
			"--positions names the files of stitch --save_positions, which say where tiles overlap. Without them, overlaps are\n" +
			"taken to lie around lines --tile_step pixels apart. Reads one plane, in bands of rows.",
		Args: []cli.Arg{
			{Name: "FIRST", Usage: "stitched image, OME-Zarr"},
			{Name: "SECOND", Usage: "the other one, of the same voxel size"},
			{Name: "DIR", Usage: "folder to write into"},
		},
		Shared: cli.Resources | cli.Outputs | cli.Inputs,
		Flags: []cli.Flag{
			{Name: "positions", Kind: cli.Strings, Value: "FILE", Usage: "files of stitch --save_positions, that of FIRST and that of SECOND; one alone says where the seams of both are"},
			{Name: "label1", Default: "Motor-only", Value: "NAME", Usage: "name of FIRST in the picture"},
			{Name: "label2", Default: "Refined", Value: "NAME", Usage: "name of SECOND in the picture"},
			{Name: "z_slice", Kind: cli.Int, Note: "the middle one", Check: cli.AtLeast(0), Value: "Z", Usage: "plane of FIRST to compare, counted from 0"},
			cli.Bind(&opt.TileStep, cli.Flag{Name: "tile_step", Check: cli.AtLeast(1), Value: "PX", Usage: "distance of seams without --positions, in pixels"}),
		},
		Examples: []cli.Example{
			{Command: "stitch compare motor.ome.zarr slice_z03.ome.zarr compared/ --positions motor.json,refined.json", Usage: "what the estimate changed, tile by tile"},
			{Command: "stitch compare a.ome.zarr b.ome.zarr compared/ --label1 average --label2 diffusion --z_slice 20", Usage: "two blendings, in plane 20"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error { return runCompare(ctx, r, opt) }),
	}
}

func runCompare(ctx context.Context, r *cli.Run, opt comparison.Options) error {
	if r.IsSet("z_slice") {
		opt.Plane = r.Int("z_slice")
	}
	places, err := placesOf(ctx, r)
	if err != nil {
		return err
	}
	var pair [2]comparison.Image
	for k, arg := range []string{"FIRST", "SECOND"} {
		in, err := stage.Open(ctx, r, r.Arg(arg))
		if err != nil {
			return err
		}
		r.Read(datasets.DescribeImage(in, r.Arg(arg)))
		pair[k] = comparison.Image{Label: r.String([]string{"label1", "label2"}[k]), Path: stage.Shown(r.Arg(arg)), Image: in, Places: places[k]}
	}
	numbers, err := r.OutputFile(filepath.Join(r.Arg("DIR"), "metrics.json"))
	if err != nil {
		return err
	}
	picture, err := r.OutputFile(filepath.Join(r.Arg("DIR"), "comparison.png"))
	if err != nil {
		return err
	}
	task := r.Progress("compare", 0)
	report, err := comparison.Run(ctx, pair[0], pair[1], opt, stage.Resources(r, task))
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	if err := stage.FillFile(r, numbers, stage.JSON(report)); err != nil {
		return err
	}
	if err := stage.FillFile(r, picture, report.WritePicture); err != nil {
		return err
	}
	r.Conclude("%s", report.Summary())
	return nil
}

// placesOf reads the files of --positions.
func placesOf(ctx context.Context, r *cli.Run) (places [2]*comparison.Places, err error) {
	names := r.Strings("positions")
	if len(names) > 2 {
		return places, cli.Usage("--positions names %d files: want that of FIRST and that of SECOND", len(names))
	}
	for k, name := range names {
		if places[k], err = stage.ReadFile(ctx, r, name, comparison.ReadPlaces); err != nil {
			return places, err
		}
	}
	return places, nil
}
