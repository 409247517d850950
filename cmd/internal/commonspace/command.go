// Package commonspace implements the command common-space, which puts the slices of a specimen onto one canvas.
package commonspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/metrics"
	"strata/pkg/oct/commonspace"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/registration"
	"strata/pkg/replace"
	"strata/pkg/zarr/store"
)

// Command returns the command common-space.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "common-space",
		Usage: "put the slices of a specimen onto one canvas",
		Description: "Moves the slices of a folder to the places where the motor shifts of SHIFTS_CSV put them, onto a canvas that holds all\n" +
			"of them, so that a voxel has the same place in each. A slice keeps its depth, data type and voxel size. Voxels that\n" +
			"lie between those of the input are interpolated linearly along y and x.\n\n" +
			"OUT_DIR holds the slices under their names, and the metrics of the step. A slice can be larger than memory: it is\n" +
			"read once if half of its share of --mem holds it as float32, and otherwise three times.",
		Args: []cli.Arg{
			{Name: "SLICES_DIR", Usage: "folder of slices named *z<NN>*.ome.zarr, or s3://bucket/path"},
			{Name: "SHIFTS_CSV", Usage: "CSV of the shifts between slices, with the columns fixed_id, moving_id, x_shift_mm, y_shift_mm"},
			{Name: "OUT_DIR", Usage: "folder of slices to write"},
		},
		Shared: cli.Stage &^ cli.GPU,
		Hints:  cli.Hints{"chunks": {Value: "Z,Y,X", Note: "those of each slice"}, "shard": {Value: "Z,Y,X", Note: "no shards"}},
		Flags: []cli.Flag{
			{Name: "slice_config", Value: "FILE", Usage: "CSV with the columns slice_id, use: leave out all slices that it does not use"},
			{Name: "excluded_slice_mode", Default: string(commonspace.Keep), Choices: modes(), Usage: "what to do with shifts from and to slices that --slice_config leaves out: keep them, replace them by the median of the other rows nearby (local_median) or of all other rows (median), or by zero"},
			{Name: "excluded_slice_window", Kind: cli.Int, Default: "2", Value: "ROWS", Check: cli.AtLeast(0), Usage: "number of rows on either side that --excluded_slice_mode local_median considers"},
			{Name: "refine_unreliable", Kind: cli.Bool, Usage: "replace shifts that the column reliable marks with 0 by those that pictures of both slices show"},
			{Name: "refine_max_discrepancy_px", Kind: cli.Float, Default: "0", Value: "PX", Check: cli.AtLeast(0), Usage: "keep the recorded shift if that of --refine_unreliable is farther from it than this, in pixels; 0: no limit"},
			{Name: "refine_min_correlation", Kind: cli.Float, Default: "0", Value: "R", Check: cli.Between(0, 1), Usage: "keep the recorded shift if the pictures of --refine_unreliable correlate by less than this, 0 to 1; 0: no limit"},
			{Name: "whole_pixels", Kind: cli.Bool, Usage: "round positions to whole pixels: voxels are copied, and edges stay sharp"},
			{Name: "fill", Default: "percentile", Choices: []string{"percentile", "zero"}, Usage: "value around a slice: the 1st percentile of its positive voxels, or 0, which stack does not take for data"},
			{Name: "use_origins", Kind: cli.Bool, Default: "true", Usage: "add the position of each slice's first voxel, which stitch writes as its translation, to the shifts"},
			{Name: "no_center_drift", Kind: cli.Bool, Usage: "accepted for compatibility with linumpy; has no effect, because the canvas holds all slices wherever its centre is"},
		},
		Examples: []cli.Example{
			{Command: "common-space slices/ shifts_xy.csv common/", Usage: "all slices where the motors put them"},
			{Command: "common-space slices/ shifts_xy.csv common/ --slice_config slice_config.csv --excluded_slice_mode local_median --fill zero", Usage: "without the slices that the configuration excludes; 0 around slices"},
			{Command: "common-space slices/ shifts_xy.csv common/ --refine_unreliable --refine_max_discrepancy_px 50 --refine_min_correlation 0.2", Usage: "correct unreliable shifts by pictures of the slices, within limits"},
		},
		Aliases: []cli.Alias{{Name: "linum-align-mosaics-3d-from-shifts", Defaults: cli.Defaults{"use_origins": "false"}}},
		Run:     cli.Do(run),
	}
}

func modes() (names []string) {
	for _, m := range commonspace.Modes {
		names = append(names, string(m))
	}
	return names
}

