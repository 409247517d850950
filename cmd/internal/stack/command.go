// Package stack is the command stack, which assembles slices to one volume.
package stack

import (
	"context"
	"io"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/document"
	"strata/pkg/oct/stack"
	"strata/pkg/record"
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
)

// Command is stack.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "stack",
		Usage: "assemble slices to one volume",
		Description: "Places the slices of a folder (slice_z<NN>*.ome.zarr) in one volume. In the plane they lie where the motor\n" +
			"shifts of SHIFTS_CSV and pairwise transforms put them. Along z, neighbours overlap: by as much as a registration\n" +
			"found, as the slicing interval makes expect, or as correlates best. The overlap is overwritten, or blended with\n" +
			"--blend. OUT is float32 with a pyramid for analysis: level 0 has the first of --pyramid_resolutions that is not\n" +
			"finer than the slices. Slices are read once, in order (parts of the ends of neighbours before, to compare\n" +
			"them); in memory are the planes that are blended: of the GPU, if there is one. A limit of 0 is off.",
		Args: []cli.Arg{
			{Name: "SLICES_DIR", Usage: "folder of slices, or s3://bucket/path: slice_z<NN>*.ome.zarr"},
			{Name: "SHIFTS_CSV", Usage: "shifts between slices: columns fixed_id, moving_id, x_shift_mm, y_shift_mm"},
			{Name: "OUT", Usage: "OME-Zarr image to write: a folder or s3://bucket/path"},
		},
		Shared: cli.Stage, Accelerator: stage.GPU,
		Hints:   cli.Hints{"chunks": {Value: "Z,Y,X", Note: "8,256,256"}, "shard": {Value: "Z,Y,X", Note: "none"}, "n_levels": {Note: "all of --pyramid_resolutions"}},
		Flags:   flags(),
		Aliases: []cli.Alias{{Name: "linum-stack-slices-motor", Defaults: cli.Defaults{"overlap_search": "centre", "repair_shifts": "off", "blend_match": "pairwise", "use_origins": "false"}}},
		Gone:    map[string]string{"force_skip_slices": "--slice_config FILE, which names the slices to use"},
		Examples: []cli.Example{
			{Command: "stack slices/ shifts_xy.csv brain.ome.zarr --blend", Usage: "overlaps by correlation, blended"},
			{Command: "stack slices/ shifts_xy.csv brain.ome.zarr --use_expected_overlap --blend --pyramid_resolutions 25 50 100", Usage: "overlaps as the blade cut them; level 0 at 25 µm"},
			{Command: "stack slices/ shifts_xy.csv brain.ome.zarr --transforms_dir registered/ --blend --output_z_matches z.csv --output_stacking_decisions decisions.csv", Usage: "with pairwise transforms, and tables of what was done"},
		},
		Run: run,
	}
}

