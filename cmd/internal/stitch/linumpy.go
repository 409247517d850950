package stitch

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"

	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/ngff"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/oct/stitch"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/linum"
	"strata/pkg/registration"
	"strata/pkg/zarr/store"
)

// refine applies --refinement_mode.
func refine(r *cli.Run, opt *stitch.Options) {
	switch r.String("refinement_mode") {
	case "none":
		opt.MaxRefinement = 0
	case "blend_shift":
		if r.IsSet("refinement_mode") {
			r.Log.Info().Msg("--refinement_mode blend_shift: tiles are moved as a whole, as by full_shift")
		}
	}
}

// perTile applies --input_transform, which takes the place of an estimate unless that was asked for.
func perTile(ctx context.Context, r *cli.Run, in *ngff.Image, opt *stitch.Options) error {
	name := r.String("input_transform")
	if name == "" {
		return nil
	}
	t, err := stage.ReadFile(ctx, r, name, affine.ReadTransform)
	if err != nil {
		return err
	}
	opt.Estimate = opt.Estimate && r.IsSet("estimate")
	opt.Transform = linum.TileMatrix(t.Matrix).Nominal(stitch.TileSize(in), opt.Overlap)
	return nil
}

// sidecars are the files of linumpy's pipeline beside a slice.
type sidecars struct {
	linum.Sidecar
	metrics, refinements *atomic.Output
}

// beside starts the files that flags ask for.
func beside(r *cli.Run, opt stitch.Options) (s sidecars, err error) {
	s.Sidecar = linum.Sidecar{In: stage.Shown(r.Arg("IN")), Out: stage.Shown(r.Args("OUT")[0]), Refinement: r.String("refinement_mode"), Estimated: opt.Estimate, Limit: opt.MaxRefinement}
	if opt.MaxRefinement == 0 {
		s.Refinement = "none"
	}
	if r.Bool("metrics") {
		if s.metrics, err = stage.Metrics(r, r.Args("OUT")[0]); err != nil {
			return s, err
		}
	}
	s.refinements, err = r.OptionalFile("output_refinements")
	return s, err
}

// write writes them.
func (s sidecars) write(r *cli.Run, result *stitch.Result, in, out *ngff.Image) error {
	if err := s.refinements.Write(func(w io.Writer) error { return s.Sidecar.WriteRefinements(w, result) }); err != nil {
		return err
	}
	if s.metrics == nil {
		return nil
	}
	return stage.WriteMetrics(r, s.metrics, s.Sidecar.Metrics(result, in, out))
}

// ignored lists flags of linumpy's estimate_global_transform that have no meaning here.
func ignored() []cli.Flag {
	const all = "all pairs of tiles are compared"
	return []cli.Flag{
		{Name: "histogram_match", Kind: cli.Bool, Ignored: "the correlation does not depend on brightness"},
		{Name: "max_empty_fraction", Kind: cli.Float, Ignored: "pairs without tissue in common do not count; 0.9 by --estimate_rules reference"},
		{Name: "n_samples", Kind: cli.Int, Ignored: all},
		{Name: "seed", Kind: cli.Int, Ignored: all},
	}
}

