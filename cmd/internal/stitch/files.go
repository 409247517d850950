package stitch

import (
	"context"
	"path/filepath"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/ngff"
	"strata/pkg/oct/stitch"
	"strata/pkg/tilefiles/tilestore"
	"strata/pkg/tilegrid"
)

// tileFlags returns the flags for tiles in files.
func tileFlags() []cli.Flag {
	return append(stage.TileFlags(), cli.Flag{Name: "slice", Short: "z", Kind: cli.Int, Value: "N", Note: "the only one", Usage: "number of the slice of --pattern to stitch"})
}

// checkTiles returns an error for flags of tiles in files that are not given together.
func checkTiles(r *cli.Run) error {
	switch {
	case r.IsSet("pattern") && r.IsSet("estimate_only"):
		return cli.Usage("--estimate_only contradicts --pattern: make mosaics first")
	case r.IsSet("pattern"):
		return nil
	case r.IsSet("slice"):
		return cli.Usage("--slice is for tiles in files: give --pattern as well")
	}
	return stage.NoTiles(r)
}

// open opens the mosaic grid that IN is, or that the files of --pattern in it make.
func open(ctx context.Context, r *cli.Run, opt *stitch.Options) (*ngff.Image, error) {
	if !r.IsSet("pattern") {
		in, err := stage.Open(ctx, r, r.Arg("IN"))
		if err == nil && !r.IsSet("transform") && opt.Positions == nil {
			recorded(r, in, opt)
		}
		if err == nil {
			stage.NoteTiles(r, r.Arg("IN"), in)
		}
		return in, err
	}
	set, err := stage.FindTiles(ctx, r, r.Arg("IN"))
	if err != nil {
		return nil, err
	}
	chosen, err := stage.ChooseTiles(r, set, false, "--slice N")
	if err != nil {
		return nil, err
	}
	in, err := stage.OpenTiles(ctx, r, set, &chosen[0], tilestore.Options{Name: filepath.Base(stage.Stem(r.Args("OUT")[0]))})
	if err != nil {
		return nil, err
	}
	placed := r.IsSet("overlap") || r.IsSet("transform") || r.IsSet("input_transform") || opt.Estimate || opt.Positions != nil || r.Float("max_refinement_px") > 0
	if p := set.Positions(&chosen[0]); p != nil && !placed {
		p.Name, opt.Positions = set.Root, p
		r.Decided("tiles lie where names or files record their positions")
	}
	if r.IsSet("position_tolerance") && opt.Positions == nil {
		return nil, cli.Usage("flag --position_tolerance needs positions: give --positions FILE, or files of --pattern that record them and no other flag that places tiles")
	}
	return in, nil
}

// recorded takes the overlap that a mosaic grid states, unless a flag says otherwise.
func recorded(r *cli.Run, in *ngff.Image, opt *stitch.Options) {
	if overlap, ok := tilegrid.Overlap(in.Group.Attributes()); ok && !r.IsSet("overlap") {
		opt.Overlap = overlap
		r.Decided("overlap %g, as %s states it", overlap, in.Levels[0].Array.Location())
	}
}
