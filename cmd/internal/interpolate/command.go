// Package interpolate implements the command interpolate, which fills the gap of a missing slice.
package interpolate

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/filter"
	"strata/pkg/oct/interpolate"
	"strata/pkg/pattern"
	"strata/pkg/registration"
	"strata/pkg/runrecord"
)

// Command returns the command interpolate.
func Command() *cli.Command {
	o := interpolate.DefaultOptions()
	share := cli.Between(0, 1)
	return &cli.Command{
		Name:  "interpolate",
		Usage: "fill the gap of a missing slice between its two neighbours",
		Description: "Makes a plausible volume for a single missing slice from the two slices beside it, which lie on one canvas (see\n" +
			"common-space). zmorph registers the planes next to the gap by an affine map, moves both towards each other plane by\n" +
			"plane and blends them; average and weighted mix the volumes plane by plane, weighted smooths the result along z.\n\n" +
			"If the two sides do not resemble each other enough, or only an implausible map joins them, the gap stays: OUT is not\n" +
			"written, --diagnostics and --manifest_entry say why, and the exit code is 0.",
		Args: []cli.Arg{
			{Name: "BEFORE", Usage: "OME-Zarr slice (z, y, x) before the gap: folder, .zip file, or http(s):// or s3:// URL"},
			{Name: "AFTER", Usage: "OME-Zarr slice after the gap"},
			{Name: "OUT", Usage: "OME-Zarr image to write: folder or s3://bucket/path"},
		},
		Shared: cli.Stage &^ cli.GPU,
		Hints:  cli.Hints{"chunks": {Value: "Z,Y,X", Note: "those of BEFORE"}, "shard": {Value: "Z,Y,X", Note: "no shards"}},
		Flags: []cli.Flag{
			cli.Bind(&o.Method, cli.Flag{Name: "method", Choices: names(interpolate.Methods...),
				Usage: "how to make voxels: zmorph moves the planes next to the gap onto each other, average takes the mean of both volumes, weighted smooths that along z by a Gaussian of 2 planes"}),
			cli.Bind(&o.Blend, cli.Flag{Name: "blend_method", Choices: names(interpolate.Gaussian, interpolate.Linear),
				Usage: "how zmorph mixes the two moved planes: linear by the distance from either side of the gap, gaussian also by the distance from the edge of what is above 0"}),
			cli.Bind(&o.Metric, cli.Flag{Name: "registration_metric", Choices: names(filter.MeanSquares, filter.Correlation, filter.MutualInformation),
				Usage: "what the registration of zmorph optimises: mean squares (MSE), correlation (CC) or mutual information (MI)"}),
			cli.Bind(&o.MaxIterations, cli.Flag{Name: "max_iterations", Check: cli.AtLeast(1), Usage: "maximum number of steps of the registration on each of its three levels"}),
			cli.Bind(&o.SearchWindow, cli.Flag{Name: "overlap_search_window", Value: "PLANES", Check: cli.Between(1, 1000), Usage: "number of planes on either side of the gap among which zmorph seeks the two most similar ones"}),
			cli.Bind(&o.MinCorrelation, cli.Flag{Name: "min_overlap_correlation", Value: "R", Check: cli.Between(-1, 1), Usage: "leave the gap if the most similar planes, or the registered slabs, correlate by less than this, -1 to 1"}),
			cli.Bind(&o.SlabSize, cli.Flag{Name: "reference_slab_size", Value: "PLANES", Check: cli.Between(1, 1000), Usage: "number of planes around the most similar ones that are averaged for the registration"}),
			cli.Bind(&o.MinForeground, cli.Flag{Name: "min_foreground_fraction", Value: "F", Check: share, Usage: "ignore planes in which a smaller share of the pixels than this is tissue, 0 to 1"}),
			cli.Bind(&o.MinNCCImprovement, cli.Flag{Name: "min_ncc_improvement", Value: "R", Check: cli.Between(-1, 2), Usage: "use the registered map only if it raises the correlation of the slabs by at least this; otherwise planes stay in place and are only blended"}),
			{Name: "slice_id", Value: "ID", Note: "the number in OUT's name", Usage: "number of the missing slice, for --diagnostics and --manifest_entry"},
			{Name: "diagnostics", Value: "FILE", Usage: "write what was found and decided to FILE, as JSON"},
			{Name: "manifest_entry", Value: "FILE", Usage: "write whether the slice was interpolated to FILE, as CSV of one row, for slices finalise"},
			{Name: "preview", Value: "FILE", Usage: "write a picture of the planes on both sides and of one between them to FILE, as PNG, unless the gap stays"},
			{Name: "preview_slice", Kind: cli.Int, Value: "Z", Note: "the middle one", Check: cli.AtLeast(0), Usage: "plane of OUT that --preview shows, counted from 0"},
		},
		Examples: []cli.Example{
			{Command: "interpolate common/slice_z04.ome.zarr common/slice_z06.ome.zarr common/slice_z05_interpolated.ome.zarr", Usage: "fill the gap of slice 5"},
			{Command: "interpolate z04.ome.zarr z06.ome.zarr z05_interpolated.ome.zarr --diagnostics z05.json --manifest_entry z05.csv --preview z05.png", Usage: "also write down how, or why not, and a picture"},
			{Command: "interpolate z04.ome.zarr z06.ome.zarr z05_interpolated.ome.zarr --method average --n_levels 0", Usage: "the mean of both slices, without a pyramid"},
		},
		Aliases: []cli.Alias{{Name: "linum-interpolate-missing-slice", Ignored: []cli.Flag{
			{Name: "preview_dpi", Kind: cli.Int, Value: "DPI", Ignored: "a pixel of the preview is a pixel of the slices"}}}},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error { return run(ctx, r, o) }),
	}
}

