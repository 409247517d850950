package mosaic

import (
	"context"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/progress"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/ngff"
	"strata/pkg/oct/mosaic"
	"strata/pkg/oct/resample"
	"strata/pkg/registration"
	"strata/pkg/runrecord"
	"strata/pkg/tilefiles"
	"strata/pkg/tilefiles/tilestore"
)

// fileFlags returns the flags for tiles in files.
func fileFlags() []cli.Flag {
	return append(stage.TileFlags(),
		cli.Flag{Name: "overlap", Kind: cli.Float, Note: "not recorded", Check: stage.CheckOverlap, Usage: "fraction of a tile of --pattern that its neighbour covers too, from 0 to below 1, which OUT records for stitch"},
		cli.Flag{Name: "save_positions", Value: "FILE", Note: "OUT_positions.json", Usage: "file for the positions that the names or files of --pattern record (JSON); with --all, a folder"})
}

// ofRaw are the flags that belong to raw OCT tiles, or to what is made of them in one pass.
func ofRaw() []string {
	names := []string{"tiles", "from_root_directory", "axial_resolution", "keep_galvo_return", "fix_galvo_shift", "galvo_threshold", "fix_camera_shift", "preprocess"}
	for _, f := range productFlags() {
		names = append(names, f.Name)
	}
	return names
}

// fileSlice is a slice of tiles in files, and what is made of it.
type fileSlice struct {
	slice     *tilefiles.Slice
	in        *ngff.Image
	positions *registration.TilePositions // nil: not known
	out       *zarrout.Output
	file      *atomic.Output // of positions; nil: there is none
}

// runFiles makes mosaic grids of tiles in files.
func runFiles(ctx context.Context, r *cli.Run) error {
	if err := checkFiles(r); err != nil {
		return err
	}
	set, err := stage.FindTiles(ctx, r, r.Arg("RAW"))
	if err != nil {
		return err
	}
	chosen, err := stage.ChooseTiles(r, set, r.Bool("all") || r.Bool("list"), "--slice N, or --all")
	if err != nil {
		return err
	}
	if r.Bool("list") {
		return listFiles(ctx, r, set, chosen)
	}
	var made []*fileSlice
	var total, read int64
	for i := range chosen {
		f, bytes, err := openSlice(ctx, r, set, &chosen[i])
		if err != nil {
			return err
		}
		defer f.in.Levels[0].Array.Store().Close()
		made, total, read = append(made, f), total+datasets.Bytes(f.in.Levels[0].Array), read+bytes
	}
	for _, f := range made {
		if err := f.begin(ctx, r); err != nil {
			return err
		}
	}
	task := r.Progress("mosaic", total)
	for _, f := range made {
		if err := f.write(ctx, r, task); err != nil {
			return err
		}
	}
	task.Done()
	r.Read(runrecord.Dataset{Path: address.Address(set.Root), DType: set.Header.Type.String(), Bytes: read})
	return nil
}

// checkFiles reports contradictory flags.
func checkFiles(r *cli.Run) error {
	for _, name := range ofRaw() {
		if r.IsSet(name) {
			return cli.Usage("--%s contradicts --pattern: it is for raw OCT tiles", name)
		}
	}
	switch {
	case r.IsSet("sampling") && !resamples(r):
		return cli.Usage("--sampling needs --resolution, without which --pattern resamples nothing")
	case r.IsSet("slice") && r.Bool("all"):
		return cli.Usage("--slice contradicts --all: give one of them")
	case len(r.Args("TILE")) > 0:
		return cli.Usage("unexpected argument %s: want RAW OUT", r.Args("TILE")[0])
	case r.Bool("json") && !r.Bool("list"):
		return cli.Usage("--json is for --list: give that as well")
	case r.Bool("list") && r.Arg("OUT") != "":
		return cli.Usage("unexpected argument %s: --list writes no image", r.Arg("OUT"))
	case !r.Bool("list") && r.Arg("OUT") == "":
		return cli.Usage("argument OUT is missing: the image to write, or give --list")
	}
	return nil
}

// resamples reports whether tiles in files are resampled.
func resamples(r *cli.Run) bool { return r.IsSet("resolution") && r.Float("resolution") > 0 }

// openSlice opens the files of a slice, and returns how many bytes they have, decoded.
func openSlice(ctx context.Context, r *cli.Run, set *tilefiles.Set, s *tilefiles.Slice) (*fileSlice, int64, error) {
	opt := tilestore.Options{Name: mosaic.Name(int(s.ID)), Whole: r.Bool("whole_tiles")}
	if r.IsSet("overlap") {
		overlap := r.Float("overlap")
		opt.Overlap = &overlap
	}
	in, err := stage.OpenTiles(ctx, r, set, s, opt)
	if err != nil {
		return nil, 0, err
	}
	bytes := in.Levels[0].Array.Store().(*tilestore.Store).Bytes()
	return &fileSlice{slice: s, in: in, positions: set.Positions(s)}, bytes, nil
}

// begin begins the outputs of a slice.
func (f *fileSlice) begin(ctx context.Context, r *cli.Run) (err error) {
	out, positions := r.Arg("OUT"), r.String("save_positions")
	if r.Bool("all") {
		name := mosaic.Name(int(f.slice.ID))
		out = within(out, name+".ome.zarr")
		if positions != "" {
			positions = within(positions, name+"_positions.json")
		}
	}
	if f.out, err = zarrout.Create(ctx, r, out); err != nil {
		return err
	}
	if f.file, err = stage.PositionsOutput(r, f.positions, out, positions); err != nil {
		return err
	}
	if f.file != nil {
		f.out.With(f.file.Path())
	} else {
		f.out.With()
	}
	return nil
}

// write writes the outputs of a slice.
func (f *fileSlice) write(ctx context.Context, r *cli.Run, task *progress.Task) error {
	var result *ngff.Image
	var err error
	layout, res := stage.Layout(r), stage.Resources(r, task)
	if resamples(r) {
		um := r.Float("resolution")
		result, err = resample.Run(ctx, f.in, f.out.Store, resample.Options{Resolution: [3]float64{um, um, um}, Corner: r.String("sampling") == "corner"}, layout, res)
	} else {
		result, err = mosaic.Copy(ctx, f.in, f.out.Store, r.Int("sharding_factor"), layout, res)
	}
	if err != nil {
		return stage.Failed(err)
	}
	r.Wrote(datasets.DescribeImage(result, f.out.Path()))
	return stage.FillPositions(r, f.file, f.positions)
}
