// Package benchtile implements the command bench-tile, which measures how fast the tile loader streams an image as
// views, compared with reading the tiles alone and with other programs.
package benchtile

import (
	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
	"strata/pkg/tile"
)

// Command returns the command bench-tile.
func Command() *cli.Command {
	return &cli.Command{
		Name:     "bench-tile",
		Usage:    "measure how fast images stream as tiles with a halo, beside reading the tiles alone",
		Commands: append([]*cli.Command{viewsCommand()}, benchkit.Documents("bench-tile")...),
	}
}

var traversals = map[string]tile.Traversal{
	"naive": tile.Naive, "snake": tile.Snake, "spiral": tile.Spiral, "diagonal": tile.Diagonal, "zigzag": tile.ZigZag, "hilbert": tile.Hilbert,
}

var borders = map[string]tile.BorderMode{
	"zero": tile.Zero, "undefined": tile.Undefined, "replicate": tile.Replicate, "mirror": tile.Mirror, "reflect": tile.Reflect, "wrap": tile.Wrap,
}

// Operators applied to views.
const (
	opNone  = "none"
	opSum   = "sum"
	opMean  = "mean"
	opSobel = "sobel"
)

func viewsCommand() *cli.Command {
	return &cli.Command{
		Name:  "views",
		Usage: "measure streaming all views (tiles with a halo) of an image",
		Description: "Streams all views of a level once, to check that every program shows the same pixels, and then --reps times, in\n" +
			"alternation with loading only the tiles into reused memory with as many threads. The table has medians, and with\n" +
			"several repetitions the slowest and the fastest. GiB/s count what was delivered: the pixels of the tiles, or of\n" +
			"the views, which are more.\n\n" +
			"Each row also has the number of tiles loaded more than once, the time that the consumer waited for views and the\n" +
			"loader for views to be released, and the most memory of views and caches.\n\n" +
			"--json_lines prints one JSON object per row instead, with the fields who, radius, cache (bytes), s (seconds,\n" +
			"median), cpu (processor seconds), image_mbs and view_mbs (MB/s of the pixels of the image and of the views),\n" +
			"views, tiles, again (tiles loaded more than once), loaded (bytes), consumer_wait and loader_wait (seconds),\n" +
			"buffers (bytes) and check.",
		Args: []cli.Arg{{Name: "IMAGE", Usage: "OME-Zarr image, Zarr array or TIFF file: path (also into a .zip or .tif), or http(s):// or s3:// URL"}},
		Flags: []cli.Flag{
			{Name: "radius", Kind: cli.Ints, Default: "0,32", Check: cli.Between(0, 1<<20), Usage: "widths of the halo to measure, in pixels, from 0"},
			{Name: "axes", Kind: cli.Strings, Value: "NAMES", Note: "y and x, or the last two", Usage: "names of the axes that have a halo, such as y,x"},
			{Name: "tile", Kind: cli.Ints, Value: "Y,X", Note: "the stored tiles", Check: cli.Between(1, cli.MostAxis), Usage: "tile shape to use instead of the stored one, along the last axes, in pixels"},
			{Name: "level", Kind: cli.Int, Default: "0", Check: cli.Between(0, 1000), Usage: "pyramid level to stream"},
			{Name: "array", Value: "PATH", Usage: "array inside IMAGE to stream, such as labels/cells/0"},
			{Name: "order", Default: "naive", Choices: []string{"naive", "snake", "spiral", "diagonal", "zigzag", "hilbert"}, Usage: "order in which to request views"},
			{Name: "ordered", Kind: cli.Bool, Usage: "deliver views in the order of --order, instead of as they become ready"},
			{Name: "border", Default: "zero", Choices: []string{"zero", "undefined", "replicate", "mirror", "reflect", "wrap"}, Usage: "pixels that views have outside the image"},
			{Name: "cache", Kind: cli.Strings, Value: "SIZE,...", Default: "10MiB", Usage: "sizes of the tile cache to measure"},
			{Name: "views", Kind: cli.Int, Note: "number of threads plus 1", Check: cli.Between(1, 1e6), Usage: "number of views that exist at a time"},
			{Name: "copy_threads", Kind: cli.Int, Note: "same as --threads", Check: cli.Between(1, 4096), Usage: "number of threads that may copy pixels at a time, 1 to 4096"},
			{Name: "op", Default: opNone, Choices: []string{opNone, opSum, opMean, opSobel}, Usage: "what the consumer computes of each view: nothing, the sum or mean of its pixels, or the Sobel gradient of its tile"},
			{Name: "cold", Kind: cli.Bool, Usage: "drop the image from the page cache before each repetition"},
			{Name: "reps", Kind: cli.Int, Default: "5", Check: cli.Between(1, 1000), Usage: "number of repetitions of each measurement, 1 to 1000"},
			{Name: "peers", Kind: cli.Bool, Usage: "also measure a C++ program that reads tiles by libtiff (raw ones by pread) with a cache; it is compiled first"},
			{Name: "cxx", Value: "PROGRAM", Default: "g++", Usage: "C++ compiler for --peers"},
			{Name: "peer", Kind: cli.Strings, Value: "NAME=PROGRAM", Usage: "also measure this program, which streams views as docs/bench-tile.md describes"},
			{Name: "results", Aliases: []string{"json"}, Value: "FILE", Usage: "also write the results to FILE as JSON, which compare and html read"},
			{Name: "html", Value: "FILE", Usage: "also write the results to FILE as a web page with plots"},
			{Name: "json_lines", Kind: cli.Bool, Usage: "print one line of JSON per row instead of the table"},
		},
		Shared:   cli.Resources | cli.Outputs,
		Defaults: benchkit.FixedMem,
		Examples: []cli.Example{
			{Command: "bench-tile views mosaic.ome.zarr", Usage: "views without a halo and with one of 32 pixels"},
			{Command: "bench-tile views slide.ome.zarr --radius 0,1,8,32 --cache 10MiB,100MiB --html views.html", Usage: "radii and caches, with a page"},
			{Command: "bench-tile views slide.ome.zarr --radius 1 --op sobel --order hilbert --threads 4", Usage: "with an operator, in another order"},
			{Command: "bench-tile views slide.ome.zarr --peers --peer fast=./fast-views", Usage: "beside other programs"},
		},
		Run: cli.Do(runViews),
	}
}
