// Package normalize implements the command normalize, which brings the intensities of a slice to a common scale.
package normalize

import (
	"context"
	"fmt"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/normalize"
	"strata/pkg/zarr/store"
)

// Command returns the command normalize.
func Command() *cli.Command {
	o := normalize.Options{PercentileMax: 99.9, SpanPercentile: 90, Sigma: 1}
	return &cli.Command{
		Name:  "normalize",
		Usage: "bring the intensities of a slice to a common scale",
		Description: "Makes slices comparable: agarose becomes 0 and bright tissue about 1. An A-line is agarose if its mean lies below\n" +
			"Otsu's threshold. In each plane, voxels above a percentile are clipped and the median of the agarose is subtracted;\n" +
			"the slice is divided by the percentile --span_percentile, over its planes, of what lies between the two.\n\n" +
			"OUT is float32. NaN voxels are ignored and stay NaN. Writes metrics beside OUT, as NAME_metrics.json. Reads IN five\n" +
			"times, or once if half of --mem holds it as float32. With a GPU, the CPU still finds the agarose and the limits; the\n" +
			"GPU reads IN once more, clips and divides.",
		Args:   stage.InOut("slice (z, y, x)", "image"),
		Shared: cli.Stage,
		Hints:  cli.Hints{"chunks": {Note: "the input's"}},
		Flags: []cli.Flag{
			cli.Bind(&o.PercentileMax, cli.Flag{Name: "percentile_max", Check: cli.Between(0, 100), Usage: "clip the voxels of each plane above this percentile, 0 to 100; 100 clips nothing"}),
			cli.Bind(&o.SpanPercentile, cli.Flag{Name: "span_percentile", Check: cli.Between(0, 100), Usage: "percentile over the planes, 0 to 100, of what lies between agarose and clipping: that becomes 1; with 100 nothing is brighter, but one bright plane sets the scale"}),
			cli.Bind(&o.Sigma, cli.Flag{Name: "sigma", Check: cli.Between(0, 1<<10), Usage: "smooth the mean over z by a Gaussian of this standard deviation in pixels before the threshold, 0 to 1024"}),
		},
		Examples: []cli.Example{
			{Command: "normalize slice_z05.ome.zarr normalized/slice_z05.ome.zarr", Usage: "agarose to 0, tissue to about 1"},
			{Command: "normalize in.ome.zarr out.ome.zarr --percentile_max 99 --sigma 3", Usage: "for a noisy slice with many bright specks"},
			{Command: "normalize in.ome.zarr out.ome.zarr -f --n_levels 0 --mem 4GiB", Usage: "replace out.ome.zarr; make no pyramid; decode the input once if it has less than 2 GiB as float32"},
		},
		Aliases: []cli.Alias{{Name: "linum-normalize-intensities-per-slice", Defaults: cli.Defaults{"overwrite": "true", "n_levels": "3", "span_percentile": "100"}}},
		Run:     cli.Accelerated(stage.GPU, func(ctx context.Context, r *cli.Run) error { return run(ctx, r, o) }),
	}
}

func run(ctx context.Context, r *cli.Run, o normalize.Options) error {
	return stage.Measured{OnGPU: true, Name: "normalize", Passes: normalize.Passes,
		Run: func(in *ngff.Image, out store.Writer, paths [2]string, res oct.Resources) (*ngff.Image, *metrics.Step, string, error) {
			image, result, err := normalize.Run(ctx, in, out, o, stage.Layout(r), res)
			if err != nil {
				return nil, nil, "", err
			}
			said := fmt.Sprintf("%.3g %% of the A-lines are agarose, %.4g above it becomes 1", 100*result.Agarose.Coverage(), result.Divisor)
			return image, result.Step(paths[0], paths[1], o), said, nil
		}}.Do(ctx, r)
}
