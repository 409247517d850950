// Package stack implements the command stack, which assembles slices into one volume.
package stack

import (
	"context"
	"io"
	"path/filepath"
	"slices"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/ngff"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/oct/stack"
	"strata/pkg/oct/stack/tables"
	"strata/pkg/registration"
	"strata/pkg/runrecord"
	"strata/pkg/zarr/store"
)

// Command returns the command stack.
func Command() *cli.Command {
	o := stack.DefaultStackOptions()
	return &cli.Command{
		Name:  "stack",
		Usage: "assemble slices into one volume",
		Description: "Assembles the slices of a folder (slice_z<NN>*.ome.zarr) into one volume. In y and x, slices lie where the motor\n" +
			"shifts of SHIFTS_CSV and pairwise transforms put them. Along z, neighbouring slices overlap: by as much as a\n" +
			"registration found, as the slicing interval predicts, or as correlates best. The later slice overwrites the\n" +
			"overlap; with --blend the two are blended.\n\n" +
			"OUT is float32. Its pyramid levels have the voxel sizes of --pyramid_resolutions; level 0 has the first that is\n" +
			"not finer than the slices. Each slice is read once, in order; parts of neighbouring slices are read before that,\n" +
			"to compare them. Memory holds the planes that are being blended, on the GPU if one is used.",
		Args: []cli.Arg{
			{Name: "SLICES_DIR", Usage: "folder of slices named slice_z<NN>*.ome.zarr, or s3://bucket/path"},
			{Name: "SHIFTS_CSV", Usage: "CSV of the shifts between slices, with the columns fixed_id, moving_id, x_shift_mm, y_shift_mm"},
			{Name: "OUT", Usage: "OME-Zarr image to write: folder or s3://bucket/path"},
		},
		Shared:  cli.Stage,
		Hints:   cli.Hints{"chunks": {Value: "Z,Y,X", Note: "8,256,256"}, "shard": {Value: "Z,Y,X", Note: "no shards"}, "n_levels": {Note: "all of --pyramid_resolutions"}},
		Flags:   flags(&o),
		Aliases: []cli.Alias{{Name: "linum-stack-slices-motor", Defaults: cli.Defaults{"overlap_search": "centre", "repair_shifts": "off", "blend_match": "pairwise", "use_origins": "false", "compose_transforms": "false", "nominal_correlation": "true", "interpolated_overlap": overlapMeasured}}, motorOnly()},
		Gone:    map[string]string{"force_skip_slices": "--slice_config FILE, which names the slices to use"},
		Examples: []cli.Example{
			{Command: "stack slices/ shifts_xy.csv brain.ome.zarr --blend", Usage: "overlaps by correlation, blended"},
			{Command: "stack slices/ shifts_xy.csv brain.ome.zarr --use_expected_overlap --blend --pyramid_resolutions 25 50 100", Usage: "overlaps as the slicing interval predicts; level 0 at 25 µm"},
			{Command: "stack slices/ shifts_xy.csv brain.ome.zarr --transforms_dir registered/ --blend --output_z_matches z.csv --output_stacking_decisions decisions.csv", Usage: "with pairwise transforms; write down overlaps and decisions"},
			{Command: "stack slices/ shifts_xy.csv motor.ome.zarr --overlap_planes 0 --moving_z_first_index 0 --repair_shifts off --native_resolution --preview motor.png", Usage: "by the motor's shifts alone, slices on top of each other, for comparison with a registered volume"},
		},
		Run: cli.Accelerated(stage.GPU, func(ctx context.Context, r *cli.Run) error { return run(ctx, r, o) }),
	}
}

