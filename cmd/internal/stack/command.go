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
	"strata/pkg/ngff"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/oct/stack"
	"strata/pkg/oct/stack/tables"
	"strata/pkg/record"
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
)

// Command is stack.
func Command() *cli.Command {
	o := stack.DefaultStackOptions()
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
		Flags:   flags(&o),
		Aliases: []cli.Alias{{Name: "linum-stack-slices-motor", Defaults: cli.Defaults{"overlap_search": "centre", "repair_shifts": "off", "blend_match": "pairwise", "use_origins": "false"}}},
		Gone:    map[string]string{"force_skip_slices": "--slice_config FILE, which names the slices to use"},
		Examples: []cli.Example{
			{Command: "stack slices/ shifts_xy.csv brain.ome.zarr --blend", Usage: "overlaps by correlation, blended"},
			{Command: "stack slices/ shifts_xy.csv brain.ome.zarr --use_expected_overlap --blend --pyramid_resolutions 25 50 100", Usage: "overlaps as the blade cut them; level 0 at 25 µm"},
			{Command: "stack slices/ shifts_xy.csv brain.ome.zarr --transforms_dir registered/ --blend --output_z_matches z.csv --output_stacking_decisions decisions.csv", Usage: "with pairwise transforms, and tables of what was done"},
		},
		Run: func(ctx context.Context, r *cli.Run) error { return run(ctx, r, o) },
	}
}

// flags are those of the options, and of files.
func flags(o *stack.Options) []cli.Flag {
	confidence, notNegative := cli.Between(0, 1), cli.AtLeast(0)
	return []cli.Flag{
		cli.Bind(&o.NoXYShift, cli.Flag{Name: "no_xy_shift", Usage: "slices share a frame: do not use the shifts"}),
		{Name: "use_origins", Kind: cli.Bool, Default: "true", Usage: "add the translations of slices, which stitch writes, to the shifts"},
		cli.Bind(&o.RepairShifts, cli.Flag{Name: "repair_shifts", Choices: stack.Repairs,
			Usage: "compare slices with the shifts: warn tells of those that pictures of neighbours clearly contradict, fix takes the pictures' instead"}),
		{Name: "max_slices", Kind: cli.Int, Note: "all", Check: notNegative, Value: "N", Usage: "stack the first N slices only"},

		cli.Bind(&o.SlicingIntervalMM, cli.Flag{Name: "slicing_interval_mm", Check: notNegative, Value: "MM", Usage: "thickness that the blade takes off"}),
		cli.Bind(&o.SearchRangeMM, cli.Flag{Name: "search_range_mm", Check: notNegative, Value: "MM", Usage: "how far from the expected overlap to search"}),
		cli.Bind(&o.UseExpectedOverlap, cli.Flag{Name: "use_expected_overlap", Usage: "take the expected overlap, do not search"}),
		cli.Bind(&o.MovingZFirstIndex, cli.Flag{Name: "moving_z_first_index", Check: notNegative, Value: "PLANES", Usage: "planes at the top of a moving slice that are left out"}),
		cli.Bind(&o.OverlapSearch, cli.Flag{Name: "overlap_search", Choices: stack.OverlapSearches,
			Usage: "aligned: slices moved to where they lie, in tiles of tissue, by what is brighter than its surroundings; centre: the planes' centres as they are, as linumpy does"}),
		{Name: "z_overlap_min_corr", Kind: cli.Float, Note: "0.1 aligned, 0.5 centre", Check: cli.Between(-1, 1), Value: "R", Usage: "correlation under which the expected overlap is taken; 0: never"},

		cli.Bind(&o.Blend, cli.Flag{Name: "blend", Usage: "match the brightness of slices and blend their overlap"}),
		cli.Bind(&o.BlendMatch, cli.Flag{Name: "blend_match", Choices: stack.BlendMatches,
			Usage: "match slices by a factor each, from all overlaps at once (whole), by one for each depth as well, which takes attenuation away (depth), or to the slices below, one by one, as linumpy does (pairwise)"}),
		{Name: "blend_depth", Kind: cli.Int, Note: "the overlap", Value: "PLANES", Usage: "taken for linumpy's sake, and not used"},
		cli.Bind(&o.BlendRefinementPx, cli.Flag{Name: "blend_refinement_px", Check: notNegative, Value: "PX", Usage: "shift the blended planes in the plane by up to so many pixels"}),
		cli.Bind(&o.BlendZRefineVox, cli.Flag{Name: "blend_z_refine_vox", Check: notNegative, Value: "PLANES", Usage: "blend up to so many planes less than an expected overlap"}),
		cli.Bind(&o.BlendZRefineMinConfidence, cli.Flag{Name: "blend_z_refine_min_confidence", Check: confidence, Value: "C", Usage: "confidence of the transform that this needs"}),

		{Name: "transforms_dir", Value: "DIR", Usage: "pairwise transforms: a folder *z<NN>* for each slice"},
		{Name: "manual_transforms_dir", Value: "DIR", Usage: "transforms that go before those"},
		{Name: "slice_config", Value: "FILE", Usage: "CSV (slice_id, use, auto_excluded): slices whose transforms are not used"},
		cli.Bind(&o.RotationOnly, cli.Flag{Name: "rotation_only", Usage: "use the rotations of transforms only"}),
		cli.Bind(&o.MaxRotationDeg, cli.Flag{Name: "max_rotation_deg", Check: notNegative, Value: "DEG", Usage: "clamp larger rotations"}),
		cli.Bind(&o.SmoothWindow, cli.Flag{Name: "smooth_window", Check: notNegative, Value: "SLICES", Usage: "average rotations over so many slices"}),
		cli.Bind(&o.ConfidenceLow, cli.Flag{Name: "confidence_low", Check: confidence, Value: "C", Usage: "skip transforms of less confidence"}),
		cli.Bind(&o.ConfidenceHigh, cli.Flag{Name: "confidence_high", Check: confidence, Value: "C", Usage: "use only the rotation of transforms of less confidence"}),
		cli.Bind(&o.SkipErrorTransforms, cli.Flag{Name: "skip_error_transforms", Usage: "leave out transforms whose status is error"}),
		cli.Bind(&o.SkipWarningTransforms, cli.Flag{Name: "skip_warning_transforms", Usage: "leave out transforms whose status is warning"}),
		cli.Bind(&o.LoadMinZCorr, cli.Flag{Name: "load_min_zcorr", Check: notNegative, Value: "R", Usage: "instead, with the next: leave out those of less z correlation"}),
		cli.Bind(&o.LoadMaxRotation, cli.Flag{Name: "load_max_rotation", Check: notNegative, Value: "DEG", Usage: "instead, with the last: leave out those of more rotation"}),

		cli.Bind(&o.AccumulateTranslations, cli.Flag{Name: "accumulate_translations", Usage: "add the translations of transforms up, on top of the shifts; implies --rotation_only"}),
		cli.Bind(&o.ConfidenceWeightTranslations, cli.Flag{Name: "confidence_weight_translations", Usage: "weight them by their confidence"}),
		cli.Bind(&o.MaxPairwiseTranslation, cli.Flag{Name: "max_pairwise_translation", Check: notNegative, Value: "PX", Usage: "count those of 95 % of this or more as 0"}),
		cli.Bind(&o.TranslationMinZCorr, cli.Flag{Name: "translation_min_zcorr", Check: notNegative, Value: "R", Usage: "leave those of less z correlation out"}),
		cli.Bind(&o.TranslationSmoothSigma, cli.Flag{Name: "translation_smooth_sigma", Check: notNegative, Value: "SLICES", Usage: "smooth the sums by a Gaussian"}),
		cli.Bind(&o.MaxCumulativeDriftPx, cli.Flag{Name: "max_cumulative_drift_px", Check: notNegative, Value: "PX", Usage: "limit the length of the sums"}),

		cli.Bind(&o.PyramidResolutions, cli.Flag{Name: "pyramid_resolutions", Check: cli.Above(0), Value: "UM", Usage: "voxel sizes of the levels in µm; those finer than the slices are left out"}),
		cli.Bind(&o.MakeIsotropic, cli.Flag{Name: "make_isotropic", Aliases: []string{"isotropic"}, Usage: "levels have that voxel size along every axis"}),
		{Name: "output_z_matches", Value: "FILE", Usage: "CSV of the overlaps as found"},
		{Name: "output_shifts", Value: "FILE", Usage: "CSV of the shifts as recorded and as pictures show them"},
		{Name: "output_stacking_decisions", Value: "FILE", Usage: "CSV of what was done with each slice"},
	}
}

