// Package smooth implements the command smooth, which filters an image with medians, Gaussians and gradients.
package smooth

import (
	"context"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct/smooth"
	"strata/pkg/tile"
)

// borders lists the values of --border.
var borders = map[string]tile.BorderMode{"reflect": tile.Reflect, "nearest": tile.Replicate, "constant": tile.Zero}

// Command returns the command smooth.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "smooth",
		Usage: "filter an image by median, Gaussian or gradient",
		Description: "Filters an image of any size along its space axes, in 2-D or 3-D. The filters that are asked for run in this\n" +
			"order: median, Gaussian, magnitude of the gradient. Channels and time points are filtered separately; an axis of\n" +
			"one voxel is not filtered.\n\n" +
			"The results are those of scipy.ndimage: median_filter, gaussian_filter, sobel and gaussian_gradient_magnitude.\n" +
			"OUT has the data type of IN, rounded half to even and clamped; a gradient is float32. Computes on the CPU; the\n" +
			"image can be larger than memory.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "OME-Zarr image, TIFF or CZI file: folder, .zip file, file, or http(s):// or s3:// URL"},
			{Name: "OUT", Usage: "OME-Zarr image to write: folder or s3://bucket/path"},
		},
		Shared: cli.Stage &^ cli.GPU,
		Hints: cli.Hints{"chunks": {Value: "[T,C,]Z,Y,X", Note: "the input's, but 64 to 1024 along y and x, in 3-D at most 256"},
			"shard": {Value: "[T,C,]Z,Y,X", Note: "no shards"}},
		Flags: []cli.Flag{
			{Name: "median", Kind: cli.Int, Value: "N", Check: cli.Between(1, 99), Usage: "median filter of N voxels along each axis; N is odd, 1 to 99"},
			{Name: "sigma", Short: "s", Kind: cli.Floats, Value: "UM", Check: cli.AtLeast(0), Usage: "Gaussian filter of this standard deviation in µm, cut off at 4 sigma: one number, or one for each space axis (z,y,x or y,x)"},
			{Name: "sigma_px", Kind: cli.Floats, Value: "N", Check: cli.AtLeast(0), Usage: "Gaussian filter of this standard deviation in voxels, cut off at 4 sigma: one number, or one for each space axis (z,y,x or y,x)"},
			{Name: "gradient", Short: "g", Kind: cli.Bool, Usage: "magnitude of the gradient, per voxel: by Sobel's operator, or with --sigma or --sigma_px by the derivatives of that Gaussian"},
			{Name: "border", Default: "reflect", Choices: []string{"reflect", "nearest", "constant"},
				Usage: "values beyond the edges of the image: its mirror image (reflect), its outermost voxels (nearest) or 0 (constant)"},
			{Name: "dtype", Value: "TYPE", Note: "the input's; float32 with --gradient", Choices: types(), Usage: "data type of the output; float32 keeps fractions"},
		},
		Examples: []cli.Example{
			{Command: "smooth volume.ome.zarr smooth.ome.zarr --sigma 10", Usage: "a Gaussian of 10 µm along each axis, whatever the voxel size"},
			{Command: "smooth scan.svs blurred.ome.zarr --sigma 2", Usage: "a slide scan, each colour separately"},
			{Command: "smooth slide.ome.zarr clean.ome.zarr --median 5 -j 8 --mem 2GiB", Usage: "medians of 5×5 pixels (5×5×5 voxels in 3-D), with 8 workers and 2 GiB of buffers"},
			{Command: "smooth volume.ome.zarr edges.ome.zarr --median 3 --sigma_px 1,2,2 --gradient", Usage: "edges: remove outliers, then take the gradient at a scale of 1 voxel along z and 2 along y and x"},
		},
		Run: cli.Do(run),
	}
}

// types lists the values of --dtype.
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
	return stage.Made{Name: "smooth", Passes: 1,
		Run: func(x stage.Making) (*ngff.Image, error) {
			return smooth.Run(ctx, x.In, x.Out, how, x.Layout, x.Res)
		},
	}.Do(ctx, r)
}
