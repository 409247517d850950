// Package focal implements the command focal, which removes the focal-plane curvature from a mosaic grid.
package focal

import (
	"context"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/ngff"
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
		Shared: cli.Stage | cli.Pairs,
		Hints:  cli.Hints{"chunks": {Note: "the mosaic's"}},
		Flags: append(stage.SearchFlags(&c.SigmaXY, &c.SigmaZ, &c.Log), []cli.Flag{
			{Name: "correction", Value: "FILE", Usage: "apply this correction, which an earlier run wrote by --save_map as DIR/correction.ome.zarr, instead of estimating one"},
			{Name: "save_map", Value: "DIR", Written: true, Usage: "write the maps of interface depth, flat-field and correction to this folder, as OME-Zarr and PNG"},
		}...),
		Examples: []cli.Example{
			{Command: "focal mosaic_grid_3d_z03.ome.zarr focal_z03.ome.zarr", Usage: "estimate the curvature and correct it"},
			{Command: "focal in.ome.zarr out.ome.zarr --save_map maps", Usage: "also keep maps/z0, maps/flatfield and maps/correction (.ome.zarr, .png)"},
			{Command: "focal in.ome.zarr out.ome.zarr --correction maps/correction.ome.zarr", Usage: "apply the correction of another mosaic from the same microscope"},
			{Command: "focal --batch slices.tsv --save_map maps/{name}", Usage: "all mosaics of a list, lines IN TAB OUT, with one start of the GPU"},
		},
		Run: cli.Accelerated(stage.GPU, func(ctx context.Context, r *cli.Run) error { return run(ctx, r, c) }),
	}
}

func run(ctx context.Context, r *cli.Run, c focal.Options) error {
	passes := int64(2)
	if r.String("correction") != "" {
		passes = 1
	}
	saved := func() error { return nil }
	defer func() { _ = saved() }() // of a run that failed
	return stage.Made{Name: "focal", Passes: passes, OnGPU: true, Joined: true, Tiles: true,
		Inputs: func() (err error) {
			if name := r.String("correction"); name != "" {
				c.Correction, err = stage.Open(ctx, r, name)
			}
			return err
		},
		Outputs: func() (err error) {
			if dir := r.String("save_map"); dir != "" {
				m := new(maps)
				saved = m.close
				c.Maps, err = m.start(ctx, r, dir, c.Correction == nil)
			}
			return err
		},
		Run: func(x stage.Making) (*ngff.Image, error) {
			result, err := focal.Run(ctx, x.In, x.Out, c, x.Layout, x.Res)
			if err != nil {
				return nil, err
			}
			return result, saved()
		},
	}.Do(ctx, r)
}
