// Package focal implements the command focal, which removes the focal-plane curvature from a mosaic grid.
package focal

import (
	"context"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/oct/focal"
)

// Command returns the command focal.
func Command() *cli.Command {
	var c focal.Options
	return &cli.Command{
		Name:    "focal",
		Aliases: []cli.Alias{{Name: "linum-detect-focal-curvature", Defaults: cli.Defaults{"overwrite": "true"}}},
		Usage:   "correct the focal-plane curvature of a mosaic grid",
		Description: "Finds the tissue interface under every A-line of an OME-Zarr mosaic grid (z, y, x) and estimates with BaSiC\n" +
			"which part of its shape all tiles have in common. Then rolls every A-line along z by that part, circularly, with\n" +
			"linear interpolation. OUT has the data type, grid and chunks of IN.\n\n" +
			"Reads IN tile by tile, twice, or once with --correction. NaN and infinite voxels count as 0 in the search and\n" +
			"remain in OUT.",
		Args:   stage.InOut("mosaic grid", "mosaic grid"),
		Shared: cli.Stage,
		Hints:  cli.Hints{"chunks": {Note: "the mosaic's"}},
		Flags: append(stage.SearchFlags(&c.SigmaXY, &c.SigmaZ, &c.Log), []cli.Flag{
			{Name: "correction", Value: "FILE", Usage: "apply this correction, which an earlier run wrote by --save_map as DIR/correction.ome.zarr, instead of estimating one"},
			{Name: "save_map", Value: "DIR", Usage: "write the maps of interface depth, flat-field and correction to this folder, as OME-Zarr and PNG"},
		}...),
		Examples: []cli.Example{
			{Command: "focal mosaic_grid_3d_z03.ome.zarr focal_z03.ome.zarr", Usage: "estimate the curvature and correct it"},
			{Command: "focal in.ome.zarr out.ome.zarr --save_map maps", Usage: "also keep maps/z0, maps/flatfield and maps/correction (.ome.zarr, .png)"},
			{Command: "focal in.ome.zarr out.ome.zarr --correction maps/correction.ome.zarr", Usage: "apply the correction of another mosaic from the same microscope"},
		},
		Run: cli.Accelerated(stage.GPU, func(ctx context.Context, r *cli.Run) error { return run(ctx, r, c) }),
	}
}

func run(ctx context.Context, r *cli.Run, c focal.Options) error {
	in, err := stage.Open(ctx, r, r.Arg("IN"))
	if err != nil {
		return err
	}
	passes := int64(2)
	if name := r.String("correction"); name != "" {
		if c.Correction, err = stage.Open(ctx, r, name); err != nil {
			return err
		}
		passes = 1
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	saved := func() error { return nil }
	if dir := r.String("save_map"); dir != "" {
		m := new(maps)
		defer m.close()
		if c.Maps, err = m.start(ctx, r, dir, c.Correction == nil); err != nil {
			return err
		}
		saved = m.close
	}
	task := r.Progress("focal", passes*datasets.Bytes(in.Levels[0].Array))
	res, err := stage.ResourcesOnGPU(ctx, r, task, stage.Of("focal", in))
	if err != nil {
		return err
	}
	result, err := focal.Run(ctx, in, out.Store, c, stage.Layout(r), res)
	if err != nil {
		return stage.Failed(err)
	}
	if err := saved(); err != nil {
		return err
	}
	task.Done()
	stage.Describe(r, in, r.Arg("IN"), result, out.Path())
	return nil
}
