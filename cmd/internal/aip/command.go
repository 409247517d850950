// Package aip implements the command aip, which computes the average intensity projection of a mosaic grid.
package aip

import (
	"context"
	"fmt"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/ngff"
	"strata/pkg/oct/aip"
)

// Command returns the command aip.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "aip",
		Usage: "compute the average intensity projection of a mosaic grid",
		Description: "Averages an OME-Zarr mosaic grid (z, y, x) along z. OUT is a 2-D float32 OME-Zarr image with a resolution\n" +
			"pyramid; its chunks are the tiles of the mosaic. NaN voxels make their pixel NaN.\n\n" +
			"The mosaic can be larger than memory: each worker reads one column of chunks at a time.",
		Args:   stage.InOut("mosaic grid", "image"),
		Shared: cli.Stage | cli.Pairs,
		Hints:  cli.Hints{"chunks": {Value: "Y,X", Note: "the mosaic's tile"}, "shard": {Value: "Y,X", Note: "none"}},
		Flags: []cli.Flag{
			{Name: "png", Value: "FILE", Written: true, Usage: "also write the projection as a 16-bit grey PNG; percentiles 0.1 and 99.9 become black and white"},
			{Name: "scale_bar", Kind: cli.Bool, Default: "true", Usage: "add a strip with a scale bar in µm below the rows of --png"},
		},
		Examples: []cli.Example{
			{Command: "aip mosaic_grid_3d_z03.ome.zarr aip_z03.ome.zarr --png aip_z03.png", Usage: "projection with a pyramid, and a picture"},
			{Command: "aip in.ome.zarr out.ome.zarr -f -j 8 --mem 2GiB", Usage: "replace out.ome.zarr; use 8 workers and 2 GiB of buffers"},
			{Command: "aip in.ome.zarr out.ome.zarr --n_levels 0 --codec raw --report run.json", Usage: "no pyramid, no compression, and a record of the run"},
			{Command: "aip --batch slices.tsv --png {out}.png --report records/{name}.json", Usage: "all mosaics of a list, lines IN TAB OUT, with one start of the GPU"},
		},
		Aliases: []cli.Alias{{Name: "linum-aip", Defaults: cli.Defaults{"overwrite": "true"}}},
		Run:     cli.Accelerated(stage.GPU, run),
	}
}

func run(ctx context.Context, r *cli.Run) error {
	var png *aip.Picture
	finish := func() error { return nil }
	defer func() { _ = finish() }() // of a run that failed
	return stage.Made{Name: "aip", Task: "project", Passes: 1, OnGPU: true, Joined: true,
		Outputs: func() error {
			name := r.String("png")
			if name == "" {
				return nil
			}
			file, err := r.OutputFile(name)
			if err != nil {
				return err
			}
			f, err := file.Create()
			if err == nil {
				png, finish = &aip.Picture{To: f, ScaleBar: r.Bool("scale_bar")}, f.Close
			}
			return err
		},
		Run: func(x stage.Making) (*ngff.Image, error) {
			result, err := aip.Run(ctx, x.In, x.Out, x.Layout, png, x.Res)
			if err != nil {
				return nil, err
			}
			if err := finish(); err != nil {
				return nil, fmt.Errorf("write picture: %w", err)
			}
			return result, nil
		},
	}.Do(ctx, r)
}
