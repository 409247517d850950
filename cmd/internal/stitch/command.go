// Package stitch implements the command stitch, which assembles the tiles of a mosaic grid into a slice.
package stitch

import (
	"cmp"
	"context"
	"io"
	"math"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/ngff"
	"strata/pkg/oct/stitch"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/registration"
)

// Command returns the command stitch.
func Command() *cli.Command {
	opt := stitch.Options{Overlap: 0.2, Tolerance: stitch.DefaultTolerance, Blending: canvas.BlendDiffusion, Rules: affine.RulesConsensus}
	return &cli.Command{
		Name:  "stitch",
		Usage: "stitch the tiles of a mosaic grid into a slice",
		Description: "Places tile (i, j) of h × w voxels at M·(i·h·(1−o), j·w·(1−o)) in (y, x), the same in all planes. o is\n" +
			"--overlap. M is the identity, or the matrix of --transform. --estimate finds M and the place of each tile by a\n" +
			"consensus of all pairs of neighbouring tiles, wherever they overlap, and says which tiles it could not place.\n" +
			"--estimate_rules reference finds M by linumpy's rules, for comparison, and places tiles by M alone.\n\n" +
			"--max_refinement_px limits how far tiles may lie from where M puts them; alone, it moves them to where they fit\n" +
			"their neighbours best, all at once. Overlaps without texture do not count. With --positions, tiles start where the stage recorded them, and each overlapping\n" +
			"pair may correct that by up to --position_tolerance.\n\n" +
			"OUT has the depth, voxel size, data type, channels and time points of IN. Positions are measured on one channel\n" +
			"and hold for all. Tiles are read once or more to measure and once to stitch; the mosaic can be larger than\n" +
			"memory.\n\n" +
			"With --pattern, IN is a folder with tiles as TIFF, PNG or .npy files, and OUT what stitch makes of the mosaic grid that\n" +
			"the program mosaic makes of them. Tiles lie where names or files record their positions, unless --overlap or\n" +
			"another flag says otherwise.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "OME-Zarr mosaic grid with the axes z, y, x (c and t may precede them, z may be missing): folder, .zip file, TIFF file, or http(s):// or s3:// URL; with --pattern, a folder of files"},
			{Name: "OUT", Usage: "OME-Zarr image to write: folder or s3://bucket/path; with --estimate_only, further mosaics to read", Optional: true, Many: true},
		},
		Shared: cli.Stage | cli.Pairs,
		Hints: cli.Hints{
			"chunks": {Value: "Z,Y,X", Note: "128,64,64, or 512,512 for one plane; the slice's size where that is smaller"}, "shard": {Value: "Z,Y,X", Note: "no shards"},
		},
		Flags: append([]cli.Flag{
			cli.Bind(&opt.Overlap, cli.Flag{Name: "overlap", Check: stage.CheckOverlap, Note: "as IN states it, or else 0.2", Usage: "fraction of a tile that its neighbour covers too, from 0 to below 1"}),
			{Name: "transform", Value: "FILE", Usage: "read the 2×2 matrix that maps nominal tile positions (y, x) to true ones, from JSON or .npy; with --estimate it is the first guess"},
			cli.Bind(&opt.Estimate, cli.Flag{Name: "estimate", Usage: "estimate the 2×2 matrix of the tile positions from the overlaps of the mosaic"}),
			{Name: "estimate_only", Value: "FILE", Alone: true, Usage: "estimate the 2×2 matrix of the tile positions from all mosaics given, write it to FILE as JSON, and stitch nothing"},
			rules(&opt),
			{Name: "save_transform", Value: "FILE", Written: true, Usage: "also write the 2×2 matrix of the tile positions to FILE, as JSON"},
			cli.Bind(&opt.MaxRefinement, cli.Flag{Name: "max_refinement_px", Check: cli.Between(0, 1e6), Usage: "move each tile by up to this many pixels to where it fits its neighbours; 0 moves none; with --estimate by a consensus the default is as far as they show"}),
			{Name: "positions", Value: "FILE", Usage: "place tiles where the stage recorded them: JSON of zarr-tool import --tiles or stitch --save_positions, or CSV with the columns row, column, y_um, x_um"},
			cli.Bind(&opt.Tolerance, cli.Flag{Name: "position_tolerance", Value: "UM", Check: cli.Between(0, 1e6),
				Usage: "how far, in µm, the displacement of two tiles may differ from that of --positions; 0 keeps the recorded positions"}),
			cli.Bind(&opt.Channel, cli.Flag{Name: "channel", Check: cli.AtLeast(0), Usage: "index of the channel on which to measure tile positions, from 0"}),
			cli.Bind(&opt.Interpolate, cli.Flag{Name: "interpolate", Usage: "place tiles at fractions of a voxel by linear interpolation, instead of at the nearest voxel"}),
			cli.Bind(&opt.Blending, cli.Flag{Name: "blending", Choices: canvas.Blendings, Usage: "value where tiles overlap: of the tile whose border is farthest (none), their mean (average), or a mean that fades towards tile borders (feather, diffusion)"}),
			{Name: "input_transform", Value: "FILE", Usage: "read the 2×2 matrix that maps the indices of tiles to pixels, as linumpy's estimate_global_transform writes it, from .npy"},
			{Name: "refinement_mode", Default: "full_shift", Choices: []string{"none", "full_shift", "blend_shift"},
				Usage: "whether --max_refinement_px moves tiles: none does not, full_shift does; blend_shift, of linumpy, does the same as full_shift"},
			{Name: "output_refinements", Value: "FILE", Written: true, Usage: "also write how far pairs of tiles lie from where the matrix puts them to FILE, as JSON in linumpy's form"},
			{Name: "metrics", Kind: cli.Bool, Usage: "also write the metrics that linumpy's report reads, beside OUT as NAME_metrics.json"},
			{Name: "save_positions", Value: "FILE", Written: true, Usage: "also write tile positions, and how well tiles agree at their seams, to FILE, as JSON"},
		}, tileFlags()...),
		Examples: []cli.Example{
			{Command: "stitch mosaic_grid_3d_z03.ome.zarr slice_z03.ome.zarr", Usage: "tiles that overlap by a fifth, at their nominal positions"},
			{Command: "stitch in.ome.zarr out.ome.zarr --estimate --save_positions pos.json", Usage: "measure the positions, and write them down"},
			{Command: "stitch in.ome.zarr motor.ome.zarr --overlap 0.2 --blending average --save_positions motor.json", Usage: "where the motor was sent alone, for stitch compare"},
			{Command: "stitch --estimate_only transform.json mosaic_grid*_z0[3-7].ome.zarr", Usage: "one matrix from several mosaics"},
			{Command: "stitch in.ome.zarr out.ome.zarr --transform transform.json --blending feather", Usage: "apply that matrix to this mosaic"},
			{Command: "stitch tiles.ome.zarr slide.ome.zarr --positions positions.json --channel 1", Usage: "a slide scan, from its recorded stage positions"},
			{Command: "stitch scan out.ome.zarr --pattern 'tile_{row}_{col}.tif' --overlap 0.1 --estimate", Usage: "TIFF tiles of any microscope, without a mosaic between"},
			{Command: "stitch --batch slices.tsv --transform transform.json --save_positions {out}_positions.json", Usage: "all mosaics of a list, lines IN TAB OUT, with one start of the GPU"},
		},
		Commands: []*cli.Command{folderCommand(), compareCommand()},
		Aliases: []cli.Alias{
			{Name: "linum-stitch-3d-refined", Flags: map[string]string{"overlap_fraction": "overlap", "blending_method": "blending"},
				Defaults: cli.Defaults{"estimate": "true", "max_refinement_px": "10", "refinement_mode": "blend_shift", "metrics": "true", "n_levels": "3"}},
			{Name: "linum-estimate-global-transform", Command: "estimate", Flags: map[string]string{"overlap_fraction": "overlap"}, Ignored: ignored()},
			{Name: "linum-stitch-motor-only", Flags: map[string]string{"overlap_fraction": "overlap", "blending_method": "blending"}, Defaults: cli.Defaults{"overlap": "0.1", "metrics": "true"}},
			{Name: "linum-compare-stitching", Command: "compare", Defaults: cli.Defaults{"overwrite": "true"}},
		},
		Gone: map[string]string{
			"scale_factor": "--transform FILE with the matrix [[s, 0], [0, s]]", "rotation_deg": "--transform FILE with the matrix of the rotation",
			"compare_transform": "--save_positions FILE, and stitch compare --positions", "output_comparison": "stitch compare, which writes metrics.json",
		},
		Run: cli.Accelerated(stage.GPU, func(ctx context.Context, r *cli.Run) error { return run(ctx, r, opt) }),
	}
}

