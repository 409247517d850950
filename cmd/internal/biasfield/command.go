// Package biasfield implements the command bias-field, which removes the smooth multiplicative field of a stacked
// volume.
package biasfield

import (
	"context"
	"fmt"
	"slices"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/bias"
	"strata/pkg/zarr/store"
)

// Command returns the command bias-field.
func Command() *cli.Command {
	o := bias.DefaultOptions()
	return &cli.Command{
		Name:  "bias-field",
		Usage: "remove the smooth multiplicative field of a stacked volume",
		Description: "Evens out the brightness of a volume: finds the tissue of each section, matches the histograms of sections, smooths\n" +
			"the profile along z, and divides by the smooth field that the algorithm N4 (Tustison et al. 2010) finds for each\n" +
			"section, for the whole volume, or for both.\n\n" +
			"OUT is float32, with a pyramid as stack writes it. Fields are fitted to every n-th voxel (--shrink_factor), which stay\n" +
			"in memory; the volume itself is read and written in planes. NaN voxels are ignored and stay NaN. Writes metrics\n" +
			"beside OUT, as NAME_metrics.json. Reads IN three times, or once if half of --mem holds it as float32.",
		Args:   stage.InOut("volume (z, y, x)", "image"),
		Shared: cli.Stage &^ cli.GPU,
		Hints: cli.Hints{"chunks": {Value: "Z,Y,X", Note: "the input's, but at most 8 planes"}, "shard": {Value: "Z,Y,X", Note: "no shards"},
			"n_levels": {Note: "all of --pyramid_resolutions"}},
		Flags: flags(&o),
		Aliases: []cli.Alias{{Name: "linum-correct-bias-field", Defaults: cli.Defaults{"overwrite": "true", "shrink_factor": "4"},
			Flags:  map[string]string{"n_processes": "threads"},
			Values: map[string]map[string]string{"backend": {"cpu": "auto", "gpu": "auto"}}}},
		Examples: []cli.Example{
			{Command: "bias-field brain.ome.zarr even.ome.zarr --n_serial_slices 42", Usage: "42 sections: a field for each, then one for the volume"},
			{Command: "bias-field brain.ome.zarr even.ome.zarr --mode global --strength 0.5 --no-zero_outside_mask", Usage: "half of one field for all, keeping what is not tissue"},
			{Command: "bias-field brain.ome.zarr even.ome.zarr --shrink_factor 8 --mem 2GiB --save_bias_field field.ome.zarr", Usage: "a large volume; keep the field, too"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error { return run(ctx, r, o) }),
	}
}

// flags returns the flags of the options and of files.
func flags(o *bias.Options) []cli.Flag {
	notNegative, smooth := cli.AtLeast(0), cli.Between(0, 1000)
	return slices.Concat([]cli.Flag{
		cli.Bind(&o.Mode, cli.Flag{Name: "mode", Choices: bias.Modes, Usage: "what to fit a field to: each section, the whole volume, or first the one and then the other"}),
		cli.Bind(&o.Strength, cli.Flag{Name: "strength", Check: cli.Between(0, 1), Usage: "how much of the correction to apply, 0 to 1"}),
		cli.Bind(&o.Sections, cli.Flag{Name: "n_serial_slices", Check: cli.AtLeast(1), Usage: "number of sections of equal depth that the volume consists of"}),
		{Name: "shrink_factor", Kind: cli.Int, Note: "4, more for volumes of over 7e8 voxels", Check: cli.Between(1, 1<<16), Usage: "fit fields to every n-th voxel along each axis"},
		{Name: "n_iterations", Kind: cli.Ints, Default: "50,50,50,50", Check: cli.Between(0, 1e6), Value: "N", Usage: "maximum number of rounds of each level; the field of a level is twice as fine as that of the one before"},
		cli.Bind(&o.SplineMM, cli.Flag{Name: "spline_distance_mm", Note: "2 for sections, 10 for the volume", Check: notNegative, Value: "MM", Usage: "distance of the control points of fields at the first level, in mm"}),
		cli.Bind(&o.MaskSigma, cli.Flag{Name: "mask_smoothing_sigma", Check: smooth, Value: "VOXELS", Usage: "smooth the volume along y and x by a Gaussian of this sigma before tissue is told from background, in voxels"}),
		cli.Bind(&o.Match, cli.Flag{Name: "histogram_match", Usage: "match the histograms of sections to that of the volume"}),
		cli.Bind(&o.Bins, cli.Flag{Name: "histogram_n_bins", Check: cli.Between(2, 1<<16), Usage: "number of bins of these histograms"}),
		cli.Bind(&o.MatchPlanes, cli.Flag{Name: "histogram_match_per_zplane", Usage: "match the histograms of planes instead of sections"}),
		cli.Bind(&o.Threshold, cli.Flag{Name: "tissue_threshold", Check: notNegative, Value: "V", Usage: "leave voxels up to this value out of histograms and the profile along z"}),
		cli.Bind(&o.ProfileSigma, cli.Flag{Name: "zprofile_smooth_sigma", Check: smooth, Value: "PLANES", Usage: "smooth the mean of the tissue along z by a Gaussian of this sigma, in planes; 0: leave it as it is"}),
		cli.Bind(&o.ZeroOutside, cli.Flag{Name: "zero_outside_mask", Usage: "set voxels that are not tissue to 0"}),
		{Name: "save_bias_field", Value: "FILE", Usage: "also write the field as an OME-Zarr image, of the shape of OUT"},
	}, stage.Pyramid(&o.Analysis, "the volume"))
}

func run(ctx context.Context, r *cli.Run, o bias.Options) error {
	o.Iterations, o.Shrink = r.Ints("n_iterations"), r.Int("shrink_factor")
	var saved *ngff.Image
	err := stage.Measured{Name: "correct", Passes: 3,
		Run: func(in *ngff.Image, out store.Writer, paths [2]string, res oct.Resources) (*ngff.Image, *metrics.Step, string, error) {
			if name := r.String("save_bias_field"); name != "" {
				field, err := zarrout.Create(ctx, r, name)
				if err != nil {
					return nil, nil, "", err
				}
				o.SavedField = field.Store
			}
			result, err := bias.Run(ctx, in, out, o, stage.PyramidLayout(r, o.Analysis), res)
			if err != nil {
				return nil, nil, "", err
			}
			saved = result.Field
			said := fmt.Sprintf("%.3g %% of the volume is tissue; its coefficient of variation was %.3g and is %.3g", 100*result.Coverage, result.CVBefore, result.CVAfter)
			return result.Image, result.Metrics(paths[0], paths[1], o), said, nil
		}}.Do(ctx, r)
	if err == nil && saved != nil {
		r.Wrote(datasets.DescribeImage(saved, r.String("save_bias_field")))
	}
	return err
}
