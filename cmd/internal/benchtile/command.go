// Package benchtile is the command bench-tile, which measures how fast the tile loader streams an image as views, beside
// reading the same tiles alone and beside other programs.
package benchtile

import (
	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
	"strata/pkg/tile"
)

// Command is bench-tile.
func Command() *cli.Command {
	return &cli.Command{
		Name:     "bench-tile",
		Usage:    "how fast images are streamed as tiles with a halo, beside reading the tiles alone",
		Commands: append([]*cli.Command{viewsCommand()}, benchkit.Documents("bench-tile")...),
	}
}

var traversals = map[string]tile.Traversal{
	"naive": tile.Naive, "snake": tile.Snake, "spiral": tile.Spiral, "diagonal": tile.Diagonal, "zigzag": tile.ZigZag, "hilbert": tile.Hilbert,
}

var borders = map[string]tile.BorderMode{
	"zero": tile.Zero, "undefined": tile.Undefined, "replicate": tile.Replicate, "mirror": tile.Mirror, "reflect": tile.Reflect, "wrap": tile.Wrap,
}

// Operators that compute with views.
const (
	opNone  = "none"
	opSum   = "sum"
	opMean  = "mean"
	opSobel = "sobel"
)

func viewsCommand() *cli.Command {
	return &cli.Command{
		Name:  "views",
		Usage: "streams all views of an image",
		Description: "All views of a level are streamed once to see that every program shows the same pixels, and then --reps times, in\n" +
			"turns with loading the tiles alone into memory that is used again, by as many threads. The table has medians, and\n" +
			"with several repetitions the slowest and the fastest. GiB/s are of what was delivered: the pixels of the tiles, or\n" +
			"of the views, which are more. Behind each row stand how many tiles were loaded more than once, how long the\n" +
			"consumer waited for views and the loader for views to be released, and the most memory of views and caches.\n\n" +
			"--json-lines prints one object a line for each row instead, with the fields who, radius, cache (bytes), s (seconds, the\n" +
			"median), cpu (processor seconds), image_mbs and view_mbs (MB/s of the image's pixels and of the views'), views, tiles,\n" +
			"again (tiles loaded more than once), loaded (bytes), consumer_wait and loader_wait (seconds), buffers (bytes) and check.",
		Args: []cli.Arg{{Name: "IMAGE", Usage: "OME-Zarr image, Zarr array or TIFF file: a path, also into a .zip or .tif, or an address http(s):// or s3://"}},
		Flags: []cli.Flag{
			{Name: "radius", Kind: cli.Ints, Default: "0,32", Check: cli.Between(0, 1<<20), Usage: "width of the halo in pixels, one after the other"},
			{Name: "axes", Kind: cli.Strings, Value: "NAMES", Note: "y and x, or the last two", Usage: "axes that have the halo"},
			{Name: "tile", Kind: cli.Ints, Value: "Y,X", Note: "the stored ones", Check: cli.Between(1, cli.MostAxis), Usage: "shape of the tiles along the last axes, whatever is stored"},
			{Name: "level", Kind: cli.Int, Default: "0", Check: cli.Between(0, 1000), Usage: "of the pyramid"},
			{Name: "array", Value: "PATH", Usage: "array in IMAGE that is meant, such as labels/cells/0"},
			{Name: "order", Default: "naive", Choices: []string{"naive", "snake", "spiral", "diagonal", "zigzag", "hilbert"}, Usage: "in which views are asked for"},
			{Name: "ordered", Kind: cli.Bool, Usage: "deliver views in that order, rather than as they become ready"},
			{Name: "border", Default: "zero", Choices: []string{"zero", "undefined", "replicate", "mirror", "reflect", "wrap"}, Usage: "what views show outside the image"},
			{Name: "cache", Kind: cli.Strings, Value: "SIZE,...", Default: "10MiB", Usage: "memory for tiles, one after the other"},
			{Name: "views", Kind: cli.Int, Note: "one more than threads", Check: cli.Between(1, 1e6), Usage: "views that exist at a time"},
			{Name: "copy_threads", Kind: cli.Int, Note: "as --threads", Check: cli.Between(1, 4096), Usage: "threads that may copy at a time"},
			{Name: "op", Default: opNone, Choices: []string{opNone, opSum, opMean, opSobel}, Usage: "what is computed of each view, by the consumer: of its pixels, or of the central tile's neighbourhoods"},
			{Name: "cold", Kind: cli.Bool, Usage: "let the page cache forget the image before each repetition"},
			{Name: "reps", Kind: cli.Int, Default: "5", Check: cli.Between(1, 1000), Usage: "repetitions"},
			{Name: "peers", Kind: cli.Bool, Usage: "beside tiles read by libtiff, or raw ones by pread, with a cache: a program in C++ that is compiled for it"},
			{Name: "cxx", Value: "PROGRAM", Default: "g++", Usage: "compiler of --peers"},
			{Name: "peer", Kind: cli.Strings, Value: "NAME=PROGRAM", Usage: "another program that streams views, as docs/bench-tile.md says"},
			{Name: "json", Value: "FILE", Usage: "write the results as JSON, for compare and html"},
			{Name: "html", Value: "FILE", Usage: "write a page with plots"},
			{Name: "json_lines", Kind: cli.Bool, Usage: "print a line of JSON for each row instead of a table"},
		},
		Shared: cli.Resources | cli.Outputs,
		Examples: []cli.Example{
			{Command: "bench-tile views mosaic.ome.zarr", Usage: "views without a halo, and with one of 32 pixels"},
			{Command: "bench-tile views slide.ome.zarr --radius 0,1,8,32 --cache 10MiB,100MiB --html views.html", Usage: "radii and caches, with a page"},
			{Command: "bench-tile views slide.ome.zarr --radius 1 --op sobel --order hilbert --threads 4", Usage: "an operator, in another order"},
			{Command: "bench-tile views slide.ome.zarr --peers --peer fast=./fast-views", Usage: "beside other programs"},
		},
		Run: runViews,
	}
}
