// Package phantom implements the command phantom, which generates mosaic grids with a known ground truth.
package phantom

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/zarrout"
	"strata/pkg/dtype"
	"strata/pkg/phantom"
	"strata/pkg/record"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// Command returns the command phantom.
func Command() *cli.Command {
	d := phantom.Default()
	num := func(v float64) string { return fmt.Sprintf("%g", v) }
	fraction := cli.Between(0, 1)
	positive := cli.AtLeast(0)
	return &cli.Command{
		Name:  "phantom",
		Usage: "simulate OCT mosaic grids, raw tiles and slide scans whose truth is known",
		Description: "Writes one mosaic grid per slice (mosaic_grid_3d_z<NN>.ome.zarr), the motor shifts as the microscope recorded\n" +
			"them (shifts_xy.csv), and the truth (truth.json, truth/*.npy). 0 switches an effect off. The same seed and\n" +
			"settings give the same bytes. The output can be larger than memory.\n\n" +
			"With --raw each slice is a folder of raw tiles (z<NN>/tile_x<XX>_y<YY>_z<NN>) as the microscope writes them and mosaic\n" +
			"reads them: info.txt with the stage's positions, and frames of float32 A-lines. Tile x and the A-lines run along y of\n" +
			"the mosaic grid. The stage carries the specimen, so its positions fall where those of the view rise.\n\n" +
			"With --czi each slice is a slide scan (scan_z<NN>.czi). Its tiles lie where the stage was sent, which differs\n" +
			"from their true positions by --jitter, --rotation and --stage_scale; with --stage_error the recorded positions\n" +
			"are the true ones with that error. truth/positions.npy holds the true positions. --codec must then be raw or\n" +
			"zstd.",
		Args: []cli.Arg{{Name: "OUT", Usage: "folder to write"}},
		Flags: []cli.Flag{
			{Name: "seed", Kind: cli.Int, Default: "1", Check: positive, Usage: "seed of the random numbers, from 0; another seed makes another specimen"},
			{Name: "slices", Kind: cli.Int, Default: "1", Check: cli.Between(1, 10000), Usage: "number of slices, 1 to 10000"},
			{Name: "tiles", Kind: cli.Ints, Default: "4,4", Value: "Y,X", Check: cli.Between(1, 1<<12), Usage: "number of tiles of a slice, along y and x"},
			{Name: "tile", Kind: cli.Ints, Default: "96,128,128", Value: "Z,Y,X", Check: cli.Between(1, 1<<14), Usage: "size of a tile in voxels"},
			{Name: "crop", Kind: cli.Ints, Default: "0,0", Value: "Y,X", Check: positive, Usage: "voxels to cut off from the last row (y) and the last column (x) of tiles"},
			{Name: "dtype", Default: "float32", Choices: []string{"uint8", "uint16", "int16", "float32", "float64"}, Usage: "data type of the voxels"},
			{Name: "voxel", Kind: cli.Floats, Default: "3.5,2,2", Value: "Z,Y,X", Check: cli.Above(0), Usage: "voxel size in µm"},
			{Name: "unit", Default: "millimeter", Choices: []string{"nanometer", "micrometer", "millimeter", "meter"}, Usage: "unit in which the metadata state the voxel size"},
			{Name: "gain", Kind: cli.Float, Note: "a tenth of the data type's range; 1000 for floats", Check: cli.Above(0), Usage: "stored value of bright tissue"},
			{Name: "czi", Kind: cli.Bool, Usage: "write slide scans (CZI) instead of mosaic grids; changes the defaults to --tile 1,512,512 --dtype uint16 --speckle 0.02 --water 0 --relief 0 --curvature 0"},
			{Name: "raw", Kind: cli.Bool, Usage: "write raw tiles instead of mosaic grids"},
			{Name: "galvo_extra", Kind: cli.Int, Default: "20", Check: cli.Between(0, 1<<14), Usage: "A-lines of each frame of --raw that are recorded while the mirror flies back"},
			{Name: "galvo_return", Kind: cli.Float, Default: "0.15", Check: positive, Usage: "brightness of these A-lines, where those of the image have 1"},
			{Name: "galvo_shift", Kind: cli.Int, Default: "0", Check: positive, Usage: "A-lines by which frames of --raw begin too late, so that the mirror's way back lies within them; below the tile's length along y"},
			{Name: "rehome", Kind: cli.Float, Default: "0", Check: fraction, Usage: "probability that the stage lost its home in a slice, so that its recorded positions are off, 0 to 1"},
			{Name: "rehome_mm", Kind: cli.Float, Default: "2", Check: positive, Usage: "standard deviation along each axis of how far --rehome puts them off, in mm"},
			{Name: "channels", Kind: cli.Int, Default: "1", Check: cli.Between(1, 64), Usage: "number of channels of the slide scans of --czi, 1 to 64"},
			{Name: "noise", Kind: cli.Bool, Usage: "fill tiles with 12-bit white noise instead of tissue, for benchmarks"},
			{Name: "ideal", Kind: cli.Bool, Usage: "simulate a perfect microscope: no curvature, vignette, speckle, floor, jitter, rotation or glitches"},

			{Name: "overlap", Kind: cli.Float, Default: num(d.Overlap), Check: cli.Between(0, 0.99), Usage: "fraction of a tile that its neighbour covers too, 0 to 0.99"},
			{Name: "rotation", Kind: cli.Float, Default: "0", Check: cli.Between(-180, 180), Usage: "angle between the axes of stage and image, in degrees, -180 to 180"},
			{Name: "stage_scale", Kind: cli.Float, Default: "1", Check: cli.Above(0), Usage: "length of the stage's steps, as a multiple of what they should be"},
			{Name: "matrix", Kind: cli.Floats, Value: "A,B,C,D", Note: "from --rotation and --stage_scale", Usage: "2×2 matrix from stage to image positions (y, x): [[A, B], [C, D]]"},
			{Name: "jitter", Kind: cli.Float, Default: num(d.Jitter), Check: positive, Usage: "standard deviation of tile position errors, in pixels"},
			{Name: "stage_error", Kind: cli.Float, Default: "0", Check: positive, Usage: "standard deviation of the error of recorded tile positions, in µm; above 0 they are written to positions_z<NN>.json, or into --czi files"},
			{Name: "shift", Kind: cli.Float, Default: num(d.Shift), Check: positive, Usage: "standard deviation of the motor shift between slices, in µm"},
			{Name: "glitch", Kind: cli.Float, Default: num(d.Glitch), Check: fraction, Usage: "probability that a recorded shift is wrong, 0 to 1"},
			{Name: "interval", Kind: cli.Float, Default: num(d.Cut), Check: positive, Usage: "slicing interval, in µm"},
			{Name: "water", Kind: cli.Float, Default: num(d.Water), Check: positive, Usage: "depth of water above the tissue, in µm"},
			{Name: "relief", Kind: cli.Float, Default: num(d.Relief), Check: positive, Usage: "height of the undulation of the tissue surface, in µm"},
			{Name: "curvature", Kind: cli.Float, Default: num(d.Bowl), Check: positive, Usage: "depth range of the focal-plane curvature over a tile, in µm"},
			{Name: "attenuation", Kind: cli.Float, Default: num(d.Attenuation), Check: positive, Usage: "attenuation coefficient of tissue, in 1/mm"},
			{Name: "texture", Kind: cli.Float, Default: num(d.Texture), Check: fraction, Usage: "contrast of the random texture of tissue, 0 to 1"},
			{Name: "anatomy", Kind: cli.Float, Default: "1", Check: fraction, Usage: "contrast of cortical layers, white matter, fibre tracts and vessels, 0 to 1; 0 makes random texture alone"},
			{Name: "speckle", Kind: cli.Float, Default: num(d.Speckle), Check: fraction, Usage: "speckle contrast, 0 to 1; 1 is fully developed speckle"},
			{Name: "floor", Kind: cli.Float, Default: num(d.Floor), Check: positive, Usage: "brightness of the detector floor, where tissue has 1"},
			{Name: "agarose", Kind: cli.Float, Default: num(d.Agarose), Check: positive, Usage: "brightness of the agarose around the tissue, where tissue has 1"},
			{Name: "vignette", Kind: cli.Float, Default: num(d.Vignette), Check: fraction, Usage: "darkening of the corners of a tile, 0 to 1"},
			{Name: "slice_rotation", Kind: cli.Float, Default: "0", Check: cli.Between(0, 180), Usage: "standard deviation of the rotation of slices about their centre, in degrees, 0 to 180"},
			{Name: "focus", Kind: cli.Float, Default: "150", Check: positive, Usage: "depth of the beam's focus below the first plane, in µm"},
			{Name: "focus_range", Kind: cli.Float, Default: "0", Check: positive, Usage: "distance from --focus at which the signal is half as bright, in µm; 0: it is the same at all depths"},
			{Name: "missing_slices", Kind: cli.Ints, Value: "N", Check: positive, Usage: "slices that are not written, from 0"},
			{Name: "fill_tissue", Kind: cli.Bool, Usage: "fill the field with tissue, without agarose around it"},

			{Name: "truth_surface", Kind: cli.Bool, Usage: "also write the true depth of the tissue surface under every A-line (truth/surface_z<NN>.npy)"},
			{Name: "truth_slices", Kind: cli.Bool, Usage: "also write each slice as a perfect microscope would see it (truth/slice_z<NN>.ome.zarr)"},
		},
		Shared:   cli.Resources | cli.Outputs | cli.Layout | cli.Pyramid,
		Defaults: cli.Defaults{"n_levels": "0", "zarr_format": "3"},
		Hints:    cli.Hints{"chunks": {Note: "the tile"}},
		Examples: []cli.Example{
			{Command: "phantom mosaics --slices 3", Usage: "three small slices"},
			{Command: "phantom big --tiles 6,6 --tile 200,256,256 --shard 200,512,512 --codec zstd:3", Usage: "1.9 GB of float32, sharded"},
			{Command: "phantom ideal --ideal --dtype uint16 --truth_slices", Usage: "a perfect microscope, with the stitched truth"},
			{Command: "phantom raw --raw --slices 10 --galvo_shift 37 --rehome 0.2 --rotation 1 --slice_rotation 0.5 --focus_range 300 --missing_slices 6", Usage: "raw tiles of ten slices, one missing, with everything that goes wrong"},
			{Command: "phantom scans --czi --tiles 5,6 --channels 2 --overlap 0.1 --jitter 3", Usage: "a slide scan of 30 tiles with stage errors"},
			{Command: "phantom noise --noise --codec raw --tiles 4,4 --tile 512,256,256", Usage: "incompressible data for benchmarks"},
		},
		Run: run,
	}
}