// flags returns the flags of the options and of files.
func flags(o *stack.Options) []cli.Flag {
	confidence, notNegative := cli.Between(0, 1), cli.AtLeast(0)
	return slices.Concat([]cli.Flag{
		cli.Bind(&o.NoXYShift, cli.Flag{Name: "no_xy_shift", Usage: "ignore the shifts of SHIFTS_CSV, because all slices share one frame already"}),
		{Name: "use_origins", Kind: cli.Bool, Default: "true", Usage: "add the position of each slice's first voxel, which stitch writes as its translation, to the shifts"},
		cli.Bind(&o.RepairShifts, cli.Flag{Name: "repair_shifts", Choices: stack.Repairs,
			Usage: "compare slices with their recorded shift: off does not, warn reports shifts that pictures of both slices clearly contradict, fix replaces these by the shifts that the pictures show"}),
		{Name: "max_slices", Kind: cli.Int, Note: "all", Check: notNegative, Value: "N", Usage: "stack only the first N slices; 0: all"},

		cli.Bind(&o.SlicingIntervalMM, cli.Flag{Name: "slicing_interval_mm", Check: notNegative, Value: "MM", Usage: "thickness that the blade cuts off between two slices, in mm"}),
		cli.Bind(&o.SearchRangeMM, cli.Flag{Name: "search_range_mm", Check: notNegative, Value: "MM", Usage: "how far from the expected overlap to search for the overlap of two slices, in mm"}),
		cli.Bind(&o.UseExpectedOverlap, cli.Flag{Name: "use_expected_overlap", Usage: "use the overlap that --slicing_interval_mm predicts, without a search"}),
		{Name: "overlap_planes", Kind: cli.Int, Default: "-1", Check: cli.AtLeast(-1), Value: "N", Usage: "let each slice overlap the one before it by this many planes, without a search and whatever a registration says; -1: as found or expected"},
		cli.Bind(&o.ZSpacingUM, cli.Flag{Name: "z_spacing_um", Check: checkSpacing, Value: "UM", Usage: "distance of planes along z, in µm, whatever the slices state; 0: as they state"}),
		cli.Bind(&o.MovingZFirstIndex, cli.Flag{Name: "moving_z_first_index", Check: notNegative, Value: "PLANES", Usage: "number of planes to leave out at the top of every slice but the first"}),
		cli.Bind(&o.OverlapSearch, cli.Flag{Name: "overlap_search", Choices: stack.OverlapSearches,
			Usage: "how to search for the overlap of two slices: aligned shifts them to their place first and compares structure in the tissue; centre compares the centres of their planes unshifted, as linumpy does"}),
		{Name: "z_overlap_min_corr", Kind: cli.Float, Note: "0.1 for aligned, 0.5 for centre", Check: cli.Between(-1, 1), Value: "R", Usage: "use the expected overlap if the best correlation of two slices is below this, -1 to 1; 0 never does"},

		cli.Bind(&o.Blend, cli.Flag{Name: "blend", Usage: "match the brightness of neighbouring slices and blend their overlap; otherwise the later slice overwrites it"}),
		{Name: "blending", Choices: []string{"none", "average", "feather"}, Note: "feather with --blend, else none",
			Usage: "value where slices overlap: of the later slice (none), the mean of both (average), or a mean that fades from one to the other (feather); the last two imply --blend"},
		cli.Bind(&o.BlendMatch, cli.Flag{Name: "blend_match", Choices: stack.BlendMatches,
			Usage: "how --blend matches brightness: whole by one factor per slice, fitted to all overlaps at once; depth also by one factor per depth, which removes attenuation; pairwise by one slice after the other, as linumpy does; none not at all"}),
		{Name: "blend_depth", Kind: cli.Int, Value: "PLANES", Usage: "accepted for compatibility with linumpy; has no effect"},
		cli.Bind(&o.BlendRefinementPx, cli.Flag{Name: "blend_refinement_px", Check: notNegative, Value: "PX", Usage: "shift the planes of --blend along y and x by up to this many pixels to fit; 0 shifts none"}),
		cli.Bind(&o.BlendZRefineVox, cli.Flag{Name: "blend_z_refine_vox", Check: notNegative, Value: "PLANES", Usage: "blend up to this many planes fewer than --use_expected_overlap predicts, as correlates best; 0 blends all"}),
		cli.Bind(&o.BlendZRefineMinConfidence, cli.Flag{Name: "blend_z_refine_min_confidence", Check: confidence, Value: "C", Usage: "apply --blend_z_refine_vox only to slices whose transform has this confidence, 0 to 1, or that have none"}),

		{Name: "transforms_dir", Value: "DIR", Usage: "folder of pairwise transforms, with a subfolder *z<NN>* for each slice"},
		{Name: "manual_transforms_dir", Value: "DIR", Usage: "folder of transforms made by hand, which replace those of --transforms_dir slice by slice"},
		{Name: "slice_config", Value: "FILE", Usage: "CSV with the columns slice_id, use, auto_excluded, interpolated, fault: ignore the transforms of slices that it excludes"},
		{Name: "leave_out_excluded", Kind: cli.Bool, Usage: "leave slices with use=false in --slice_config out of the volume; those behind them keep the depth that --slicing_interval_mm gives, and planes that no slice shows stay empty"},
		{Name: "interpolated_overlap", Default: overlapExpected, Choices: []string{overlapExpected, overlapMeasured}, Usage: "overlap of slices that --slice_config calls interpolated: expected takes that of --slicing_interval_mm, because they have none of their own, measured searches for it"},
		cli.Bind(&o.RotationOnly, cli.Flag{Name: "rotation_only", Usage: "apply only the rotation of transforms, not their translation"}),
		cli.Bind(&o.MaxRotationDeg, cli.Flag{Name: "max_rotation_deg", Check: notNegative, Value: "DEG", Usage: "limit the rotation of transforms to this angle either way, in degrees; 0: no limit"}),
		cli.Bind(&o.SmoothWindow, cli.Flag{Name: "smooth_window", Check: notNegative, Value: "SLICES", Usage: "smooth the rotations of transforms by a moving average over this many slices; 0: no smoothing"}),
		cli.Bind(&o.ConfidenceLow, cli.Flag{Name: "confidence_low", Check: confidence, Value: "C", Usage: "do not apply transforms of a confidence below this, 0 to 1"}),
		cli.Bind(&o.ConfidenceHigh, cli.Flag{Name: "confidence_high", Check: confidence, Value: "C", Usage: "apply only the rotation of transforms of a confidence below this, 0 to 1"}),
		cli.Bind(&o.SkipErrorTransforms, cli.Flag{Name: "skip_error_transforms", Usage: "ignore transforms whose status is error"}),
		cli.Bind(&o.SkipWarningTransforms, cli.Flag{Name: "skip_warning_transforms", Usage: "ignore transforms whose status is warning"}),
		cli.Bind(&o.LoadMinZCorr, cli.Flag{Name: "load_min_zcorr", Check: notNegative, Value: "R", Usage: "ignore transforms of a z correlation below this, whatever their status; needs --load_max_rotation; 0: off"}),
		cli.Bind(&o.LoadMaxRotation, cli.Flag{Name: "load_max_rotation", Check: notNegative, Value: "DEG", Usage: "ignore transforms that rotate by more degrees than this, whatever their status; needs --load_min_zcorr; 0: off"}),

		cli.Bind(&o.ComposeTransforms, cli.Flag{Name: "compose_transforms", Usage: "with --no_xy_shift: also move every slice as the one before it is moved, on which its transform lays it; --accumulate_translations switches this off"}),
		cli.Bind(&o.AccumulateTranslations, cli.Flag{Name: "accumulate_translations", Usage: "move slices by the running sum of the translations of transforms, on top of the shifts; implies --rotation_only"}),
		cli.Bind(&o.ConfidenceWeightTranslations, cli.Flag{Name: "confidence_weight_translations", Usage: "weight each translation of --accumulate_translations by the confidence of its transform"}),
		cli.Bind(&o.MaxPairwiseTranslation, cli.Flag{Name: "max_pairwise_translation", Check: notNegative, Value: "PX", Usage: "count translations of 95 % of this length or more as 0 in --accumulate_translations, in pixels; 0: count all"}),
		cli.Bind(&o.TranslationMinZCorr, cli.Flag{Name: "translation_min_zcorr", Check: notNegative, Value: "R", Usage: "ignore translations of a z correlation below this in --accumulate_translations"}),
		cli.Bind(&o.TranslationSmoothSigma, cli.Flag{Name: "translation_smooth_sigma", Check: cli.Between(0, 1e4), Value: "SLICES", Usage: "smooth the sum of --accumulate_translations by a Gaussian of this sigma, in slices; 0: no smoothing"}),
		cli.Bind(&o.AllowLargeMotion, cli.Flag{Name: "allow_large_motion", Usage: "apply transforms that move a slice by more than its own size, instead of refusing them"}),
		cli.Bind(&o.MaxCumulativeDriftPx, cli.Flag{Name: "max_cumulative_drift_px", Check: notNegative, Value: "PX", Usage: "limit the length of the sum of --accumulate_translations, in pixels; 0: no limit"}),
	}, stage.Pyramid(&o.Analysis, "the slices"), []cli.Flag{
		cli.Bind(&o.Native, cli.Flag{Name: "native_resolution", Usage: "keep the voxel size of the slices, in place of --pyramid_resolutions; each of --n_levels levels has half as many voxels along each axis as the one before it"}),
		{Name: "preview", Value: "FILE", Usage: "also draw three cuts through the middle of the volume to FILE, as PNG"},
		{Name: "output_z_matches", Value: "FILE", Usage: "write the overlap found between each two slices to FILE, as CSV"},
		{Name: "output_shifts", Value: "FILE", Usage: "write the shifts between slices, as recorded and as pictures show them, to FILE, as CSV"},
		{Name: "output_stacking_decisions", Value: "FILE", Usage: "write what was done with each slice (overlap, transform, confidence) to FILE, as CSV"},
		{Name: "nominal_correlation", Kind: cli.Bool, Usage: "give registered pairs the correlation 1 in these tables, as linumpy does, in place of register's own measure"},
	})
}

