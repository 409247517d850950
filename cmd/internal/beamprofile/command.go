// Package beamprofile implements the command beam-profile, which divides a slice by the axial profile of the beam.
package beamprofile

import (
	"context"
	"fmt"
	"io"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/beamprofile"
	"strata/pkg/webpage"
	"strata/pkg/zarr/store"
)

// Command returns the command beam-profile.
func Command() *cli.Command {
	o := beamprofile.Options{PercentileMax: 99.9}
	return &cli.Command{
		Name:  "beam-profile",
		Usage: "divide a slice by the axial profile of the beam",
		Description: "Removes the profile that focus and sensitivity leave along z. The agarose around the tissue shows it: A-lines whose\n" +
			"mean lies below Otsu's threshold. Each plane is divided by the mean of the agarose in it, relative to the plane where\n" +
			"that is smallest. With --subtract_background the planes of the water, in which only the detector shows, are taken as\n" +
			"dark: without it tissue darkens with depth relative to agarose.\n\n" +
			"OUT has the data type of IN, rounded half to even. NaN voxels are ignored and stay NaN. Writes metrics beside OUT,\n" +
			"as NAME_metrics.json. Reads IN five times (three with --percentile_max 100), or once if half of --mem holds it as\n" +
			"float32. With a GPU, the CPU still estimates the profile; the GPU reads IN once more and divides.",
		Args:   stage.InOut("slice (z, y, x)", "image"),
		Shared: cli.Stage,
		Hints:  cli.Hints{"chunks": {Note: "the input's"}},
		Flags: []cli.Flag{
			cli.Bind(&o.PercentileMax, cli.Flag{Name: "percentile_max", Check: cli.Between(0, 100), Usage: "for the estimate, clip values above this percentile of the slice, 0 to 100; 100 clips nothing"}),
			cli.Bind(&o.FitGaussian, cli.Flag{Name: "fit_gaussian", Usage: "replace the profile by a Gaussian with its peak and its width"}),
			cli.Bind(&o.Below, cli.Flag{Name: "below", Value: "PLANE", Check: cli.AtLeast(0), Usage: "estimate the profile from this plane on and leave the planes above it as they are, such as those of water"}),
			cli.Bind(&o.Subtract, cli.Flag{Name: "subtract_background", Usage: "subtract the signal of the water above the surface, the detector's own, before dividing"}),
			{Name: "output_plot", Value: "FILE", Usage: "also draw the profile, as SVG"},
		},
		Examples: []cli.Example{
			{Command: "beam-profile slice_z05.ome.zarr slice_z05_axial_corr.ome.zarr", Usage: "before crop: agarose and water become as bright as the faintest plane"},
			{Command: "beam-profile in.ome.zarr out.ome.zarr --below 40 --output_plot profile.svg", Usage: "the tissue begins at plane 40; look at the profile"},
			{Command: "beam-profile in.ome.zarr out.ome.zarr --fit_gaussian -f --n_levels 0", Usage: "where little agarose makes the profile noisy; replace out.ome.zarr and make no pyramid"},
		},
		Aliases: []cli.Alias{{Name: "linum-compensate-psf-model-free", Defaults: cli.Defaults{"overwrite": "true", "percentile_max": "100"}}},
		Run:     cli.Accelerated(stage.GPU, func(ctx context.Context, r *cli.Run) error { return run(ctx, r, o) }),
	}
}

func run(ctx context.Context, r *cli.Run, o beamprofile.Options) error {
	return stage.Measured{OnGPU: true, Name: "beam-profile", Passes: o.Passes(),
		Run: func(in *ngff.Image, out store.Writer, paths [2]string, res oct.Resources) (*ngff.Image, *metrics.Step, string, error) {
			plot, err := r.OptionalFile("output_plot")
			if err != nil {
				return nil, nil, "", err
			}
			image, result, err := beamprofile.Run(ctx, in, out, o, stage.Layout(r), res)
			if err != nil {
				return nil, nil, "", err
			}
			if plot != nil {
				if err := plot.Write(func(w io.Writer) error { return chart(result).File(w) }); err != nil {
					return nil, nil, "", fmt.Errorf("draw profile: %w", err)
				}
			}
			said := fmt.Sprintf("the beam is brightest at plane %d: %.3g times the faintest", result.Peak, 1+result.PSF[result.Peak])
			return image, result.Step(paths[0], paths[1], o), said, nil
		}}.Do(ctx, r)
}

// chart plots what each plane is divided by.
func chart(result *beamprofile.Result) *webpage.Chart {
	s := webpage.Series{Name: "divisor", Joined: true}
	for z, v := range result.Divisors {
		s.Points = append(s.Points, webpage.Point{X: float64(z), Y: v})
	}
	return &webpage.Chart{Title: "axial profile of the beam", XLabel: "plane", YLabel: "divisor", Series: []webpage.Series{s}, Whole: true}
}