// names returns the texts of choices.
func names[T ~string](all ...T) (out []string) {
	for _, v := range all {
		out = append(out, string(v))
	}
	return out
}

func run(ctx context.Context, r *cli.Run, o interpolate.Options) error {
	id, err := sliceID(r)
	if err != nil {
		return err
	}
	before, err := stage.Open(ctx, r, r.Arg("BEFORE"))
	if err != nil {
		return err
	}
	after, err := stage.Open(ctx, r, r.Arg("AFTER"))
	if err != nil {
		return err
	}
	exists := !cli.InBucket(r.Arg("OUT")) && there(r.Arg("OUT"))
	if exists && !r.Options.Overwrite {
		return cli.Usage("output %s exists; give --overwrite (-f) to replace it", r.Arg("OUT"))
	}
	diagnostics, err := r.OptionalFile("diagnostics")
	if err != nil {
		return err
	}
	manifest, err := r.OptionalFile("manifest_entry")
	if err != nil {
		return err
	}
	res := stage.Resources(r, nil)
	res.Progress = nil
	plan, err := interpolate.Decide(ctx, before, after, o, res)
	if err != nil {
		return stage.Failed(err)
	}
	entry := registration.Filled{Slice: id, Method: string(o.Method), Used: string(o.Method), Output: r.Arg("OUT")}
	if plan.Skipped != "" {
		entry = registration.Filled{Slice: id, Method: string(o.Method), Reason: plan.Skipped, Failed: true}
		r.Warn("%s: the gap stays: %s", r.Arg("OUT"), plan.Skipped)
		if err := leave(ctx, r, exists); err != nil {
			return err
		}
	} else if err := fill(ctx, r, plan); err != nil {
		return err
	}
	r.Read(datasets.DescribeImage(before, r.Arg("BEFORE")))
	r.Read(datasets.DescribeImage(after, r.Arg("AFTER")))
	for _, flag := range []string{"diagnostics", "manifest_entry"} {
		if name := r.String(flag); name != "" {
			r.Wrote(runrecord.Dataset{Path: address.Address(name)})
		}
	}
	paths := interpolate.Paths{Before: stage.Shown(r.Arg("BEFORE")), After: stage.Shown(r.Arg("AFTER")), Output: stage.Shown(r.Arg("OUT"))}
	if id >= 0 {
		paths.SliceID = registration.SliceName(id)
	}
	text, err := plan.Diagnostics(paths)
	if err != nil {
		return err
	}
	if err := diagnostics.Write(func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return err
	}
	return manifest.Write(func(w io.Writer) error { return registration.WriteManifest(w, []registration.Filled{entry}) })
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// leave removes the volume of an earlier run, which would pass for one of this run.
func leave(ctx context.Context, r *cli.Run, exists bool) error {
	if !exists {
		return nil
	}
	out, err := r.Output(ctx, r.Arg("OUT"))
	if err != nil {
		return err
	}
	out.Absent()
	return nil
}

// fill writes the volume and its picture.
func fill(ctx context.Context, r *cli.Run, plan *interpolate.Plan) error {
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	var preview *atomic.Output
	if preview, err = r.OptionalFile("preview"); err != nil {
		return err
	}
	task := r.Progress("interpolate", plan.Bytes())
	res := stage.Resources(r, task)
	image, err := plan.Run(ctx, out.Store, stage.Layout(r), res)
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	z := -1
	if r.IsSet("preview_slice") {
		z = r.Int("preview_slice")
	}
	if err := preview.Write(func(w io.Writer) error { return plan.Preview(ctx, w, image, z, res) }); err != nil {
		return stage.Failed(err)
	}
	if f := plan.Found; f != nil {
		how := "in place, without a map"
		if f.Registered {
			how = "moved by an affine map"
		}
		r.Conclude("planes %d and %d correlate by %.3f; planes are %s", f.RefBefore, f.RefAfter, f.PlaneNCC, how)
	}
	r.Wrote(datasets.DescribeImage(image, out.Path()))
	if name := r.String("preview"); name != "" {
		r.Wrote(runrecord.Dataset{Path: address.Address(name)})
	}
	return nil
}

var number = pattern.Lazy(`.*z(\d+)`)

// sliceID returns the number of the slice: that of the flag, or that in the output's name; −1 if there is none and no
// table needs it.
func sliceID(r *cli.Run) (int, error) {
	text := r.String("slice_id")
	if text == "" {
		if m := number().FindStringSubmatch(filepath.Base(r.Arg("OUT"))); m != nil {
			text = m[1]
		}
	}
	id, err := strconv.Atoi(text)
	switch {
	case err == nil && id >= 0:
		return id, nil
	case r.IsSet("slice_id"):
		return 0, cli.Usage("--slice_id %q: want the number of a slice", text)
	case r.IsSet("manifest_entry"):
		return 0, cli.Usage("--manifest_entry needs the number of the slice: give --slice_id, or OUT a name with z<NN>")
	}
	return -1, nil
}
