package benchtiff

import (
	"cmp"
	"context"
	"errors"

	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/tiffout"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tiffstore"
	"strata/pkg/tiff/tiffwriter"
	"strata/pkg/zarr"
)

func convertCommand() *cli.Command {
	return &cli.Command{
		Name:  "convert",
		Usage: "copy a pyramid to a TIFF file with tiles of another size or compression",
		Description: "Takes the flags of `cucim convert`. Copies each level to a page of its own, levels smaller than a tile included.\n" +
			"zarr-tool export makes OME-TIFF files from any image.",
		Args: []cli.Arg{{Name: "IN", Usage: "TIFF file: path, or http(s):// or s3:// URL"}, {Name: "OUT", Usage: "TIFF file to write, such as resize.tiff; or --output_filename", Optional: true}},
		Flags: []cli.Flag{
			{Name: "tile_size", Kind: cli.Int, Default: "512", Value: "PX", Check: cli.Between(16, 1<<14), Usage: "width and height of the tiles in pixels, a multiple of 16, 16 to 16384"},
			{Name: "overlap", Kind: cli.Int, Default: "0", Check: cli.AtLeast(0), Usage: "accepted for compatibility with cucim convert; must be 0, because tiles of a TIFF file do not overlap"},
			{Name: "num_workers", Kind: cli.Int, Note: "same as --threads", Check: cli.Between(1, 4096), Usage: "number of threads that encode tiles, 1 to 4096"},
			{Name: "output_filename", Value: "FILE", Usage: "the same as OUT, as for cucim convert"},
			{Name: "compression", Default: "raw", Value: "NAME[:LEVEL]", Usage: "compression of the tiles: raw, zstd, deflate, lzw, packbits, or jpeg:QUALITY for 8-bit pixels"},
		},
		Shared:   cli.Resources | cli.Outputs,
		Defaults: benchkit.FixedMem,
		Examples: []cli.Example{
			{Command: "bench-tiff convert --tile_size 512 --overlap 0 --num_workers 12 --output_filename resize.tiff --compression RAW TUPAC-TR-467.svs", Usage: "make the input of cuCIM's GPUDirect Storage examples"},
		},
		Run: cli.Do(runConvert),
	}
}

// conversion is an image being written to another file.
type conversion struct {
	store  *tiffstore.Store
	image  *tiff.Image
	levels []*zarr.Array
	spec   tiffwriter.Spec
}

func runConvert(ctx context.Context, r *cli.Run) (err error) {
	if n := r.Int("overlap"); n != 0 {
		return cli.Usage("--overlap %d: tiles of a TIFF file do not overlap: give 0, as for cucim convert", n)
	}
	name := cmp.Or(r.String("output_filename"), r.Arg("OUT"))
	if name == "" || r.IsSet("output_filename") && r.Arg("OUT") != "" {
		return cli.Usage("name one TIFF file to write, as OUT or with --output_filename")
	}
	path, err := r.Input(r.Arg("IN"))
	if err != nil {
		return err
	}
	st, err := openFile(ctx, r, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	c := &conversion{store: st, image: st.File().Images[0]}
	if err := c.plan(ctx, r, path); err != nil {
		return err
	}
	out, err := r.OutputFile(name)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, a := range c.levels {
		total += datasets.Bytes(a)
	}
	r.Read(datasets.Describe(c.levels[0], path))
	task := r.Progress("convert", total)
	defer task.Done()
	return tiffout.Write(ctx, r, out, c.spec, task, c.fill)
}

// plan opens the levels and determines what is written.
func (c *conversion) plan(ctx context.Context, r *cli.Run, path string) error {
	s := &c.spec
	im := c.image
	if n := im.Times * im.Channels * im.Depths; n != 1 {
		return cli.Usage("%s: is a stack of %d planes: zarr-tool export writes those", path, n)
	}
	for k, l := range im.Levels {
		layout := l.Layout()
		if layout == nil || c.store.PageKey(l.Pages[0]) == "" {
			return cli.BadInputf("%s: level %d lies in another file", path, k)
		}
		if layout.Depth > 1 || layout.Separate && layout.Samples > 1 || layout.Photometric == tiff.Palette {
			return cli.Usage("%s: has volumes, separate planes or a palette: zarr-tool export writes those", path)
		}
		a, err := zarr.OpenArray(ctx, c.store, c.store.PageKey(l.Pages[0]), zarr.Workers(r.Options.Threads), zarr.Budget(r.Options.Mem/4), zarr.Meter(r.Meter))
		if err != nil {
			return cli.BadInput(err)
		}
		c.levels = append(c.levels, a)
		if k == 0 {
			s.Width, s.Height, s.Samples, s.Type = layout.Width, layout.Height, layout.Samples, layout.Type
			continue
		}
		s.Below = append(s.Below, [2]int{layout.Width, layout.Height})
	}
	s.Image.VoxelUM = im.VoxelUM
	s.Tile, s.Workers, s.Budget = r.Int("tile_size"), r.Options.Threads, r.Options.Mem/2
	if r.IsSet("num_workers") {
		s.Workers = r.Int("num_workers")
	}
	return finishSpec(r, s)
}

// finishSpec sets what all files of this program have in common.
func finishSpec(r *cli.Run, s *tiffwriter.Spec) error {
	c, err := tiffwriter.ParseCompression(r.String("compression"))
	if err != nil {
		return cli.Usage("--compression: %w", err)
	}
	c.Apply(s, true)
	s.Plain, s.Chained, s.Software = true, true, "strata bench-tiff"
	return nil
}

// fill reads a band.
func (c *conversion) fill(ctx context.Context, b *tiffwriter.Band) error {
	a := c.levels[b.Level]
	region := a.Bounds()
	region.Start[0], region.Shape[0] = b.Row, b.Rows
	if err := a.Read(ctx, region, b.Data); err != nil {
		return cli.BadInput(err)
	}
	return nil
}
