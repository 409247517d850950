package shifts

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/shifts"
	"strata/pkg/oct/stitch"
	"strata/pkg/registration"
	"strata/pkg/tilegrid"
)

// suggestCommand describes the suggestion of parameters of the workflow.
func suggestCommand() *cli.Command {
	return &cli.Command{
		Name:  "suggest",
		Usage: "suggest parameters of the workflow from the shifts, raw tiles and a mosaic grid",
		Description: "Writes DIR/suggested_params.yaml, a parameter file of the workflow (nextflow run … -params-file) with a comment behind\n" +
			"each value that says where it comes from. Shifts tell the length from which on a shift is a glitch, and which slices are\n" +
			"missing. --data_dir tells pixel size, overlap, slicing interval and depth, by info.txt of the raw tiles, metadata.json of\n" +
			"a slice and state.json; --mosaic tells pixel size, tile and overlap. What nothing tells is left out, with a comment.\n\n" +
			"Look at the values before you use them: they are estimates.",
		Args:   []cli.Arg{tableArg(), {Name: "DIR", Usage: "folder to write into"}},
		Shared: cli.Outputs | cli.Inputs,
		Flags: []cli.Flag{
			{Name: "data_dir", Value: "DIR", Usage: "folder of raw data: raw tiles, slice_z<NN>/metadata.json (also below metadata/) and state.json, as far as they are there"},
			{Name: "n_calibration_slices", Kind: cli.Int, Default: "1", Check: cli.AtLeast(0), Value: "N", Usage: "number of first slices of --data_dir whose metadata.json does not count"},
			{Name: "mosaic", Value: "IMAGE", Usage: "mosaic grid of a slice, OME-Zarr"},
			{Name: "axial_res_um", Kind: cli.Float, Note: "as info.txt says", Check: cli.VoxelSize, Value: "UM", Usage: "distance of the samples of an A-line, in µm"},
			{Name: "resolution_um", Kind: cli.Float, Note: "by the size of pixels", Check: cli.VoxelSize, Value: "UM", Usage: "voxel size to work with, in µm"},
		},
		Examples: []cli.Example{
			{Command: "shifts suggest shifts_xy.csv suggested/ --data_dir raw/", Usage: "from the shifts and the microscope's own files"},
			{Command: "shifts suggest shifts_xy.csv suggested/ --mosaic mosaic_grid_3d_z03.ome.zarr --resolution_um 10", Usage: "from the shifts and a mosaic grid, at 10 µm"},
		},
		Run: cli.Do(runSuggest),
	}
}

func runSuggest(ctx context.Context, r *cli.Run) error {
	table, err := stage.ReadFile(ctx, r, r.Arg("IN"), registration.ReadShiftTable)
	if err != nil {
		return err
	}
	var a shifts.Acquisition
	if r.IsSet("axial_res_um") {
		a.Axial = shifts.Fact{Value: r.Float("axial_res_um"), From: "--axial_res_um"}
	}
	if r.IsSet("data_dir") {
		if err := readData(ctx, r, &a); err != nil {
			return err
		}
	}
	if r.IsSet("mosaic") {
		if err := readMosaic(ctx, r, &a); err != nil {
			return err
		}
	}
	all := shifts.Suggest(table, a, r.Float("resolution_um"))
	known := slices.DeleteFunc(slices.Clone(all), func(s shifts.Suggestion) bool { return s.Value == "" })
	r.Conclude("%d parameters suggested, %d not known", len(known), len(all)-len(known))
	return stage.WriteFile(r, filepath.Join(r.Arg("DIR"), "suggested_params.yaml"), func(w io.Writer) error { return shifts.WriteParams(w, all, table.Name) })
}

// readData learns what a folder of raw data says: the metadata of the first slice that is none of calibration, the
// state, and the settings of raw tiles.
func readData(ctx context.Context, r *cli.Run, a *shifts.Acquisition) error {
	name := r.String("data_dir")
	dir, err := r.LocalInput(name)
	if err != nil {
		return err
	}
	var found []string
	for _, below := range []string{"", "metadata"} {
		if found, err = filepath.Glob(filepath.Join(globbed(dir), below, "slice_z*", "metadata.json")); err != nil || len(found) > 0 {
			break
		}
	}
	if err != nil {
		return cli.BadInput(err)
	}
	slices.Sort(found)
	if n := r.Int("n_calibration_slices"); n < len(found) {
		found = found[n : n+1]
	} else if len(found) > 0 {
		r.Warn("%s: has %d slices with metadata.json, of which %d are for calibration: the first is used", name, len(found), n)
		found = found[:1]
	}
	for _, path := range append(found, filepath.Join(dir, "state.json")) {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			continue
		}
		if _, err := stage.ReadFile(ctx, r, path, func(f io.Reader, name string) (struct{}, error) { return struct{}{}, a.ReadState(f, name) }); err != nil {
			return err
		}
	}
	tiles, _, err := stage.RawTiles(ctx, r, name)
	if err != nil {
		if !a.Tile.Known() && !a.Thickness.Known() && !a.Overlap.Known() {
			return err
		}
		r.Decided("no raw tiles: %v", err)
		return nil
	}
	return cli.BadInput(a.ReadTiles(ctx, tiles))
}

// globbed returns a path as a pattern that matches it only.
func globbed(path string) string {
	var out []rune
	for _, c := range path {
		if slices.Contains([]rune(`*?[\`), c) {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return string(out)
}

// readMosaic learns what a mosaic grid says.
func readMosaic(ctx context.Context, r *cli.Run, a *shifts.Acquisition) error {
	name := r.String("mosaic")
	in, err := stage.Open(ctx, r, name)
	if err != nil {
		return err
	}
	r.Read(datasets.DescribeImage(in, name))
	from := stage.Shown(name)
	n := len(in.VoxelSize)
	if n < 2 {
		return cli.BadInput(fmt.Errorf("%s: has %d axes, want a mosaic grid", from, n))
	}
	pixel, tile := in.VoxelSize[n-2:], stitch.TileSize(in)
	if !a.Pixel.Known() {
		a.Pixel = shifts.Fact{Value: min(pixel[0], pixel[1]), From: from}
	}
	if !a.Tile.Known() {
		a.Tile = shifts.Fact{Value: min(pixel[0]*float64(tile[0]), pixel[1]*float64(tile[1])), From: from}
	}
	if overlap, ok := tilegrid.Overlap(in.Group.Attributes()); ok && !a.Overlap.Known() {
		a.Overlap = shifts.Fact{Value: overlap, From: from}
	}
	if n > 2 && !a.Depth.Known() {
		a.Depth = shifts.Fact{Value: in.VoxelSize[n-3] * float64(in.Levels[0].Array.Shape()[n-3]), From: from}
	}
	return nil
}