func flags() []cli.Flag {
	confidence, notNegative := cli.Between(0, 1), cli.AtLeast(0)
	return []cli.Flag{
		{Name: "no_xy_shift", Kind: cli.Bool, Usage: "slices share a frame: do not use the shifts"},
		{Name: "use_origins", Kind: cli.Bool, Default: "true", Usage: "add the translations of slices, which stitch writes, to the shifts"},
		{Name: "repair_shifts", Default: string(stack.RepairWarn), Choices: stack.Repairs,
			Usage: "compare slices with the shifts: warn tells of those that pictures of neighbours clearly contradict, fix takes the pictures' instead"},
		{Name: "max_slices", Kind: cli.Int, Note: "all", Check: notNegative, Value: "N", Usage: "stack the first N slices only"},

		{Name: "slicing_interval_mm", Kind: cli.Float, Default: "0.2", Check: notNegative, Value: "MM", Usage: "thickness that the blade takes off"},
		{Name: "search_range_mm", Kind: cli.Float, Default: "0.1", Check: notNegative, Value: "MM", Usage: "how far from the expected overlap to search"},
		{Name: "use_expected_overlap", Kind: cli.Bool, Usage: "take the expected overlap, do not search"},
		{Name: "moving_z_first_index", Kind: cli.Int, Default: "8", Check: notNegative, Value: "PLANES", Usage: "planes at the top of a moving slice that are left out"},
		{Name: "overlap_search", Default: string(stack.SearchAligned), Choices: stack.OverlapSearches,
			Usage: "aligned: slices moved to where they lie, in tiles of tissue, by what is brighter than its surroundings; centre: the planes' centres as they are, as linumpy does"},
		{Name: "z_overlap_min_corr", Kind: cli.Float, Note: "0.1 aligned, 0.5 centre", Check: cli.Between(-1, 1), Value: "R", Usage: "correlation under which the expected overlap is taken; 0: never"},

		{Name: "blend", Kind: cli.Bool, Usage: "match the brightness of slices and blend their overlap"},
		{Name: "blend_match", Default: string(stack.MatchWhole), Choices: stack.BlendMatches,
			Usage: "match slices by a factor each, from all overlaps at once (whole), by one for each depth as well, which takes attenuation away (depth), or to the slices below, one by one, as linumpy does (pairwise)"},
		{Name: "blend_depth", Kind: cli.Int, Note: "the overlap", Value: "PLANES", Usage: "taken for linumpy's sake, and not used"},
		{Name: "blend_refinement_px", Kind: cli.Float, Default: "0", Check: notNegative, Value: "PX", Usage: "shift the blended planes in the plane by up to so many pixels"},
		{Name: "blend_z_refine_vox", Kind: cli.Int, Default: "0", Check: notNegative, Value: "PLANES", Usage: "blend up to so many planes less than an expected overlap"},
		{Name: "blend_z_refine_min_confidence", Kind: cli.Float, Default: "0.5", Check: confidence, Value: "C", Usage: "confidence of the transform that this needs"},

		{Name: "transforms_dir", Value: "DIR", Usage: "pairwise transforms: a folder *z<NN>* for each slice"},
		{Name: "manual_transforms_dir", Value: "DIR", Usage: "transforms that go before those"},
		{Name: "slice_config", Value: "FILE", Usage: "CSV (slice_id, use, auto_excluded): slices whose transforms are not used"},
		{Name: "rotation_only", Kind: cli.Bool, Usage: "use the rotations of transforms only"},
		{Name: "max_rotation_deg", Kind: cli.Float, Default: "1", Check: notNegative, Value: "DEG", Usage: "clamp larger rotations"},
		{Name: "smooth_window", Kind: cli.Int, Default: "0", Check: notNegative, Value: "SLICES", Usage: "average rotations over so many slices"},
		{Name: "confidence_low", Kind: cli.Float, Default: "0.3", Check: confidence, Value: "C", Usage: "skip transforms of less confidence"},
		{Name: "confidence_high", Kind: cli.Float, Default: "0.6", Check: confidence, Value: "C", Usage: "use only the rotation of transforms of less confidence"},
		{Name: "skip_error_transforms", Kind: cli.Bool, Usage: "leave out transforms whose status is error"},
		{Name: "skip_warning_transforms", Kind: cli.Bool, Usage: "leave out transforms whose status is warning"},
		{Name: "load_min_zcorr", Kind: cli.Float, Default: "0", Check: notNegative, Value: "R", Usage: "instead, with the next: leave out those of less z correlation"},
		{Name: "load_max_rotation", Kind: cli.Float, Default: "0", Check: notNegative, Value: "DEG", Usage: "instead, with the last: leave out those of more rotation"},

		{Name: "accumulate_translations", Kind: cli.Bool, Usage: "add the translations of transforms up, on top of the shifts; implies --rotation_only"},
		{Name: "confidence_weight_translations", Kind: cli.Bool, Usage: "weight them by their confidence"},
		{Name: "max_pairwise_translation", Kind: cli.Float, Default: "0", Check: notNegative, Value: "PX", Usage: "count those of 95 % of this or more as 0"},
		{Name: "translation_min_zcorr", Kind: cli.Float, Default: "0.2", Check: notNegative, Value: "R", Usage: "leave those of less z correlation out"},
		{Name: "translation_smooth_sigma", Kind: cli.Float, Default: "0", Check: notNegative, Value: "SLICES", Usage: "smooth the sums by a Gaussian"},
		{Name: "max_cumulative_drift_px", Kind: cli.Float, Default: "0", Check: notNegative, Value: "PX", Usage: "limit the length of the sums"},

		{Name: "pyramid_resolutions", Kind: cli.Floats, Default: "10,25,50,100", Check: cli.Above(0), Value: "UM", Usage: "voxel sizes of the levels in µm; those finer than the slices are left out"},
		{Name: "make_isotropic", Aliases: []string{"isotropic"}, Kind: cli.Bool, Default: "true", Usage: "levels have that voxel size along every axis"},
		{Name: "output_z_matches", Value: "FILE", Usage: "CSV of the overlaps as found"},
		{Name: "output_shifts", Value: "FILE", Usage: "CSV of the shifts as recorded and as pictures show them"},
		{Name: "output_stacking_decisions", Value: "FILE", Usage: "CSV of what was done with each slice"},
	}
}

