package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/images"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/registration"
	"strata/pkg/tilefiles"
	"strata/pkg/tilefiles/tilestore"
	"strata/pkg/zarr"
)

// TileFlags returns the flags of tiles that lie in files, which [FindTiles] reads. --overlap is the command's own.
func TileFlags() []cli.Flag {
	return []cli.Flag{
		{Name: "pattern", Value: "NAME", Usage: "names of files with a tile each, below the folder: {row} {col}, {index}, or {x_um} {y_um} stand for numbers, and so do {slice} {z} {c} {t}; {channel} for a channel's name, * for any text"},
		{Name: "grid", Kind: cli.Ints, Value: "ROWS,COLS", Note: "as the names say", Check: cli.AtLeast(1), Usage: "rows and columns of the grid of --pattern, for {index}"},
		{Name: "order", Default: "rows", Choices: []string{"rows", "columns"}, Usage: "whether {index} of --pattern runs row by row or column by column"},
		{Name: "snake", Kind: cli.Bool, Usage: "{index} of --pattern runs along every other row, or column, backwards"},
		{Name: "start", Default: tilefiles.Corners[0], Choices: tilefiles.Corners, Usage: "corner of the grid where {index} of --pattern begins, or where {row} and {col}, {x_um} and {y_um} are smallest"},
		{Name: "voxel_size", Kind: cli.Floats, Value: "Z,Y,X", Note: "as the files state it", Check: cli.VoxelSize, Usage: "voxel size of the tiles of --pattern in µm"},
		{Name: "axes", Choices: []string{"zyx", "cyx", "yx"}, Note: "as the files say, or else zyx", Usage: "axes of a file of --pattern: its pages are planes (zyx), channels (cyx), or there is one (yx)"},
	}
}

// CheckOverlap returns an error for an overlap of tiles that is not below 1, at which they would coincide.
func CheckOverlap(v any) error {
	if err := cli.Between(0, 1)(v); err != nil {
		return err
	}
	if v.(float64) == 1 {
		return cli.Usage("must be below 1")
	}
	return nil
}

// NoTiles returns an error for the first of the flags of [TileFlags] that is given without --pattern.
func NoTiles(r *cli.Run) error {
	for _, f := range TileFlags() {
		if f.Name != "pattern" && r.IsSet(f.Name) {
			return cli.Usage("--%s is for tiles in files: give --pattern as well", f.Name)
		}
	}
	return nil
}

// TileOptions returns the options that the flags of [TileFlags] set, except --pattern.
func TileOptions(r *cli.Run) (opt tilefiles.Options, err error) {
	opt = tilefiles.Options{Columns: r.String("order") == "columns", Snake: r.Bool("snake"), Axes: r.String("axes")}
	if opt.Start, err = tilefiles.ParseCorner(r.String("start")); err != nil {
		return opt, cli.Usage("--start: %w", err)
	}
	switch g := r.Ints("grid"); len(g) {
	case 0:
	case 2:
		opt.Grid = [2]int(g)
	default:
		return opt, cli.Usage("--grid has %d numbers: want ROWS,COLS", len(g))
	}
	switch v := r.Floats("voxel_size"); len(v) {
	case 0:
	case 3:
		opt.Voxel = [3]float64(v)
	default:
		return opt, cli.Usage("--voxel_size has %d numbers: want Z,Y,X in µm", len(v))
	}
	return opt, nil
}

// FindTiles finds the files of --pattern in a folder that an argument names.
func FindTiles(ctx context.Context, r *cli.Run, name string) (*tilefiles.Set, error) {
	opt, err := TileOptions(r)
	if err != nil {
		return nil, err
	}
	p, err := tilefiles.ParsePattern(r.String("pattern"))
	if err != nil {
		return nil, cli.Usage("%w", err)
	}
	dir, err := r.LocalInput(name)
	if err != nil {
		return nil, err
	}
	set, err := tilefiles.Find(ctx, dir, p, opt)
	return set, tilesFailed(err)
}

// tilesFailed gives an error of package tilefiles its exit code.
func tilesFailed(err error) error {
	var option *tilefiles.OptionError
	if errors.As(err, &option) {
		return cli.Usage("%w", err)
	}
	return cli.BadInput(err)
}

// mostNumbers limits the slices that a message lists.
const mostNumbers = 10