// rules describes the flag of the rules of an estimate.
func rules(opt *stitch.Options) cli.Flag {
	return cli.Bind(&opt.Rules, cli.Flag{Name: "estimate_rules", Choices: affine.AllRules,
		Usage: "how to estimate the 2×2 matrix: by a consensus of all pairs of tiles, wherever they overlap, or by linumpy's rules (reference), which take the overlap from --overlap and average all pairs"})
}

func run(ctx context.Context, r *cli.Run, opt stitch.Options) error {
	opt.Seams, opt.Check = r.IsSet("save_positions"), true
	if opt.Estimate && opt.Rules == affine.RulesConsensus && opt.MaxRefinement == 0 && !r.IsSet("max_refinement_px") {
		opt.MaxRefinement = math.Inf(1)
	}
	refine(r, &opt)
	if err := cmp.Or(together(r), checkTiles(r)); err != nil {
		return err
	}
	given, err := transformOf(ctx, r, &opt)
	if err != nil {
		return err
	}
	if r.IsSet("estimate_only") {
		return estimate(ctx, r, opt)
	}
	if err := oneOutput(r); err != nil {
		return err
	}
	if name := r.String("positions"); name != "" {
		if opt.Positions, err = stage.ReadFile(ctx, r, name, registration.ReadTilePositions); err != nil {
			return err
		}
	}
	in, err := open(ctx, r, &opt)
	if err != nil {
		return err
	}
	if v := in.VoxelSize; r.IsSet("transform") {
		opt.Transform = given.On([2]float64(v[len(v)-2:]))
	}
	if err := perTile(ctx, r, in, &opt); err != nil {
		return err
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
	if err != nil {
		return err
	}
	side, err := beside(r, opt)
	if err != nil {
		return err
	}
	transform, err := r.OptionalFile("save_transform")
	if err != nil {
		return err
	}
	positions, err := r.OptionalFile("save_positions")
	if err != nil {
		return err
	}
	total := datasets.Bytes(in.Levels[0].Array)
	if opt.Measures() {
		total += total / int64(frames(in))
	}
	task := r.Progress("stitch", total)
	res, err := stage.ResourcesJoined(ctx, r, task, stage.Of("stitch", in))
	if err != nil {
		return err
	}
	result, s, err := stitch.Run(ctx, in, out.Store, stage.Layout(r), opt, res)
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	if opt.Estimate {
		r.Log.Info().Msg(s.Transform.Summary())
	}
	if a := s.Agreement(); a != nil {
		r.Found("agreement", a)
	}
	if err := transform.Write(func(w io.Writer) error { return affine.WriteTransform(w, s.Transform) }); err != nil {
		return err
	}
	if err := positions.Write(func(w io.Writer) error { return stitch.WriteStitching(w, s) }); err != nil {
		return err
	}
	if err := side.write(r, s, in, result); err != nil {
		return err
	}
	stage.Describe(r, in, r.Arg("IN"), result, out.Path())
	return nil
}

// oneOutput returns an error unless there is one output.
func oneOutput(r *cli.Run) error {
	switch paths := r.Args("OUT"); len(paths) {
	case 0:
		return cli.Usage("OUT is missing: want stitch IN OUT, or stitch --estimate_only FILE IN…")
	case 1:
		return nil
	default:
		return cli.Usage("%d outputs for one mosaic: give one, or --estimate_only FILE for several mosaics", len(paths))
	}
}

// transformOf reads the file of --transform into the options.
func transformOf(ctx context.Context, r *cli.Run, opt *stitch.Options) (given affine.Transform, err error) {
	name := r.String("transform")
	if name == "" {
		return given, nil
	}
	if given, err = stage.ReadFile(ctx, r, name, affine.ReadTransform); err != nil {
		return given, err
	}
	opt.Transform = given.Matrix
	if given.Overlap >= 0 && given.Overlap != opt.Overlap {
		if r.IsSet("overlap") {
			return given, cli.Usage("flag --overlap: %s was estimated with an overlap of %g, not %g: leave the flag out, or estimate again", name, given.Overlap, opt.Overlap)
		}
		opt.Overlap = given.Overlap
	}
	return given, nil
}

// together returns an error for contradictory flags about the tiles' positions.
func together(r *cli.Run) error {
	for _, f := range []string{"transform", "positions", "estimate_only"} {
		if r.IsSet("input_transform") && r.IsSet(f) {
			return cli.Usage("flag --input_transform contradicts --%s: give one of them", f)
		}
	}
	if r.IsSet("estimate_rules") && !r.Bool("estimate") && !r.IsSet("estimate_only") {
		return cli.Usage("flag --estimate_rules needs --estimate or --estimate_only FILE")
	}
	if !r.IsSet("positions") {
		if r.IsSet("position_tolerance") && !r.IsSet("pattern") {
			return cli.Usage("flag --position_tolerance needs --positions FILE")
		}
		return nil
	}
	for _, f := range []struct {
		name string
		on   bool
	}{{"overlap", r.IsSet("overlap")}, {"estimate", r.Bool("estimate")}, {"estimate_only", r.IsSet("estimate_only")}, {"max_refinement_px", r.Float("max_refinement_px") > 0}} {
		if f.on {
			return cli.Usage("flag --%s contradicts --positions, which places the tiles; --position_tolerance lets them move", f.name)
		}
	}
	return nil
}

// frames returns the number of channels times the number of times of an image.
func frames(in *ngff.Image) int {
	n := 1
	for d, k := range in.Levels[0].Array.Shape() {
		if in.Axes[d].Type != ngff.TypeSpace {
			n *= max(k, 1)
		}
	}
	return n
}

// estimate writes the matrix estimated from one or several mosaics.
func estimate(ctx context.Context, r *cli.Run, opt stitch.Options) error {
	all, err := openAll(ctx, r, append([]string{r.Arg("IN")}, r.Args("OUT")...))
	if err != nil {
		return err
	}
	if !r.IsSet("transform") {
		recorded(r, all[0], &opt)
	}
	out, err := r.OutputFile(r.String("estimate_only"))
	if err != nil {
		return err
	}
	t, err := estimated(ctx, r, all, opt)
	if err != nil {
		return err
	}
	return out.Write(func(w io.Writer) error { return affine.WriteTransform(w, t) })
}

// openAll opens mosaics that one matrix is estimated from.
func openAll(ctx context.Context, r *cli.Run, paths []string) (all []*ngff.Image, err error) {
	for _, path := range paths {
		in, err := stage.Open(ctx, r, path)
		if err != nil {
			return nil, err
		}
		all = append(all, in)
		r.Read(datasets.DescribeImage(in, path))
	}
	return all, nil
}

// estimated estimates one matrix from mosaics.
func estimated(ctx context.Context, r *cli.Run, all []*ngff.Image, opt stitch.Options) (t affine.Transform, err error) {
	total := int64(0)
	for _, in := range all {
		total += datasets.Bytes(in.Levels[0].Array)
	}
	task := r.Progress("estimate", total)
	res, err := stage.ResourcesOnGPU(ctx, r, task, stage.Of("aip", all...)) // tiles are projected, and what lies in their overlaps is compared
	if err != nil {
		return t, err
	}
	if t, err = stitch.EstimateTransform(ctx, all, opt, res); err != nil {
		return t, stage.Failed(err)
	}
	task.Done()
	r.Log.Info().Msg(t.Summary())
	return t, nil
}
