// Package register implements the command register, which finds how slices lie on the slices before them.
package register

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/register"
	"strata/pkg/registration"
	"strata/pkg/runrecord"
)

// Command returns the command register.
func Command() *cli.Command {
	o := register.Defaults()
	return &cli.Command{
		Name:  "register",
		Usage: "find how a slice lies on the slice before it",
		Description: "Finds the rotation and the translation that lay MOVING on FIXED, the slice before it, and the plane of FIXED that\n" +
			"a plane of MOVING shows. Writes them to the folder OUT_DIR in the form that stack --transforms_dir reads:\n" +
			"transform.tfm, offsets.txt and " + register.MetricsName + ".\n\n" +
			"With --all, registers all neighbours of a folder of slices, one folder per moving slice. Planes that show nothing in\n" +
			"common get the identity with confidence 0 and a warning, so that stack adds nothing for them.\n\n" +
			"Reads only the planes that it compares.",
		Args: []cli.Arg{
			{Name: "FIXED", Usage: "slice before MOVING, OME-Zarr; with --all, the folder of slices slice_z<NN>*.ome.zarr"},
			{Name: "MOVING", Usage: "slice to lay on FIXED; with --all, the folder to write, and no OUT_DIR"},
			{Name: "OUT_DIR", Usage: "folder to write", Optional: true},
		},
		Shared: cli.Resources | cli.Outputs | cli.Inputs,
		Flags:  flags(&o),
		Aliases: []cli.Alias{{Name: "linum-register-pairwise"}, {Name: "linum-analyze-registration-transforms", Command: "analyze", Defaults: cli.Defaults{"overwrite": "true"},
			Ignored: []cli.Flag{{Name: "include_tfm", Kind: cli.Bool, Ignored: "transforms are always read"}}}},
		Commands: []*cli.Command{analyzeCommand()},
		Examples: []cli.Example{
			{Command: "register slice_z03.ome.zarr slice_z04.ome.zarr registered/slice_z04", Usage: "one pair, on one canvas already"},
			{Command: "register --all slices/ registered/ --moving_z_index 4 --max_translation_px 200 -j 16", Usage: "all pairs of a folder"},
			{Command: "register slice_z03.ome.zarr slice_z04.ome.zarr registered/slice_z04 --elastic", Usage: "with the displacements that are left, which stack --transforms_dir applies"},
			{Command: "register fixed.ome.zarr moving.ome.zarr out/ --no_rotation --screenshot pair.png", Usage: "translation only, and a picture of the planes before and after"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error { return run(ctx, r, o) }),
	}
}

// flags returns the flags of the options and of files.
func flags(o *register.Options) []cli.Flag {
	notNegative := cli.AtLeast(0)
	return []cli.Flag{
		{Name: "all", Kind: cli.Bool, Usage: "register all neighbours, by number, of the folder of slices FIXED"},
		{Name: "on_error", Default: "stop", Choices: []string{"stop", "skip"},
			Usage: "with --all, if a slice cannot be read: stop, or skip its pairs: warn and write the identity with status error for them"},

		cli.Bind(&o.SlicingIntervalMM, cli.Flag{Name: "slicing_interval_mm", Check: notNegative, Value: "MM", Usage: "thickness that the blade cuts off between two slices, in mm"}),
		cli.Bind(&o.Apart, cli.Flag{Name: "slices_apart", Check: notNegative, Value: "N", Note: "by the numbers z<NN> in the names", Usage: "cuts between FIXED and MOVING, more than 1 if slices between them are missing; --all always goes by the names"}),
		cli.Bind(&o.SearchRangeMM, cli.Flag{Name: "search_range_mm", Check: notNegative, Value: "MM", Usage: "how far from the expected plane of FIXED to search, either way, in mm"}),
		cli.Bind(&o.MovingZ, cli.Flag{Name: "moving_z_index", Check: notNegative, Value: "PLANE", Usage: "plane of MOVING to register, counted from 0"}),
		cli.Bind(&o.ZSearch, cli.Flag{Name: "z_search", Choices: register.ZSearches,
			Usage: "how to find the plane of FIXED: aligned compares planes again after laying them on each other, also around the plane one slicing interval below the surface; centre compares their centres as they lie, as linumpy does"}),
		{Name: "rotation", Aliases: []string{"enable_rotation"}, Kind: cli.Bool, Default: "true", Usage: "find a rotation besides the translation"},
		cli.Bind(&o.MaxRotationDeg, cli.Flag{Name: "max_rotation_deg", Check: cli.Between(0, 180), Value: "DEG", Usage: "largest rotation either way, in degrees"}),
		cli.Bind(&o.MaxTranslationPx, cli.Flag{Name: "max_translation_px", Check: notNegative, Value: "PX", Usage: "largest translation, in pixels"}),
		cli.Bind(&o.Start, cli.Flag{Name: "initial_alignment", Choices: register.Starts,
			Usage: "where to begin, besides the identity: gradient at displacements that phase correlation shows at several angles, com at the centres of mass, both, or none"}),

		cli.Bind(&o.Elastic, cli.Flag{Name: "elastic", Usage: "also find the smooth displacements that rotation and translation leave, and write them to " + registration.ElasticName + ", which stack applies"}),
		cli.Bind(&o.ElasticSpacingUM, cli.Flag{Name: "elastic_spacing_um", Check: cli.Above(0), Value: "UM", Usage: "distance between the control points of --elastic, in µm: structures of a deformation below this size are not followed"}),
		cli.Bind(&o.ElasticMaxPx, cli.Flag{Name: "elastic_max_px", Check: notNegative, Value: "PX", Usage: "write no displacements if one of --elastic is larger than this, in pixels"}),

		{Name: "out_transform", Default: register.TransformName, Value: "NAME", Check: fileName(".tfm"), Usage: "name of the transform's file in OUT_DIR, NAME.tfm"},
		{Name: "out_offsets", Default: register.OffsetsName, Value: "NAME", Check: fileName(".txt"), Usage: "name of the file with the two planes in OUT_DIR, NAME.txt"},
		{Name: "screenshot", Value: "FILE", Usage: "write a PNG with checkerboards of the two planes, before and after; with --all a name, for a file in each folder"},
	}
}

// fileName refuses all but names of files with an ending, and those of register's own files.
func fileName(ending string) func(v any) error {
	return func(v any) error {
		name := v.(string)
		if name != filepath.Base(name) || strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ending) {
			return fmt.Errorf("must be the name of a file, without a folder, that ends in %s", ending)
		}
		if name == registration.ElasticName {
			return fmt.Errorf("is the name of the file of displacements: choose another one")
		}
		return nil
	}
}

