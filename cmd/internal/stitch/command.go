// Package stitch is the command stitch, which puts the tiles of a mosaic grid together to a slice.
package stitch

import (
	"context"
	"io"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/ngff"
	"strata/pkg/oct/stitch"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/registration"
)

// Command is stitch.
func Command() *cli.Command {
	opt := stitch.Options{Overlap: 0.2, Tolerance: stitch.DefaultTolerance, Blending: canvas.BlendDiffusion}
	return &cli.Command{
		Name:  "stitch",
		Usage: "put the tiles of a mosaic grid together to a slice",
		Description: "Tile (i, j) of h × w voxels goes to M·(i·h·(1−o), j·w·(1−o)), (y, x), in all planes: o is --overlap, M the\n" +
			"identity, a matrix from a file, or with --estimate the least squares over phase correlations of all pairs of\n" +
			"neighbouring tiles (their average projections). --max_refinement_px moves each tile on its own to where it fits its\n" +
			"neighbours best, all at once. Overlaps without tissue do not vote. With --positions M acts on where the stage recorded\n" +
			"each tile, and each pair of tiles that overlap may correct that by up to --position_tolerance. OUT has the mosaic's\n" +
			"depth, voxel size, data type, channels and times: what is measured is measured on one channel, and holds for all.\n" +
			"Tiles are read once, and once or more before that to measure, never the whole mosaic.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "OME-Zarr mosaic grid (z, y, x; also c and t before them, or no z): a folder, a .zip, a TIFF file, or an address http(s):// or s3://"},
			{Name: "OUT", Usage: "OME-Zarr image to write; with --estimate_only further mosaics", Optional: true, Many: true},
		},
		Shared: cli.Stage, Accelerator: stage.GPU,
		Hints: cli.Hints{
			"chunks": {Value: "Z,Y,X", Note: "128,64,64, of one plane 512,512, or what the slice has"}, "shard": {Value: "Z,Y,X", Note: "none"},
		},
		Flags: []cli.Flag{
			cli.Bind(&opt.Overlap, cli.Flag{Name: "overlap", Check: overlap, Usage: "fraction of a tile that its neighbour sees too"}),
			{Name: "transform", Value: "FILE", Usage: "2×2 matrix M that acts on (y, x), JSON or .npy; with --estimate what it begins with"},
			cli.Bind(&opt.Estimate, cli.Flag{Name: "estimate", Usage: "estimate M from the mosaic"}),
			{Name: "estimate_only", Value: "FILE", Usage: "estimate M from all mosaics given, write it to FILE, stitch nothing"},
			{Name: "save_transform", Value: "FILE", Usage: "also write M as JSON"},
			cli.Bind(&opt.MaxRefinement, cli.Flag{Name: "max_refinement_px", Check: cli.Between(0, 1e6), Usage: "how far a tile may move from where M puts it; 0: not at all"}),
			{Name: "positions", Value: "FILE", Usage: "where the stage recorded the tiles: JSON of import --tiles or of --save_positions, or CSV with the columns row, column, y_um, x_um"},
			cli.Bind(&opt.Tolerance, cli.Flag{Name: "position_tolerance", Value: "UM", Check: cli.Between(0, 1e6),
				Usage: "by how many µm the displacement of two tiles may differ from the recorded one; 0: tiles stay where they were recorded"}),
			cli.Bind(&opt.Channel, cli.Flag{Name: "channel", Check: cli.AtLeast(0), Usage: "channel that is measured, where the mosaic has several"}),
			cli.Bind(&opt.Interpolate, cli.Flag{Name: "interpolate", Usage: "place tiles between voxels, by linear interpolation, not at the nearest ones"}),
			cli.Bind(&opt.Blending, cli.Flag{Name: "blending", Choices: canvas.Blendings, Usage: "what a voxel becomes that several tiles have seen"}),
			{Name: "save_positions", Value: "FILE", Usage: "also write the positions, and how well tiles agree at the seams, as JSON"},
		},
		Examples: []cli.Example{
			{Command: "stitch mosaic_grid_3d_z03.ome.zarr slice_z03.ome.zarr", Usage: "tiles that overlap by a fifth, as the stage placed them"},
			{Command: "stitch in.ome.zarr out.ome.zarr --estimate --max_refinement_px 4 --save_positions pos.json", Usage: "measured placement, with a record of it"},
			{Command: "stitch --estimate_only transform.json mosaic_grid*_z0[3-7].ome.zarr", Usage: "one matrix from several mosaics"},
			{Command: "stitch in.ome.zarr out.ome.zarr --transform transform.json --blending feather", Usage: "that matrix for this mosaic"},
			{Command: "stitch tiles.ome.zarr slide.ome.zarr --positions positions.json --channel 1", Usage: "a slide scan, from where the stage recorded its tiles"},
		},
		Run: func(ctx context.Context, r *cli.Run) error { return run(ctx, r, opt) },
	}
}