func run(ctx context.Context, r *cli.Run, o stack.Options) error {
	o.MeasureInterpolated = r.String("interpolated_overlap") == overlapMeasured
	o.IgnoreOrigins, o.ZOverlapMinCorr = !r.Bool("use_origins"), o.OverlapSearch.MinCorr()
	if r.IsSet("z_overlap_min_corr") {
		o.ZOverlapMinCorr = r.Float("z_overlap_min_corr")
	}
	if r.IsSet("blend_depth") {
		r.Warn("--blend_depth has no effect: the whole overlap is blended, or less with --blend_z_refine_vox")
	}
	if (o.LoadMinZCorr > 0) != (o.LoadMaxRotation > 0) {
		r.Warn("--load_min_zcorr and --load_max_rotation work only together: neither is used")
	}
	if err := given(r, &o); err != nil {
		return err
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
	picture, err := r.OptionalFile("preview")
	if err != nil {
		return err
	}
	layout := stage.PyramidLayout(r, o.Analysis)
	task := r.Progress("stack", total)
	var volumes []*ngff.Image
	for _, s := range in.Slices {
		volumes = append(volumes, s.Image)
	}
	work := stage.Of("stack", volumes...)
	if um := o.PyramidResolutions; len(um) > 0 && !o.Native {
		work.At([3]float64{um[0], um[0], um[0]})
		work.Out = min(work.Out, 1) // levels that are finer than the slices are left out
	}
	res, err := stage.ResourcesJoined(ctx, r, task, work)
	if err != nil {
		return err
	}
	result, err := stack.Run(ctx, in, o, out.Store, layout, res)
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	if r.Bool("nominal_correlation") {
		nominal(result)
	}
	if err := matches.Write(func(w io.Writer) error { return tables.WriteMatches(w, result.Matches) }); err != nil {
		return err
	}
	if err := shifts.Write(func(w io.Writer) error { return tables.WriteShifts(w, result.Shifts) }); err != nil {
		return err
	}
	if err := decisions.Write(func(w io.Writer) error { return tables.WriteDecisions(w, result.Decisions) }); err != nil {
		return err
	}
	if err := draw(ctx, picture, result.Image, filepath.Base(stage.Stem(r.Arg("OUT"))), res); err != nil {
		return err
	}
	for _, s := range in.Slices {
		r.Read(datasets.DescribeImage(s.Image, s.Path))
	}
	for _, flag := range []string{"transforms_dir", "manual_transforms_dir"} {
		if name := r.String(flag); name != "" {
			r.Read(runrecord.Dataset{Path: address.Address(name)})
		}
	}
	r.Wrote(datasets.DescribeImage(result.Image, out.Path()))
	for _, flag := range []string{"output_z_matches", "output_shifts", "output_stacking_decisions", "preview"} {
		if name := r.String(flag); name != "" {
			r.Wrote(runrecord.Dataset{Path: address.Address(name)})
		}
	}
	return nil
}

// inputs opens everything that the volume is made from; total is the size of the slices in bytes.
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
			r.Warn("%s: contains no folders *z<NN>* of transforms", name)
		}
	}
	files, err := slicefiles.Find(ctx, dir, store.Settings(r.Options.HTTP))
	if err != nil {
		return in, 0, stage.Failed(err)
	}
	if files, err = leaveOut(r, files, &in); err != nil {
		return in, 0, err
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

// nominal gives registered pairs the correlation 1.
func nominal(result *stack.Result) {
	for i := range result.Decisions {
		d := &result.Decisions[i]
		if d.Source != "registration" {
			continue
		}
		d.Correlation = 1
		for k := range result.Matches {
			if result.Matches[k].MovingID == d.SliceID {
				result.Matches[k].Correlation = 1
			}
		}
	}
}
