// Package phantom implements the command phantom, which generates mosaic grids with a known ground truth.
package phantom

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/zarrout"
	"strata/pkg/dtype"
	"strata/pkg/phantom"
	"strata/pkg/replace"
	"strata/pkg/runrecord"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

// Command returns the command phantom.
func Command() *cli.Command {
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
		Args:     []cli.Arg{{Name: "OUT", Usage: "folder to write"}},
		Flags:    flags(),
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
		Run: cli.Do(run),
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
	chosen, err := chosen(r, s)
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
		return cli.Usage("%w", err)
	}
	for name, v := range map[string][]int{"chunks": st.Chunks, "shard": st.Shard} {
		if v != nil && len(v) != 3 {
			return cli.Usage("--%s has %d axes, a mosaic has 3 (z, y, x)", name, len(v))
		}
	}
	out, err := r.OutputFolder(r.Arg("OUT"), replace.ByRule(ctx, written))
	if err != nil {
		return err
	}
	shape := c.Shape()
	each := int64(c.DType.Size()) * int64(shape[0]) * int64(shape[1]+c.Extra*c.Tiles[0]) * int64(shape[2])
	task := r.Progress("make", int64(len(chosen))*each)
	st.Progress = task.Add
	if err := writeTruth(s, out.Work(), r.Bool("truth_surface"), r.IsSet("stage_error")); err != nil {
		return err
	}
	folder := func(name string) store.Writer {
		return store.Folder(filepath.Join(out.Work(), name), store.Sync(o.Sync))
	}
	if err := writeSlices(ctx, r, s, chosen, out, folder, st); err != nil {
		return err
	}
	task.Done()
	if !r.Bool("truth_slices") {
		return nil
	}
	st.Progress, st.Shard = nil, nil
	for i := range c.Slices {
		if r.IsSet("only_slices") && !slices.Contains(chosen, i) {
			continue
		}
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

// chosen returns the slices whose voxels are written.
func chosen(r *cli.Run, s *phantom.Specimen) (written []int, err error) {
	n, only := s.Config().Slices, r.Ints("only_slices")
	for _, i := range only {
		if i >= n || !s.Present(i) {
			return nil, cli.Usage("--only_slices %d: there are %d slices from 0, without those of --missing_slices", i, n)
		}
	}
	if r.IsSet("only_slices") && r.Bool("czi") {
		return nil, cli.Usage("--only_slices is for mosaic grids and raw tiles, not for --czi")
	}
	for i := range n {
		if s.Present(i) && (len(only) == 0 || slices.Contains(only, i)) {
			written = append(written, i)
		}
	}
	return written, nil
}

// writeSlices writes the mosaic grids, or raw tiles, of slices.
func writeSlices(ctx context.Context, r *cli.Run, s *phantom.Specimen, written []int, out *atomic.Output, folder func(string) store.Writer, st phantom.Storage) (err error) {
	c := s.Config()
	shape := c.Shape()
	for _, i := range written {
		name := phantom.MosaicName(i) + ".ome.zarr"
		if c.Raw {
			name = phantom.RawName(i)
			err = s.WriteRaw(ctx, filepath.Join(out.Work(), name), i, phantom.Files{Workers: st.Workers, Mem: st.Mem, Progress: func(n int64) {
				r.Meter.AddWritten(n)
				st.Progress(n)
			}})
		} else if err = s.WriteMosaic(ctx, folder(name), i, st); err == nil {
			err = zarrout.Complete(ctx, r, folder(name), out.Path())
		}
		if err != nil {
			return err
		}
		r.Wrote(runrecord.Dataset{Path: address.Address(filepath.Join(out.Path(), name)), Shape: shape[:], DType: c.DType.String(), VoxelSize: c.Voxel[:], Format: st.Format})
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
