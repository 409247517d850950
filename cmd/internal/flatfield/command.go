// Package flatfield implements the command flatfield, which divides the tiles of a mosaic grid by the illumination that
// they share.
package flatfield

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/ngff"
	"strata/pkg/oct/flatfield"
)

// solvers lists the values of --solver.
var solvers = map[string]flatfield.Solver{"linum-basic": flatfield.LinumBasic, "basicpy": flatfield.BasicPy}

// Command returns the command flatfield.
func Command() *cli.Command {
	ignored := []cli.Flag{
		{Name: "n_processes", Kind: cli.Int, Ignored: "--threads sets the number of workers"},
	}
	c := flatfield.Options{MaxSamples: 2000, DarkPercentile: 5}
	return &cli.Command{
		Name:  "flatfield",
		Usage: "correct the uneven illumination that the tiles of a mosaic grid share",
		Description: "Estimates with BaSiC how the brightness falls off across a tile, from all whole tiles of some planes of an OME-Zarr\n" +
			"mosaic grid (z, y, x), and divides each tile by it. OUT has the data type, grid and chunks of IN; integers are rounded\n" +
			"half to even and clamped. Partial tiles at the far edges are divided by the leading part of the flat-field.\n\n" +
			"Which solver: basicpy (the default) fits the tiles of all planes together and leaves out those that are almost empty. It\n" +
			"bears tiles that are partly water, a curved focal plane and few tiles. linum-basic sorts each pixel's values over the\n" +
			"tiles and fits plane by plane. It is a little more exact where all planes lie in tissue, after focal and below the\n" +
			"interface, but makes matters worse where the tissue's surface crosses the planes: compare the seams in the metrics.\n\n" +
			"Writes metrics beside OUT, as NAME_metrics.json: how well neighbouring tiles agree in their overlap, before and after.\n" +
			"NaN voxels count as 0 in the estimate; basicpy makes them 0, linum-basic keeps them. Reads the planes of the estimate\n" +
			"twice, more often with --percentile_max or --use_darkfield, and IN once. With a GPU, the CPU still estimates; the GPU\n" +
			"divides.",
		Args:   stage.InOut("mosaic grid", "mosaic grid"),
		Shared: cli.Stage,
		Hints:  cli.Hints{"chunks": {Note: "the mosaic's"}},
		Flags:  flags(&c),
		Examples: []cli.Example{
			{Command: "flatfield mosaic_grid_3d_z03.ome.zarr even_z03.ome.zarr", Usage: "one flat-field for all planes"},
			{Command: "flatfield in.ome.zarr out.ome.zarr --percentile_max 99.9 --fit_max_samples 500", Usage: "clip bright specks in the estimate, and make it from fewer tiles in less memory"},
			{Command: "flatfield in.ome.zarr out.ome.zarr --solver linum-basic --per_z_fit --diagnostics_dir diagnostics --slice_id z03", Usage: "illumination that changes with depth; also write diagnostics/z03_diagnostic.png and diagnostics/z03_metrics.json"},
			{Command: "flatfield in.ome.zarr out.ome.zarr --tile_fov_mm 0.9 --n_extra_rows 8", Usage: "chunks that are not the tiles: tiles of 0.9 mm whose first 8 rows are unusable"},
		},
		Aliases: []cli.Alias{
			{Name: "linum-fix-illumination-basic", Defaults: cli.Defaults{"overwrite": "true", "solver": "linum-basic"}, Ignored: ignored},
			{Name: "linum-fix-illumination-3d", Defaults: cli.Defaults{"overwrite": "true", "solver": "basicpy"}, Ignored: ignored},
		},
		Run: cli.Accelerated(stage.GPU, func(ctx context.Context, r *cli.Run) error { return run(ctx, r, c) }),
	}
}