// folderCommand describes the estimate of one matrix from the mosaics of a folder.
func folderCommand() *cli.Command {
	opt := stitch.Options{Overlap: 0.2, Rules: affine.RulesConsensus}
	return &cli.Command{
		Name:  "estimate",
		Usage: "estimate one matrix of tile positions from the mosaics of a folder",
		Description: "Measures the displacements of neighbouring tiles in the mosaic grids of DIR and writes the matrix that fits all of\n" +
			"them, as stitch --estimate_only does. OUT that ends in .npy has the matrix in pixels per tile index, as linumpy has\n" +
			"it, for --input_transform; any other is JSON, for --transform.",
		Args: []cli.Arg{
			{Name: "DIR", Usage: "folder of mosaic grids, or s3://bucket/path"},
			{Name: "OUT", Usage: "matrix to write: .npy or .json"},
		},
		Shared: cli.GPU | cli.Resources | cli.Outputs | cli.Inputs,
		Flags: []cli.Flag{
			cli.Bind(&opt.Overlap, cli.Flag{Name: "overlap", Check: stage.CheckOverlap, Note: "as the first mosaic states it, or else 0.2", Usage: "fraction of a tile that its neighbour covers too, from 0 to below 1"}),
			rules(&opt),
			{Name: "pattern", Default: "mosaic_grid*_z*.ome.zarr", Value: "GLOB", Usage: "names of the mosaics in DIR, with * and ?; the digits after the last z are the slice's number"},
			{Name: "slice_config", Value: "FILE", Usage: "CSV with the columns slice_id, use: leave out all slices that it does not use"},
			{Name: "include_slice", Kind: cli.Ints, Value: "N", Usage: "use only the slices of these numbers"},
			{Name: "diagnostics_json", Value: "FILE", Usage: "also write the grid that the matrix describes, and the mosaics, to FILE, as JSON"},
		},
		Examples: []cli.Example{
			{Command: "stitch estimate mosaics/ transform.json", Usage: "for stitch --transform"},
			{Command: "stitch estimate mosaics/ transform.npy --slice_config slice_config.csv --include_slice 3 4 5", Usage: "from three slices, if they are used, in linumpy's form"},
		},
		Run: cli.Accelerated(stage.GPU, func(ctx context.Context, r *cli.Run) error { return runFolder(ctx, r, opt) }),
	}
}

func runFolder(ctx context.Context, r *cli.Run, opt stitch.Options) error {
	files, err := mosaics(ctx, r)
	if err != nil {
		return err
	}
	var paths, shown []string
	for _, f := range files {
		paths, shown = append(paths, f.Path), append(shown, stage.Shown(f.Path))
	}
	all, err := openAll(ctx, r, paths)
	if err != nil {
		return err
	}
	recorded(r, all[0], &opt)
	out, err := r.OutputFile(r.Arg("OUT"))
	if err != nil {
		return err
	}
	diagnostics, err := r.OptionalFile("diagnostics_json")
	if err != nil {
		return err
	}
	t, err := estimated(ctx, r, all, opt)
	if err != nil {
		return err
	}
	tile := stitch.TileSize(all[0])
	if err := diagnostics.Write(func(w io.Writer) error {
		text, err := json.MarshalIndent(map[string]any{"mosaics": shown, "overlap_fraction": opt.Overlap, "pooled_pairs": t.Pairs, "transform": linum.PerTile(t.Matrix, tile, opt.Overlap),
			"displacement_model": linum.Model(t, tile, opt.Overlap), "lstsq_residual": t.Spread, "rules": t.Rules}, "", "  ")
		if err == nil {
			_, err = w.Write(append(text, '\n'))
		}
		return err
	}); err != nil {
		return err
	}
	return out.Write(func(w io.Writer) error {
		if filepath.Ext(r.Arg("OUT")) == ".npy" {
			return linum.PerTile(t.Matrix, tile, opt.Overlap).WriteNpy(w)
		}
		return affine.WriteTransform(w, t)
	})
}

// mosaics lists the mosaics of the folder that flags select.
func mosaics(ctx context.Context, r *cli.Run) (out []slicefiles.File, err error) {
	dir, err := r.Input(r.Arg("DIR"))
	if err != nil {
		return nil, err
	}
	if _, err := filepath.Match(r.String("pattern"), ""); err != nil {
		return nil, cli.Usage("--pattern %q: %w", r.String("pattern"), err)
	}
	var config *registration.SliceTable
	if name := r.String("slice_config"); name != "" {
		if config, err = stage.ReadFile(ctx, r, name, registration.ReadSliceTable); err != nil {
			return nil, err
		}
	}
	all, err := slicefiles.FindAny(ctx, dir, r.String("pattern"), store.Settings(r.Options.HTTP))
	if err != nil {
		return nil, stage.Failed(err)
	}
	for _, f := range all {
		if ids := r.Ints("include_slice"); ids != nil && !slices.Contains(ids, f.ID) {
			continue
		}
		if config != nil {
			if row := config.Row(f.ID); row == nil || !row.Bool(registration.Use) {
				continue
			}
		}
		out = append(out, f)
	}
	if out == nil {
		return nil, cli.BadInputf("%s: none of its %d mosaics is selected", r.Arg("DIR"), len(all))
	}
	return out, nil
}
