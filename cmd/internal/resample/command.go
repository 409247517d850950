// Package resample is the command resample, which brings a mosaic grid to another voxel size.
package resample

import (
	"context"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/oct/resample"
)

// Command is resample.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "resample",
		Usage: "resample a mosaic grid to an isotropic voxel size",
		Description: "Brings an OME-Zarr mosaic grid (z, y, x) to another voxel size, tile by tile: a Gaussian blur of sigma\n" +
			"(f-1)/2 along axes that shrink by f, then linear sampling. Nothing crosses a tile's border. The data type\n" +
			"stays; integers are rounded half to even. Partial tiles at the far edges are resampled too. A tile becomes a\n" +
			"whole number of voxels, whose true size is written: 256 voxels of 2 µm become 51 of 10.04 µm, not of 10.\n" +
			"A NaN voxel spoils its surroundings only.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "OME-Zarr mosaic grid: a folder, a .zip, a TIFF file, or an address http(s):// or s3://"},
			{Name: "OUT", Usage: "OME-Zarr mosaic grid to write"},
		},
		Shared: cli.Stage, Accelerator: stage.GPU,
		Hints: cli.Hints{"chunks": {Value: "Z,Y,X", Note: "the resampled tile"}, "shard": {Value: "Z,Y,X", Note: "none"}},
		Flags: []cli.Flag{
			{Name: "resolution", Short: "r", Kind: cli.Floats, Default: "10", Value: "UM", Check: cli.Above(0), Usage: "voxel size to reach in µm: one number, or three for z, y and x"},
			{Name: "sampling", Default: "centre", Choices: []string{"centre", "corner"},
				Usage: "where voxels are sampled: in the middles of equal parts of a tile, or from its first voxel to its last, which makes distances up to some percent wrong, as linumpy does"},
			{Name: "prefetch", Kind: cli.Int, Default: "8", Check: cli.AtLeast(1), Usage: "tiles in flight where storage is slower than the workers; fewer where --mem does not hold them"},
		},
		Examples: []cli.Example{
			{Command: "resample mosaic_grid_3d_z03.ome.zarr mosaic_10um_z03.ome.zarr --n_levels 0", Usage: "10 µm, no pyramid"},
			{Command: "resample in.ome.zarr out.ome.zarr -r 25 -j 8 --mem 2GiB", Usage: "25 µm, with 8 workers and 2 GiB of buffers"},
			{Command: "resample in.ome.zarr out.ome.zarr -r 3.5,10,10 --codec raw", Usage: "another voxel size along z than along y and x, uncompressed"},
		},
		Aliases: []cli.Alias{{Name: "linum-resample-mosaic-grid", Defaults: cli.Defaults{"overwrite": "true", "sampling": "corner"}}},
		Run:     run,
	}
}

func run(ctx context.Context, r *cli.Run) error {
	to := resample.Options{Prefetch: r.Int("prefetch"), Corner: r.String("sampling") == "corner"}
	switch um := r.Floats("resolution"); len(um) {
	case 1:
		to.Resolution = [3]float64{um[0], um[0], um[0]}
	case 3:
		to.Resolution = [3]float64(um)
	default:
		return cli.Usage("--resolution has %d numbers: give one, or three for z, y and x", len(um))
	}
	in, err := stage.Open(ctx, r, r.Arg("IN"))
	if err != nil {
		return err
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	task := r.Progress("resample", datasets.Bytes(in.Levels[0].Array))
	work := stage.Of("resample", in)
	work.At(to.Resolution)
	res, err := stage.ResourcesOnGPU(ctx, r, task, work)
	if err != nil {
		return err
	}
	result, err := resample.Run(ctx, in, out.Store, to, stage.Layout(r), res)
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	stage.Describe(r, in, r.Arg("IN"), result, out.Path())
	return nil
}