func options(r *cli.Run) stack.Options {
	search := stack.OverlapSearch(r.String("overlap_search"))
	least := search.MinCorr()
	if r.IsSet("z_overlap_min_corr") {
		least = r.Float("z_overlap_min_corr")
	}
	return stack.Options{
		NoXYShift: r.Bool("no_xy_shift"), SlicingIntervalMM: r.Float("slicing_interval_mm"), SearchRangeMM: r.Float("search_range_mm"),
		UseExpectedOverlap: r.Bool("use_expected_overlap"), MovingZFirstIndex: r.Int("moving_z_first_index"), ZOverlapMinCorr: least,
		OverlapSearch: search, IgnoreOrigins: !r.Bool("use_origins"), RepairShifts: stack.RepairShifts(r.String("repair_shifts")), BlendMatch: stack.BlendMatch(r.String("blend_match")),
		Blend: r.Bool("blend"), BlendRefinementPx: r.Float("blend_refinement_px"), BlendZRefineVox: r.Int("blend_z_refine_vox"),
		BlendZRefineMinConfidence: r.Float("blend_z_refine_min_confidence"),
		RotationOnly:              r.Bool("rotation_only"), MaxRotationDeg: r.Float("max_rotation_deg"), SmoothWindow: r.Int("smooth_window"),
		ConfidenceLow: r.Float("confidence_low"), ConfidenceHigh: r.Float("confidence_high"),
		SkipErrorTransforms: r.Bool("skip_error_transforms"), SkipWarningTransforms: r.Bool("skip_warning_transforms"),
		LoadMinZCorr: r.Float("load_min_zcorr"), LoadMaxRotation: r.Float("load_max_rotation"),
		AccumulateTranslations: r.Bool("accumulate_translations"), ConfidenceWeightTranslations: r.Bool("confidence_weight_translations"),
		MaxPairwiseTranslation: r.Float("max_pairwise_translation"), TranslationMinZCorr: r.Float("translation_min_zcorr"),
		TranslationSmoothSigma: r.Float("translation_smooth_sigma"), MaxCumulativeDriftPx: r.Float("max_cumulative_drift_px"),
		PyramidResolutions: r.Floats("pyramid_resolutions"), MakeIsotropic: r.Bool("make_isotropic"),
	}
}

