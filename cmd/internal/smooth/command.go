// Package smooth is the command smooth, which filters an image with medians, Gaussians and gradients.
package smooth

import (
	"context"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/dtype"
	"strata/pkg/oct/smooth"
	"strata/pkg/tile"
)

// borders are the choices of --border.
var borders = map[string]tile.BorderMode{"reflect": tile.Reflect, "nearest": tile.Replicate, "constant": tile.Zero}

// Command is smooth.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "smooth",
		Usage: "filter an image: median, Gaussian, gradient",
		Description: "Filters an image of any size along its space axes, 2-D or 3-D, in bounded memory: by the median, then by a\n" +
			"Gaussian, then by the magnitude of the gradient, of those that are asked for. Other axes (channels, time) are\n" +
			"filtered one by one; along an axis of one voxel nothing is. The numbers are those of scipy.ndimage's median_filter,\n" +
			"gaussian_filter, sobel and gaussian_gradient_magnitude. OUT has the input's type, rounded half to even and\n" +
			"clamped; a gradient has float32. Computes on the CPU.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "OME-Zarr image or TIFF file: a folder, a .zip, a file, or an address http(s):// or s3://"},
			{Name: "OUT", Usage: "OME-Zarr image to write: a folder or s3://bucket/path"},
		},
		Shared: cli.Stage &^ cli.GPU,
		Hints: cli.Hints{"chunks": {Value: "[T,C,]Z,Y,X", Note: "the input's, from 64 to 1024 along y and x, in 3-D at most 256"},
			"shard": {Value: "[T,C,]Z,Y,X", Note: "none"}},
		Flags: []cli.Flag{
			{Name: "median", Kind: cli.Int, Value: "N", Check: cli.Between(1, 99), Usage: "median of N voxels, an odd number, along each axis"},
			{Name: "sigma", Short: "s", Kind: cli.Floats, Value: "UM", Check: cli.AtLeast(0), Usage: "Gaussian of this standard deviation in µm: one number, or one for each space axis, such as z,y,x; it ends at 4 sigma"},
			{Name: "sigma_px", Kind: cli.Floats, Value: "N", Check: cli.AtLeast(0), Usage: "the same in voxels"},
			{Name: "gradient", Short: "g", Kind: cli.Bool, Usage: "magnitude of the gradient, per voxel: Sobel's operator, or, with a sigma, the derivatives of the Gaussian"},
			{Name: "border", Default: "reflect", Choices: []string{"reflect", "nearest", "constant"},
				Usage: "what stands beyond the edges: the image mirrored, its outermost voxels, or 0"},
			{Name: "dtype", Value: "TYPE", Note: "the input's; float32 with --gradient", Choices: types(), Usage: "type of the output: float32 keeps fractions"},
		},
		Examples: []cli.Example{
			{Command: "smooth volume.ome.zarr smooth.ome.zarr --sigma 10", Usage: "a Gaussian of 10 µm, whatever the voxel size is along each axis"},
			{Command: "smooth scan.svs blurred.ome.zarr --sigma 2", Usage: "a slide scan, each colour by itself"},
			{Command: "smooth slide.ome.zarr clean.ome.zarr --median 5 -j 8 --mem 2GiB", Usage: "medians of 5×5 pixels, or 5×5×5 voxels, with 8 workers and 2 GiB of buffers"},
			{Command: "smooth volume.ome.zarr edges.ome.zarr --median 3 --sigma_px 1,2,2 --gradient", Usage: "edges: outliers removed, then the gradient at a scale of 1 voxel along z and 2 along y and x"},
		},
		Run: run,
	}
}

// types are the choices of --dtype.
func types() (names []string) {
	for _, t := range []dtype.Type{dtype.Uint8, dtype.Int8, dtype.Uint16, dtype.Int16, dtype.Uint32, dtype.Int32, dtype.Uint64, dtype.Int64, dtype.Float32, dtype.Float64} {
		names = append(names, t.String())
	}
	return names
}

func run(ctx context.Context, r *cli.Run) error {
	how := smooth.Options{Median: r.Int("median"), Sigma: r.Floats("sigma"), Gradient: r.Bool("gradient"), Border: borders[r.String("border")]}
	if px := r.Floats("sigma_px"); px != nil {
		if how.Sigma != nil {
			return cli.Usage("--sigma contradicts --sigma_px: give one of them")
		}
		how.Sigma, how.InVoxels = px, true
	}
	if how.Median == 0 && how.Sigma == nil && !how.Gradient {
		return cli.Usage("no filter: give --median, --sigma, --sigma_px or --gradient")
	}
	if name := r.String("dtype"); name != "" {
		var err error
		if how.DType, err = dtype.Parse(name); err != nil {
			return cli.Usage("--dtype: %w", err)
		}
	}
	in, err := stage.Open(ctx, r, r.Arg("IN"))
	if err != nil {
		return err
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	task := r.Progress("smooth", datasets.Bytes(in.Levels[0].Array))
	result, err := smooth.Run(ctx, in, out.Store, how, stage.Layout(r), stage.Resources(r, task))
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	stage.Describe(r, in, r.Arg("IN"), result, out.Path())
	return nil
}