func run(ctx context.Context, r *cli.Run, o register.Options) error {
	o.Rotation = r.Bool("rotation")
	if r.Bool("all") {
		return runAll(ctx, r, o)
	}
	if r.Arg("OUT_DIR") == "" {
		return cli.Usage("OUT_DIR is missing: give FIXED MOVING OUT_DIR, or --all SLICES OUT_DIR")
	}
	var pair [2]register.Slice
	for i, path := range []string{r.Arg("FIXED"), r.Arg("MOVING")} {
		image, err := stage.Open(ctx, r, path)
		if err != nil {
			return err
		}
		pair[i] = register.Slice{Path: address.Address(path).String(), Image: image}
		r.Read(datasets.DescribeImage(image, path))
	}
	out, err := stage.StartPair(ctx, r, r.Arg("OUT_DIR"), pair[0].Path, pair[1].Path, r.String("out_transform"), r.String("out_offsets"))
	if err != nil {
		return err
	}
	picture, err := r.OptionalFile("screenshot")
	if err != nil {
		return err
	}
	task := r.Progress("register", 0)
	result, err := register.Run(ctx, pair[0], pair[1], o, stage.Resources(r, task))
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	for _, w := range result.Warnings {
		r.Warn("%s", w)
	}
	files, err := result.Files(r.String("out_transform"), r.String("out_offsets"))
	if err != nil {
		return err
	}
	if err := out.Write(files); err != nil {
		return err
	}
	if err := picture.Write(result.Picture); err != nil {
		return err
	}
	r.Wrote(runrecord.Dataset{Path: address.Address(out.Path)})
	r.Conclude("%s", summary(result))
	return nil
}

// summary says in a line what was found.
func summary(r *register.Result) string {
	if r.Refused != "" {
		return "not registered"
	}
	return fmt.Sprintf("plane %d lies on plane %d, moved by (%.2f, %.2f) px and turned by %.3f°, correlation %.3f, confidence %.2f%s",
		r.Offsets.MovingZ, r.Offsets.FixedZ, r.Transform.TX, r.Transform.TY, r.Transform.Angle*180/math.Pi, r.After, r.Confidence, r.ElasticSummary())
}