func run(ctx context.Context, r *cli.Run) error {
	if r.IsSet("blend_depth") {
		r.Warn("--blend_depth is not used: the whole overlap is blended, or less with --blend_z_refine_vox")
	}
	if (r.Float("load_min_zcorr") > 0) != (r.Float("load_max_rotation") > 0) {
		r.Warn("--load_min_zcorr and --load_max_rotation work together only: neither is used")
	}
	in, total, err := inputs(ctx, r)
	if err != nil {
		return err
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	matches, err := r.OptionalFile("output_z_matches")
	if err != nil {
		return err
	}
	shifts, err := r.OptionalFile("output_shifts")
	if err != nil {
		return err
	}
	decisions, err := r.OptionalFile("output_stacking_decisions")
	if err != nil {
		return err
	}
	layout := stage.Layout(r)
	if !r.IsSet("n_levels") {
		layout.Levels = len(r.Floats("pyramid_resolutions"))
	}
	task := r.Progress("stack", total)
	res, err := stage.ResourcesOnGPU(ctx, r, task)
	if err != nil {
		return err
	}
	result, err := stack.Run(ctx, in, options(r), out.Store, layout, res)
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	if err := matches.Write(func(w io.Writer) error { return stack.WriteStackMatches(w, result.Matches) }); err != nil {
		return err
	}
	if err := shifts.Write(func(w io.Writer) error { return stack.WriteStackShifts(w, result.Shifts) }); err != nil {
		return err
	}
	if err := decisions.Write(func(w io.Writer) error { return stack.WriteStackDecisions(w, result.Decisions) }); err != nil {
		return err
	}
	for _, s := range in.Slices {
		r.Read(datasets.Describe(s.Image.Levels[0].Array, s.Path))
	}
	for _, flag := range []string{"transforms_dir", "manual_transforms_dir"} {
		if name := r.String(flag); name != "" {
			r.Read(record.Dataset{Path: address.Address(name)})
		}
	}
	r.Wrote(datasets.Describe(result.Image.Levels[0].Array, out.Path()))
	for _, flag := range []string{"output_z_matches", "output_shifts", "output_stacking_decisions"} {
		if name := r.String(flag); name != "" {
			r.Wrote(record.Dataset{Path: address.Address(name)})
		}
	}
	return nil
}

// inputs opens all that the volume is made from; total is the bytes of the slices.
func inputs(ctx context.Context, r *cli.Run) (in stack.Input, total int64, err error) {
	dir, err := r.Input(r.Arg("SLICES_DIR"))
	if err != nil {
		return in, 0, err
	}
	if err := load(ctx, r, r.Arg("SHIFTS_CSV"), func(f io.Reader, name string) (err error) {
		in.Shifts, err = registration.ReadShifts(f, name)
		return err
	}); err != nil {
		return in, 0, err
	}
	if name := r.String("slice_config"); name != "" {
		if err := load(ctx, r, name, func(f io.Reader, name string) (err error) {
			in.Config, err = registration.ReadSliceConfig(f, name)
			return err
		}); err != nil {
			return in, 0, err
		}
	}
	for _, t := range []struct {
		flag   string
		folder **registration.Folder
	}{{"transforms_dir", &in.Transforms}, {"manual_transforms_dir", &in.Manual}} {
		name := r.String(t.flag)
		if name == "" {
			continue
		}
		if _, err := r.LocalInput(name); err != nil {
			return in, 0, err
		}
		if *t.folder, err = registration.OpenFolder(name); err != nil {
			return in, 0, cli.BadInput(err)
		}
		if (*t.folder).Slices() == 0 {
			r.Warn("%s: there are no folders *z<NN>* of transforms", name)
		}
	}
	files, err := stack.FindSlices(ctx, dir, store.Settings(r.Options.HTTP))
	if err != nil {
		return in, 0, stage.Failed(err)
	}
	if n := r.Int("max_slices"); n > 0 && n < len(files) {
		for _, f := range files[n:] {
			in.LeftOut = append(in.LeftOut, f.ID)
		}
		files = files[:n]
	}
	for _, f := range files {
		image, err := stage.Open(ctx, r, f.Path)
		if err != nil {
			return in, 0, err
		}
		in.Slices = append(in.Slices, stack.Slice{ID: f.ID, Path: f.Path, Image: image})
		total += datasets.Bytes(image.Levels[0].Array)
	}
	return in, total, nil
}

// load reads a file whose errors are the input's fault.
func load(ctx context.Context, r *cli.Run, name string, read func(f io.Reader, name string) error) error {
	if _, err := r.LocalInput(name); err != nil {
		return err
	}
	f, err := document.Open(ctx, name)
	if err != nil {
		return cli.BadInput(err)
	}
	defer f.Close()
	r.Read(record.Dataset{Path: address.Address(name)})
	return cli.BadInput(read(f, name))
}
