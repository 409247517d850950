package slices

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/sliceconfig"
	"strata/pkg/pattern"
	"strata/pkg/rawtiles"
	"strata/pkg/registration"
)

// What the numbers of slices are taken from.
const (
	fromAuto    = "auto"
	fromTiles   = "tiles"
	fromShifts  = "shifts"
	fromMosaics = "mosaics"
)

func configCommand() *cli.Command {
	return &cli.Command{
		Name:  "config",
		Usage: "begin the table: one row per slice, all used but the first",
		Description: "Lists the slices of IN in a new table. The first --exclude_first slices, which calibrate the blade, and those of\n" +
			"--exclude are not used.\n\n" +
			"--detect_galvo reads up to five raw tiles of each slice, and notes how sure it is that their A-lines begin in the\n" +
			"middle of a scan (0 to 1), and whether that is to be repaired.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "folder of raw tiles, folder of mosaic grids, or CSV of shifts"},
			{Name: "OUT", Usage: "CSV to write"},
		},
		Shared: cli.Outputs | cli.Resources,
		Flags: []cli.Flag{
			{Name: "from", Default: fromAuto, Choices: []string{fromAuto, fromTiles, fromShifts, fromMosaics}, Usage: "what IN is: folders tile_x<XX>_y<YY>_z<ZZ> at any depth, a CSV of shifts, or images named …z<NN>….ome.zarr; auto looks"},
			{Name: "from_tiles", Kind: cli.Bool, Hidden: true, Usage: "the same as --from tiles"},
			{Name: "from_shifts", Kind: cli.Bool, Hidden: true, Usage: "the same as --from shifts"},
			{Name: "exclude", Kind: cli.Ints, Value: "N,...", Check: cli.AtLeast(0), Usage: "numbers of slices that are not used"},
			{Name: "exclude_first", Kind: cli.Int, Default: "1", Value: "N", Check: cli.AtLeast(0), Usage: "number of slices at the beginning that are not used"},
			{Name: "detect_galvo", Kind: cli.Bool, Usage: "look in raw tiles for shifted A-lines"},
			{Name: "tiles_dir", Value: "DIR", Note: "IN, if it has tiles", Usage: "folder of raw tiles for --detect_galvo"},
			{Name: "galvo_threshold", Kind: cli.Float, Default: "0.6", Check: cli.Between(0, 1), Usage: "confidence from which on A-lines are to be repaired, 0 to 1"},
		},
		Examples: []cli.Example{
			{Command: "slices config shifts_xy.csv slice_config.csv", Usage: "the slices of a table of shifts, without the first"},
			{Command: "slices config raw/ slice_config.csv --exclude_first 2 --exclude 17,31", Usage: "the slices of raw tiles, without four of them"},
			{Command: "slices config mosaics/ slice_config.csv --detect_galvo --tiles_dir raw/", Usage: "note which slices have shifted A-lines"},
		},
		Run: cli.Do(runConfig),
	}
}

func runConfig(ctx context.Context, r *cli.Run) error {
	in, err := r.LocalInput(r.Arg("IN"))
	if err != nil {
		return err
	}
	from, err := source(r, in)
	if err != nil {
		return err
	}
	var ids []int
	var tiles []rawtiles.Slice
	switch from {
	case fromShifts:
		table, err := stage.ReadFile(ctx, r, r.Arg("IN"), registration.ReadShiftTable)
		if err != nil {
			return err
		}
		ids = table.IDs()
	case fromTiles:
		if tiles, err = rawtiles.Find(ctx, in); err != nil {
			return cli.BadInput(err)
		}
		ids = sliceIDs(tiles)
	default:
		if ids, err = mosaicIDs(in); err != nil {
			return cli.BadInput(err)
		}
	}
	if dir := r.String("tiles_dir"); dir != "" {
		if tiles, _, err = stage.RawTiles(ctx, r, dir); err != nil {
			return err
		}
		if len(ids) == 0 { // a specimen of one slice has no shifts
			ids = sliceIDs(tiles)
		}
	}
	if len(ids) == 0 {
		return cli.BadInputf("%s: names no slices%s", in, map[string]string{fromShifts: ": the only slice of a specimen has no shifts, take --from tiles or give --tiles_dir",
			fromMosaics: ": want images named …z<NN>….ome.zarr, or folders tile_x<XX>_y<YY>_z<ZZ>"}[from])
	}
	table, unknown := sliceconfig.Generate(ids, sliceconfig.GenerateOptions{Exclude: r.Ints("exclude"), ExcludeFirst: r.Int("exclude_first")})
	if len(unknown) > 0 {
		r.Warn("--exclude: there are no slices %v in %s", unknown, in)
	}
	if r.Bool("detect_galvo") {
		if tiles == nil {
			return cli.Usage("--detect_galvo reads raw tiles: give their folder, --tiles_dir DIR")
		}
		o := rawtiles.GalvoOptions{Workers: r.Options.Threads, Mem: r.Options.Mem, Meter: r.Meter}
		if err := sliceconfig.StampGalvo(ctx, table, tiles, r.Float("galvo_threshold"), o); err != nil {
			return stage.Failed(err)
		}
	}
	r.Conclude("%d slices", len(ids))
	return stage.WriteFile(r, r.Arg("OUT"), table.Write)
}

// source returns what the argument IN is.
func source(r *cli.Run, in string) (string, error) {
	from, given := r.String("from"), 0
	for flag, kind := range map[string]string{"from_tiles": fromTiles, "from_shifts": fromShifts} {
		if r.Bool(flag) {
			from = kind
			given++
		}
	}
	if given > 1 || given == 1 && r.IsSet("from") {
		return "", cli.Usage("--from, --from_tiles and --from_shifts contradict each other: give one of them")
	}
	if from != fromAuto {
		return from, nil
	}
	if info, err := os.Stat(in); err == nil && !info.IsDir() {
		return fromShifts, nil
	}
	ids, err := mosaicIDs(in)
	if err != nil {
		return "", cli.BadInput(err)
	}
	if len(ids) > 0 {
		return fromMosaics, nil
	}
	return fromTiles, nil
}

// sliceIDs returns the numbers of slices.
func sliceIDs(all []rawtiles.Slice) (ids []int) {
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return ids
}

var numbered = pattern.Lazy(`.*z(\d+)`)

// mosaicIDs returns the last number behind a z in the names of the images in a folder, in increasing order, each once.
func mosaicIDs(dir string) (ids []int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(strings.TrimSuffix(e.Name(), ".zip"), ".ome.zarr")
		m := numbered().FindStringSubmatch(name)
		if !ok || m == nil || strings.HasPrefix(name, ".") {
			continue
		}
		if id, err := strconv.Atoi(m[1]); err == nil && id <= 1e9 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
