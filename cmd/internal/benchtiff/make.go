package benchtiff

import (
	"context"

	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
	"strata/pkg/cli/tiffout"
	"strata/pkg/dtype"
	"strata/pkg/tiff/tiffwriter"
	"strata/pkg/work"
)

func makeCommand() *cli.Command {
	return &cli.Command{
		Name:  "make",
		Usage: "make a pyramidal TIFF file of any size to measure with",
		Description: "The same flags give the same file. Each level is a page of the file, whose pixels are the means of 2 × 2 pixels\n" +
			"of the level above.",
		Args: []cli.Arg{{Name: "OUT", Usage: "TIFF file to write, such as slide.tif"}},
		Flags: []cli.Flag{
			{Name: "width", Kind: cli.Int, Default: "26420", Check: cli.Between(1, 1<<24), Usage: "width of level 0 in pixels"},
			{Name: "height", Kind: cli.Int, Default: "19920", Check: cli.Between(1, 1<<24), Usage: "height of level 0 in pixels"},
			{Name: "samples", Kind: cli.Int, Default: "3", Check: cli.Between(1, 4), Usage: "number of samples per pixel: 1 for grey, 3 for RGB, 4 for RGBA"},
			{Name: "dtype", Default: "uint8", Choices: []string{"uint8", "uint16", "float32"}, Usage: "data type of the samples"},
			{Name: "tile_size", Kind: cli.Int, Default: "512", Value: "PX", Check: cli.Between(16, 1<<14), Usage: "width and height of the tiles in pixels, a multiple of 16, 16 to 16384"},
			{Name: "compression", Default: "raw", Value: "NAME[:LEVEL]", Usage: "compression of the tiles: raw, zstd, deflate, lzw, packbits, or jpeg:QUALITY for 8-bit pixels"},
			{Name: "n_levels", Kind: cli.Int, Note: "until a level fits into one tile", Check: cli.Between(0, 30), Usage: "number of pyramid levels below level 0, 0 to 30"},
			{Name: "pixel_size", Kind: cli.Float, Default: "0.25", Value: "UM", Check: cli.VoxelSize, Usage: "width and height of a pixel of level 0, in µm"},
			{Name: "seed", Kind: cli.Int, Default: "1", Check: cli.Between(0, 1<<53), Usage: "seed of the random numbers, from 0; another seed makes another image"},
			{Name: "pattern", Default: "tissue", Choices: []string{"tissue", "noise", "smooth"}, Usage: "content of the image: stained tissue on white, which compresses like a slide (tissue); noise, which does not compress; or smooth, which compresses very well"},
		},
		Shared:   cli.Resources | cli.Outputs,
		Defaults: benchkit.FixedMem,
		Examples: []cli.Example{
			{Command: "bench-tiff make slide.tif", Usage: "26420 × 19920 RGB pixels, uncompressed: 2.1 GB with its levels"},
			{Command: "bench-tiff make small.tif --width 13210 --height 9960 --compression jpeg:80 --n_levels 0", Usage: "one level, compressed as by a scanner"},
		},
		Run: cli.Do(runMake),
	}
}

func runMake(ctx context.Context, r *cli.Run) error {
	s := tiffwriter.Spec{Width: r.Int("width"), Height: r.Int("height"), Samples: r.Int("samples"), Tile: r.Int("tile_size"),
		Workers: r.Options.Threads, Budget: r.Options.Mem / 2}
	s.Image.VoxelUM[1], s.Image.VoxelUM[2] = r.Float("pixel_size"), r.Float("pixel_size")
	if s.Samples == 2 {
		return cli.Usage("--samples 2: want 1, or 3 or 4 for RGB and RGBA")
	}
	var err error
	if s.Type, err = dtype.Parse(r.String("dtype")); err != nil {
		return err
	}
	s.Levels = tiffwriter.Levels(s.Width, s.Height, s.Tile)
	if r.IsSet("n_levels") {
		s.Levels = min(r.Int("n_levels"), tiffwriter.MaxLevels(s.Width, s.Height))
	}
	if err := finishSpec(r, &s); err != nil {
		return err
	}
	out, err := r.OutputFile(r.Arg("OUT"))
	if err != nil {
		return err
	}
	p := newPattern(r.String("pattern"), uint64(r.Int("seed")), s.Samples, s.Type)
	task := r.Progress("make", int64(s.Width)*int64(s.Height)*int64(s.Samples*s.Type.Size()))
	defer task.Done()
	return tiffout.Write(ctx, r, out, s, task, func(ctx context.Context, b *tiffwriter.Band) error {
		row := s.Width * s.Samples * s.Type.Size()
		painters := make([]*painter, r.Options.Threads)
		return work.Each(ctx, r.Options.Threads, b.Rows, func(worker, i int) error {
			if painters[worker] == nil {
				painters[worker] = p.painter(s.Width)
			}
			painters[worker].row(b.Row+i, b.Data[i*row:(i+1)*row])
			return nil
		})
	})
}