func run(ctx context.Context, r *cli.Run) error {
	in, err := inputs(ctx, r)
	if err != nil {
		return err
	}
	out, err := r.OutputFolder(r.Arg("OUT_DIR"), foreign(ctx))
	if err != nil {
		return err
	}
	o := commonspace.Options{
		Excluded: commonspace.Mode(r.String("excluded_slice_mode")), Window: r.Int("excluded_slice_window"),
		Refine: r.Bool("refine_unreliable"), MaxDiscrepancy: r.Float("refine_max_discrepancy_px"), MinCorrelation: r.Float("refine_min_correlation"),
		WholePixels: r.Bool("whole_pixels"), ZeroFill: r.String("fill") == "zero", IgnoreOrigins: !r.Bool("use_origins"),
	}
	res := stage.Resources(r, nil)
	if res.Progress = nil; o.Refine {
		task := r.Progress("compare", 0)
		defer task.Done()
		res.Progress = task.Add
	}
	plan, err := commonspace.New(ctx, in, o, res)
	if err != nil {
		return stage.Failed(err)
	}
	stores := map[int]store.Writer{}
	for _, s := range in.Slices {
		stores[s.ID] = store.Folder(filepath.Join(out.Work(), name(s)), store.Sync(r.Options.Sync))
	}
	task := r.Progress("align", plan.Bytes())
	images, err := plan.Run(ctx, func(s commonspace.Slice) store.Writer { return stores[s.ID] }, stage.Layout(r), stage.Resources(r, task))
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	for i, s := range in.Slices {
		if err := zarrout.Complete(ctx, r, stores[s.ID], filepath.Join(out.Path(), name(s))); err != nil {
			return err
		}
		r.Read(datasets.DescribeImage(s.Image, s.Path))
		r.Wrote(datasets.DescribeImage(images[i], filepath.Join(out.Path(), name(s))))
	}
	r.Conclude("%d slices on a canvas of %d × %d pixels", len(images), plan.Canvas[1], plan.Canvas[0])
	return writeMetrics(in, plan, out)
}

// foreign returns a function that describes what a folder holds besides the slices that its metrics name.
func foreign(ctx context.Context) atomic.Foreign {
	return func(dir string) (string, error) {
		var named []any
		if f, err := os.Open(filepath.Join(dir, commonspace.MetricsFile)); err == nil {
			defer f.Close()
			if step, err := metrics.Read(f, commonspace.MetricsFile); err == nil {
				m, _ := step.Metric("slices")
				named, _ = m.Value.([]any)
			}
		}
		return replace.Tree(ctx, dir, func(key string, folder bool) replace.Kind {
			switch {
			case !folder && key == commonspace.MetricsFile:
				return replace.File
			case folder && slices.Contains(named, any(key)):
				return replace.Image
			}
			return replace.Foreign
		})
	}
}

// writeMetrics writes the metrics into the folder.
func writeMetrics(in commonspace.Input, plan *commonspace.Plan, out *atomic.Output) error {
	var names []string
	for _, s := range in.Slices {
		names = append(names, name(s))
	}
	step := plan.Metrics(out.Path())
	step.Note("slices", names, "Slices in the folder")
	text, err := step.JSON()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out.Work(), commonspace.MetricsFile), text, 0o666)
}

// name returns the name of a slice in the output folder, which is a folder also where the input is an archive.
func name(s commonspace.Slice) string {
	return strings.TrimSuffix(lastPart(s.Path), ".zip")
}

// lastPart returns the last part of a path or an address.
func lastPart(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return filepath.Base(strings.TrimRight(path, "/"))
}

// inputs opens the slices that are used.
func inputs(ctx context.Context, r *cli.Run) (in commonspace.Input, err error) {
	dir, err := r.Input(r.Arg("SLICES_DIR"))
	if err != nil {
		return in, err
	}
	if in.Shifts, err = stage.ReadFile(ctx, r, r.Arg("SHIFTS_CSV"), registration.ReadShiftTable); err != nil {
		return in, err
	}
	var config *registration.SliceTable
	if name := r.String("slice_config"); name != "" {
		if config, err = stage.ReadFile(ctx, r, name, registration.ReadSliceTable); err != nil {
			return in, err
		}
	}
	files, err := slicefiles.FindAny(ctx, dir, "*", store.Settings(r.Options.HTTP))
	if err != nil {
		return in, stage.Failed(err)
	}
	for _, f := range files {
		if config != nil {
			if row := config.Row(f.ID); row == nil || !row.Bool(registration.Use) {
				in.Excluded = append(in.Excluded, f.ID)
				continue
			}
		}
		image, err := stage.Open(ctx, r, f.Path)
		if err != nil {
			return in, err
		}
		in.Slices = append(in.Slices, commonspace.Slice{ID: f.ID, Path: f.Path, Image: image})
	}
	if len(in.Slices) == 0 {
		return in, cli.BadInputf("%s: uses none of the %d slices of %s", r.String("slice_config"), len(files), r.Arg("SLICES_DIR"))
	}
	return in, nil
}
