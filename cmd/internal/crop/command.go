// Package crop implements the command crop, which cuts a mosaic grid or a slice below the tissue interface.
package crop

import (
	"context"
	"fmt"

	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/ngff"
	"strata/pkg/oct/crop"
)

// Command returns the command crop.
func Command() *cli.Command {
	c := crop.Options{Depth: 600, PercentileMax: 99.9, MaxFraction: 0.5}
	return &cli.Command{
		Name: "crop",
		Aliases: []cli.Alias{{
			Name:     "linum-crop-3d-mosaic-below-interface",
			Defaults: cli.Defaults{"overwrite": "true", "depth": "300", "percentile_max": "100", "zero_nonfinite": "true"},
			Flags:    map[string]string{"max_interface_depth_fraction": "max_interface_fraction"},
			Ignored:  []cli.Flag{{Name: "resolution", Kind: cli.Float, Ignored: "the voxel size is that of the image"}},
		}},
		Usage: "crop a mosaic grid or a slice to a depth below the tissue interface",
		Description: "Finds how deep the tissue begins in an OME-Zarr image (z, y, x) and keeps --depth µm below that. The interface\n" +
			"of an A-line is where it brightens most. The interface of the image is the median over the A-lines that brighten\n" +
			"more than the background.\n\n" +
			"Writes the interface that it found next to OUT, as NAME_crop.json. Reads IN tile by tile, three times: for the\n" +
			"percentile (not with --percentile_max 100), for the search, and for what it keeps.",
		Args:   stage.InOut("mosaic grid or slice", "image"),
		Shared: cli.Stage | cli.Pairs,
		Hints:  cli.Hints{"chunks": {Note: "the input's"}},
		Flags: append([]cli.Flag{
			cli.Bind(&c.Depth, cli.Flag{Name: "depth", Check: cli.Above(0), Usage: "depth to keep below the tissue interface, in µm"}),
			cli.Bind(&c.BeforeInterface, cli.Flag{Name: "crop_before_interface", Usage: "also remove what lies above the tissue interface; otherwise the output begins at the first plane of the input"}),
			cli.Bind(&c.PadAfter, cli.Flag{Name: "pad_after", Usage: "pad with zeros where the image ends before --depth is reached"}),
			cli.Bind(&c.ZeroNonFinite, cli.Flag{Name: "zero_nonfinite", Usage: "write 0 for NaN and infinite voxels, which otherwise stay as they are"}),
			cli.Bind(&c.PercentileMax, cli.Flag{Name: "percentile_max", Check: cli.Between(0, 100), Usage: "during the search for the interface, clip values above this percentile of the image, 0 to 100; 100 clips nothing"}),
			cli.Bind(&c.MaxFraction, cli.Flag{Name: "max_interface_fraction", Check: fraction, Usage: "search for the interface in this fraction of the planes, from the first plane on; above 0, at most 1"}),
		}, stage.SearchFlags(&c.SigmaXY, &c.SigmaZ, &c.Log)...),
		Examples: []cli.Example{
			{Command: "crop slice_z03.ome.zarr cropped/slice_z03.ome.zarr --crop_before_interface", Usage: "keep 600 µm from the tissue surface down"},
			{Command: "crop in.ome.zarr out.ome.zarr --depth 400 --crop_before_interface --pad_after", Usage: "give every slice the same number of planes"},
			{Command: "crop in.ome.zarr out.ome.zarr --max_interface_fraction 0.3 --use_log", Usage: "where the tissue is dim and something deeper is bright"},
			{Command: "crop --batch slices.tsv --crop_before_interface", Usage: "all slices of a list, lines IN TAB OUT, with one start of the GPU"},
		},
		Run: cli.Accelerated(stage.GPU, func(ctx context.Context, r *cli.Run) error { return run(ctx, r, c) }),
	}
}

// fraction returns an error for a value that is not a valid fraction of the planes.
func fraction(v any) error {
	if f := v.(float64); !(f > 0 && f <= 1) {
		return fmt.Errorf("must be above 0 and at most 1")
	}
	return nil
}

func run(ctx context.Context, r *cli.Run, c crop.Options) error {
	passes := int64(3)
	if c.PercentileMax == 100 {
		passes = 2
	}
	var metrics *atomic.Output
	var found crop.Metrics
	return stage.Made{Name: "crop", Passes: passes, OnGPU: true, Joined: true,
		Outputs: func() (err error) {
			if cli.InBucket(r.Arg("OUT")) {
				r.Warn("no _crop.json is written beside an output in a bucket")
				return nil
			}
			metrics, err = r.OutputFile(stage.Stem(r.Arg("OUT")) + "_crop.json")
			return err
		},
		Work: func(work *stage.Work, in *ngff.Image) {
			if v, shape := in.VoxelSize, in.Levels[0].Array.Shape(); len(v) > 2 && c.BeforeInterface {
				work.Out = min(1, c.Depth/(v[len(v)-3]*float64(shape[len(shape)-3])))
			}
		},
		Run: func(x stage.Making) (result *ngff.Image, err error) {
			if result, found, err = crop.Run(ctx, x.In, x.Out, c, x.Layout, x.Res); err != nil {
				return nil, err
			}
			if metrics != nil {
				err = metrics.Write(stage.JSON(found))
			}
			return result, err
		},
		Said: func() string {
			if found.Noise {
				return fmt.Sprintf("no tissue was found, cut at plane %d (%.4g µm)", found.Interface, found.InterfaceUM)
			}
			return fmt.Sprintf("tissue begins at plane %d (%.4g µm)", found.Interface, found.InterfaceUM)
		},
	}.Do(ctx, r)
}