func config(r *cli.Run) (phantom.Config, error) {
	c := phantom.Config{
		Seed: uint64(r.Int("seed")), Slices: r.Int("slices"), Gain: r.Float("gain"), Noise: r.Bool("noise"), FillTissue: r.Bool("fill_tissue"),
		Overlap: r.Float("overlap"), Jitter: r.Float("jitter"), Stage: r.Float("stage_error"), Shift: r.Float("shift"), Glitch: r.Float("glitch"), Cut: r.Float("interval"),
		Water: r.Float("water"), Relief: r.Float("relief"), Bowl: r.Float("curvature"), Attenuation: r.Float("attenuation"),
		Texture: r.Float("texture"), Anatomy: r.Float("anatomy"), Speckle: r.Float("speckle"), Floor: r.Float("floor"), Agarose: r.Float("agarose"), Vignette: r.Float("vignette"),
	}
	c.Turn, c.Missing = r.Float("slice_rotation"), r.Ints("missing_slices")
	if c.Range = r.Float("focus_range"); c.Range > 0 {
		c.Focus = r.Float("focus")
	}
	if c.Rehome = r.Float("rehome"); c.Rehome > 0 {
		c.RehomeBy = 1000 * r.Float("rehome_mm")
	}
	if c.Raw = r.Bool("raw"); c.Raw && r.Bool("czi") {
		return c, cli.Usage("--raw contradicts --czi: give one of them")
	}
	if c.Raw {
		c.Extra, c.Return, c.GalvoShift = r.Int("galvo_extra"), r.Float("galvo_return"), r.Int("galvo_shift")
	}
	var err error
	if c.DType, err = dtype.Parse(r.String("dtype")); err != nil {
		return c, err
	}
	for _, f := range []struct {
		name string
		dst  []int
	}{{"tiles", c.Tiles[:]}, {"tile", c.Tile[:]}, {"crop", c.Crop[:]}} {
		v := r.Ints(f.name)
		if len(v) != len(f.dst) {
			return c, cli.Usage("--%s has %d numbers, want %d", f.name, len(v), len(f.dst))
		}
		copy(f.dst, v)
	}
	v := r.Floats("voxel")
	if len(v) != 3 {
		return c, cli.Usage("--voxel has %d numbers, want 3 (z, y, x)", len(v))
	}
	copy(c.Voxel[:], v)
	if r.Bool("czi") {
		slideScan(r, &c)
	}
	sin, cos := math.Sincos(r.Float("rotation") * math.Pi / 180)
	k := r.Float("stage_scale")
	c.Matrix = [2][2]float64{{k * cos, -k * sin}, {k * sin, k * cos}}
	if m := r.Floats("matrix"); m != nil {
		if len(m) != 4 {
			return c, cli.Usage("--matrix has %d numbers, want 4", len(m))
		}
		c.Matrix = [2][2]float64{{m[0], m[1]}, {m[2], m[3]}}
	}
	if r.Bool("ideal") {
		c = c.Ideal()
	}
	if err := c.Validate(); err != nil {
		return c, cli.Usage("%w", err)
	}
	return c, nil
}

