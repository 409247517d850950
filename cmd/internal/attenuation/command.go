// Package attenuation implements the command attenuation, which undoes the decay of the signal with depth.
package attenuation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/attenuation"
	"strata/pkg/zarr/store"
)

// Command returns the command attenuation.
func Command() *cli.Command {
	o := attenuation.Options{Method: attenuation.Li, Radius: 10, Strength: 0.3, MinBias: 0.05, SNR: 6, MaskSigma: 2}
	return &cli.Command{
		Name:  "attenuation",
		Usage: "undo the decay of the signal with depth in a slice",
		Description: "Brightens each voxel of tissue by the light that was lost on the way to it. The attenuation of a voxel follows from\n" +
			"its signal and the sum of the signals below it in its A-line; what lies below the last plane is taken from the slope\n" +
			"of the deepest planes. The slice should begin at the tissue (crop). Voxels outside the tissue mask attenuate nothing.\n\n" +
			"OUT is float32. NaN and infinite voxels stay and are ignored. Writes metrics beside OUT, as NAME_metrics.json. Reads\n" +
			"IN three times. Keeps about 5 bytes a voxel between its passes: in memory if half of --mem holds them, else in a\n" +
			"temporary file in --scratch.",
		Args:   stage.InOut("slice (z, y, x)", "image"),
		Shared: cli.Stage &^ cli.GPU,
		Hints:  cli.Hints{"chunks": {Note: "the input's, smaller along y and x in deep slices"}},
		Flags: []cli.Flag{
			{Name: "method", Default: o.Method, Choices: []string{attenuation.Li, attenuation.Liu, attenuation.Vermeer},
				Usage: "light below the last plane: from the slope after noise is subtracted (li), from the slope (liu), or none (vermeer)"},
			{Name: "tail", Default: attenuation.TailSlice, Choices: []string{attenuation.TailSlice, attenuation.TailLine},
				Usage: "which slope tells of the light below the last plane: that of the mean of the tissue (slice), or of each A-line (line), as linumpy has it, which brightens A-lines whose structure hides the decay"},
			cli.Bind(&o.Radius, cli.Flag{Name: "k", Value: "N", Check: cli.Between(0, 256), Usage: "estimate from medians of 2N+1 by 2N+1 pixels in each plane; 0 to 256, 0 takes the voxels as they are"}),
			cli.Bind(&o.Strength, cli.Flag{Name: "strength", Check: cli.Between(0, 10), Usage: "share of the attenuation to undo: 0 changes nothing, 1 undoes all of it"}),
			cli.Bind(&o.MinBias, cli.Flag{Name: "min_bias", Check: cli.Between(1e-6, 1), Usage: "smallest divisor: 0.05 brightens a voxel at most 20 times"}),
			cli.Bind(&o.SNR, cli.Flag{Name: "snr_threshold_db", Check: cli.Between(-100, 100), Usage: "with --method li, end an A-line where its signal is less than this many dB above the noise"}),
			cli.Bind(&o.MaskSigma, cli.Flag{Name: "mask_smoothing_sigma", Check: cli.Between(0, 256), Usage: "standard deviation in pixels of the Gaussian before the tissue mask, 0 to 256"}),
			{Name: "scratch", Value: "DIR", Note: "the folder of OUT", Usage: "folder for the temporary file of a slice larger than memory"},
		},
		Examples: []cli.Example{
			{Command: "attenuation slice_z05_crop_interface.ome.zarr slice_z05_attn_corr.ome.zarr", Usage: "as the workflow does, after crop"},
			{Command: "attenuation in.ome.zarr out.ome.zarr --strength 1 --k 5", Usage: "undo all of the attenuation, estimated from medians of 11 by 11 pixels"},
			{Command: "attenuation in.ome.zarr out.ome.zarr -f --n_levels 0 --mem 1GiB --scratch /local", Usage: "a slice larger than memory, with the temporary file on a local disk"},
		},
		Aliases: []cli.Alias{{Name: "linum-compensate-attenuation-inplace", Defaults: cli.Defaults{"overwrite": "true", "n_levels": "0", "tail": "line"},
			Ignored: []cli.Flag{
				{Name: "zshift", Kind: cli.Int, Ignored: "the mask is found in the slice"},
				{Name: "use_gpu", Kind: cli.Bool, Ignored: "attenuation computes on the CPU"},
			}}},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error { return run(ctx, r, o) }),
	}
}

func run(ctx context.Context, r *cli.Run, o attenuation.Options) error {
	o.Method, o.Tail, o.Scratch = r.String("method"), r.String("tail"), r.String("scratch")
	switch {
	case o.Scratch != "":
		if dir, err := os.Stat(o.Scratch); err != nil || !dir.IsDir() {
			return cli.Usage("--scratch %s: want a folder that is there", o.Scratch)
		}
	case !cli.InBucket(r.Arg("OUT")):
		o.Scratch = filepath.Dir(filepath.Clean(r.Arg("OUT")))
	}
	return stage.Measured{Name: "attenuation", Passes: attenuation.Passes,
		Run: func(in *ngff.Image, out store.Writer, paths [2]string, res oct.Resources) (*ngff.Image, *metrics.Step, string, error) {
			image, result, err := attenuation.Run(ctx, in, out, o, stage.Layout(r), res)
			if err != nil {
				return nil, nil, "", err
			}
			said := fmt.Sprintf("tissue is %.3g %% of the slice and brightened %.3g times (median), at most %.3g", 100*result.Coverage, result.MedianGain, result.MaxGain)
			return image, result.Step(paths[0], paths[1], o), said, nil
		}}.Do(ctx, r)
}