// overlap checks the flag: below 1, or tiles would lie on each other.
func overlap(v any) error {
	if err := cli.Between(0, 1)(v); err != nil {
		return err
	}
	if v.(float64) == 1 {
		return cli.Usage("must be below 1")
	}
	return nil
}

func run(ctx context.Context, r *cli.Run, opt stitch.Options) error {
	opt.Seams = r.IsSet("save_positions")
	if err := together(r); err != nil {
		return err
	}
	var given stitch.Transform
	if name := r.String("transform"); name != "" {
		t, err := stage.ReadFile(ctx, r, name, stitch.ReadTransform)
		if err != nil {
			return err
		}
		given, opt.Transform = t, t.Matrix
		if t.Overlap >= 0 && t.Overlap != opt.Overlap {
			if r.IsSet("overlap") {
				return cli.Usage("flag --overlap: %s was made with %g, not %g: leave the flag out, or estimate again", name, t.Overlap, opt.Overlap)
			}
			opt.Overlap = t.Overlap
		}
	}
	if r.IsSet("estimate_only") {
		return estimate(ctx, r, opt)
	}
	switch paths := r.Args("OUT"); len(paths) {
	case 0:
		return cli.Usage("OUT is missing: want stitch IN OUT, or stitch --estimate_only FILE IN…")
	case 1:
	default:
		return cli.Usage("%d outputs for one mosaic: several mosaics go with --estimate_only FILE", len(paths))
	}
	if name := r.String("positions"); name != "" {
		var err error
		if opt.Positions, err = stage.ReadFile(ctx, r, name, registration.ReadTilePositions); err != nil {
			return err
		}
	}
	in, err := stage.Open(ctx, r, r.Arg("IN"))
	if err != nil {
		return err
	}
	if v := in.VoxelSize; r.IsSet("transform") {
		opt.Transform = given.On([2]float64(v[len(v)-2:]))
	}
	out, err := zarrout.Create(ctx, r, r.Arg("OUT"))
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
	res, err := stage.ResourcesOnGPU(ctx, r, task, stage.Of("stitch", in))
	if err != nil {
		return err
	}
	result, s, err := stitch.Run(ctx, in, out.Store, stage.Layout(r), opt, res)
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	if err := transform.Write(func(w io.Writer) error { return stitch.WriteTransform(w, s.Transform) }); err != nil {
		return err
	}
	if err := positions.Write(func(w io.Writer) error { return stitch.WriteStitching(w, s) }); err != nil {
		return err
	}
	stage.Describe(r, in, r.Arg("IN"), result, out.Path())
	return nil
}

// together refuses flags that say different things about where tiles lie.
func together(r *cli.Run) error {
	if !r.IsSet("positions") {
		if r.IsSet("position_tolerance") {
			return cli.Usage("flag --position_tolerance: goes with --positions FILE")
		}
		return nil
	}
	for _, f := range []struct {
		name string
		on   bool
	}{{"overlap", r.IsSet("overlap")}, {"estimate", r.Bool("estimate")}, {"estimate_only", r.IsSet("estimate_only")}, {"max_refinement_px", r.Float("max_refinement_px") > 0}} {
		if f.on {
			return cli.Usage("flag --%s: --positions says where the tiles lie, --position_tolerance how far they may be moved", f.name)
		}
	}
	return nil
}

// frames is the number of channels and times of an image.
func frames(in *ngff.Image) int {
	n := 1
	for d, k := range in.Levels[0].Array.Shape() {
		if in.Axes[d].Type != ngff.TypeSpace {
			n *= max(k, 1)
		}
	}
	return n
}

// estimate writes the matrix of one or several mosaics.
func estimate(ctx context.Context, r *cli.Run, opt stitch.Options) error {
	var all []*ngff.Image
	total := int64(0)
	for _, path := range append([]string{r.Arg("IN")}, r.Args("OUT")...) {
		in, err := stage.Open(ctx, r, path)
		if err != nil {
			return err
		}
		all = append(all, in)
		total += datasets.Bytes(in.Levels[0].Array)
		r.Read(datasets.Describe(in.Levels[0].Array, path))
	}
	out, err := r.OutputFile(r.String("estimate_only"))
	if err != nil {
		return err
	}
	task := r.Progress("estimate", total)
	res, err := stage.ResourcesOnGPU(ctx, r, task, stage.Of("aip", all...)) // tiles are projected, and what lies in their overlaps is compared
	if err != nil {
		return err
	}
	t, err := stitch.EstimateTransform(ctx, all, opt, res)
	if err != nil {
		return stage.Failed(err)
	}
	task.Done()
	return out.Write(func(w io.Writer) error { return stitch.WriteTransform(w, t) })
}