// slideScan sets defaults for a scanned slide, unless the flags were given: one plane, in the tissue.
func slideScan(r *cli.Run, c *phantom.Config) {
	if !r.IsSet("tile") {
		c.Tile = [3]int{1, 512, 512}
	}
	if !r.IsSet("dtype") {
		c.DType = dtype.Uint16
	}
	for name, v := range map[string]*float64{"water": &c.Water, "relief": &c.Relief, "curvature": &c.Bowl} {
		if !r.IsSet(name) {
			*v = 0
		}
	}
	if !r.IsSet("speckle") {
		c.Speckle = 0.02 // a camera's noise
	}
}

func run(ctx context.Context, r *cli.Run) error {
	c, err := config(r)
	if err != nil {
		return err
	}
	s, err := phantom.New(c)
	if err != nil {
		return err
	}
	if r.Bool("czi") {
		return runScans(ctx, r, s)
	}
	if r.IsSet("channels") {
		return cli.Usage("--channels is for slide scans: give --czi as well")
	}
	for _, name := range []string{"galvo_extra", "galvo_return", "galvo_shift"} {
		if r.IsSet(name) && !c.Raw {
			return cli.Usage("--%s is for raw tiles: give --raw as well", name)
		}
	}
	o := r.Options
	st := phantom.Storage{Format: o.ZarrFormat, Chunks: o.Chunks, Shard: o.Shard, Levels: o.Levels, Unit: r.String("unit"),
		Workers: o.Threads, Mem: o.Mem, Meter: r.Meter}
	if st.Codecs, err = codec.FromFlag(o.Codec, c.DType, st.Format); err != nil {
		return cli.Usage("--codec: %w", err)
	}
	for name, v := range map[string][]int{"chunks": st.Chunks, "shard": st.Shard} {
		if v != nil && len(v) != 3 {
			return cli.Usage("--%s has %d axes, a mosaic has 3 (z, y, x)", name, len(v))
		}
	}
	out, err := r.OutputFolder(r.Arg("OUT"), "truth.json")
	if err != nil {
		return err
	}
	shape := c.Shape()
	each := int64(c.DType.Size()) * int64(shape[0]) * int64(shape[1]+c.Extra*c.Tiles[0]) * int64(shape[2])
	task := r.Progress("make", int64(c.Slices-len(c.Missing))*each)
	st.Progress = task.Add
	if err := writeTruth(s, out.Work(), r.Bool("truth_surface"), r.IsSet("stage_error")); err != nil {
		return err
	}
	folder := func(name string) store.Writer {
		return store.Folder(filepath.Join(out.Work(), name), store.Sync(o.Sync))
	}
	for i := range c.Slices {
		if !s.Present(i) {
			continue
		}
		name := phantom.MosaicName(i) + ".ome.zarr"
		if c.Raw {
			name = phantom.RawName(i)
			err = s.WriteRaw(ctx, filepath.Join(out.Work(), name), i, phantom.Files{Workers: o.Threads, Mem: o.Mem, Progress: task.Add})
			r.Meter.AddWritten(each)
		} else if err = s.WriteMosaic(ctx, folder(name), i, st); err == nil {
			err = zarrout.Complete(ctx, r, folder(name), out.Path())
		}
		if err != nil {
			return err
		}
		r.Wrote(record.Dataset{Path: address.Address(filepath.Join(out.Path(), name)), Shape: shape[:], DType: c.DType.String(), VoxelSize: c.Voxel[:], Format: st.Format})
	}
	task.Done()
	if !r.Bool("truth_slices") {
		return nil
	}
	st.Progress, st.Shard = nil, nil
	for i := range c.Slices {
		truth := folder(fmt.Sprintf("truth/slice_z%02d.ome.zarr", i))
		if err := s.WriteTruth(ctx, truth, i, st); err != nil {
			return err
		}
		if err := zarrout.Complete(ctx, r, truth, out.Path()); err != nil {
			return err
		}
	}
	return nil
}

// writeTruth writes everything except the voxels.
func writeTruth(s *phantom.Specimen, dir string, surface, recorded bool) error {
	if err := os.MkdirAll(filepath.Join(dir, "truth"), 0o777); err != nil {
		return err
	}
	files := map[string]func(io.Writer) error{
		"shifts_xy.csv": s.WriteShifts, "truth.json": s.WriteJSON, "truth/flatfield.npy": s.WriteFlatField,
		"truth/curvature.npy": s.WriteCurvature, "truth/positions.npy": s.WritePositions,
	}
	if recorded {
		for i := range s.Config().Slices {
			files[fmt.Sprintf("positions_z%02d.json", i)] = func(w io.Writer) error { return s.WriteRecorded(w, i) }
		}
	}
	if surface {
		for i := range s.Config().Slices {
			files[fmt.Sprintf("truth/surface_z%02d.npy", i)] = func(w io.Writer) error { return s.WriteSurface(w, i) }
		}
	}
	for name, write := range files {
		if err := writeFile(filepath.Join(dir, name), write); err != nil {
			return err
		}
	}
	return nil
}