func run(ctx context.Context, r *cli.Run, o stack.Options) error {
	o.IgnoreOrigins, o.ZOverlapMinCorr = !r.Bool("use_origins"), o.OverlapSearch.MinCorr()
	if r.IsSet("z_overlap_min_corr") {
		o.ZOverlapMinCorr = r.Float("z_overlap_min_corr")
	}
	if r.IsSet("blend_depth") {
		r.Warn("--blend_depth is not used: the whole overlap is blended, or less with --blend_z_refine_vox")
	}
	if (o.LoadMinZCorr > 0) != (o.LoadMaxRotation > 0) {
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
		layout.Levels = len(o.PyramidResolutions)
	}
	task := r.Progress("stack", total)
	var slices []*ngff.Image
	for _, s := range in.Slices {
		slices = append(slices, s.Image)
	}
	work := stage.Of("stack", slices...)
	if um := o.PyramidResolutions; len(um) > 0 {
		work.At([3]float64{um[0], um[0], um[0]})
		work.Out = min(work.Out, 1) // levels that are finer than the slices are left out
	}
	res, err := stage.ResourcesOnGPU(ctx, r, task, work)
	if err != nil {
		return err
	}
	result, err := stack.Run(ctx, in, o, out.Store, layout, res)
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	if err := matches.Write(func(w io.Writer) error { return tables.WriteMatches(w, result.Matches) }); err != nil {
		return err
	}
	if err := shifts.Write(func(w io.Writer) error { return tables.WriteShifts(w, result.Shifts) }); err != nil {
		return err
	}
	if err := decisions.Write(func(w io.Writer) error { return tables.WriteDecisions(w, result.Decisions) }); err != nil {
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
	if in.Shifts, err = stage.ReadFile(ctx, r, r.Arg("SHIFTS_CSV"), registration.ReadShifts); err != nil {
		return in, 0, err
	}
	if name := r.String("slice_config"); name != "" {
		if in.Config, err = stage.ReadFile(ctx, r, name, registration.ReadSliceConfig); err != nil {
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
	files, err := slicefiles.Find(ctx, dir, store.Settings(r.Options.HTTP))
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