// flags returns the flags of the options and of files.
func flags(c *flatfield.Options) []cli.Flag {
	sigma := cli.Between(0, 1<<10)
	return []cli.Flag{
		{Name: "solver", Default: "basicpy", Choices: []string{"basicpy", "linum-basic"},
			Usage: "how to estimate the flat-field: basicpy in general; linum-basic if all planes lie in tissue and the focal plane is flat"},
		cli.Bind(&c.MaxIterations, cli.Flag{Name: "max_iterations", Value: "N", Note: "10 with linum-basic, 500 with basicpy", Check: cli.Between(1, 1<<20),
			Usage: "limit of rounds of reweighting with linum-basic, or of steps in a round with basicpy, at least 1"}),
		cli.Bind(&c.Smoothness, cli.Flag{Name: "smoothness_flatfield", Value: "LAMBDA", Note: "chosen from the tiles with linum-basic, 1 with basicpy", Check: cli.Between(1e-9, 1e9),
			Usage: "smoothness of the flat-field: larger values make it smoother"}),
		cli.Bind(&c.MaxSamples, cli.Flag{Name: "fit_max_samples", Value: "N", Check: cli.Between(1, 1<<30), Usage: "estimate from at most this number of tiles, in planes spread evenly over the depth, but at least from one plane"}),
		cli.Bind(&c.PerZ, cli.Flag{Name: "per_z_fit", Usage: "estimate a flat-field for each plane; with linum-basic for each of the planes that --fit_max_samples allows, and the others take the nearest"}),
		cli.Bind(&c.PercentileMax, cli.Flag{Name: "percentile_max", Value: "PERCENT", Note: "no clipping", Check: cli.Between(0, 100), Usage: "with basicpy, clip values above this percentile of the tiles in the estimate, 0 to 100; no effect with linum-basic"}),
		cli.Bind(&c.DarkField, cli.Flag{Name: "use_darkfield", Usage: "subtract a dark-field: a percentile of each pixel over the tiles. It contains signal and usually makes the result worse"}),
		cli.Bind(&c.DarkPercentile, cli.Flag{Name: "darkfield_percentile", Value: "PERCENT", Check: cli.Between(0, 100), Usage: "percentile of --use_darkfield, 0 to 100"}),
		cli.Bind(&c.DarkSmoothSigma, cli.Flag{Name: "darkfield_smooth_sigma", Value: "PX", Check: sigma, Usage: "smooth the dark-field by a Gaussian of this standard deviation in pixels, 0 to 1024"}),
		{Name: "darkfield_z_window", Default: "0", Value: "N|all", Check: window, Usage: "with --per_z_fit, average each plane's dark-field with those of N planes before and after it; all averages all planes"},
		cli.Bind(&c.SmoothSigma, cli.Flag{Name: "flatfield_smooth_sigma", Value: "PX", Check: sigma, Usage: "smooth the flat-field by a Gaussian of this standard deviation in pixels, 0 to 1024"}),
		{Name: "tile_fov_mm", Kind: cli.Float, Value: "MM", Note: "a tile is a chunk", Check: cli.Between(0, 1e6), Usage: "width of the square tiles in mm, if they are not the chunks of the mosaic"},
		cli.Bind(&c.ExtraRows, cli.Flag{Name: "n_extra_rows", Value: "N", Check: cli.Between(0, 1<<20), Usage: "leave the first N rows of each tile out of the estimate, and divide them by the row after them"}),
		{Name: "diagnostics_dir", Value: "DIR", Usage: "write the metrics to this folder, and a picture of the flat-field and of a plane before and after the correction"},
		{Name: "slice_id", Value: "ID", Note: "the name of OUT", Check: plainName, Usage: "begin the names of the metrics and of the picture with this"},
	}
}

// window returns an error for a value that is not a number of planes or all.
func window(v any) error {
	if n, err := strconv.Atoi(v.(string)); v != "all" && (err != nil || n < 0) {
		return errors.New("must be a number of planes or all")
	}
	return nil
}

// plainName returns an error for a name that is a path.
func plainName(v any) error {
	if name := v.(string); name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) {
		return errors.New("must be a name without slashes")
	}
	return nil
}

func run(ctx context.Context, r *cli.Run, c flatfield.Options) error {
	c.Solver, c.TileUM = solvers[r.String("solver")], 1000*r.Float("tile_fov_mm")
	if c.DarkWindow, _ = strconv.Atoi(r.String("darkfield_z_window")); r.String("darkfield_z_window") == "all" {
		c.DarkWindow = -1
	}
	var metrics, picture *atomic.Output
	var result *flatfield.Result
	return stage.Made{Name: "flatfield", Tiles: true, Passes: 1, OnGPU: true,
		Outputs: func() (err error) {
			metrics, picture, err = diagnostics(r)
			return err
		},
		Run: func(x stage.Making) (_ *ngff.Image, err error) {
			if result, err = flatfield.Run(ctx, x.In, x.Out, c, x.Layout, x.Res); err != nil {
				return nil, err
			}
			if err := stage.WriteMetrics(r, metrics, result.Step(stage.Shown(r.Arg("IN")), stage.Shown(r.Arg("OUT")), c)); err != nil {
				return nil, err
			}
			if picture != nil {
				err = stage.FillFile(r, picture, result.WritePNG)
			}
			return result.Image, err
		},
		Said: func() string {
			if result.After.Pairs == 0 {
				return ""
			}
			return fmt.Sprintf("neighbouring tiles differ by %.3g %% in their overlap, before the correction by %.3g %%", 100*result.After.L1, 100*result.Before.L1)
		},
	}.Do(ctx, r)
}

// diagnostics starts the file of metrics and the picture. Without --diagnostics_dir the former lies beside the output,
// and there is no picture.
func diagnostics(r *cli.Run) (metrics, picture *atomic.Output, err error) {
	out := strings.TrimRight(r.Arg("OUT"), "/")
	id, dir := r.String("slice_id"), r.String("diagnostics_dir")
	if dir == "" {
		if id != "" {
			out = strings.TrimSuffix(out, path.Base(out)) + id
		}
		metrics, err = stage.Metrics(r, out)
		return metrics, nil, err
	}
	if id == "" {
		id = strings.TrimSuffix(path.Base(out), path.Ext(out))
	}
	if metrics, err = r.OutputFile(filepath.Join(dir, id+"_metrics.json")); err != nil {
		return nil, nil, err
	}
	picture, err = r.OutputFile(filepath.Join(dir, id+"_diagnostic.png"))
	return metrics, picture, err
}