// ChooseTiles returns the slice of a set that --slice asks for, or all, of which there may be several if many is true.
// hint names the flags that choose.
func ChooseTiles(r *cli.Run, set *tilefiles.Set, many bool, hint string) ([]tilefiles.Slice, error) {
	var list []string
	for _, s := range set.Slices[:min(len(set.Slices), mostNumbers)] {
		list = append(list, fmt.Sprint(s.ID))
	}
	numbers := strings.Join(list, ", ")
	if n := len(set.Slices); n > mostNumbers {
		numbers += fmt.Sprintf(" … %d", set.Slices[n-1].ID)
	}
	switch {
	case r.IsSet("slice"):
		if !set.Pattern.Has(tilefiles.SliceToken) {
			return nil, cli.Usage("--slice %d: the pattern %s has no {slice}", r.Int("slice"), set.Pattern)
		}
		k := slices.IndexFunc(set.Slices, func(s tilefiles.Slice) bool { return s.ID == int64(r.Int("slice")) })
		if k < 0 {
			return nil, cli.Usage("--slice %d: there are no tiles of it in %s, which has slices %s", r.Int("slice"), set.Root, numbers)
		}
		return set.Slices[k : k+1], nil
	case len(set.Slices) > 1 && !many:
		return nil, cli.Usage("%s has tiles of slices %s: give %s", set.Root, numbers, hint)
	}
	return set.Slices, nil
}

// OpenTiles checks all files of a slice and shows them as a mosaic grid. What is missing is a warning.
func OpenTiles(ctx context.Context, r *cli.Run, set *tilefiles.Set, s *tilefiles.Slice, opt tilestore.Options) (*ngff.Image, error) {
	if _, err := set.Voxel(); err != nil {
		return nil, tilesFailed(err)
	}
	if err := set.Inspect(ctx, s, r.Options.Threads); err != nil {
		return nil, tilesFailed(err)
	}
	for _, w := range s.Warnings {
		r.Warn("%s", w)
	}
	st, err := tilestore.Open(ctx, set, s, opt)
	if err != nil {
		return nil, tilesFailed(err)
	}
	im, err := ngff.OpenPresent(ctx, st, "", zarr.Workers(1), zarr.Meter(r.Meter))
	return im, cli.BadInput(err)
}

// PositionsName returns the default name of the file with the positions of an image's tiles: OUT_positions.json beside
// OUT.
func PositionsName(out string) string {
	for _, suffix := range []string{".zarr", ".ome"} {
		out = strings.TrimSuffix(filepath.Clean(out), suffix)
	}
	return out + "_positions.json"
}

// PositionsOutput begins the file of the positions of tiles in OUT: name, that of --save_positions, or else one beside
// OUT. It is nil if there is none to write: p is nil, or OUT is in a bucket and there is no name.
func PositionsOutput(r *cli.Run, p *registration.TilePositions, out, name string) (*atomic.Output, error) {
	switch {
	case p == nil && name != "":
		return nil, cli.BadInputf("--save_positions %s: neither names nor files record the positions of all tiles", name)
	case p == nil, name == "" && cli.InBucket(out):
		return nil, nil
	case name == "":
		name = PositionsName(out)
	}
	return r.OutputFile(name)
}

// FillPositions writes positions into a file of [PositionsOutput].
func FillPositions(r *cli.Run, file *atomic.Output, p *registration.TilePositions) error {
	if file == nil {
		return nil
	}
	return FillFile(r, file, func(w io.Writer) error { return p.Write(w) })
}

// NoteTiles warns if a mosaic grid is a file of another format, such as TIFF: the stage then takes the file's storage
// tiles for tiles of the microscope, which they rarely are.
func NoteTiles(r *cli.Run, path string, in *ngff.Image) {
	if !images.Sparse(in.Levels[0].Array.Store()) {
		return
	}
	m, err := oct.OpenMosaic(in)
	if err != nil {
		return // the stage says so
	}
	where := address.Address(path)
	if ny, nx := m.Tiles(); ny*nx > 1 {
		r.Warn("%s: its tiles of %d × %d pixels are how the file is stored, and are taken for %d rows and %d columns of the microscope's: zarr-tool import %s OUT --chunks Z,Y,X cuts tiles of another size",
			where, m.Chunk[1], m.Chunk[2], ny, nx, where)
	} else {
		r.Warn("%s: is taken for a mosaic grid of one tile: zarr-tool import %s OUT --chunks Z,Y,X cuts it into tiles, mosaic --pattern joins files with a tile each", where, where)
	}
}
