// Package mosaic implements the command mosaic, which makes mosaic grids of raw tiles.
package mosaic

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/oct/mosaic"
	"strata/pkg/runrecord"
)

// Command returns the command mosaic.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "mosaic",
		Usage: "make mosaic grids of the tiles that a microscope writes",
		Description: "Reads the folders tile_x<XX>_y<YY>_z<NN> anywhere below RAW: info.txt and image_*.bin (float32 A-lines). Writes the\n" +
			"tiles of a slice z<NN> as a float32 OME-Zarr mosaic grid (z, y, x) whose chunks are the tiles. A-lines follow each\n" +
			"other along y, frames along x. Places without a tile become 0, with a warning. NaN voxels stay NaN, and are counted.\n\n" +
			"The A-lines of the mirror's way back are cut off. If they lie within the frames, all tiles are rolled first, provided\n" +
			"that their place is certain enough.\n\n" +
			"A tile always becomes a whole number of voxels, rounded down, so the voxel size of OUT can differ slightly from\n" +
			"--resolution. OUT records its true voxel size: a tile of 36 voxels of 3 µm becomes 21 voxels of 5.14 µm at 5 µm.\n\n" +
			"--aip and --resampled also write what the programs aip and resample make of the mosaic, with the same voxels, in one\n" +
			"pass over RAW: the mosaic is not read again, and with --no-keep_mosaic it is not even written.\n\n" +
			"With --pattern, RAW has tiles of any microscope as TIFF, PNG or .npy files, whose names the pattern describes. OUT has\n" +
			"their voxels and data type, and is resampled only if --resolution is given. Places without a file become 0, with a\n" +
			"warning. Positions of the stage that names or files record are written beside OUT, for stitch --positions.",
		Args: []cli.Arg{
			{Name: "RAW", Usage: "folder with the tiles of one or more slices: folders tile_x<XX>_y<YY>_z<NN>, or files of --pattern; with --tiles, OUT comes first"},
			{Name: "OUT", Usage: "OME-Zarr image to write: folder or s3://bucket/path; with --all, a folder for images mosaic_grid_3d_z<NN>.ome.zarr; not with --no-keep_mosaic", Optional: true},
			{Name: "TILE", Usage: "further folders of --tiles", Optional: true, Many: true},
		},
		Shared:   cli.Resources | cli.Outputs | cli.Layout | cli.Pyramid,
		Defaults: cli.Defaults{"n_levels": "0", "zarr_format": "3"},
		Hints:    cli.Hints{"chunks": {Note: "the tile; without resampling, at most 64 MiB of it along z"}},
		Flags: slices.Concat([]cli.Flag{
			{Name: "slice", Short: "z", Kind: cli.Int, Value: "N", Note: "the only one", Check: cli.AtLeast(0), Usage: "number of the slice to make, as in the names of its tiles"},
			{Name: "all", Kind: cli.Bool, Usage: "make all slices; OUT is a folder"},
			{Name: "list", Kind: cli.Bool, Usage: "write no image; print slices, grids of tiles, voxel sizes and stage positions"},
			{Name: "json", Kind: cli.Bool, Usage: "print JSON instead of a table with --list, with the position of every tile"},
			{Name: "tiles", Kind: cli.Strings, Value: "DIR", Usage: "folders of tiles to use in place of RAW; further ones may follow OUT"},
			{Name: "from_root_directory", Value: "DIR", Hidden: true, Usage: "the folder RAW, if the only argument is OUT"},
			{Name: "data_type", Default: "OCT", Choices: []string{"OCT"}, Hidden: true, Usage: "kind of the raw data"},
			{Name: "resolution", Short: "r", Kind: cli.Float, Default: "10", Value: "UM", Check: checkResolution, Usage: "voxel size of the output in µm, along all axes; -1 keeps that of the tiles"},
			{Name: "axial_resolution", Kind: cli.Float, Note: "as info.txt states it, or else 3.5", Value: "UM", Check: cli.Between(0.01, 1000), Usage: "distance of the samples of an A-line in µm, 0.01 to 1000"},
			{Name: "sampling", Default: "centre", Choices: []string{"centre", "corner"},
				Usage: "where to sample a tile: at the centres of equal parts (centre), or from its first voxel to its last (corner), as linumpy does, which distorts distances by some percent"},
			{Name: "keep_galvo_return", Kind: cli.Bool, Usage: "keep the A-lines of the mirror's way back, and frames beyond ny"},
			{Name: "fix_galvo_shift", Kind: cli.Bool, Default: "true", Usage: "roll the A-lines of all tiles so that those of the mirror's way back come last, if they lie elsewhere"},
			{Name: "galvo_threshold", Kind: cli.Float, Default: "0.6", Check: cli.Between(0, 1), Usage: "confidence from which on --fix_galvo_shift does so, 0 to 1"},
			{Name: "fix_camera_shift", Kind: cli.Bool, Usage: "roll the A-lines of each tile so that its brightest one comes first, for data whose camera ran apart from the mirror"},
			{Name: "preprocess", Kind: cli.Bool, Usage: "exchange and reverse the axes y and x of tiles, for old data"},
			{Name: "whole_tiles", Kind: cli.Bool, Usage: "store a tile as one chunk, however large it is, as linumpy's programs need it; otherwise tiles that are not resampled have chunks of at most 64 MiB"},
			{Name: "sharding_factor", Kind: cli.Int, Default: "1", Check: cli.Between(1, 1024), Usage: "number of tiles along y and x that share a file, 1 to 1024; more than 1 needs Zarr format 3"},
		}, productFlags(), fileFlags()),
		Examples: []cli.Example{
			{Command: "mosaic raw mosaic_grid_3d_z04.ome.zarr --slice 4", Usage: "slice 4, at 10 µm"},
			{Command: "mosaic raw mosaics --all --resolution -1 --axial_resolution 2.5", Usage: "all slices with the voxels of the tiles, 2.5 µm deep"},
			{Command: "mosaic raw mosaics --all -r -1 --aip aip --resampled resampled --resampled_resolution 5", Usage: "also projections, and mosaics at 5 µm, in folders"},
			{Command: "mosaic raw -z 4 -r -1 --no-keep_mosaic --resampled mosaic_10um.ome.zarr", Usage: "only the mosaic at 10 µm, blurred like by resample"},
			{Command: "mosaic raw --list", Usage: "what there is: slices, grids, voxel sizes, positions"},
			{Command: "mosaic raw --list --json --slice 4 | jq '.slices[0].positions'", Usage: "stage positions of the tiles of slice 4"},
			{Command: "mosaic scan tiles.ome.zarr --pattern 'tile_{row}_{col}.tif' --overlap 0.1", Usage: "TIFF tiles of any microscope"},
			{Command: "mosaic scan mosaics --all --pattern 'sl{slice}/t{index}_c{c}.tif' --grid 4,6 --snake --voxel_size 2,0.5,0.5", Usage: "numbered tiles of several slices and channels, scanned to and fro"},
			{Command: "mosaic part.ome.zarr --tiles raw/z04/tile_x00_y00_z04,raw/z04/tile_x00_y01_z04", Usage: "two tiles"},
		},
		Aliases: []cli.Alias{{
			Name: "linum-create-mosaic-grid-3d", Defaults: cli.Defaults{"overwrite": "true", "sampling": "corner", "preprocess": "true", "whole_tiles": "true"},
			Flags: map[string]string{"from_tiles_list": "tiles"},
			Ignored: []cli.Flag{
				{Name: "n_processes", Kind: cli.Int, Ignored: "--threads sets the number of workers"},
				{Name: "use_gpu", Kind: cli.Bool, Ignored: "tiles are made on the CPU"},
			},
		}},
		Run: cli.Do(run),
	}
}

