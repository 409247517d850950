// Package resample implements the command resample, which changes the voxel size of a mosaic grid.
package resample

import (
	"context"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/ngff"
	"strata/pkg/oct/resample"
)

// Command returns the command resample.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "resample",
		Usage: "resample a mosaic grid to another voxel size",
		Description: "Resamples each tile of an OME-Zarr mosaic grid (z, y, x) on its own, partial tiles at the far edges included. An\n" +
			"axis that shrinks by a factor f is blurred by a Gaussian of sigma (f-1)/2 voxels, then sampled linearly. No\n" +
			"filter crosses a tile border. The data type stays the same; integers are rounded half to even. A NaN voxel\n" +
			"affects only its surroundings.\n\n" +
			"A tile always becomes a whole number of voxels, so the voxel size of OUT can differ slightly from --resolution.\n" +
			"OUT records its true voxel size: a tile of 256 voxels of 2 µm becomes 51 voxels of 10.04 µm.",
		Args:   stage.InOut("mosaic grid", "mosaic grid"),
		Shared: cli.Stage | cli.Pairs,
		Hints:  cli.Hints{"chunks": {Value: "Z,Y,X", Note: "the resampled tile"}, "shard": {Value: "Z,Y,X", Note: "no shards"}},
		Flags: []cli.Flag{
			{Name: "resolution", Short: "r", Kind: cli.Floats, Default: "10", Value: "UM", Check: cli.VoxelSize, Usage: "voxel size of the output in µm: one number for all axes, or three for z, y and x"},
			{Name: "sampling", Default: "centre", Choices: []string{"centre", "corner"},
				Usage: "where to sample a tile: at the centres of equal parts (centre), or from its first voxel to its last (corner), as linumpy does, which distorts distances by some percent"},
			{Name: "prefetch", Kind: cli.Int, Default: "8", Check: cli.AtLeast(1), Usage: "number of tiles in flight if storage is slower than the workers, at least 1; --mem can lower it"},
		},
		Examples: []cli.Example{
			{Command: "resample mosaic_grid_3d_z03.ome.zarr mosaic_10um_z03.ome.zarr --n_levels 0", Usage: "10 µm, no pyramid"},
			{Command: "resample in.ome.zarr out.ome.zarr -r 25 -j 8 --mem 2GiB", Usage: "25 µm, with 8 workers and 2 GiB of buffers"},
			{Command: "resample in.ome.zarr out.ome.zarr -r 3.5,10,10 --codec raw", Usage: "3.5 µm along z, 10 µm along y and x, uncompressed"},
			{Command: "resample --batch slices.tsv -r 10 --report records/{name}.json", Usage: "all mosaics of a list, lines IN TAB OUT, with one start of the GPU"},
		},
		Aliases: []cli.Alias{{Name: "linum-resample-mosaic-grid", Defaults: cli.Defaults{"overwrite": "true", "sampling": "corner"}}},
		Run:     cli.Accelerated(stage.GPU, run),
	}
}

func run(ctx context.Context, r *cli.Run) error {
	to := resample.Options{Prefetch: r.Int("prefetch"), Corner: r.String("sampling") == "corner"}
	var err error
	if to.Resolution, err = resample.Voxel(r.Floats("resolution")); err != nil {
		return cli.Usage("--resolution %w", err)
	}
	return stage.Made{Name: "resample", Passes: 1, OnGPU: true, Joined: true,
		Work: func(work *stage.Work, _ *ngff.Image) { work.At(to.Resolution) },
		Run: func(x stage.Making) (*ngff.Image, error) {
			return resample.Run(ctx, x.In, x.Out, to, x.Layout, x.Res)
		},
	}.Do(ctx, r)
}