// checkResolution accepts a voxel size that microscopes have, or −1.
func checkResolution(v any) error {
	if v.(float64) == -1 {
		return nil
	}
	if err := cli.VoxelSize(v); err != nil {
		return fmt.Errorf("%w, or -1 for the voxels of the tiles", err)
	}
	return nil
}

func options(r *cli.Run) mosaic.Options {
	return mosaic.Options{
		Resolution: max(0, r.Float("resolution")), Axial: r.Float("axial_resolution"), Corner: r.String("sampling") == "corner",
		KeepReturn: r.Bool("keep_galvo_return"), Galvo: r.Bool("fix_galvo_shift"), GalvoThreshold: r.Float("galvo_threshold"),
		Camera: r.Bool("fix_camera_shift"), Legacy: r.Bool("preprocess"), Sharding: r.Int("sharding_factor"), Whole: r.Bool("whole_tiles"),
	}
}

func run(ctx context.Context, r *cli.Run) error {
	if r.IsSet("pattern") {
		return runFiles(ctx, r)
	}
	if err := stage.NoTiles(r); err != nil {
		return err
	}
	for _, name := range []string{"overlap", "save_positions"} {
		if r.IsSet(name) {
			return cli.Usage("--%s is for tiles in files: give --pattern as well", name)
		}
	}
	in, err := inputs(ctx, r)
	if err != nil {
		return err
	}
	if r.Bool("list") {
		return list(ctx, r, in)
	}
	var made []*mosaic.Mosaic
	var total int64
	for _, s := range in.slices {
		m, err := mosaic.Open(ctx, s, options(r))
		if err != nil {
			return stage.Failed(err)
		}
		for _, w := range m.Warnings {
			r.Warn("%s", w)
		}
		made, total = append(made, m), total+m.Bytes()
	}
	var all []*outputs
	for _, m := range made {
		out, err := begin(ctx, r, in, mosaic.Name(m.Slice.ID))
		if err != nil {
			return err
		}
		defer out.close()
		all = append(all, out)
	}
	task := r.Progress("mosaic", total)
	for i, m := range made { // before the first is made
		if err := m.Enough(ctx, all[i].mosaic != nil, stage.Layout(r), stage.Resources(r, task), all[i].made...); err != nil {
			return stage.Failed(err)
		}
	}
	var rolled []string
	for i, m := range made {
		result, err := m.Write(ctx, all[i].store(), stage.Layout(r), stage.Resources(r, task), all[i].made...)
		if err != nil {
			return stage.Failed(err)
		}
		if result.Shift != 0 {
			rolled = append(rolled, fmt.Sprintf("z%02d by %d (confidence %.2f)", m.Slice.ID, result.Shift, result.Galvo.Confidence))
		}
		if err := all[i].wrote(r, result); err != nil {
			return err
		}
	}
	task.Done()
	r.Read(runrecord.Dataset{Path: address.Address(in.root), DType: "float32", Bytes: total})
	if len(rolled) > 0 {
		r.Conclude("A-lines rolled: %s", strings.Join(rolled, ", "))
	}
	return nil
}

// within returns the path of an image in a folder or bucket. The output makes the folder, and takes it back if the run
// fails.
func within(dir, name string) string {
	if cli.InBucket(dir) {
		return strings.TrimSuffix(dir, "/") + "/" + name
	}
	return filepath.Join(dir, name)
}
